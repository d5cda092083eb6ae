"""What a person searches for, whatever they typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from agent.runtime.exceptions import InvalidArgument
from conversations.search.words import is_character, words

MOST_CHARACTERS = 500
MOST_WORDS = 64
SHORTEST_PREFIX = 2

_QUOTES = str.maketrans(dict.fromkeys("“”„‟＂«»", '"'))
_PART = re.compile(r'"([^"]*)"?|([^"]+)')
_BETWEEN = re.compile(r"[\s,;!?()\[\]{}、。，；！？（）「」『』《》〈〉【】…]+")


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that must follow one another; with `open_end` the last may go on."""

    words: tuple[str, ...]
    open_end: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """Phrases that a text must all contain, in any order; there is at least one."""

    phrases: tuple[Phrase, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a query: words, and "phrases" in quotes; what is joined without a space is a phrase, too.

        The last word may be the beginning of one, unless it is quoted, a single letter or a character of a script
        without spaces. Raises `InvalidArgument` when there is nothing to search for, or too much.
        """
        if len(text) > MOST_CHARACTERS:
            raise InvalidArgument(f"a query has at most {MOST_CHARACTERS} characters, this one {len(text)}")
        found = list(_phrases(text))
        if not found:
            raise InvalidArgument("a query needs a letter or a number to search for")
        if sum(len(phrase.words) for phrase in found) > MOST_WORDS:
            raise InvalidArgument(f"a query has at most {MOST_WORDS} words")
        *firm, last = found
        return cls((*(Phrase(each.words) for each in firm), last))


def _phrases(text: str) -> Iterator[Phrase]:
    for quoted, plain in _PART.findall(text.translate(_QUOTES)):
        for part in [quoted] if quoted else _BETWEEN.split(plain):
            if found := words(part):
                goes_on = not quoted and len(found[-1]) >= SHORTEST_PREFIX and not is_character(found[-1])
                yield Phrase(tuple(found), goes_on)
