"""What every conversation store keeps of the contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.persistence import MemoryConversationStore, SqliteConversationStore
from agent.runtime import Context, create_runtime
from agent.runtime.exceptions import ConversationConflict, ConversationNotFound, InvalidArgument
from agent.runtime.ports import ConversationStore, SaveConversation
from agent.testing import ScriptedModel, calls, says, scripted_tool
from tests.agent.persistence.conversing import said, saving, texts

ME, ANOTHER = "tenant-1/ada", "tenant-2/ada"
START = datetime(2030, 1, 31, 12, tzinfo=UTC)


class Minutes:
    """A clock that is a minute later at each look."""

    def __init__(self) -> None:
        self.passed = 0

    def __call__(self) -> datetime:
        self.passed += 1
        return START + timedelta(minutes=self.passed)


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ConversationStore]:
    if request.param == "memory":
        yield MemoryConversationStore(now=Minutes())
    else:
        async with SqliteConversationStore(tmp_path / "conversations.sqlite3", now=Minutes()) as opened:
            yield opened


async def new(store: ConversationStore, owner: str = ME) -> str:
    return (await store.create(owner)).conversation.conversation_id


async def test_a_new_conversation_is_empty_and_stands_at_revision_0(store: ConversationStore) -> None:
    """R122, R124."""
    made = await store.create(ME, "Tea")
    assert made.context == Context()
    assert made.to_wire()["conversation"] == {
        "conversationId": made.conversation.conversation_id,
        "title": "Tea",
        "revision": 0,
        "status": "active",
        "createdAt": "2030-01-31T12:01:00.000000+00:00",
        "updatedAt": "2030-01-31T12:01:00.000000+00:00",
    }
    assert await store.load(ME, made.conversation.conversation_id) == made


async def test_a_save_replaces_title_messages_and_model_state_as_one_and_raises_the_revision(
    store: ConversationStore,
) -> None:
    """R26, R28, R31, R120."""
    state = {"reasoning": {"message-0": [1, 2.5, None, "ä"]}, "": {"deep": [[[]]]}}
    created = (await store.create(ME, "Old")).conversation
    saved = await store.save(ME, created.conversation_id, saving("Hello", state=state))
    assert saved.conversation.revision == 1
    assert (saved.conversation.title, saved.conversation.created_at) == ("A title", created.created_at)
    assert saved.conversation.updated_at > created.updated_at
    assert saved.context == said("Hello", state=state)
    assert await store.load(ME, created.conversation_id) == saved

    await store.save(ME, created.conversation_id, saving("Hello", "More", revision=1, title=None))
    loaded = await store.load(ME, created.conversation_id)
    assert (loaded.conversation.revision, loaded.conversation.title) == (2, None)
    assert loaded.context == said("Hello", "More", state=None)


async def test_what_a_run_brought_comes_back_and_can_be_continued(store: ConversationStore) -> None:
    """R57, R59: messages of every kind, with the state that belongs to them."""
    weather = scripted_tool("weather", "snow", read_only=True)
    conversation = await new(store)
    with ScriptedModel(
        calls(("weather", {"city": "Tromsø", "days": [1, 2.5, None]}), text="Let me see."),
        says("It snows.", reasoning="Snow, so it snows."),
        says("You are welcome."),
    ) as model:
        runtime = create_runtime(model, [weather])
        first = await runtime.start("And in Tromsø?").result
        command = SaveConversation(title=None, revision=0, context=first.recovered)
        await store.save(ME, conversation, command)
        loaded = await store.load(ME, conversation)
        assert loaded.context == first.recovered
        second = await runtime.start("Thanks.", context=loaded.context).result
    assert [message.role for message in second.recovered.messages] == [
        *("user", "assistant", "tool", "assistant"),
        *("user", "assistant"),
    ]


async def test_what_cannot_be_stored_everywhere_is_replaced_by_the_one_rule(store: ConversationStore) -> None:
    """B69, B71."""
    conversation = await new(store)
    command = saving("a\x00b", "half \ud83d", title="t\x00", state={"mean": float("nan"), "text": "\\u0000"})
    await store.save(ME, conversation, command)
    loaded = await store.load(ME, conversation)
    assert texts(loaded.context) == ["a\ufffdb", "half \ufffd"]
    assert loaded.conversation.title == "t\ufffd"
    assert loaded.context.model_context.model_state is not None
    assert loaded.context.model_context.model_state.data == {"mean": None, "text": "\\u0000"}


CONTEXT: dict[str, Any] = {"messages": [], "modelContext": {"modelState": None}}


@pytest.mark.parametrize(
    "body",
    [
        {"title": None, "revision": 0},
        {"title": None, "context": CONTEXT},
        {"revision": 0, "context": CONTEXT},
        {"title": None, "revision": 0, "context": {}},
        {"title": None, "revision": 0, "context": {"messages": []}},
        {"title": None, "revision": 0, "context": {"modelContext": {"modelState": None}}},
        {"title": None, "revision": 0, "context": {"messages": [], "modelContext": {}}},
        {"title": None, "revision": 0, "context": {**CONTEXT, "modelState": None}},
        {"title": None, "revision": 0, "context": CONTEXT, "force": True},
        {"title": None, "revision": -1, "context": CONTEXT},
        {"title": None, "revision": True, "context": CONTEXT},
        {"title": None, "revision": "0", "context": CONTEXT},
        {"title": None, "revision": None, "context": CONTEXT},
        {"title": "x" * 257, "revision": 0, "context": CONTEXT},
    ],
)
def test_a_save_command_is_complete_and_exact(body: dict[str, Any]) -> None:
    """R5, R121, R126, R127, R194."""
    with pytest.raises(ValueError):
        SaveConversation.from_wire(body)


def test_null_is_a_valid_model_state_and_a_title_may_have_256_characters() -> None:
    """R121, R126, R194."""
    command = SaveConversation.from_wire(
        {"title": "\N{TEACUP WITHOUT HANDLE}" * 256, "revision": 0, "context": CONTEXT}
    )
    assert command.context == Context()


async def test_a_command_is_fixed_when_save_is_called(store: ConversationStore) -> None:
    """E8: what its maker changes afterwards is not written."""
    conversation = await new(store)
    body: dict[str, Any] = {
        "title": "Fixed",
        "revision": 0,
        "context": {
            "messages": [{"id": "m", "role": "user", "blocks": [{"type": "text", "text": "Fixed"}]}],
            "modelContext": {"modelState": {"format": "test/v1", "data": {"list": ["fixed"]}}},
        },
    }
    write = asyncio.ensure_future(store.save(ME, conversation, SaveConversation.from_wire(body)))
    body["context"]["messages"][0]["blocks"][0]["text"] = "Changed"
    body["context"]["modelContext"]["modelState"]["data"]["list"].append("changed")
    await write
    loaded = await store.load(ME, conversation)
    assert texts(loaded.context) == ["Fixed"]
    assert loaded.context.model_context.model_state is not None
    assert loaded.context.model_context.model_state.data == {"list": ("fixed",)}
    with pytest.raises(InvalidArgument):
        await store.save(ME, conversation, body)  # type: ignore[arg-type]


@pytest.mark.parametrize("revision", [0, 2, 99])
async def test_another_base_than_the_current_revision_is_a_conflict_and_changes_nothing(
    store: ConversationStore, revision: int
) -> None:
    """R123, R127, R194."""
    conversation = await new(store)
    before = await store.save(ME, conversation, saving("First"))
    with pytest.raises(ConversationConflict) as caught:
        await store.save(ME, conversation, saving("Second", revision=revision, title="Lost", state={"lost": True}))
    assert (caught.value.code, caught.value.current_revision) == ("CONVERSATION_CONFLICT", 1)
    assert await store.load(ME, conversation) == before


async def test_of_many_writers_with_one_base_exactly_one_wins(store: ConversationStore) -> None:
    """R127, B66, B68."""
    conversation = await new(store)
    for base in range(5):
        writers = [saving(f"by {number}", revision=base, state={"by": number}) for number in range(6)]
        results = await asyncio.gather(
            *(store.save(ME, conversation, writer) for writer in writers), return_exceptions=True
        )
        won = [result for result in results if not isinstance(result, BaseException)]
        lost = [result for result in results if isinstance(result, ConversationConflict)]
        assert (len(won), len(lost)) == (1, 5)
        assert {conflict.current_revision for conflict in lost} == {base + 1}
        assert await store.load(ME, conversation) == won[0]


async def test_what_belongs_to_another_looks_like_what_does_not_exist(store: ConversationStore) -> None:
    """R125, R194."""
    conversation = await new(store)
    before = await store.save(ME, conversation, saving("Mine"))
    attempts: list[Callable[[str], Any]] = [
        lambda pk: store.load(ANOTHER, pk),
        lambda pk: store.save(ANOTHER, pk, saving("Taken over", revision=1)),
        lambda pk: store.save(ANOTHER, pk, saving("Guessed", revision=0)),
    ]
    for attempt in attempts:
        told = []
        for pk in (conversation, "no-such-conversation", "", "\ud800", "' OR 1=1 --"):
            with pytest.raises(ConversationNotFound) as caught:
                await attempt(pk)
            told.append((caught.value.code, caught.value.message.replace(repr(pk), "…")))
        assert set(told) == {("CONVERSATION_NOT_FOUND", "there is no conversation …")}
    assert await store.delete(ANOTHER, conversation) is False
    assert await store.list(ANOTHER) == ()
    assert await store.load(ME, conversation) == before


async def test_deleting_twice_is_fine_and_nothing_can_be_saved_afterwards(store: ConversationStore) -> None:
    """R128."""
    conversation, kept = await new(store), await new(store)
    assert await store.delete(ME, conversation) is True
    assert await store.delete(ME, conversation) is False
    assert await store.delete(ME, "never-was") is False
    with pytest.raises(ConversationNotFound):
        await store.load(ME, conversation)
    with pytest.raises(ConversationNotFound):
        await store.save(ME, conversation, saving("Back again"))
    assert [row.conversation_id for row in await store.list(ME)] == [kept]


async def test_a_list_has_the_last_changed_first_and_50_rows_unless_told_otherwise(store: ConversationStore) -> None:
    """R126."""
    made = [await new(store) for _ in range(52)]
    changed = await store.save(ME, made[0], saving("Changed"))
    listed = await store.list(ME)
    assert [row.conversation_id for row in listed] == [made[0], *reversed(made[3:])]
    assert listed[0] == changed.conversation
    assert await store.list(ME, limit=2) == listed[:2]
    assert len(await store.list(ME, limit=1_000)) == 52


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, None, 2**63])
async def test_a_list_has_a_positive_length(store: ConversationStore, limit: Any) -> None:
    with pytest.raises(InvalidArgument):
        await store.list(ME, limit=limit)


@pytest.mark.parametrize("owner", ["", " ", None, 1, "a\x00", "\ud800"])
async def test_an_owner_key_that_cannot_tell_owners_apart_is_refused_everywhere(
    store: ConversationStore, owner: Any
) -> None:
    conversation = await new(store)
    for attempt in (
        store.create(owner),
        store.load(owner, conversation),
        store.save(owner, conversation, saving("Hello")),
        store.list(owner),
        store.delete(owner, conversation),
    ):
        with pytest.raises(InvalidArgument, match="owner key"):
            await attempt


@pytest.mark.parametrize("title", ["x" * 257, 1])
async def test_a_title_that_cannot_be_used_is_refused_when_a_conversation_is_made(
    store: ConversationStore, title: Any
) -> None:
    """R126."""
    with pytest.raises(InvalidArgument, match="title"):
        await store.create(ME, title)
    assert await store.list(ME) == ()
