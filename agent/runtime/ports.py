"""Seams of the runtime: objects that a host hands in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Protocol, TypeAlias

from pydantic import AwareDatetime, BeforeValidator, PlainSerializer, StringConstraints

from agent.runtime.messages import Context, NonBlank, TokenCount, Value
from agent.runtime.tools import ToolDefinition, ToolInvocation
from agent.runtime.values import Text


class Timer(Protocol):
    """A callback that waits for its time."""

    def cancel(self) -> None:
        """Make sure that the callback is not called any more."""
        ...


class Clock(Protocol):
    """A monotonic clock with timers (R70)."""

    def now(self) -> float:
        """Return seconds since any fixed point; finite and never going back."""
        ...

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` on the running loop after `delay` seconds of this clock."""
        ...


class MonotonicClock:
    """The clock of the machine and the timers of the running loop."""

    def now(self) -> float:
        return time.monotonic()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay, callback)


@dataclass(frozen=True, slots=True)
class ToolDecision:
    """What the host's rights say about one call; `reason` is told to the model (deny) or the person (confirm)."""

    verdict: Literal["allow", "confirm", "deny"]
    reason: str | None = None


class ToolPolicy(Protocol):
    """Rights, judged on every call (R7): before a confirmation is asked, and again before the tool runs."""

    async def decide(self, definition: ToolDefinition, invocation: ToolInvocation) -> ToolDecision:
        """Return the verdict for this call now."""
        ...


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def _complete(context: Any) -> Any:
    if isinstance(context, Mapping) and not (
        "messages" in context and ("modelContext" in context or "model_context" in context)
    ):
        raise ValueError("a context has both messages and modelContext")
    return context


LIST_LIMIT = 50

# The values of a store are built when they are first used: a run without a store needs none of them.
Title: TypeAlias = Annotated[Text, StringConstraints(max_length=256)]
Moment: TypeAlias = Annotated[AwareDatetime, PlainSerializer(_iso)]
WholeContext: TypeAlias = Annotated[Context, BeforeValidator(_complete)]


class ConversationRow(Value, defer_build=True):
    """A conversation as a list shows it (R124); times are in ISO form and UTC on the wire."""

    conversation_id: NonBlank
    title: Title | None
    revision: TokenCount
    status: Literal["active", "archived"]
    created_at: Moment
    updated_at: Moment


class ConversationSnapshot(Value, defer_build=True):
    """A conversation with its context, read as one unit (R120, R122)."""

    conversation: ConversationRow
    context: WholeContext


class SaveConversation(Value, defer_build=True):
    """The complete save command (R122, E8): `revision` is the one that it builds on, `context` replaces the stored one.

    The keys of the model state must be there, null is a valid value (R121).
    """

    title: Title | None
    revision: TokenCount
    context: WholeContext


class ConversationStore(Protocol):
    """Keeps conversations: messages and model state as one unit under one revision (R31, R120-R128).

    `owner_key` is computed by the host, never by a client; what belongs to another owner looks like what does not
    exist, and raises `ConversationNotFound`. Nothing is merged, cut or replaced by an older copy: what is stored and
    cannot be read raises `CorruptRevision`. Keys, limits and titles that cannot be used raise `InvalidArgument`.
    """

    async def create(self, owner_key: str, title: str | None = None) -> ConversationSnapshot:
        """Add a conversation without messages, at revision 0."""
        ...

    async def load(self, owner_key: str, conversation_id: str) -> ConversationSnapshot:
        """Return conversation and context of one revision."""
        ...

    async def save(self, owner_key: str, conversation_id: str, command: SaveConversation) -> ConversationSnapshot:
        """Replace title and context if the revision is still the command's, and raise it by one.

        The command does not change once `save` is called; owner and revision are checked together with the write (E8).
        Raises `ConversationConflict` with the current revision where another writer came first.
        """
        ...

    async def list(self, owner_key: str, *, limit: int = LIST_LIMIT) -> tuple[ConversationRow, ...]:
        """Return the owner's conversations, the last changed first."""
        ...

    async def delete(self, owner_key: str, conversation_id: str) -> bool:
        """Make sure that the owner has no such conversation; whether there was one (R128)."""
        ...
