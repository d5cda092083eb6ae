"""A snippet is cut from what was really said, and marks what was searched for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.search import snippets
from conversations.search.index import MOST_CHARACTERS
from conversations.search.query import Query
from conversations.search.snippets import LENGTH, marked, snippet
from conversations.search.words import located_words


def shown(text: str, query: str) -> str:
    """Return the snippet with its matches in brackets."""
    return "".join(f"[{piece.text}]" if piece.match else piece.text for piece in snippet(text, Query.parse(query)))


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("The Cat sat.", "cat", "The [Cat] sat."),
        ("A catalogue of cats", "cat", "A [catalogue] of [cats]"),
        ("A catalogue of cats", '"cat"', "A catalogue of cats"),
        ("Le café noir", "CAFE", "Le [café] noir"),
        ("Le cafe\u0301 noir", "café", "Le [cafe\u0301] noir"),
        ("In der STRASSE", "straße", "In der [STRASSE]"),
        ("我们用数据库保存数据。", "数据", "我们用[数据]库保存[数据]。"),
        ("하늘이 파랗다", "하늘", "[하늘]이 파랗다"),
        ("ｶﾞｿﾘﾝ", "ガソ", "[ｶﾞｿ]ﾘﾝ"),
        ("black cat, cat black", '"black cat"', "[black cat], cat black"),
        ("a, b", '"a b"', "[a, b]"),
        ("line\n\n  two   words", "two", "line [two] words"),
        ("<b>cat</b>", "cat", "<b>[cat]</b>"),
        ("nothing here", "cat", "nothing here"),
        ("", "cat", ""),
    ],
)
def test_matches_are_marked_in_the_original(text: str, query: str, expected: str) -> None:
    assert shown(text, query) == expected


def test_a_long_text_is_cut_around_the_first_match() -> None:
    found = shown("so many words " * 50 + "the needle " + "and so on " * 50, "needle")
    assert found.startswith("…")
    assert found.endswith("…")
    assert "the [needle] and so on" in found
    assert len(found) < LENGTH + 10


def test_a_place_with_all_that_was_searched_for_comes_first() -> None:
    text = "only cats here. " + "x " * 200 + "dogs and cats together. " + "x " * 200
    assert "[dogs] and [cats] together" in shown(text, "cats dogs")


@pytest.mark.parametrize("place", [3_990, 3_998, 4_000, 7_397, 30_000])
def test_a_match_far_into_a_long_text_is_found(place: int) -> None:
    text = "w " * (place // 2) + "needlework"
    assert "[needlework]" in shown(text, "needle")
    assert "[" not in shown(text, '"needle"')


@given(st.text(), st.sampled_from(["cat", "数据", '"a b"', "é", "0"]))
def test_nothing_is_added_to_the_text(text: str, query: str) -> None:
    pieces = marked(text, Query.parse(query))
    assert "".join("".join(piece.text for piece in pieces).split()) == "".join(text.split())
    assert all(piece.text for piece in pieces)


def test_the_place_with_the_most_phrases_is_found_among_many() -> None:
    """Each match was compared with each other one."""
    text = "数" * 3_000 + " end"
    assert "[数" in shown(text, "数 数数 数数数 数数数数")
    assert shown("one " * 900 + "two", "one two").endswith("one two]".replace(" ", "] ["))


def test_a_phrase_asked_for_twice_counts_once() -> None:
    assert shown("cat " + "x " * 300 + "cat dog", "cat cat cat dog").endswith("[cat] [dog]")


def test_what_is_beyond_the_indexed_length_is_not_looked_at() -> None:
    text = "w " * (MOST_CHARACTERS // 2)
    assert "[" not in shown(text + "needle", "needle")
    assert "[needle]" in shown(text[:-10] + " needle ", "needle")


def test_words_that_are_far_apart_cost_a_bounded_number_of_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index takes words as neighbours whatever signs are between them; no stretch has them."""
    looked: list[str] = []

    def located(text: str) -> object:
        looked.append(text)
        return located_words(text)

    monkeypatch.setattr(snippets, "located_words", located)
    phrases = " ".join(f'"aa{n:02} bb{n:02}"' for n in range(30))
    apart = "".join(f"aa{n:02}{'.' * 4_100}bb{n:02} " for n in range(30))
    beside = "".join(f"aa{n:02} no bb{n:02} " for n in range(30)) * 1_000

    assert shown(apart, phrases).startswith("aa00....")
    assert looked == []
    assert shown(beside, phrases).startswith("aa00 no bb00 aa01")
    assert len(looked) < 10
    assert max(map(len, looked)) <= 4_000
