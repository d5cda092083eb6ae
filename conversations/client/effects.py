"""What a session wants done: it has no network, no tasks and no callers of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from conversations.client.events import Event
from conversations.client.exceptions import ParError
from conversations.client.transcript import Transcript


@dataclass(frozen=True, slots=True)
class Send:
    """A frame is to be sent."""

    text: str


@dataclass(frozen=True, slots=True)
class Later:
    """`again(id)` is to be called after `seconds`."""

    id: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Settled:
    """A command was answered, with an `ack` or an error; `run` is what a start or a subscription is about."""

    id: str
    answer: dict[str, Any] | ParError
    run: Transcript | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """A run has something new to tell."""

    run: Transcript
    events: list[Event]


@dataclass(frozen=True, slots=True)
class Found:
    """A followed conversation has a run that was not known."""

    run: Transcript


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A run cannot be followed any more."""

    run: Transcript
    error: ParError


@dataclass(frozen=True, slots=True)
class Unfollowed:
    """A conversation cannot be followed any more."""

    conversation_id: str
    error: ParError


@dataclass(frozen=True, slots=True)
class Called:
    """A tool of this client is to be run, and its result to be given to `tool_result`."""

    execution_id: str
    call_id: str
    name: str
    arguments: dict[str, Any]


Effect: TypeAlias = Send | Later | Settled | Told | Found | Abandoned | Unfollowed | Called
