"""Conversations as their owner sees them."""

from __future__ import annotations

from uuid import UUID

from conversations.exceptions import ConversationNotFound
from conversations.models import Conversation, User


def owned_conversation(user: User, pk: UUID) -> Conversation:
    """Return the person's conversation; raises `ConversationNotFound`, also for somebody else's (R125)."""
    found = Conversation.objects.filter(pk=pk, owner=user).select_related("head", "agent").first()
    if found is None:
        raise ConversationNotFound(f"there is no conversation {str(pk)!r}")
    return found
