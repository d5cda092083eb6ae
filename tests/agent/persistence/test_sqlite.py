"""What is particular to conversations in a SQLite file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import orjson
import pytest

from agent.persistence import SqliteConversationStore
from agent.runtime.exceptions import ConversationConflict, ConversationNotFound, CorruptRevision, InvalidState
from tests.agent.persistence.conversing import saving, texts

ME = "ada"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "conversations.sqlite3"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteConversationStore]:
    async with SqliteConversationStore(path) as opened:
        yield opened


@pytest.fixture
async def conversation(store: SqliteConversationStore) -> str:
    return (await store.create(ME)).conversation.conversation_id


@pytest.fixture
def other(path: Path, conversation: str) -> Iterator[sqlite3.Connection]:
    """A connection of another program."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as connection:
        yield connection


async def begins_to_write(store: SqliteConversationStore) -> asyncio.Event:
    """An event that is set when the store next asks for the lock of writers."""
    loop, begun = asyncio.get_running_loop(), asyncio.Event()

    def traced(statement: str) -> None:
        if statement == "BEGIN IMMEDIATE":
            loop.call_soon_threadsafe(begun.set)

    await store._do(lambda connection: connection.set_trace_callback(traced))
    return begun


async def test_what_was_saved_is_there_after_the_program_has_ended(path: Path) -> None:
    async with SqliteConversationStore(path) as first:
        conversation = (await first.create(ME)).conversation.conversation_id
        saved = await first.save(ME, conversation, saving("Hello", state={"a": 1}))
    async with SqliteConversationStore(str(path)) as second:
        assert await second.load(ME, conversation) == saved
        assert await second.list(ME) == (saved.conversation,)


async def test_a_file_is_made_when_it_is_first_used_and_keeps_what_others_have_in_it(path: Path) -> None:
    store = SqliteConversationStore(path)
    assert not path.exists()
    with closing(sqlite3.connect(path)) as others:
        others.execute("CREATE TABLE conversations (mine TEXT)")
        others.commit()
        await store.create(ME)
        tables = {name for (name,) in others.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert tables == {"conversations", "par_conversations", "par_stores"}
        assert others.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    await store.close()


async def test_memory_is_a_file_of_its_own() -> None:
    async with SqliteConversationStore(":memory:") as one, SqliteConversationStore(":memory:") as two:
        await one.create(ME)
        assert len(await one.list(ME)) == 1
        assert await two.list(ME) == ()


async def test_of_writers_in_several_programs_with_one_base_exactly_one_wins(path: Path) -> None:
    """R127, B68: writers wait for the lock instead of failing."""
    stores = [SqliteConversationStore(path) for _ in range(4)]
    conversation = (await stores[0].create(ME)).conversation.conversation_id
    for base in range(15):
        saves = [each.save(ME, conversation, saving(f"by {at}", revision=base)) for at, each in enumerate(stores)]
        results = await asyncio.gather(*saves, return_exceptions=True)
        won = [result for result in results if not isinstance(result, BaseException)]
        lost = [result for result in results if isinstance(result, ConversationConflict)]
        assert (len(won), len(lost)) == (1, 3), results
        assert await stores[base % 4].load(ME, conversation) == won[0]
    for each in stores:
        await each.close()


async def test_ownership_is_judged_when_the_lock_is_held_not_when_save_is_called(
    store: SqliteConversationStore, conversation: str, other: sqlite3.Connection
) -> None:
    """E8, R125."""
    begun = await begins_to_write(store)
    other.execute("BEGIN IMMEDIATE")
    write = asyncio.ensure_future(store.save(ME, conversation, saving("Late")))
    await begun.wait()
    other.execute("UPDATE par_conversations SET owner_key = 'grace'")
    other.execute("COMMIT")
    with pytest.raises(ConversationNotFound):
        await write
    untouched = await store.load("grace", conversation)
    assert (untouched.conversation.revision, texts(untouched.context)) == (0, [])


async def test_the_revision_is_judged_when_the_lock_is_held(
    store: SqliteConversationStore, conversation: str, other: sqlite3.Connection
) -> None:
    """R127."""
    begun = await begins_to_write(store)
    other.execute("BEGIN IMMEDIATE")
    write = asyncio.ensure_future(store.save(ME, conversation, saving("Late")))
    await begun.wait()
    other.execute("UPDATE par_conversations SET revision = 7")
    other.execute("COMMIT")
    with pytest.raises(ConversationConflict) as caught:
        await write
    assert caught.value.current_revision == 7


async def test_a_save_that_is_cancelled_before_its_turn_is_not_written(
    store: SqliteConversationStore, conversation: str, other: sqlite3.Connection
) -> None:
    """R10."""
    begun = await begins_to_write(store)
    other.execute("BEGIN IMMEDIATE")
    first = asyncio.ensure_future(store.save(ME, conversation, saving("First")))
    await begun.wait()
    second = asyncio.ensure_future(store.save(ME, conversation, saving("Second", revision=1)))
    await asyncio.sleep(0)
    second.cancel()
    other.execute("COMMIT")
    assert (await first).conversation.revision == 1
    with pytest.raises(asyncio.CancelledError):
        await second
    assert texts((await store.load(ME, conversation)).context) == ["First"]


async def test_a_failed_write_leaves_everything_as_it_was(
    store: SqliteConversationStore, conversation: str, other: sqlite3.Connection
) -> None:
    before = await store.save(ME, conversation, saving("Before"))
    other.execute(
        "CREATE TRIGGER full_disk BEFORE UPDATE ON par_conversations BEGIN SELECT RAISE(ABORT, 'disk full'); END"
    )
    with pytest.raises(sqlite3.DatabaseError, match="disk full"):
        await store.save(ME, conversation, saving("After", revision=1))
    assert await store.load(ME, conversation) == before
    other.execute("DROP TRIGGER full_disk")
    assert (await store.save(ME, conversation, saving("After", revision=1))).conversation.revision == 2


@pytest.mark.parametrize(
    "context",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"{}",
        b'{"messages":[]}',
        b'{"messages":[],"modelContext":{}}',
        b'{"modelContext":{"modelState":null}}',
        b'{"messages":[{"id":"m","role":"user"}],"modelContext":{"modelState":null}}',
        b'{"messages":[],"modelContext":{"modelState":{"format":"","data":1}}}',
        b'{"messages":[],"modelContext":{"modelState":null},"extra":1}',
    ],
)
async def test_a_context_that_cannot_be_read_is_an_error_and_never_an_empty_one(
    store: SqliteConversationStore, conversation: str, other: sqlite3.Connection, context: bytes
) -> None:
    """R121, R123."""
    intact = (await store.create(ME)).conversation.conversation_id
    other.execute("UPDATE par_conversations SET context = ? WHERE conversation_id = ?", (context, conversation))
    with pytest.raises(CorruptRevision, match=conversation):
        await store.load(ME, conversation)
    assert (await store.load(ME, intact)).conversation.revision == 0


async def test_a_row_that_cannot_be_read_is_an_error(
    store: SqliteConversationStore, conversation: str, other: sqlite3.Connection
) -> None:
    """R123."""
    other.execute("UPDATE par_conversations SET created_at = 'yesterday'")
    for attempt in (store.load(ME, conversation), store.list(ME), store.save(ME, conversation, saving("Hello"))):
        with pytest.raises(CorruptRevision, match=conversation):
            await attempt


async def test_a_file_of_another_version_is_refused(path: Path, conversation: str, other: sqlite3.Connection) -> None:
    other.execute("UPDATE par_stores SET version = 2")
    async with SqliteConversationStore(path) as store:
        with pytest.raises(InvalidState, match="version 2"):
            await store.load(ME, conversation)


async def test_what_is_stored_is_plain_json(
    store: SqliteConversationStore, conversation: str, other: sqlite3.Connection
) -> None:
    await store.save(ME, conversation, saving("Hello", state={"a": [1]}))
    ((stored,),) = other.execute("SELECT context FROM par_conversations")
    assert orjson.loads(stored) == {
        "messages": [{"id": "message-0", "role": "user", "blocks": [{"type": "text", "text": "Hello"}]}],
        "modelContext": {
            "checkpoint": None,
            "modelState": {"format": "test/v1", "data": {"a": [1]}},
            "usage": None,
        },
    }


async def test_a_closed_store_says_so(path: Path) -> None:
    store = SqliteConversationStore(path)
    await store.create(ME)
    await store.close()
    await store.close()
    with pytest.raises(InvalidState, match="closed"):
        await store.list(ME)
    assert not path.with_name(f"{path.name}-wal").exists()
