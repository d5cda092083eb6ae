"""What is found, by whom, and in which order: the same on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.runtime.exceptions import InvalidArgument
from conversations.models import Conversation, Revision, User
from conversations.search import Filters, Query, matching_conversations, search
from tests.conversations.search.said import conversation, found, hits, message, say
from tests.factories import AgentProfileFactory, UserFactory

pytestmark = pytest.mark.django_db

HOSTILE = [
    '"', '""', "'", "''; DROP TABLE conversations_searchentry; --", "NEAR(cat dog, 2)", "cat AND", "NOT cat", "OR",
    "owner:u1", "words:cat", "{owner words}: cat", "^cat", "cat*", "*", "cat + dog", "(((", ")", "cat)", "\\", "cat\\",
    "cat & !dog", "cat <-> dog", "cat:*", "cat:A", "'cat'", "@1", "'@1'", "%s", "%", "_", "cat%", "\x00", "c\x00at",
    "\ud800", "\ufeffcat", "cat\u202e", "🎉", "a" * 500, "a " * 64, '"a" ' * 40, "数" * 64, "-cat", "cat -- dog",
    "İ", "ﷺ", "\u0345", "0", "1e5", "-1", "NaN", "null", "true", "http://x.y/z?q=1&r=2", "me@example.org", "a_b",
]  # fmt: skip

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)
FIRST_MOMENT, LAST_MOMENT = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@pytest.fixture
def ada() -> User:
    return UserFactory.create()


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("We keep data in a database.", ["data", "DATABASE", "dat", '"a database"', "keep database in", '"in a" keep']),
        ("Der Café in der Straße", ["cafe", "CAFÉ", "strasse", "stras", "straß", '"der strasse"']),
        ("我们用数据库保存数据", ["数", "库", "数据", "数据库", '"数据库保存"', "保存 我们", "据库"]),
        ("今日は天気がいいですね。カタカナ", ["天", "天気", "いい", "カタ", "カナ", "気が", "ｶﾀｶﾅ"]),
        ("오늘은 날씨가 좋다", ["날", "날씨", "씨가", "오늘", "좋다"]),
        ("ประเทศไทย", ["ไทย", "ประเทศ", "ท"]),
        ("用Python写代码", ["python", "写代", "用python", "pyth", "Python 代码"]),
        ("snake_case and kebab-case, v1.2.3", ["snake_case", "snake", "kebab-case", "v1.2", "case", "2.3"]),
        ("mail me@example.org at http://example.org/path?x=1", ["me@example.org", "example.org/path", "path"]),
        ("I can't believe it's 10 000", ["can't", "it's", "10", "000", "believe"]),
        ("हिन्दी में लिखा", ["हिन्दी", "लिखा", "हिन्"]),
        ("مَرْحَبًا بالعالم", ["مرحبا", "بالعالم", "بال"]),
    ],
)
def test_a_message_is_found_by_words_beginnings_and_phrases(ada: User, text: str, queries: list[str]) -> None:
    say(conversation(ada), text, "something else altogether")
    for query in queries:
        assert found(ada, query) == [text], query


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("We keep data in a database.", ["atabase", '"dat"', '"database a"', "data missing", '"keep in"', "dataa"]),
        ("我们用数据库保存数据", ["据数", "库数", '"保存数据库"', "据据", "用据"]),
        ("数据，和索引", ["数引", "据索"]),
        ("오늘은 날씨가 좋다", ["씨날", "늘오"]),
        ("a b c", ['"a c"', "d", "ab"]),
        ("plans", ["p"]),
    ],
)
def test_what_is_not_there_is_not_found(ada: User, text: str, queries: list[str]) -> None:
    say(conversation(ada), text)
    for query in queries:
        assert found(ada, query) == [], query


def test_a_word_that_is_very_frequent_in_a_message_is_found_at_its_end(ada: User) -> None:
    """A vector of PostgreSQL keeps 256 places of a word."""
    text = "的人 " * 400 + "的确 " + "the end " * 300 + "of the story"
    say(conversation(ada), text)
    for query in ("的确", "确", "人的", "story", '"of the story"'):
        assert len(hits(ada, query)) == 1, query


def test_a_conversation_is_found_by_its_title(ada: User) -> None:
    row = conversation(ada, "Größe der Katzen")
    (hit,) = hits(ada, "katz")
    assert (hit.conversation, hit.revision_id, hit.message_id, hit.role, hit.snippet) == (row, None, None, None, ())
    assert [(piece.text, piece.match) for piece in hit.title] == [("Größe der ", False), ("Katzen", True)]
    assert hit.created_at == row.created_at


def test_a_message_is_found_with_its_place(ada: User) -> None:
    row = conversation(ada, "About cats")
    say(row, "hello")
    revision = say(row, message("what do cats eat?"), message("Mice.", "assistant", "the-answer"))
    say(row, "and dogs?")
    (hit,) = hits(ada, "mice")
    assert (hit.conversation, hit.revision_id, hit.message_id) == (row, revision.public_id, "the-answer")
    assert (hit.role, hit.created_at) == ("assistant", revision.created_at)
    assert [(piece.text, piece.match) for piece in hit.snippet] == [("Mice", True), (".", False)]
    assert [(piece.text, piece.match) for piece in hit.title] == [("About cats", False)]


def test_other_peoples_words_are_never_found(ada: User) -> None:
    """R125."""
    other = UserFactory.create()
    say(conversation(other, "their secret"), "the secret is mine")
    say(conversation(ada, "my secret"), "no, mine")
    assert found(ada, "secret") == ["[my secret]"]
    assert found(ada, "mine") == ["no, mine"]
    assert set(matching_conversations(ada, "secret")) == set(ada.conversations.all())
    for query in (f"u{other.pk}", f"owner:u{other.pk}", f"@{other.pk}", f"u{ada.pk}", f"u{other.pk} secret"):
        assert found(ada, query) == [], query


def test_temporary_conversations_are_not_found_until_they_are_kept(ada: User) -> None:
    row = conversation(ada, "between us", temporary=True)
    say(row, "do not remember this")
    assert found(ada, "remember") == found(ada, "between") == []
    assert not matching_conversations(ada, "remember")
    Conversation.objects.update(temporary=False)
    assert found(ada, "remember") == ["do not remember this"]


def test_newest_come_first_also_of_what_was_imported_later(ada: User) -> None:
    row = conversation(ada)
    say(row, "cat two", "cat three", created_at=datetime(2026, 2, 2, tzinfo=UTC))
    say(row, "cat four", created_at=datetime(2026, 2, 2, 1, tzinfo=UTC))
    say(conversation(ada), "cat one", created_at=datetime(2020, 1, 1, tzinfo=UTC))
    say(conversation(ada), "cat none", created_at=datetime(1, 1, 1, tzinfo=UTC))
    say(conversation(ada), "cat last", "cat end", created_at=datetime.max.replace(tzinfo=UTC))
    assert found(ada, "cat")[2:] == ["cat four", "cat three", "cat two", "cat one", "cat none"]
    assert {*found(ada, "cat")[:2]} == {"cat last", "cat end"}


def test_pages_show_each_hit_once(ada: User) -> None:
    row = conversation(ada, "cats")
    for number in range(7):
        say(row, f"cat {number}", f"another cat {number}")
    for limit in (1, 2, 4, 7, 15, 30):
        whole = [hit.message_id for hit in hits(ada, "cat", limit=100)]
        assert len(whole) >= 15
        page = search(ada, Query.parse("cat"), limit=limit)
        seen = [hit.message_id for hit in page.hits]
        say(row, "a cat that came while somebody read")
        while page.after is not None:
            page = search(ada, Query.parse("cat"), before=page.after, limit=limit)
            assert page.hits
            seen += [hit.message_id for hit in page.hits]
        assert seen == whole


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"agent": "first"}, {"one"}),
        ({"agent": "nothing"}, set()),
        ({"pinned": True}, {"two"}),
        ({"pinned": False}, {"one", "three"}),
        ({"archived": True}, {"three"}),
        ({"archived": False}, {"one", "two"}),
        ({"tag": "work"}, {"one", "two"}),
        ({"tag": "wor"}, set()),
        ({"tag": 'it"s'}, {"three"}),
        ({"tag": "%"}, set()),
        ({"tag": "work", "pinned": False}, {"one"}),
        ({"since": NOON}, {"two", "three"}),
        ({"until": NOON}, {"one"}),
        ({"since": NOON, "until": NOON + timedelta(days=1)}, {"two"}),
        ({"since": NOON + timedelta(days=1), "until": NOON}, set()),
        ({"since": FIRST_MOMENT, "until": LAST_MOMENT}, {"one", "two", "three"}),
        ({"since": LAST_MOMENT}, set()),
        ({"until": FIRST_MOMENT}, set()),
    ],
)
def test_filters_narrow_a_search(ada: User, filters: dict[str, object], expected: set[str]) -> None:
    first = AgentProfileFactory.create(slug="first")
    one = conversation(ada, agent=first, tags=["work"])
    two = conversation(ada, pinned=True, tags=["home", "work"])
    three = conversation(ada, archived=True, tags=['it"s'])
    say(one, "cat one", created_at=NOON - timedelta(microseconds=1))
    say(two, "cat two", created_at=NOON)
    say(three, "cat three", created_at=NOON + timedelta(days=1))
    assert {text.removeprefix("cat ") for text in found(ada, "cat", **filters)} == expected


def test_a_hostile_query_is_a_query_or_is_refused(ada: User) -> None:
    say(conversation(ada, "dog"), "the cat sat")
    for query in HOSTILE:
        try:
            texts = found(ada, query)
        except InvalidArgument:
            continue
        assert set(texts) <= {"the cat sat", "[dog]"}, query
        there = {hit.conversation for hit in hits(ada, query)}
        assert set(matching_conversations(ada, query)) == there, query


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=40))
def test_any_text_finds_itself(ada: User, text: str) -> None:
    text = text.encode("utf-8", "replace").decode().replace("\x00", "")
    try:
        query = Query.parse(text)
    except InvalidArgument:
        return
    row = conversation(ada)
    say(row, text)
    assert row in [hit.conversation for hit in search(ada, query, Filters(), limit=200).hits]
    row.head = None
    row.save()
    row.delete()


def test_conversations_with_a_match_can_be_narrowed_further(ada: User) -> None:
    first, second = conversation(ada, "cats"), conversation(ada, pinned=True)
    say(second, "a cat", "another cat")
    conversation(ada, "dogs")
    assert set(matching_conversations(ada, "cat")) == {first, second}
    assert list(matching_conversations(ada, "cat").filter(pinned=True)) == [second]
    with pytest.raises(InvalidArgument):
        matching_conversations(ada, "?")


def test_a_search_costs_three_queries_whatever_is_found(ada: User) -> None:
    def cost() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            hits(ada, "cat")
        return len(queries)

    say(conversation(ada, "a title"), "one cat")
    assert cost() == 3
    for number in range(10):
        say(conversation(ada, f"cat {number}"), "cat", "cats", "catalogue")
    assert cost() == 3


def test_a_damaged_revision_is_found_without_words(ada: User) -> None:
    row = conversation(ada)
    say(row, "the cat sat")
    Revision.objects.update(context=[{"id": 1}, None, "x"])
    (hit,) = hits(ada, "cat")
    assert (hit.conversation, hit.snippet) == (row, ())


def test_a_snippet_is_of_the_message_that_was_found(ada: User) -> None:
    row = conversation(ada)
    say(row, "nothing", "the cat of one", "nothing", "the cat of two")
    assert found(ada, "cat") == ["the cat of two", "the cat of one"]
    assert hits(ada, "cat")[0].created_at - hits(ada, "cat")[1].created_at < timedelta(seconds=1)
