"""Turns that ended without a revision: no part of the conversation, but still to be read where they stood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Func, TextField
from django.db.models.sql.compiler import SQLCompiler

from agent.runtime.messages import AgentMessage
from conversations.models import Conversation, Execution, ExecutionStatus
from conversations.words import Notice, cancellation, failure

MOST_TURNS = 50


@dataclass(frozen=True, slots=True)
class UnsavedTurn:
    """A stopped or failed turn; it stands after the message `after`, or at the beginning where that is None.

    `messages` begin with the person's; `partial` is the message that was being written, as the execution keeps it.
    """

    execution_id: str
    after: str | None
    status: Literal["failed", "cancelled"]
    notice: Notice
    messages: tuple[AgentMessage, ...]
    partial: dict[str, Any] | None


class LastMessageId(Func):
    """The id of the last message of a revision's context; null where it adds none."""

    template = "((%(expressions)s)->-1->>'id')"
    output_field = TextField()

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any
    ) -> tuple[str, tuple[str | int, ...]]:
        return self.as_sql(compiler, connection, template="JSON_EXTRACT(%(expressions)s, '$[#-1].id')", **extra)


def unsaved_turns(conversation: Conversation) -> list[UnsavedTurn]:
    """Return the newest of the conversation's unsaved turns in order of time, with one query."""
    rows = (
        Execution.objects.filter(conversation=conversation, revision=None)
        .filter(status__in=(ExecutionStatus.FAILED, ExecutionStatus.CANCELLED))
        .annotate(after=LastMessageId("base__context"))
        .order_by("-created_at", "-id")
        .values_list(
            "pk", "after", "status", "error_code", "error_message", "outcome", "transcript", "input", "partial"
        )
    )
    turns = []
    for pk, after, status, code, message, outcome, transcript, given, partial in rows[:MOST_TURNS]:
        said = tuple(AgentMessage.from_wire(each) for each in transcript or [given])
        begun = _begun(said, partial)
        if status == ExecutionStatus.CANCELLED:
            notice = cancellation((outcome or {}).get("reason", ""), begun=begun)
        else:
            notice = failure(code, message, begun=begun)
        turns.append(UnsavedTurn(str(pk), after, cast(Literal["failed", "cancelled"], status), notice, said, partial))
    return turns[::-1]


def _begun(messages: tuple[AgentMessage, ...], partial: dict[str, Any] | None) -> bool:
    """Tell whether the model had answered anything; a thought or half a call is no answer."""
    written = partial["blocks"] if partial is not None else ()
    return any(each.role == "assistant" for each in messages) or any(
        block["type"] == "text" and block["text"].strip() for block in written
    )
