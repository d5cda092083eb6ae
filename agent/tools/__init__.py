"""Tools: the decorator, the error that a tool reports, and the context that it may ask for."""

from agent.runtime.tools import ToolContext
from agent.tools.exceptions import ToolDeclarationError, ToolError
from agent.tools.function import tool

__all__ = ["ToolContext", "ToolDeclarationError", "ToolError", "tool"]
