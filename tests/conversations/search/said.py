"""Conversations with something in them, as the store saves them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from django.db import connection

from agent.runtime.messages import AgentMessage, ImageBlock, TextBlock, UrlSource
from conversations.models import Conversation, Revision, User
from conversations.search import Filters, Hit, Query, index_messages, index_title, search
from conversations.search.index import TABLE
from conversations.search.sqlite import WORDS
from tests.factories import ConversationFactory


def conversation(owner: User, title: str | None = None, **members: Any) -> Conversation:
    made = ConversationFactory(owner=owner, title=title, **members)
    index_title(made)
    return made


def message(text: str, role: Any = "user", message_id: str = "") -> AgentMessage:
    return AgentMessage(id=message_id or f"message-{uuid4()}", role=role, blocks=(TextBlock(text=text),))


def say(to: Conversation, *said: str | AgentMessage, parent: Revision | None = None, **members: Any) -> Revision:
    """Give a conversation one more revision, by default below its head, which it becomes."""
    messages = [message(each) if isinstance(each, str) else each for each in said]
    to.version += 1
    to.head = Revision.objects.create(
        conversation=to,
        number=to.version,
        parent=parent or to.head,
        context=[each.to_wire() for each in messages],
        model_context={"checkpoint": None, "usage": None},
        **members,
    )
    to.save()
    index_messages(to, to.head, messages)
    return to.head


def hits(user: User, query: str, limit: int = 20, before: int | None = None, **filters: Any) -> Sequence[Hit]:
    return search(user, Query.parse(query), Filters(**filters), before=before, limit=limit).hits


def found(user: User, query: str, **filters: Any) -> list[str]:
    """Return what was found as it is shown, newest first; a title stands in brackets."""
    return [
        "".join(piece.text for piece in hit.snippet) if hit.message_id else f"[{hit.conversation.title}]"
        for hit in hits(user, query, **filters)
    ]


def kept() -> int:
    """Return how many entries the index really keeps, at whatever migration the database is."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {WORDS if connection.vendor == 'sqlite' else TABLE}")
        return int(cursor.fetchone()[0])


def picture() -> ImageBlock:
    return ImageBlock(source=UrlSource(url="https://example.org/cat.png"))
