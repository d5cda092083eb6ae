"""A turn: begun with one transaction, saved with another.

A turn is saved by a compare-and-swap: it counts only while the conversation still stands where the turn began.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from agent.models import AgentProfile
from agent.runtime.events import Outcome
from agent.runtime.exceptions import InvalidArgument, InvalidState
from agent.runtime.limits import PartialLimits
from agent.runtime.messages import AgentMessage, ImageBlock, ModelContext, Usage
from conversations.exceptions import AgentNotFound, ConversationConflict, ConversationNotFound
from conversations.models import LIVE, Conversation, Execution, ExecutionStatus, Revision, RevisionKind, User
from conversations.store.conversations import owned_conversation
from conversations.store.executions import move

BUSY = "another answer is being written in this conversation"

_TITLE_CHARACTERS = 30


@dataclass(frozen=True, slots=True)
class BegunTurn:
    """An execution with conversation, agent, endpoint and base loaded; `created` is false for a repeated request."""

    execution: Execution
    created: bool


def request_digest(body: object) -> str:
    """Return the digest of a start command's JSON body, the same for every order of its keys."""
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()


def title_of(message: AgentMessage) -> str | None:
    """Return the title that a first message gives to its conversation (R136)."""
    text = " ".join(message.text.split())
    if text:
        return text if len(text) <= _TITLE_CHARACTERS else text[:_TITLE_CHARACTERS].rstrip() + "…"
    return "[image]" if any(isinstance(block, ImageBlock) for block in message.blocks) else None


def begin_turn(
    *,
    user: User,
    request_id: UUID,
    digest: str,
    message: AgentMessage,
    agent: str,
    conversation_id: UUID | None = None,
    base_version: int | None = None,
    limits: PartialLimits | None = None,
    host_id: UUID | None = None,
    client_id: str = "",
    trace_id: str = "",
) -> BegunTurn:
    """Create the execution of a turn, and its conversation unless `conversation_id` names one.

    `agent` is a slug; the conversation goes on with that agent. `base_version` None takes the conversation as it is.
    `limits` may tighten the agent's own. A request id that was seen before gives the first execution again.

    Raises `AgentNotFound`, `ConversationNotFound`, `ConversationConflict`, `InvalidState` while another run is live,
    and `InvalidArgument` for a known request id with another digest.
    """
    try:
        with transaction.atomic():
            if seen := _seen(user, request_id, digest):
                return seen
            profile = _agent(user, agent)
            if conversation_id is None:
                conversation = Conversation.objects.create(owner=user, agent=profile, title=title_of(message))
            else:
                conversation = _touched(user, conversation_id, base_version, profile)
            execution = Execution.objects.create(
                conversation=conversation,
                user=user,
                agent=profile,
                request_id=request_id,
                request_digest=digest,
                client_id=client_id,
                trace_id=trace_id,
                base=conversation.head,
                base_version=conversation.version,
                input=message.to_wire(),
                status=ExecutionStatus.RUNNING,
                limits=profile.effective_limits().tightened(limits or PartialLimits()).to_wire(),
                host_id=host_id,
                started_at=timezone.now(),
            )
    except IntegrityError:
        # The same request on another socket came first, or another run of this conversation did.
        if seen := _seen(user, request_id, digest):
            return seen
        if conversation_id is None:
            raise
        raise InvalidState(BUSY) from None
    return BegunTurn(execution, created=True)


def check_turn(*, user: User, agent: str, conversation_id: UUID | None, base_version: int | None) -> None:
    """Raise what `begin_turn` would raise now; whoever has work to do before it need not begin in vain."""
    _agent(user, agent)
    if conversation_id is not None:
        conversation = owned_conversation(user, conversation_id)
        if base_version not in (None, conversation.version):
            raise ConversationConflict(conversation.version)
        if conversation.executions.filter(status__in=LIVE).exists():
            raise InvalidState(BUSY)


def _seen(user: User, request_id: UUID, digest: str) -> BegunTurn | None:
    known = Execution.objects.select_related("conversation", "agent__endpoint", "base")
    execution = known.filter(user=user, request_id=request_id).first()
    if execution is None:
        return None
    if execution.request_digest != digest:
        raise InvalidArgument(f"request id {str(request_id)!r} was used for another request")
    return BegunTurn(execution, created=False)


def _agent(user: User, slug: str) -> AgentProfile:
    found = AgentProfile.objects.visible_to(user).select_related("endpoint").filter(slug=slug).first()
    if found is None:
        raise AgentNotFound(f"there is no agent {slug!r}")
    return found


def _touched(user: User, pk: UUID, base_version: int | None, profile: AgentProfile) -> Conversation:
    """Lock the conversation at its version by a write, and return it with its head."""
    now = timezone.now()
    wanted = Conversation.objects.filter(pk=pk, owner=user)
    if base_version is not None:
        wanted = wanted.filter(version=base_version)
    if not wanted.update(agent=profile, updated_at=now):
        raise ConversationConflict(owned_conversation(user, pk).version)
    return Conversation.objects.select_related("head").get(pk=pk)


def save_turn(
    execution: Execution,
    messages: Sequence[AgentMessage],
    model_context: ModelContext,
    outcome: Outcome,
    usage: Usage | None = None,
    *,
    kind: RevisionKind = RevisionKind.TURN,
    last_seq: int = 0,
) -> Revision:
    """Save what a completed run added (its input first) as the next revision, and end the execution.

    All of it is one transaction. Raises `ConversationConflict` when the head has moved since the run began,
    `ExecutionLost` when the execution is no longer this process's or has ended, `ConversationNotFound` when the
    conversation was deleted. The `conversation` of the returned revision carries the new version.
    """
    now = timezone.now()
    with transaction.atomic():
        revision = add_revision(
            execution,
            kind,
            messages,
            model_context,
            usage=usage.to_wire() if usage else None,
            outcome=outcome.to_wire(),
            now=now,
        )
        move(
            execution,
            ExecutionStatus.COMPLETED,
            interrupt=None,
            revision=revision,
            transcript=[],
            model_context=None,
            outcome=revision.outcome,
            usage=revision.usage,
            last_seq=last_seq,
            finished_at=now,
        )
    return revision


def add_revision(
    execution: Execution,
    kind: RevisionKind,
    messages: Sequence[AgentMessage],
    model_context: ModelContext,
    *,
    usage: dict[str, Any] | None,
    outcome: dict[str, Any] | None,
    now: datetime,
) -> Revision:
    """Make what an execution added the head of its conversation, if the head is still the execution's base.

    Part of a transaction. The `conversation` of the execution and of the returned revision carries the new version.
    Raises `ConversationConflict` and `ConversationNotFound`.
    """
    context = model_context.to_wire()
    state = context.pop("modelState")
    version = _advance(execution, now) + 1
    revision = Revision.objects.create(
        conversation_id=execution.conversation_id,
        number=version,
        parent_id=execution.base_id,
        kind=kind,
        context=[message.to_wire() for message in messages],
        model_state=state,
        model_context=context,
        usage=usage,
        outcome=outcome,
    )
    Conversation.objects.filter(pk=execution.conversation_id).update(head=revision)
    conversation = execution.conversation
    conversation.version, conversation.head, conversation.updated_at = version, revision, now
    revision.conversation = conversation
    return revision


def _advance(execution: Execution, now: datetime) -> int:
    """Raise the conversation's version by one and return the old one, if the head is still the base."""
    version = execution.base_version
    row = Conversation.objects.filter(pk=execution.conversation_id)
    while not row.filter(version=version).update(version=F("version") + 1, updated_at=now):
        current = row.values_list("version", "head_id").first()
        if current is None:
            raise ConversationNotFound(f"conversation {str(execution.conversation_id)!r} was deleted")
        if current[1] != execution.base_id:
            raise ConversationConflict(current[0])
        version = current[0]  # only the title changed, which the turn does not build on
    return version
