"""Conversations as their owner sees them."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from agent.runtime.exceptions import InvalidArgument
from conversations.exceptions import ConversationConflict, ConversationNotFound
from conversations.models import TITLE_LENGTH, Conversation, User


def owned_conversation(user: User, pk: UUID) -> Conversation:
    """Return the person's conversation; raises `ConversationNotFound`, also for somebody else's (R125)."""
    found = Conversation.objects.filter(pk=pk, owner=user).select_related("head", "agent").first()
    if found is None:
        raise ConversationNotFound(f"there is no conversation {str(pk)!r}")
    return found


def rename(user: User, pk: UUID, title: str | None, *, base_version: int | None = None) -> Conversation:
    """Give the conversation a title that a person chose; a stale `base_version` is a `ConversationConflict`."""
    title = " ".join(title.split()) if title else None
    if title and len(title) > TITLE_LENGTH:
        raise InvalidArgument(f"a title has at most {TITLE_LENGTH} characters, got {len(title)}")
    with transaction.atomic():
        wanted = Conversation.objects.filter(pk=pk, owner=user)
        if base_version is not None:
            wanted = wanted.filter(version=base_version)
        changed = wanted.update(
            title=title or None, title_by_person=bool(title), version=F("version") + 1, updated_at=timezone.now()
        )
        conversation = owned_conversation(user, pk)
        if not changed:
            raise ConversationConflict(conversation.version)
    return conversation


def delete(user: User, pk: UUID) -> bool:
    """Delete the conversation with all its revisions and executions; false when there is none (R128)."""
    with transaction.atomic():
        conversation = Conversation.objects.filter(pk=pk, owner=user).first()
        if conversation is None:
            return False
        conversation.delete()
    return True
