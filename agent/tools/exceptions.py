"""Errors of the tools package.

ToolError             the tool says that it could not do what was asked; the model is told and the run goes on (R80)
ToolDeclarationError  a function cannot become a tool; raised while the module is imported
ClientToolError       INVALID_ARGUMENT: a front-end tool cannot be registered (R101, R105)
ArgumentsError        the model's arguments break the input schema; the function is not called (R106)
"""

from __future__ import annotations

from agent.runtime.exceptions import InvalidArgument


class ToolError(Exception):
    """Raised by a tool function to report a failure that the model should hear about and handle."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ToolDeclarationError(TypeError):
    """Raised when a decorated function lacks what a tool needs."""


class ClientToolError(InvalidArgument):
    """Raised when the name, description or input schema of a front-end tool cannot be used; the message says where."""


class ArgumentsError(ValueError):
    """Raised when arguments break the input schema; the message names each field and is written for the model."""
