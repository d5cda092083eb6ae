"""The Python client of a PAR site: `Client` for plain programs, `AsyncClient` for asyncio. docs/client.md shows it.

It knows the wire only: nothing of Django, of the site or of the engine is loaded with it.
"""

from conversations.client.aio import AsyncClient
from conversations.client.events import (
    ApprovalRequested,
    ApprovalResolved,
    Event,
    Message,
    MessageAdded,
    Outcome,
    ReasoningDelta,
    Result,
    Revision,
    RunEnded,
    RunFailed,
    TextDelta,
    TextLost,
    ToolEnded,
    ToolProgress,
    ToolStarted,
)
from conversations.client.exceptions import NotConnected, ParError, ProtocolViolation, Unanswered
from conversations.client.run import AsyncRun
from conversations.client.sync import Client, Run
from conversations.client.tools import Tool, client_tool

__all__ = [
    "ApprovalRequested",
    "ApprovalResolved",
    "AsyncClient",
    "AsyncRun",
    "Client",
    "Event",
    "Message",
    "MessageAdded",
    "NotConnected",
    "Outcome",
    "ParError",
    "ProtocolViolation",
    "ReasoningDelta",
    "Result",
    "Revision",
    "Run",
    "RunEnded",
    "RunFailed",
    "TextDelta",
    "TextLost",
    "Tool",
    "ToolEnded",
    "ToolProgress",
    "ToolStarted",
    "Unanswered",
    "client_tool",
]
