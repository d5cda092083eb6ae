"""Conversations in one SQLite file, for scripts and small services.

All work on the file is done by one thread that owns the connection: the loop never waits for the disk, and within a
process there is one writer. Between processes SQLite's own lock decides: a write takes it before it reads (BEGIN
IMMEDIATE), so that it waits for its turn instead of failing, and owner and revision are compared inside that lock.

A save replaces the whole context, as its command does; a site with long conversations stores revisions instead.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Self, TypeVar

import orjson

from agent.persistence.checks import (
    checked_command,
    checked_limit,
    checked_owner,
    new_conversation,
    not_found,
    saved_row,
    utc_now,
)
from agent.runtime.exceptions import ConversationConflict, CorruptRevision, InvalidState
from agent.runtime.messages import Context
from agent.runtime.ports import LIST_LIMIT, ConversationRow, ConversationSnapshot, SaveConversation
from agent.runtime.values import clean_text

T = TypeVar("T")

VERSION = 1

_TABLES = """
CREATE TABLE par_conversations (
    conversation_id TEXT PRIMARY KEY,
    owner_key TEXT NOT NULL,
    title TEXT,
    revision INTEGER NOT NULL,
    status TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    context BLOB NOT NULL
) STRICT;
CREATE INDEX par_conversations_recent ON par_conversations (owner_key, updated_at DESC, conversation_id DESC)
"""
_INSERT = """
INSERT INTO par_conversations
    (conversation_id, owner_key, title, revision, status, created_at, updated_at, context)
    VALUES (:conversationId, :owner, :title, :revision, :status, :createdAt, :updatedAt, :context)
"""
_LOAD = "SELECT * FROM par_conversations WHERE conversation_id = :id AND owner_key = :owner"
_FIND = """
SELECT conversation_id, title, revision, status, created_at, updated_at
    FROM par_conversations WHERE conversation_id = :id AND owner_key = :owner
"""
_UPDATE = """
UPDATE par_conversations SET title = :title, revision = :revision, updated_at = :updatedAt, context = :context
    WHERE conversation_id = :id AND owner_key = :owner
"""
_LIST = """
SELECT conversation_id, title, revision, status, created_at, updated_at
    FROM par_conversations WHERE owner_key = :owner
    ORDER BY updated_at DESC, conversation_id DESC LIMIT :limit
"""
_DELETE = "DELETE FROM par_conversations WHERE conversation_id = :id AND owner_key = :owner"


class SqliteConversationStore:
    """A `ConversationStore` in the file `path`, which is made when it is first used; `:memory:` keeps it in memory.

    A write waits up to `busy_timeout` seconds for writers of other processes. Use it as an async context manager, or
    `close` it. A call whose task is cancelled while the file is written may have happened.
    """

    def __init__(self, path: str | Path, *, now: Callable[[], datetime] = utc_now, busy_timeout: float = 20.0) -> None:
        self._path = path
        self._now = now
        self._busy_timeout = busy_timeout
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="conversations")
        self._connection: sqlite3.Connection | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish what was begun and close the file; closing twice is fine."""
        if not self._closed:
            self._closed = True
            await asyncio.get_running_loop().run_in_executor(self._thread, self._disconnect)
            self._thread.shutdown(wait=False)

    async def create(self, owner_key: str, title: str | None = None) -> ConversationSnapshot:
        owner = checked_owner(owner_key)
        snapshot = new_conversation(title, self._now())

        def insert(connection: sqlite3.Connection) -> ConversationSnapshot:
            values = {**snapshot.conversation.to_wire(), "owner": owner, "context": _encoded(snapshot.context)}
            with _writing(connection):
                connection.execute(_INSERT, values)
            return snapshot

        return await self._do(insert)

    async def load(self, owner_key: str, conversation_id: str) -> ConversationSnapshot:
        mine = _mine(owner_key, conversation_id)

        def select(connection: sqlite3.Connection) -> ConversationSnapshot:
            found = connection.execute(_LOAD, mine).fetchone()
            if found is None:
                raise not_found(conversation_id)
            return _snapshot(found)

        return await self._do(select)

    async def save(self, owner_key: str, conversation_id: str, command: SaveConversation) -> ConversationSnapshot:
        command = checked_command(command)
        mine = _mine(owner_key, conversation_id)
        now = self._now()

        def update(connection: sqlite3.Connection) -> ConversationSnapshot:
            context = _encoded(command.context)
            with _writing(connection):
                found = connection.execute(_FIND, mine).fetchone()
                if found is None:
                    raise not_found(conversation_id)
                row = _row(found)
                if row.revision != command.revision:
                    raise ConversationConflict(row.revision)
                row = saved_row(row, command, now)
                connection.execute(_UPDATE, {**row.to_wire(), "context": context, **mine})
            return ConversationSnapshot(conversation=row, context=command.context)

        return await self._do(update)

    async def list(self, owner_key: str, *, limit: int = LIST_LIMIT) -> tuple[ConversationRow, ...]:
        values = {"owner": checked_owner(owner_key), "limit": checked_limit(limit)}

        def select(connection: sqlite3.Connection) -> tuple[ConversationRow, ...]:
            return tuple(map(_row, connection.execute(_LIST, values)))

        return await self._do(select)

    async def delete(self, owner_key: str, conversation_id: str) -> bool:
        mine = _mine(owner_key, conversation_id)

        def remove(connection: sqlite3.Connection) -> bool:
            with _writing(connection):
                return connection.execute(_DELETE, mine).rowcount > 0

        return await self._do(remove)

    async def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._closed:
            raise InvalidState("the store is closed")
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(self._connected()))

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = _open(self._path, self._busy_timeout)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _open(path: str | Path, busy_timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=busy_timeout, isolation_level=None)
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA journal_mode = WAL")
        with _writing(connection):
            _migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection) -> None:
    """Make the tables of a new file; the file may hold other tables, so each store has a version of its own."""
    connection.execute("CREATE TABLE IF NOT EXISTS par_stores (name TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT")
    found = connection.execute("SELECT version FROM par_stores WHERE name = 'conversations'").fetchone()
    if found is None:
        for statement in _TABLES.split(";"):
            connection.execute(statement)
        connection.execute("INSERT INTO par_stores VALUES ('conversations', ?)", (VERSION,))
    elif found["version"] != VERSION:
        raise InvalidState(f"the conversations are stored in version {found['version']!r}, this program has {VERSION}")


@contextmanager
def _writing(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _mine(owner_key: str, conversation_id: str) -> dict[str, str]:
    owner = checked_owner(owner_key)
    if not isinstance(conversation_id, str) or clean_text(conversation_id) != conversation_id:
        raise not_found(conversation_id)
    return {"id": conversation_id, "owner": owner}


def _encoded(context: Context) -> bytes:
    return orjson.dumps(context.to_wire())


def _row(found: sqlite3.Row) -> ConversationRow:
    names = ("conversation_id", "title", "revision", "status", "created_at", "updated_at")
    try:
        return ConversationRow(**{name: found[name] for name in names})
    except ValueError as error:
        raise CorruptRevision(f"the row of conversation {found['conversation_id']!r} cannot be read") from error


def _snapshot(found: sqlite3.Row) -> ConversationSnapshot:
    row = _row(found)
    try:
        context = orjson.loads(found["context"])
        return ConversationSnapshot.from_wire({"conversation": row.to_wire(), "context": context})
    except ValueError as error:
        raise CorruptRevision(f"the context of conversation {row.conversation_id!r} cannot be read") from error
