"""The index of all that can be found, behind one interface for both databases.

Each entry is a row of `SearchEntry` whose key rises with the time of what it stands for: "newest first", a span of time
and the next page are ranges of keys, and a database that finds keys in order may stop at the last that is shown. What
a database keeps beside an entry (its words, and its owner, so that one person's search does not walk everybody's) goes
with the entry, however that is deleted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from hashlib import blake2b
from secrets import randbits
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model
from django.db.models.expressions import RawSQL

from conversations.models.search import DIGEST_LENGTH
from conversations.search.query import Query
from conversations.search.words import words

TABLE = "conversations_searchentry"
CONVERSATIONS = "conversations_conversation"
AGENTS = "agent_agentprofile"

# Within what a tsvector takes: 16,383 places and 1 MiB of words.
MOST_CHARACTERS = 200_000
MOST_WORDS = 16_000
MOST_BYTES = 400_000

_BATCH = 500
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MOMENT = datetime(2250, 1, 1, tzinfo=UTC)
_RANDOM_BITS = 10
LARGEST_KEY = 2**63 - 1


def instant(moment: datetime) -> int:
    """Return the microseconds since 1970; what is before that or after 2250 counts as then."""
    return (min(max(moment, _EPOCH), _LAST_MOMENT) - _EPOCH) // timedelta(microseconds=1)


def digest_of(text: str) -> str:
    """Return the digest of a text; a damaged one has one, too."""
    return blake2b(text.encode(errors="surrogatepass"), digest_size=DIGEST_LENGTH // 2).hexdigest()


@dataclass(frozen=True)
class Findable:
    """What is to be found: a message with a text, or with no revision, message id and role a title.

    The `instant` is that of `created_at`, or a little later to stand behind what was said before in the same moment.
    """

    conversation_id: UUID
    owner_id: int
    revision_id: int | None
    message_id: str
    role: str
    created_at: datetime
    instant: int
    text: str

    @property
    def once(self) -> tuple[UUID, str, str]:
        """What no two entries have in common."""
        return self.conversation_id, self.message_id, self.digest

    @cached_property
    def digest(self) -> str:
        """The digest of a message's text, which parts it from another text of the same message; a title has none."""
        return digest_of(self.text) if self.message_id else ""

    @cached_property
    def words(self) -> list[str]:
        """The words by which it is found: of a very long text those of its beginning."""
        found, size = words(self.text[:MOST_CHARACTERS])[:MOST_WORDS], 0
        for count, word in enumerate(found):
            size += len(word.encode())
            if size > MOST_BYTES:
                return found[:count]
        return found


@dataclass(frozen=True, slots=True)
class Filters:
    """What narrows a search; None narrows nothing. `agent` is a slug, `until` is not included."""

    agent: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    pinned: bool | None = None
    archived: bool | None = None
    tag: str | None = None

    def keys(self) -> tuple[int, int]:
        """Return the lowest key of the span of time, and the first one after it."""
        lowest = 0 if self.since is None else instant(self.since) << _RANDOM_BITS
        return lowest, LARGEST_KEY if self.until is None else instant(self.until) << _RANDOM_BITS


class SearchIndex(ABC):
    """The index in one database; `entries` is the model of its rows, in a migration that of the time.

    A migration makes it with `created` and removes it with `dropped`. One that changes the table of the entries begins
    with `detached` and ends with `attached`.
    """

    created: Sequence[str]
    dropped: Sequence[str]
    detached: Sequence[str] = ()
    attached: Sequence[str] = ()
    tagged: str

    def __init__(self, connection: BaseDatabaseWrapper, entries: type[Model]) -> None:
        self.connection = connection
        self.entries = entries

    def add(self, wanted: Iterable[Findable]) -> None:
        """Add what is not yet there, in a constant number of statements for each 500; part of a transaction."""
        pending = list(wanted)
        while pending:
            batch, pending = pending[:_BATCH], pending[_BATCH:]
            keyed = {each.instant << _RANDOM_BITS | randbits(_RANDOM_BITS): each for each in batch}
            added = self._insert(keyed)
            if len(added) < len(batch):
                known = self._known(batch)
                pending += [each for each in batch if each.once not in known]

    def find(self, query: Query, owner_id: int, filters: Filters, *, before: int | None, limit: int) -> list[int]:
        """Return the highest keys below `before` of what this person may find, in falling order."""
        lowest, end = filters.keys()
        clauses, values = ["c.owner_id = %s", "NOT c.temporary"], [owner_id]
        for clause, value in self._narrowed(filters):
            clauses.append(clause)
            values.append(value)
        statement = self._statement(" AND ".join(clauses))
        span = [lowest, min(end, LARGEST_KEY if before is None else before)]
        with self.connection.cursor() as cursor:
            cursor.execute(statement, [self.expression(query, owner_id), *span, *values, limit])
            return [key for (key,) in cursor.fetchall()]

    def _narrowed(self, filters: Filters) -> Iterable[tuple[str, Any]]:
        if filters.agent is not None:
            yield f"c.agent_id IN (SELECT id FROM {AGENTS} WHERE slug = %s)", filters.agent  # noqa: S608  our names
        if filters.pinned is not None:
            yield "c.pinned = %s", filters.pinned
        if filters.archived is not None:
            yield "c.archived = %s", filters.archived
        if filters.tag is not None:
            yield self.tagged, self.tag_value(filters.tag)

    def _known(self, batch: Sequence[Findable]) -> set[tuple[UUID, str, str]]:
        rows = self.entries._default_manager.filter(
            conversation_id__in={each.conversation_id for each in batch},
            message_id__in={each.message_id for each in batch},
        )
        return set(rows.values_list("conversation_id", "message_id", "digest"))

    def _insert_rows(
        self, keyed: dict[int, Findable], columns: Sequence[tuple[str, str, Sequence[str]]] = ()
    ) -> set[int]:
        """Insert entries, with the values of further (column, placeholder, values); returns the keys of new ones."""
        fields = self.entries._meta.concrete_fields
        names = [*(str(field.column) for field in fields), *(name for name, _, _ in columns)]
        places = ", ".join(["%s"] * len(fields) + [place for _, place, _ in columns])
        values: list[Any] = []
        for at, (key, each) in enumerate(keyed.items()):
            values += [
                field.get_db_prep_save(key if field.primary_key else getattr(each, field.attname), self.connection)
                for field in fields
            ]
            values += [given[at] for _, _, given in columns]
        rows = ", ".join([f"({places})"] * len(keyed))
        with self.connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {TABLE} ({', '.join(names)}) VALUES {rows} ON CONFLICT DO NOTHING RETURNING id",  # noqa: S608  our names
                values,
            )
            return {key for (key,) in cursor.fetchall()}

    @abstractmethod
    def _insert(self, keyed: dict[int, Findable]) -> set[int]:
        """Insert what is new by its keys and returns those; what is known, or has another's key, is passed over."""

    @abstractmethod
    def _statement(self, clauses: str) -> str:
        """Return the select that takes an expression, the span of keys, the values of the clauses and a limit."""

    @abstractmethod
    def expression(self, query: Query, owner_id: int | None) -> str:
        """Return what this database understands as the query of this person, with None in what everybody said."""

    @abstractmethod
    def tag_value(self, tag: str) -> str:
        """Return what `tagged` compares with."""

    @abstractmethod
    def conversations(self, query: Query, owner_id: int | None) -> RawSQL:
        """Return the subquery of a person's conversations, or with None of all, in which a query finds anything."""

    @abstractmethod
    def tidy(self) -> None:
        """Remove what a damaged database keeps beside entries that are gone."""
