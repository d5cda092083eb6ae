"""The index on SQLite: an FTS5 table whose rows have the keys of the entries.

Its tokenizer only parts words at spaces: what a word is was decided before. It stores its text, so that the trigger can
delete a row without knowing what was in it. SQLite drops the trigger where a migration has it rebuild the table of the
entries: such a one begins with `detached` and ends with `attached`, as 0011 does.
"""

from __future__ import annotations

from django.db.models.expressions import RawSQL

from conversations.search.index import CONVERSATIONS, TABLE, Findable, SearchIndex
from conversations.search.query import Query

WORDS = "conversations_searchwords"
TRIGGER = "conversations_searchentry_gone"


class SqliteIndex(SearchIndex):
    """Full text search with FTS5."""

    attached = (
        f"CREATE TRIGGER {TRIGGER} AFTER DELETE ON {TABLE} BEGIN DELETE FROM {WORDS} WHERE rowid = old.id; END",  # noqa: S608  our names
    )
    detached = (f"DROP TRIGGER {TRIGGER}",)
    created = (
        f"CREATE VIRTUAL TABLE {WORDS} USING fts5(owner, words, tokenize='ascii', prefix='2 3', columnsize=0)",
        *attached,
    )
    dropped = (*detached, f"DROP TABLE {WORDS}")
    tagged = "EXISTS (SELECT 1 FROM json_each(c.tags) WHERE json_each.value = %s)"

    def _insert(self, keyed: dict[int, Findable]) -> set[int]:
        added = self._insert_rows(keyed)
        with self.connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {WORDS} (rowid, owner, words) VALUES (%s, %s, %s)",  # noqa: S608  our names
                [(key, _owner(each.owner_id), " ".join(each.words)) for key, each in keyed.items() if key in added],
            )
        return added

    def _statement(self, clauses: str) -> str:
        # CROSS JOIN keeps the order: the words first, newest first, until there are enough.
        return (
            f"SELECT {WORDS}.rowid FROM {WORDS}"  # noqa: S608  our names
            f" CROSS JOIN {TABLE} AS e ON e.id = {WORDS}.rowid"
            f" CROSS JOIN {CONVERSATIONS} AS c ON c.id = e.conversation_id"
            f" WHERE {WORDS} MATCH %s AND {WORDS}.rowid >= %s AND {WORDS}.rowid < %s AND {clauses}"
            f" ORDER BY {WORDS}.rowid DESC LIMIT %s"
        )

    def expression(self, query: Query, owner_id: int | None) -> str:
        phrases = (f'"{" ".join(each.words)}"' + ("*" if each.open_end else "") for each in query.phrases)
        asked = f"words:({' AND '.join(phrases)})"
        return asked if owner_id is None else f"owner:{_owner(owner_id)} AND {asked}"

    def tag_value(self, tag: str) -> str:
        return tag

    def conversations(self, query: Query, owner_id: int | None) -> RawSQL:
        return RawSQL(  # noqa: S611  our names
            f"SELECT e.conversation_id FROM {WORDS} CROSS JOIN {TABLE} AS e ON e.id = {WORDS}.rowid"  # noqa: S608
            f" WHERE {WORDS} MATCH %s",
            [self.expression(query, owner_id)],
        )

    def tidy(self) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {WORDS} WHERE rowid NOT IN (SELECT id FROM {TABLE})")  # noqa: S608  our names


def _owner(owner_id: int) -> str:
    return f"u{owner_id}"
