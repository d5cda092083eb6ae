"""The index on PostgreSQL: a tsvector in the row of the entry, with a GIN index.

Vectors and queries are written out, for no parser of PostgreSQL's is to cut words once more. A vector keeps at most 256
places of each word, which a frequent Chinese character soon exceeds: two characters beside one another are also kept as
one word, and phrases of them are looked up by their pairs. Where a word has still more places, a phrase is found if its
words are there.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from django.db.models.expressions import RawSQL

from conversations.search.index import CONVERSATIONS, TABLE, Findable, SearchIndex
from conversations.search.query import Phrase, Query
from conversations.search.words import is_character

MOST_PLACES = 256

_MANY = "'@many'"  # no word has this sign
_GIN = "conversations_searchentry_words"


class PostgresqlIndex(SearchIndex):
    """Full text search with tsvector."""

    created = (
        f"ALTER TABLE {TABLE} ADD COLUMN words tsvector",
        f"CREATE INDEX {_GIN} ON {TABLE} USING gin (words)",
    )
    dropped = (f"DROP INDEX {_GIN}", f"ALTER TABLE {TABLE} DROP COLUMN words")
    tagged = "c.tags @> %s::jsonb"

    def _insert(self, keyed: dict[int, Findable]) -> set[int]:
        vectors = [_vector(each.words, each.owner_id) for each in keyed.values()]
        return self._insert_rows(keyed, [("words", "%s::tsvector", vectors)])

    def _statement(self, clauses: str) -> str:
        # MATERIALIZED: for a rare word the planner would walk the keys backwards instead.
        return (
            f"WITH f AS MATERIALIZED (SELECT id, conversation_id FROM {TABLE}"  # noqa: S608  our names
            f" WHERE words @@ %s::tsquery AND id >= %s AND id < %s)"
            f" SELECT f.id FROM f JOIN {CONVERSATIONS} AS c ON c.id = f.conversation_id"
            f" WHERE {clauses} ORDER BY f.id DESC LIMIT %s"
        )

    def expression(self, query: Query, owner_id: int | None) -> str:
        owner = [] if owner_id is None else [_owner(owner_id)]
        return " & ".join([*owner, *(f"({_asked(phrase)})" for phrase in query.phrases)])

    def tag_value(self, tag: str) -> str:
        return json.dumps([tag])

    def conversations(self, query: Query, owner_id: int | None) -> RawSQL:
        return RawSQL(  # noqa: S611  our names
            f"SELECT conversation_id FROM {TABLE} WHERE words @@ %s::tsquery",  # noqa: S608
            [self.expression(query, owner_id)],
        )

    def tidy(self) -> None:
        """There is nothing beside the entries."""


def _owner(owner_id: int) -> str:
    return f"'@{owner_id}'"


def _vector(found: Sequence[str], owner_id: int) -> str:
    places: defaultdict[str, list[int]] = defaultdict(list)
    for at, word in enumerate(found, 1):
        places[word].append(at)
    for at, (word, following) in enumerate(pairwise(found), 1):
        if is_character(word) and is_character(following):
            places[word + following].append(at)
    lexemes = (f"'{word}':{','.join(map(str, at[:MOST_PLACES]))}" for word, at in places.items())
    many = [_MANY] if any(len(at) > MOST_PLACES for at in places.values()) else []
    return " ".join([_owner(owner_id), *many, *lexemes])


def _asked(phrase: Phrase) -> str:
    units = list(_units(phrase.words))
    asked = [f"'{word}'" for _, word in units]
    if phrase.open_end:
        asked[-1] += ":*"
    if len(units) == 1:
        return asked[0]
    exact = asked[0] + "".join(
        f" <{at - before}> {word}" for ((before, _), (at, _)), word in zip(pairwise(units), asked[1:], strict=True)
    )
    return f"{exact} | {' & '.join([_MANY, *asked])}"


def _units(found: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the words to look up, with their places: pairs of characters instead of single ones."""
    paired = False
    for at, word in enumerate(found):
        following = found[at + 1] if at + 1 < len(found) else ""
        if is_character(word) and following and is_character(following):
            yield at, word + following
            paired = True
        elif not paired:
            yield at, word
        else:
            paired = False
