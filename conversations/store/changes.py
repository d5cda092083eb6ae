"""Changes of a conversation that are no turns: title, pin, archive, tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction

from conversations.models import Conversation, User
from conversations.search import index_title
from conversations.store.conversations import owned_conversation
from conversations.store.revisions import advance


class Unchanged:
    """Stands for a field that a change does not mention."""


UNCHANGED = Unchanged()


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to become of a conversation; a title of None takes the title away."""

    title: str | None | Unchanged = UNCHANGED
    pinned: bool | Unchanged = UNCHANGED
    archived: bool | Unchanged = UNCHANGED
    temporary: bool | Unchanged = UNCHANGED
    tags: Sequence[str] | Unchanged = UNCHANGED

    def columns(self) -> Mapping[str, Any]:
        """Return the columns that change, and to what."""
        named = ("title", "pinned", "archived", "temporary", "tags")
        given = {name: getattr(self, name) for name in named if not isinstance(getattr(self, name), Unchanged)}
        if "tags" in given:
            given["tags"] = list(dict.fromkeys(given["tags"]))
        if "title" in given:
            given["title_by_person"] = given["title"] is not None
        return given

    def write(self, conversation: Conversation) -> None:
        """Write these fields and no other; part of a transaction that holds the conversation's lock."""
        columns = self.columns()
        if columns:
            Conversation.objects.filter(pk=conversation.pk).update(**columns)
            for name, value in columns.items():
                setattr(conversation, name, value)
        if "title" in columns:
            index_title(conversation)


def change_conversation(user: User, pk: UUID, changes: Changes, *, known: int | None = None) -> Conversation:
    """Write the fields that are mentioned and no other.

    Raises `ConversationNotFound`, and `ConversationConflict` where `known` is not the version any more.
    """
    with transaction.atomic():
        conversation = owned_conversation(user, pk)
        if changes.columns() or known is not None:
            advance(conversation, known, exact=True)
        changes.write(conversation)
    return conversation
