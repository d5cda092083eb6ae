"""Revisions of a conversation that exists: appended by compare-and-swap, restored, named.

Every function that writes raises the conversation's version first, which locks its row; what may not happen while a run
is live is refused after that, so that a start, which locks the same row, and such a change see one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from agent.runtime.exceptions import InvalidState
from agent.runtime.messages import AgentMessage, ModelContext
from conversations.attachments import attach
from conversations.exceptions import ConversationConflict, ConversationNotFound, RevisionNotFound
from conversations.models import LIVE, Conversation, Execution, Revision, RevisionKind, User
from conversations.search import index_messages
from conversations.store.chains import KnownState, stored_rest, stored_state
from conversations.store.conversations import owned_conversation

BUSY = "another answer is being written in this conversation"


def owned_revision(conversation: Conversation, public_id: UUID) -> Revision:
    """Return a revision of this conversation; raises `RevisionNotFound`, also for another conversation's."""
    found = Revision.objects.filter(conversation=conversation, public_id=public_id).first()
    if found is None:
        raise RevisionNotFound(f"there is no revision {str(public_id)!r} in this conversation")
    return found


def locked_conversation(user: User, pk: UUID, known: int | None = None) -> Conversation:
    """Return the person's conversation, which nobody else changes or deletes until the transaction ends.

    Raises `ConversationNotFound`, and `ConversationConflict` where `known` is not its version.
    """
    mine = Conversation.objects.filter(pk=pk, owner=user)
    mine.select_for_update(of=("self",), no_key=True).values_list("pk").first()
    conversation = owned_conversation(user, pk)
    if known is not None and conversation.version != known:
        raise ConversationConflict(conversation.version)
    return conversation


def append_revision(
    conversation: Conversation,
    kind: RevisionKind,
    messages: Sequence[AgentMessage],
    model_context: ModelContext,
    *,
    parent_id: int | None,
    known: int | None,
    exact: bool = False,
    keyframe: bool = False,
    base: KnownState | None = None,
    usage: dict[str, Any] | None = None,
    outcome: dict[str, Any] | None = None,
    now: datetime | None = None,
) -> Revision:
    """Add a revision below `parent_id` and make it the head; part of a transaction.

    `known` is the version that the caller has seen: the head must not have moved since, and with `exact` nothing may
    have changed. `base` is the parent's model state, from a caller that has read it: a state that has grown is stored
    as a change to it. The `conversation` carries the new version. Raises `ConversationConflict`, `ConversationNotFound`
    and `AttachmentNotFound`.
    """
    now = now or timezone.now()
    version = advance(conversation, known, exact=exact, head=True, now=now)
    attach(conversation, messages)
    below = base is not None and base.revision_id == parent_id and not keyframe
    revision = Revision.objects.create(
        conversation_id=conversation.pk,
        number=version,
        parent_id=parent_id,
        kind=kind,
        keyframe=keyframe,
        context=[message.to_wire() for message in messages],
        model_state=stored_state(model_context.model_state, base if below else None),
        model_context=stored_rest(model_context),
        usage=usage,
        outcome=outcome,
    )
    Conversation.objects.filter(pk=conversation.pk).update(head=revision)
    conversation.head = revision
    revision.conversation = conversation
    index_messages(conversation, revision, messages)
    return revision


def advance(
    conversation: Conversation,
    known: int | None = None,
    *,
    exact: bool = False,
    head: bool = False,
    now: datetime | None = None,
) -> int:
    """Raise the version by one and return the new one; part of a transaction, and the lock of what follows.

    `head` says that the head is about to move. See `append_revision` for `known`, `exact` and the errors.
    """
    row = Conversation.objects.filter(pk=conversation.pk)
    version = conversation.version if known is None else known
    changes: dict[str, Any] = {"version": F("version") + 1}
    if now is not None:
        changes["updated_at"] = now
    if head:
        changes["head_version"] = F("version") + 1
    while not row.filter(version=version).update(**changes):
        current = row.values_list("version", "head_version").first()
        if current is None:
            raise ConversationNotFound(f"conversation {str(conversation.pk)!r} was deleted")
        if known is not None and (exact or current[1] > known or current[0] < known):
            raise ConversationConflict(current[0])
        version = current[0]  # what has changed since is nothing that the caller builds on
    conversation.version = version + 1
    if head:
        conversation.head_version = conversation.version
    if now is not None:
        conversation.updated_at = now
    return conversation.version


def refuse_while_live(conversation: Conversation) -> None:
    """Raise `InvalidState` while a run is live; after `advance`, so that no start is overlooked."""
    if Execution.objects.filter(conversation_id=conversation.pk, status__in=LIVE).exists():
        raise InvalidState(BUSY)


def restore(
    user: User, conversation_id: UUID, revision_id: UUID, *, known: int | None = None, newest: bool = False
) -> Conversation:
    """Make a revision the head again, with `newest` the newest one of its branch; nothing is deleted.

    Raises `ConversationNotFound`, `RevisionNotFound`, `ConversationConflict` where `known` is not the version any more,
    and `InvalidState` while a run is live.
    """
    with transaction.atomic():
        conversation = owned_conversation(user, conversation_id)
        target = owned_revision(conversation, revision_id)
        version = advance(conversation, known, exact=True, head=True, now=timezone.now())
        refuse_while_live(conversation)
        if newest:
            target = Revision.objects.get(pk=_newest_below(conversation, target.pk))
        Conversation.objects.filter(pk=conversation.pk, version=version).update(head=target)
        conversation.head = target
    return conversation


def label_revision(
    user: User, conversation_id: UUID, revision_id: UUID, label: str | None, *, known: int | None = None
) -> tuple[Conversation, Revision]:
    """Name a branch by one of its revisions, None takes the name away; raises as `restore` does."""
    with transaction.atomic():
        conversation = owned_conversation(user, conversation_id)
        revision = owned_revision(conversation, revision_id)
        advance(conversation, known, exact=True)
        revision.label = label or ""
        revision.save(update_fields=["label"])
    return conversation, revision


def reset_model_state(user: User, conversation_id: UUID, *, known: int) -> Conversation:
    """Drop what the model keeps for itself, as a revision of its own, also where there was nothing (E3).

    Raises as `restore` does.
    """
    with transaction.atomic():
        conversation = owned_conversation(user, conversation_id)
        append_revision(
            conversation,
            RevisionKind.RESET,
            (),
            ModelContext(model_state=None),
            parent_id=conversation.head_id,
            known=known,
            exact=True,
        )
        refuse_while_live(conversation)
    return conversation


def _newest_below(conversation: Conversation, top: int) -> int:
    """Return the key of the newest revision at or below `top`; a parent's key is lower than its children's."""
    below = {top}
    rows = Revision.objects.filter(conversation=conversation, pk__gt=top).order_by("pk")
    for pk, parent_id in rows.values_list("pk", "parent_id"):
        if parent_id in below:
            below.add(pk)
    return max(below)
