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
from django.utils import timezone

from agent.models import AgentProfile
from agent.runtime.events import Outcome
from agent.runtime.exceptions import InvalidArgument, InvalidState
from agent.runtime.limits import PartialLimits
from agent.runtime.messages import AgentMessage, ImageBlock, ModelContext, Usage
from conversations.attachments import attach, quoted_files, said_text
from conversations.exceptions import ConversationConflict, ConversationNotFound
from conversations.models import LIVE, Conversation, Execution, ExecutionStatus, Revision, RevisionKind, User
from conversations.search import index_title
from conversations.store.branching import Branch, Place, kept_messages, place_of
from conversations.store.chains import KnownState
from conversations.store.conversations import owned_conversation, usable_agent
from conversations.store.executions import move
from conversations.store.keys import check_key, use_key
from conversations.store.revisions import BUSY, append_revision

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
    text = " ".join(said_text(message).split()) or ", ".join(file.name for file in quoted_files(message))
    if text:
        return text if len(text) <= _TITLE_CHARACTERS else text[:_TITLE_CHARACTERS].rstrip() + "…"
    return "[image]" if any(isinstance(block, ImageBlock) for block in message.blocks) else None


def begin_turn(
    *,
    user: User,
    request_id: UUID,
    digest: str,
    message: AgentMessage | None,
    agent: str,
    conversation_id: UUID | None = None,
    base_version: int | None = None,
    branch: Branch | None = None,
    temporary: bool = False,
    limits: PartialLimits | None = None,
    host_id: UUID | None = None,
    client_id: str = "",
    trace_id: str = "",
    known: bool = False,
) -> BegunTurn:
    """Create the execution of a turn, and its conversation unless `conversation_id` names one.

    `agent` is a slug; the conversation goes on with that agent. `base_version` is a version since which the head must
    not have moved; None takes the conversation as it is. `branch` begins elsewhere than at the head; one that has an
    answer made again brings the message. `limits` may tighten the agent's own. A request id that was seen before gives
    the first execution again; one that is `known` must have been, or its conversation was deleted since.

    Raises `AgentNotFound`, `ConversationNotFound`, `RevisionNotFound`, `ConversationConflict`, `CorruptRevision`,
    `InvalidState` while another run is live, and `InvalidArgument` for the id of another request.
    """
    try:
        with transaction.atomic():
            if seen := _seen(user, request_id, digest):
                return seen
            if known:
                raise ConversationNotFound("the conversation of this request was deleted")
            profile = usable_agent(user, agent)
            if conversation_id is None:
                assert message is not None
                conversation = Conversation.objects.create(
                    owner=user, agent=profile, title=title_of(message), temporary=temporary
                )
                index_title(conversation)
                place = Place(None)
            else:
                conversation = _touched(user, conversation_id, base_version, profile)
                place = place_of(conversation, branch) if branch is not None else Place(conversation.head)
            input = place.input or message
            assert input is not None
            attach(conversation, (input,))
            execution = Execution.objects.create(
                conversation=conversation,
                user=user,
                agent=profile,
                request_id=request_id,
                request_digest=digest,
                client_id=client_id,
                trace_id=trace_id,
                kind=place.kind,
                base=place.base,
                beside=place.beside,
                kept=place.kept,
                base_version=conversation.version,
                input=input.to_wire(),
                status=ExecutionStatus.RUNNING,
                limits=profile.effective_limits().tightened(limits or PartialLimits()).to_wire(),
                host_id=host_id,
                started_at=timezone.now(),
            )
            use_key(user, request_id, digest, conversation)
    except IntegrityError:
        # A request of this id came first on another connection, or another run of this conversation did.
        if seen := _seen(user, request_id, digest):
            return seen
        check_key(user, request_id, digest)
        if conversation_id is None:
            raise
        raise InvalidState(BUSY) from None
    return BegunTurn(execution, created=True)


def check_turn(*, user: User, agent: str, conversation_id: UUID | None, base_version: int | None) -> None:
    """Raise what `begin_turn` would raise now; whoever has work to do before it need not begin in vain."""
    usable_agent(user, agent)
    if conversation_id is not None:
        conversation = owned_conversation(user, conversation_id)
        if base_version is not None and not conversation.head_version <= base_version <= conversation.version:
            raise ConversationConflict(conversation.version)
        if conversation.executions.filter(status__in=LIVE).exists():
            raise InvalidState(BUSY)


def _seen(user: User, request_id: UUID, digest: str) -> BegunTurn | None:
    known = Execution.objects.select_related("conversation", "agent__endpoint", "base", "beside")
    execution = known.filter(user=user, request_id=request_id).first()
    if execution is None:
        return None
    if execution.request_digest != digest:
        raise InvalidArgument(f"request id {str(request_id)!r} was used for another request")
    return BegunTurn(execution, created=False)


def _touched(user: User, pk: UUID, base_version: int | None, profile: AgentProfile) -> Conversation:
    """Lock the conversation by a write, if its head is the one of this version, and return it with its head."""
    now = timezone.now()
    wanted = Conversation.objects.filter(pk=pk, owner=user)
    if base_version is not None:
        wanted = wanted.filter(head_version__lte=base_version, version__gte=base_version)
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
    base: KnownState | None = None,
    last_seq: int = 0,
) -> Revision:
    """Save what a completed run added (its input first) as the next revision, and end the execution.

    `base` is the model state that the run began with, see `append_revision`.
    All of it is one transaction. Raises `ConversationConflict` when the head has moved since the run began,
    `ExecutionLost` when the execution is no longer this process's or has ended, `ConversationNotFound` when the
    conversation was deleted. The `conversation` of the returned revision carries the new version.
    """
    now = timezone.now()
    with transaction.atomic():
        revision = append_turn(
            execution,
            messages,
            model_context,
            base=base,
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


def append_turn(
    execution: Execution,
    messages: Sequence[AgentMessage],
    model_context: ModelContext,
    *,
    base: KnownState | None,
    usage: dict[str, Any] | None,
    outcome: dict[str, Any] | None,
    now: datetime,
    kind: RevisionKind | None = None,
    anywhere: bool = False,
) -> Revision:
    """Make what an execution added the head of its conversation, where the execution says; part of a transaction.

    The head must be where it was when the run began, unless it may be `anywhere`: then the turn becomes a branch.
    Raises `ConversationConflict`, `ConversationNotFound` and `CorruptRevision`.
    """
    return append_revision(
        execution.conversation,
        kind or RevisionKind(execution.kind),
        (*kept_messages(execution), *messages),
        model_context,
        parent_id=execution.base_id,
        known=None if anywhere else execution.base_version,
        keyframe=execution.beside is not None and execution.beside.keyframe,
        base=base,
        usage=usage,
        outcome=outcome,
        now=now,
    )
