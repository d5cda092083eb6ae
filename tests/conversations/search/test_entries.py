"""What is in the index, and that it leaves with what it stands for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agent.runtime.messages import AgentMessage, Context, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from agent.runtime.values import FrozenDict
from conversations import store
from conversations.models import Conversation, Revision, SearchEntry, User
from conversations.search import Query, index_title, matching_conversations, search_index
from conversations.search import index as index_module
from conversations.search.index import MOST_WORDS, Filters
from conversations.search.sqlite import WORDS
from conversations.store import Changes, Node
from tests.conversations.search.said import conversation, found, hits, kept, message, picture, say
from tests.factories import AgentProfileFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    return UserFactory.create()


@contextmanager
def statements() -> Iterator[list[str]]:
    made: list[str] = []
    with CaptureQueriesContext(connection) as queries:
        yield made
    made += [query["sql"] for query in queries if not query["sql"].startswith(("SAVEPOINT", "RELEASE"))]


def put(row: Conversation, *messages: AgentMessage) -> None:
    """Replace a conversation as a client does that has read it."""
    row.version = store.put_conversation(row.owner, row.pk, None, row.version, Context(messages=messages)).version


def test_only_what_people_and_models_said_is_found(ada: User) -> None:
    call = ToolCallBlock(call_id="c", name="weather", input=FrozenDict(city="gamma"))
    result = ToolResultBlock(
        call_id="c", name="weather", status="success", content=(TextBlock(text="delta"),), execution="completed"
    )
    say(
        conversation(ada),
        AgentMessage(id="1", role="user", blocks=(TextBlock(text="alpha"), picture(), TextBlock(text="omega"))),
        AgentMessage(id="2", role="assistant", blocks=(ReasoningBlock(text="beta"), TextBlock(text="sigma"), call)),
        AgentMessage(id="3", role="tool", blocks=(result,)),
        AgentMessage(id="4", role="system", blocks=(TextBlock(text="epsilon"),)),
        model_state={"theta": "kappa"},
    )
    assert [hit.message_id for hit in hits(ada, "alpha omega")] == ["1"]
    assert [hit.message_id for hit in hits(ada, "sigma")] == ["2"]
    for hidden in ("beta", "gamma", "weather", "delta", "epsilon", "theta", "kappa", "example", "cat", "png"):
        assert found(ada, hidden) == [], hidden


def test_what_stands_in_two_blocks_is_not_one_word(ada: User) -> None:
    two = AgentMessage(id="1", role="user", blocks=(TextBlock(text="foot"), TextBlock(text="ball")))
    say(conversation(ada), two)
    assert found(ada, "football") == []
    assert found(ada, '"foot ball"') == ["foot ball"]


def test_a_message_of_several_revisions_is_found_once_and_where_it_was_first(ada: User) -> None:
    row = conversation(ada)
    asked = message("what is a cat?")
    first = say(row, asked, message("An animal.", "assistant"))
    say(row, asked, message("A cat is a pet.", "assistant"), keyframe=True)
    assert found(ada, "cat") == ["A cat is a pet.", "what is a cat?"]
    assert hits(ada, "what")[0].revision_id == first.public_id
    other = conversation(ada)
    say(other, asked)
    assert len(hits(ada, "what")) == 2


def test_a_text_that_was_changed_is_found_and_so_is_the_old_one_where_it_stands(ada: User) -> None:
    """R122: a context that a client writes may give a message another text under the same id."""
    row = conversation(ada)
    old = say(row, message("a zebra", message_id="m1"), message("and more", "assistant", "m2"))
    put(row, message("a giraffe", message_id="m1"), message("and more", "assistant", "m2"))
    new = Revision.objects.get(number=row.version)
    assert [(hit.message_id, hit.revision_id) for hit in hits(ada, "giraffe")] == [("m1", new.public_id)]
    assert [(hit.message_id, hit.revision_id) for hit in hits(ada, "zebra")] == [("m1", old.public_id)]
    assert found(ada, "giraffe") + found(ada, "zebra") == ["a giraffe", "a zebra"]
    assert found(ada, "more") == ["and more"]
    put(row, message("a zebra", message_id="m1"))
    assert [hit.revision_id for hit in hits(ada, "zebra")] == [old.public_id]
    call_command("rebuild_search")
    assert [hit.revision_id for hit in [*hits(ada, "giraffe"), *hits(ada, "zebra")]] == [new.public_id, old.public_id]
    assert kept() == 3


def test_texts_that_differ_only_where_nothing_is_found_are_told_apart(ada: User) -> None:
    row = conversation(ada)
    say(row, message("word " * MOST_WORDS + "one", message_id="m1"))
    say(row, message("word " * MOST_WORDS + "two", message_id="m1"), keyframe=True)
    assert len(found(ada, "word")) == 2


def test_every_branch_is_found(ada: User) -> None:
    row = conversation(ada)
    root = say(row, "hello")
    say(row, "an apple", parent=root)
    say(row, "a pear", parent=root)
    assert found(ada, "apple") == ["an apple"]
    assert found(ada, "pear") == ["a pear"]


def test_a_new_title_takes_the_place_of_the_old_one(ada: User) -> None:
    row = conversation(ada, "Old words")
    store.change_conversation(ada, row.pk, Changes(title="New words"))
    assert found(ada, "words") == ["[New words]"]
    assert found(ada, "old") == []
    store.change_conversation(ada, row.pk, Changes(pinned=True))
    assert found(ada, "new") == ["[New words]"]
    store.change_conversation(ada, row.pk, Changes(title=None))
    assert found(ada, "words") == []
    assert kept() == 0


def test_what_the_store_makes_is_found(ada: User) -> None:
    agent = AgentProfileFactory.create(slug="first")
    store.create_conversation(ada, title="made empty", agent="first")
    nodes = [Node(None, (message("planted root"),)), Node(0, (message("planted leaf"), message("leaf", "assistant")))]
    planted = store.plant_tree(ada, agent, nodes, title="planted title")
    store.fork(ada, planted.pk, title="forked")
    assert found(ada, "empty") == ["[made empty]"]
    assert sorted(found(ada, "planted")) == ["[planted title]"] + ["planted leaf"] * 2 + ["planted root"] * 2
    assert {row.title for row in matching_conversations(ada, "leaf")} == {"planted title", "forked"}


def test_a_save_costs_the_same_number_of_statements_whatever_was_said_before(ada: User) -> None:
    row = conversation(ada)
    with statements() as first:
        say(row, "one", "two")
    for number in range(30):
        say(row, f"more {number}", "and more")
    with statements() as later:
        say(row, *["much at once"] * 100)
    assert len(first) == len(later)


def test_what_is_deleted_leaves_the_index(ada: User) -> None:
    row, other = conversation(ada, "cats"), conversation(ada, "more cats")
    say(row, "a cat", "two cats")
    say(other, "a cat")
    assert kept() == 5
    store.delete_conversation(ada, row.pk)
    assert found(ada, "cat") == ["a cat", "[more cats]"]
    assert kept() == 2
    other.head = None
    other.save()
    Revision.objects.all().delete()
    assert kept() == 1
    User.objects.filter(pk=ada.pk).delete()
    assert kept() == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", ["first", "second"])
def test_emptied_tables_leave_nothing_behind(turn: str) -> None:
    """The suite empties tables after such a test; both of these begin with nothing."""
    assert kept() == 0
    say(conversation(UserFactory.create(), "cats"), "a cat")
    assert kept() == 2


def test_a_very_long_message_is_found_by_its_beginning(ada: User) -> None:
    say(conversation(ada), "start " + "word " * MOST_WORDS + "finish", "的" * 100_000 + "完", "x" * 10_000_000)
    assert [len(found(ada, query)) for query in ("start", "finish", "的的", "完", "xxx")] == [1, 0, 1, 0, 1]
    say(conversation(ada), " ".join("abcdefghij" * 9 + str(number) for number in range(20_000)))
    assert len(found(ada, "abcdefghij")) == 1


def test_two_entries_of_one_instant_both_are_found(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their keys collide now and then; the one that comes second takes another key."""
    draws = iter([7, 7, 7, 8, 9, 9, 9, 10])
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    monkeypatch.setattr(index_module, "randbits", lambda bits: next(draws))
    for number in range(3):
        say(conversation(ada), f"cat {number}", created_at=moment)
    assert found(ada, "cat") == ["cat 2", "cat 1", "cat 0"]


def test_the_index_is_made_anew_from_what_is_stored(ada: User, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [conversation(ada, f"cats {number}") for number in range(45)]
    for row in rows[:3]:
        say(row, "a cat", "a dog")
        say(row, "another cat", message("a cat, again", "tool"))
    Revision.objects.filter(conversation=rows[2]).update(context=["damaged", {"role": "user"}, {"id": 1}])
    before = found(ada, "cat", limit=100)
    SearchEntry.objects.all().delete()
    assert found(ada, "cat") == []
    for _ in range(2):
        call_command("rebuild_search")
        assert capsys.readouterr().out == "45 conversations can be searched.\n"
        assert sorted(found(ada, "cat", limit=100)) == sorted(text for text in before if text) != []
    assert kept() == 45 + 6


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL keeps the words in the entry")
def test_a_rebuild_removes_words_without_an_entry(ada: User) -> None:
    conversation(ada, "cats")
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {WORDS} (rowid, owner, words) VALUES (12345, %s, 'cat')", [f"u{ada.pk}"])
    call_command("rebuild_search")
    assert kept() == 1


def test_an_entry_is_never_somebody_elses_even_if_the_index_says_so(ada: User) -> None:
    """The owner is asked of the conversation, too."""
    row = conversation(ada, "cats")
    Conversation.objects.filter(pk=row.pk).update(owner=UserFactory.create())
    assert search_index().find(Query.parse("cats"), ada.pk, Filters(), before=None, limit=5) == []
    assert not matching_conversations(ada, "cats")


def test_titles_of_nothing_are_no_entries(ada: User) -> None:
    for title in (None, "", "…"):
        index_title(conversation(ada, title))
    assert found(ada, str(uuid4())) == []
