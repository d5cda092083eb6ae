"""Tools: the decorator, front-end tools, the error that a tool reports, and the context that it may ask for."""

from agent.runtime.tools import ToolContext
from agent.tools.client import client_tool
from agent.tools.exceptions import ClientToolError, ToolDeclarationError, ToolError
from agent.tools.function import tool

__all__ = ["ClientToolError", "ToolContext", "ToolDeclarationError", "ToolError", "client_tool", "tool"]
