"""Searching: a constant number of queries, whatever there is to be found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast
from uuid import UUID

from django.db.models import QuerySet

from conversations.models import REVISION_BODIES, Conversation, Revision, SearchEntry, User
from conversations.search.entries import search_index, texts
from conversations.search.index import Filters
from conversations.search.query import Query
from conversations.search.snippets import Piece, marked, snippet

_OF_THE_HEAD = [f"conversation__head__{name}" for name in REVISION_BODIES]


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that was found, or with no revision, message id and role a conversation by its title."""

    conversation: Conversation
    revision_id: UUID | None
    message_id: str | None
    role: Literal["user", "assistant"] | None
    created_at: datetime
    title: tuple[Piece, ...]
    snippet: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """Some hits, newest first; `after` is where the next ones begin, None where these are the last."""

    hits: tuple[Hit, ...]
    after: int | None


def search(user: User, query: Query, filters: Filters | None = None, *, before: int | None = None, limit: int) -> Found:
    """Return up to `limit` hits in a person's own conversations, those after the place `before`. Three queries."""
    index = search_index()
    keys = index.find(query, user.pk, filters or Filters(), before=before, limit=limit + 1)
    rows = SearchEntry.objects.filter(pk__in=keys[:limit]).order_by("-pk")
    entries = list(rows.select_related("conversation__agent", "conversation__head").defer(*_OF_THE_HEAD))
    revisions = {
        pk: (public_id, context)
        for pk, public_id, context in Revision.objects.filter(
            pk__in={entry.revision_id for entry in entries if entry.revision_id is not None}
        ).values_list("pk", "public_id", "context")
    }
    hits = tuple(_hit(entry, revisions, query) for entry in entries)
    return Found(hits, keys[limit - 1] if len(keys) > limit else None)


def matching_conversations(user: User, text: str) -> QuerySet[Conversation]:
    """Return a person's conversations in which a query finds anything; raises `InvalidArgument`."""
    found = search_index().conversations(Query.parse(text), user.pk)
    return Conversation.objects.filter(owner=user, temporary=False, pk__in=found)


def conversations_of_all(text: str) -> QuerySet[Conversation]:
    """Return everybody's conversations in which a query finds anything, for staff; raises `InvalidArgument`."""
    return Conversation.objects.filter(pk__in=search_index().conversations(Query.parse(text), None))


def _hit(entry: SearchEntry, revisions: Mapping[int, tuple[UUID, Any]], query: Query) -> Hit:
    title = marked(entry.conversation.title or "", query)
    if entry.revision_id is None:
        return Hit(entry.conversation, None, None, None, entry.created_at, title, ())
    public_id, context = revisions.get(entry.revision_id, (None, ()))
    text = _text(context, entry.message_id)
    role = cast(Literal["user", "assistant"], entry.role)
    return Hit(entry.conversation, public_id, entry.message_id, role, entry.created_at, title, snippet(text, query))


def _text(context: Sequence[Any], message_id: str) -> str:
    """Return what a message of a stored revision says; nothing where it is damaged."""
    said = (each for each in context if isinstance(each, Mapping) and each.get("id") == message_id)
    return texts(next(said, {}))
