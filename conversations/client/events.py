"""What a run tells its caller: readable events, and the values they carry.

They are not the wire's events. A connection that broke is made good from a snapshot, so an event is something that a
snapshot can tell as well: all `TextDelta` of a run, joined, are its text, whatever happened to the connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["text", "reasoning"]
Decision: TypeAlias = Literal["approved", "modified", "rejected", "timeout"]


@dataclass(frozen=True, slots=True)
class Message:
    """A complete message; `blocks` are JSON objects as docs/protocol.md shows them."""

    id: str
    role: str
    blocks: tuple[dict[str, Any], ...]

    @property
    def text(self) -> str:
        return "".join(block["text"] for block in self.blocks if block["type"] == "text")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: `completed` with a `stop_reason`, `max-tokens`, or `cancelled` with a `reason`."""

    type: str
    stop_reason: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Revision:
    """Where the turn is stored; `version` is the `base_revision` of the next start."""

    id: str
    number: int
    version: int


@dataclass(frozen=True, slots=True)
class Result:
    """What a run came to; `revision` is None for a cancelled one, which is not part of the conversation."""

    outcome: Outcome
    text: str
    messages: tuple[Message, ...]
    revision: Revision | None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the answer."""

    text: str
    message_id: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """The next piece of the model's reasoning."""

    text: str
    message_id: str


@dataclass(frozen=True, slots=True)
class TextLost:
    """The end of what was told before is lost on the server, after a crash; `text` is the part that is gone."""

    text: str
    kind: Kind
    message_id: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool is about to run."""

    call_id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """A running tool says how far it is."""

    call_id: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """The result of a call; `execution` says whether the tool ran, also for a call that was rejected."""

    call_id: str
    name: str
    text: str
    is_error: bool
    execution: str


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """The run waits for a person: answer with `run.approve` or `run.reject`."""

    interrupt_id: str
    call_id: str | None
    name: str
    arguments: dict[str, Any]
    reason: str | None
    tool: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ApprovalResolved:
    """Somebody answered, or nobody in time; `decision` is None when it was made while the connection was down."""

    interrupt_id: str
    decision: Decision | None


@dataclass(frozen=True, slots=True)
class MessageAdded:
    """A message is complete; the first one is the input."""

    message: Message


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The last event of a run that came to an outcome."""

    outcome: Outcome
    revision: Revision | None


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The last event of a run that failed."""

    code: str
    message: str
    retryable: bool


Event: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | TextLost
    | ToolStarted
    | ToolProgress
    | ToolEnded
    | ApprovalRequested
    | ApprovalResolved
    | MessageAdded
    | RunEnded
    | RunFailed
)
