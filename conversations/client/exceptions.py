"""What the client raises.

ParError                what the server refused, or how a run failed; `code` is stable
├── NotConnected        there is no connection, and none will come by itself
├── Unanswered          a command got no answer in time
└── ProtocolViolation   the other side does not speak `par.v1` as it is written
"""

from __future__ import annotations


class ParError(Exception):
    """Raised for everything that goes wrong with a stable `code`; docs/protocol.md lists those of the server.

    `current_revision` is where the conversation stands, for `CONVERSATION_CONFLICT`.
    """

    def __init__(self, code: str, message: str, *, current_revision: int | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.current_revision = current_revision


class NotConnected(ParError):
    """Raised when the site cannot be reached, refuses this client, or the client was closed."""


class Unanswered(ParError):
    """Raised when a command got no answer in time; whether it was carried out is not known."""

    def __init__(self, command: str, seconds: float) -> None:
        super().__init__(
            "TIMEOUT", f"no answer to {command!r} within {seconds:g} seconds; it may have been carried out"
        )


class ProtocolViolation(ParError):
    """Raised for a frame that cannot be understood."""

    def __init__(self, message: str) -> None:
        super().__init__("PROTOCOL_ERROR", message)
