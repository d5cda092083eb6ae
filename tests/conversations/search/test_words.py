"""One rule cuts texts and queries into words, for every database."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conversations.search.words import MOST_CHARACTERS_OF_A_WORD, is_character, located_words, words

SCRIPTS = st.text(
    st.one_of(
        st.characters(codec="utf-8"),
        st.sampled_from("aZ 09_-.'\"éßøİıﬁ½①"),
        st.characters(min_codepoint=0x300, max_codepoint=0x36F),
        st.characters(min_codepoint=0x600, max_codepoint=0x6FF),
        st.characters(min_codepoint=0x900, max_codepoint=0xEFF),
        st.characters(min_codepoint=0x1100, max_codepoint=0x11FF),
        st.characters(min_codepoint=0x3040, max_codepoint=0x30FF),
        st.characters(min_codepoint=0x4E00, max_codepoint=0x4FFF),
        st.characters(min_codepoint=0xAC00, max_codepoint=0xB000),
        st.characters(min_codepoint=0xFF00, max_codepoint=0xFFEF),
    )
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Hello, World!", "hello world"),
        ("Café Ångström ÉCOLE", "cafe angstrom ecole"),
        ("Straße STRASSE Ørsted Łódź İstanbul ısı", "strasse strasse orsted lodz istanbul isi"),
        ("ﬁne ＡＢＣ１２ x² ①", "fine abc12 x2 1"),
        ("snake_case kebab-case e.g. don't v1.2", "snake case kebab case e g don t v1 2"),
        ("soft\u00adhyphen zero\u200bwidth", "softhyphen zerowidth"),
        ("数据库索引", "数 据 库 索 引"),
        ("用Python写", "用 python 写"),
        ("カタカナ・ひらがな 々ー", "カ タ カ ナ ひ ら が な 々 ー"),
        ("ｶﾞ か\u3099 が", "ガ が が"),
        ("한국어", "한 국 어"),
        ("\u1112\u1161\u11ab", "한"),
        ("ภาษา", "ภ า ษ า"),
        ("हिन्दी में", "हिन्दी में"),
        ("مَرْحَبًا أهلا", "مرحبا اهلا"),
        ("שָׁלוֹם", "שלום"),
        ("Ἀθῆναι ΣΊΣΥΦΟΣ σίσυφος", "αθηναι σισυφοσ σισυφοσ"),
        ("ёлка Елка", "елка елка"),
        ("𠮷野家", "𠮷 野 家"),
        ("… 🎉 _ ' \x00 \ufffd", ""),
    ],
)
def test_words_have_no_capitals_accents_or_forms(text: str, found: str) -> None:
    assert words(text) == found.split()


@given(SCRIPTS)
@example("\u0345a")
@example("a\u0301\u3099")
def test_words_are_cut_into_themselves(text: str) -> None:
    """So a word that is stored and one that is typed are the same word, however often they are cut."""
    once = words(text)
    assert words(" ".join(once)) == once


@given(SCRIPTS)
def test_no_word_means_anything_to_a_query_language(text: str) -> None:
    for word in words(text):
        assert word
        assert not set(word) & set(" \t\n\"'*():&|!<>\\@\x00{}^+-,")
        assert word.isascii() is (word.encode().isalnum() and word == word.lower())


@given(SCRIPTS)
@example("Å \u212b")
def test_forms_of_the_same_text_have_the_same_words(text: str) -> None:
    for form in ("NFC", "NFD"):
        assert words(unicodedata.normalize(form, text)) == words(text)


@given(SCRIPTS, SCRIPTS)
def test_a_space_parts_words(left: str, right: str) -> None:
    assert words(f"{left} {right}") == [*words(left), *words(right)]


@given(SCRIPTS)
def test_a_located_word_stands_where_it_says(text: str) -> None:
    end = 0
    for word, start, stop in located_words(text):
        assert start < stop <= len(text)
        assert end <= stop
        assert word in "".join(words(text[start:stop]))
        end = stop


@pytest.mark.parametrize(
    "text",
    [
        "Café in the Straße",
        "cafe\u0301 e\u0301",
        "数据 and ｶﾞｶﾞ か\u3099",
        "\u1112\u1161\u11ab국어 ﬁne",
        "हिन्दी ภาษา مَرْحَبًا x²",
    ],
)
def test_located_words_are_the_words_of_the_text(text: str) -> None:
    located = list(located_words(text))
    assert [word for word, _, _ in located] == words(text)
    assert all(words(text[start:stop]) == [word] for word, start, stop in located)


def test_an_accent_belongs_to_the_place_of_its_letter() -> None:
    ((_, start, stop),) = located_words("(cafe\u0301)")
    assert (start, stop) == (1, 6)


def test_a_word_has_a_bounded_length() -> None:
    assert words("A" * 5_000) == ["a" * MOST_CHARACTERS_OF_A_WORD]
    assert [word for word, _, _ in located_words("A" * 5_000)] == ["a" * MOST_CHARACTERS_OF_A_WORD]


def test_characters_of_scripts_without_spaces_are_words() -> None:
    assert all(map(is_character, "数かカ한ภ"))
    assert not any(map(is_character, ["a", "é", "й", "한국", "ab", "ह"]))
