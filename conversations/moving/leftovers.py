"""Turns that were stopped or failed, on their way in: no part of their conversation there, and none here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from agent.models import AgentProfile
from agent.runtime.ids import uuid7
from agent.runtime.messages import AgentMessage, ModelContext
from conversations.models import NO_REQUEST, Conversation, Execution, ExecutionStatus, Revision, RevisionKind
from conversations.moving.document import ErrorDocument
from conversations.moving.names import turn_name
from conversations.store import leave_turns
from conversations.store.puts import claimed


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


def new_turns(external_id: str, turns: Sequence[UnsavedTurn], conversation: Conversation) -> list[UnsavedTurn]:
    """Return those turns that a conversation has not got yet, under their own name or under the one of an import."""
    if not turns:
        return []
    there = set(Execution.objects.filter(conversation=conversation).values_list("pk", flat=True))
    owner = conversation.owner_id
    return [turn for turn in turns if not {UUID(turn.source), turn_name(owner, external_id, turn.source)} & there]


def note_continued(external_id: str, continued: Mapping[str, Revision], conversation: Conversation) -> None:
    """Note which turns somebody has continued from, as revisions by their ids in the file; in the same transaction.

    What a turn here has of its own stays. One that is not here gets a row, so that an older file does not bring it.
    """
    names = {turn_name(conversation.owner_id, external_id, source): source for source in continued}
    names |= {UUID(source): source for source in continued}
    here = Execution.objects.filter(conversation=conversation, pk__in=names)
    there = set(here.values_list("pk", flat=True))
    # One that is locked is being continued from just now.
    free = here.unsaved().select_for_update(skip_locked=True, of=("self",))
    for row in free:
        row.revision = continued[names[row.pk]]
        row.save(update_fields=["revision"])
    known = {names[pk] for pk in there}
    missing = ((source, row) for source, row in continued.items() if source not in known)
    owner = conversation.owner_id
    leave_turns(
        conversation, [_continued(turn_name(owner, external_id, source), row, conversation) for source, row in missing]
    )


def _continued(name: UUID, revision: Revision, conversation: Conversation) -> Execution:
    cancelled = (revision.outcome or {}).get("type") == "cancelled"
    return Execution(
        pk=name,
        conversation=conversation,
        user_id=conversation.owner_id,
        agent=conversation.agent,
        request_id=uuid7(),
        request_digest=NO_REQUEST,
        base_id=revision.parent_id,
        input=revision.context[0] if revision.context else {},
        status=ExecutionStatus.CANCELLED if cancelled else ExecutionStatus.FAILED,
        outcome=revision.outcome,
        usage=revision.usage,
        revision=revision,
        created_at=revision.created_at,
        finished_at=revision.created_at,
    )


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
