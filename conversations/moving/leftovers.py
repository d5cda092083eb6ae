"""Turns that were stopped or failed, on their way in: no part of their conversation there, and none here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from agent.models import AgentProfile
from agent.runtime.ids import uuid7
from agent.runtime.messages import AgentMessage, ModelContext
from conversations.models import NO_REQUEST, Conversation, Execution, Revision, RevisionKind
from conversations.moving.document import ErrorDocument
from conversations.moving.names import turn_name
from conversations.store import leave_turns
from conversations.store.puts import claimed
from conversations.store.recovered import ADOPTABLE, note_adopted


@dataclass(frozen=True, slots=True)
class UnsavedTurn:
    """A turn to be kept; `source`, `after` and `beside` are ids in the file."""

    source: str
    after: str | None
    beside: str | None
    kept: int
    kind: str
    current: bool
    agent: str
    status: str
    outcome: dict[str, Any] | None
    error: ErrorDocument | None
    messages: tuple[AgentMessage, ...]
    unfinished: dict[str, Any] | None
    model_context: ModelContext | None
    usage: dict[str, Any] | None
    created_at: datetime
    finished_at: datetime | None

    @property
    def keeps_a_state(self) -> bool:
        return self.model_context is not None and self.model_context.model_state is not None


def new_turns(
    external_id: str,
    turns: Sequence[UnsavedTurn],
    conversation: Conversation,
    recovered: Iterable[Sequence[AgentMessage]],
) -> list[UnsavedTurn]:
    """Return those turns that a conversation has not got yet, under their own name or under the one of an import.

    One that somebody has continued from is a revision: one of the `recovered` of the file, or of those that are here.
    """
    if not turns:
        return []
    there = set(Execution.objects.filter(conversation=conversation).values_list("pk", flat=True))
    owner = conversation.owner_id
    missing = [turn for turn in turns if not {UUID(turn.source), turn_name(owner, external_id, turn.source)} & there]
    if not missing:
        return []
    here = conversation.revisions.filter(kind=RevisionKind.RECOVERED).values_list("context", flat=True)
    said = [{message.id for message in messages} for messages in recovered]
    said += [{message["id"] for message in messages} for messages in here]
    return [turn for turn in missing if not any(_ids(turn.messages) <= each for each in said)]


def note_continued(conversation: Conversation, revisions: Sequence[Revision]) -> None:
    """Note of the turns here which of these recovered revisions they are; part of a transaction that holds the lock."""
    if not revisions:
        return
    rows = Execution.objects.filter(conversation=conversation, revision=None, status__in=ADOPTABLE)
    for row in rows:
        said = _ids(AgentMessage.from_wire(each) for each in row.transcript or [row.input])
        found = next((each for each in revisions if said <= {message["id"] for message in each.context}), None)
        if found is not None:
            note_adopted(row, found)


def _ids(messages: Iterable[AgentMessage]) -> set[str]:
    """Return the ids of what was said; results of calls that were left open get new ones each time."""
    return {message.id for message in messages if message.role != "tool"}


def as_claim(turn: UnsavedTurn) -> UnsavedTurn:
    """Return a turn without what nobody may write."""
    return replace(turn, messages=claimed(turn.messages), model_context=None)


def leave(
    incoming_id: str,
    turns: Sequence[UnsavedTurn],
    conversation: Conversation,
    *,
    names: Mapping[str, UUID],
    agents: Mapping[str, AgentProfile],
    at_head: bool,
    now: datetime,
) -> None:
    """Keep turns where they stood; part of a transaction that holds the conversation's lock.

    `incoming_id` is what the conversation is called in its file, `names` are its revisions here. With `at_head` the
    head is the one of the file, so that a turn which could be continued from there can be so here. An agent that is
    not among `agents` is replaced by the conversation's.
    """
    if not turns:
        return
    wanted = {names[source] for turn in turns for source in (turn.after, turn.beside) if source is not None}
    rows = Revision.objects.filter(conversation=conversation, public_id__in=wanted).values_list("public_id", "pk")
    keys: dict[UUID, int] = dict(rows)

    def key(source: str | None) -> int | None:
        return None if source is None else keys[names[source]]

    executions = []
    for turn in turns:
        name = turn_name(conversation.owner_id, incoming_id, turn.source)
        said = [message.to_wire() for message in turn.messages]
        row = Execution(
            pk=name,
            conversation=conversation,
            user_id=conversation.owner_id,
            agent=agents.get(turn.agent) or conversation.agent,
            request_id=uuid7(),
            request_digest=NO_REQUEST,
            kind=RevisionKind(turn.kind),
            base_id=key(turn.after),
            beside_id=key(turn.beside),
            kept=turn.kept,
            base_version=conversation.version if turn.current and at_head else 0,
            input=said[0],
            transcript=said,
            partial=turn.unfinished,
            model_context=turn.model_context.to_wire() if turn.model_context else None,
            status=turn.status,
            outcome=turn.outcome,
            usage=turn.usage,
            created_at=min(turn.created_at, now),
            finished_at=min(turn.finished_at or turn.created_at, now),
        )
        if turn.error is not None:
            row.error_code, row.error_message = turn.error.code, turn.error.message
            row.retryable = turn.error.retryable
        executions.append(row)
    leave_turns(conversation, executions)
