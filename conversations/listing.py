"""One page of a person's conversations, newest first; older ones follow a cursor, so that each page costs one query."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db.models import Q, QuerySet

from conversations.models import Conversation, User

_CURSOR = re.compile(r"([0-9]{1,17}),([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Listing:
    """Some of a person's conversations; `older` is the cursor of the next page, empty where this is the last."""

    rows: Sequence[Conversation]
    older: str
    is_newest: bool


def conversations_of(user: User) -> QuerySet[Conversation]:
    """Return all conversations of a person, newest first."""
    return Conversation.objects.filter(owner=user).order_by("-updated_at", "-id")


def listing(user: User, before: str, limit: int) -> Listing:
    """Return up to `limit` conversations that come after the cursor `before`; a senseless one is the beginning."""
    rows = conversations_of(user).filter(archived=False)
    cursor = _CURSOR.fullmatch(before)
    if cursor is not None:
        moment, pk = _EPOCH + timedelta(microseconds=int(cursor[1])), UUID(cursor[2])
        rows = rows.filter(Q(updated_at__lt=moment) | Q(updated_at=moment, pk__lt=pk))
    found = list(rows[: limit + 1])
    shown = found[:limit]
    return Listing(shown, _cursor(shown[-1]) if len(found) > limit else "", cursor is None)


def _cursor(row: Conversation) -> str:
    return f"{(row.updated_at - _EPOCH) // timedelta(microseconds=1)},{row.pk}"
