"""One page of a person's conversations, newest first; older ones follow a cursor, so that each page costs one query."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db import connection
from django.db.models import BooleanField, Q, QuerySet
from django.db.models.expressions import RawSQL

from agent.runtime.exceptions import InvalidArgument
from conversations.models import REVISION_BODIES, Conversation, User

_PIN = "pinned,"
_CURSOR = re.compile(rf"({_PIN})?(-?[0-9]{{1,17}}),([0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OF_THE_HEAD = [f"head__{name}" for name in REVISION_BODIES]


@dataclass(frozen=True, slots=True)
class Listing:
    """Some of a person's conversations; `older` is the cursor of the next page, empty where this is the last."""

    rows: Sequence[Conversation]
    older: str
    is_newest: bool

    @property
    def pinned(self) -> list[Conversation]:
        """Those of them that stand above all others."""
        return [row for row in self.rows if row.pinned]

    @property
    def others(self) -> list[Conversation]:
        """The rest of them."""
        return [row for row in self.rows if not row.pinned]


def conversations_of(user: User) -> QuerySet[Conversation]:
    """Return all conversations of a person, newest first."""
    return Conversation.objects.filter(owner=user).order_by("-updated_at", "-id")


@dataclass(frozen=True, slots=True)
class Filters:
    """Which conversations to list; None asks for nothing."""

    agent: str | None = None
    tag: str | None = None
    pinned: bool | None = None
    archived: bool | None = None
    since: datetime | None = None
    until: datetime | None = None

    def apply(self, rows: QuerySet[Conversation]) -> QuerySet[Conversation]:
        wanted = {
            "agent__slug": self.agent,
            "pinned": self.pinned,
            "archived": self.archived,
            "updated_at__gte": self.since,
            "updated_at__lt": self.until,
        }
        rows = rows.filter(**{name: value for name, value in wanted.items() if value is not None})
        return rows if self.tag is None else rows.filter(_tagged(self.tag))


def listing(user: User, before: str, limit: int, *, archived: bool = False) -> Listing:
    """Return up to `limit` conversations that come after the cursor `before`, pinned ones first.

    A senseless cursor is the beginning. `archived` lists those that were put away instead.
    """
    known = _CURSOR.fullmatch(before) is not None
    return page_of(user, Filters(archived=archived), before if known else "", limit, pinned_first=True)


def page_of(
    user: User,
    filters: Filters,
    before: str,
    limit: int,
    *,
    pinned_first: bool = False,
    among: QuerySet[Conversation] | None = None,
) -> Listing:
    """Return up to `limit` conversations that come after the cursor `before`, which is empty for the first page.

    `among` leaves only these. Raises `InvalidArgument` for a cursor that none of these lists gave.
    """
    rows = filters.apply(conversations_of(user)).select_related("agent", "head").defer(*_OF_THE_HEAD)
    if among is not None:
        rows = rows.filter(pk__in=among.values("pk"))
    if pinned_first:
        rows = rows.order_by("-pinned", "-updated_at", "-id")
    cursor = _CURSOR.fullmatch(before)
    if cursor is not None and (pinned_first or not cursor[1]):
        moment, pk = _EPOCH + timedelta(microseconds=int(cursor[2])), UUID(cursor[3])
        following = Q(updated_at__lt=moment) | Q(updated_at=moment, pk__lt=pk)
        if pinned_first:
            following = Q(pinned=True) & following | Q(pinned=False) if cursor[1] else Q(pinned=False) & following
        rows = rows.filter(following)
    elif before:
        raise InvalidArgument("the cursor is not one of a list")
    found = list(rows[: limit + 1])
    shown = found[:limit]
    older = _cursor(shown[-1], pinned_first=pinned_first) if len(found) > limit else ""
    return Listing(shown, older, cursor is None)


def _tagged(tag: str) -> Q | RawSQL:
    if connection.vendor == "postgresql":
        return Q(tags__contains=[tag])
    each = 'EXISTS (SELECT 1 FROM json_each("conversations_conversation"."tags") WHERE value = %s)'
    return RawSQL(each, [tag], output_field=BooleanField())  # noqa: S611  the tag is a parameter


def _cursor(row: Conversation, *, pinned_first: bool) -> str:
    pin = _PIN if pinned_first and row.pinned else ""
    return f"{pin}{(row.updated_at - _EPOCH) // timedelta(microseconds=1)},{row.pk}"
