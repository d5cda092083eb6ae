"""Ids under which requests come, each good for one request of a person: see `IdempotentRequest`."""

from __future__ import annotations

from uuid import UUID

from agent.runtime.exceptions import InvalidArgument
from conversations.exceptions import ConversationNotFound
from conversations.models import Conversation, IdempotentRequest, User


def check_key(user: User, key: UUID, digest: str) -> IdempotentRequest | None:
    """Return the request that came under a key; None for a new key.

    Raises `InvalidArgument` if that was another request, `ConversationNotFound` if its conversation was deleted since.
    """
    found = IdempotentRequest.objects.filter(user=user, key=key).first()
    if found is None:
        return None
    if found.digest != digest:
        raise InvalidArgument(f"the key {str(key)!r} was used for another request")
    if found.orphaned:
        raise ConversationNotFound("the conversation of this request was deleted")
    return found


def use_key(user: User, key: UUID, digest: str, conversation: Conversation) -> None:
    """Note the start of a run in a conversation under its key; raises `IntegrityError` for one that is used."""
    IdempotentRequest.objects.create(user=user, key=key, digest=digest, about=conversation.pk)


def forget_answers(conversation_id: UUID) -> None:
    """Delete the answers about a conversation; their keys stay used."""
    IdempotentRequest.objects.filter(about=conversation_id).update(answer="")
