"""Whatever somebody types is a query or is refused in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.runtime.exceptions import InvalidArgument
from conversations.search.query import MOST_CHARACTERS, MOST_WORDS, Query


def read(text: str) -> list[str]:
    """Return the phrases of a query; `*` marks one whose last word may go on."""
    return [" ".join(phrase.words) + "*" * phrase.open_end for phrase in Query.parse(text).phrases]


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("cat", ["cat*"]),
        ("black cat", ["black", "cat*"]),
        ('"black cat"', ["black cat"]),
        ('"black cat" dog', ["black cat", "dog*"]),
        ('dog "black cat"', ["dog", "black cat"]),
        ("“black cat”", ["black cat"]),
        ("«black cat»", ["black cat"]),
        ('"black ca', ["black ca"]),
        ("a", ["a"]),
        ("plan b", ["plan", "b"]),
        ("数", ["数"]),
        ("数据", ["数 据"]),
        ("数据，索引", ["数 据", "索 引"]),
        ("数据 py", ["数 据", "py*"]),
        ("python数据", ["python 数 据"]),
        ("日本語ver", ["日 本 語 ver*"]),
        ("don't e-mail", ["don t", "e mail*"]),
        ("v1.2", ["v1 2"]),
        ("cats,dogs", ["cats", "dogs*"]),
        ("café*", ["cafe*"]),
        ("-- cat ++", ["cat*"]),
        ("NEAR(a b) OR col:x", ["near", "a", "b", "or", "col x"]),
        ("'; drop table x; --", ["drop", "table", "x"]),
        ('"" cat', ["cat*"]),
    ],
)
def test_a_query_is_phrases(text: str, phrases: list[str]) -> None:
    assert read(text) == phrases


@pytest.mark.parametrize("text", ["", "   ", '"', '""', "…!?", "🎉", "\x00", "\ufffd", "_ _"])
def test_nothing_to_search_for_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="a letter or a number"):
        Query.parse(text)


def test_too_much_to_search_for_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="at most 500 characters"):
        Query.parse("a" * (MOST_CHARACTERS + 1))
    with pytest.raises(InvalidArgument, match="at most 64 words"):
        Query.parse("数" * (MOST_WORDS + 1))


@given(st.text(max_size=60))
def test_any_text_is_a_query_or_refused(text: str) -> None:
    try:
        query = Query.parse(text)
    except InvalidArgument:
        return
    assert query.phrases
    assert all(phrase.words for phrase in query.phrases)
