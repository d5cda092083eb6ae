"""What a query matches in a text, cut and marked for people; the text is the original, never the index's."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from conversations.search.index import MOST_CHARACTERS
from conversations.search.query import Phrase, Query
from conversations.search.words import folded, located_words

LENGTH = 240
BEFORE = 60
SLACK = 20

_STRETCH, _OVERLAP = 4_000, 600
_MOST_STRETCHES = 8  # that are looked at closely, and have the words but no match
_SPACE = re.compile(r"\s+")

Place: TypeAlias = tuple[int, int, int]  # where it begins, where it ends, which phrase it is


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text; `match` tells whether it was searched for."""

    text: str
    match: bool


def marked(text: str, query: Query) -> tuple[Piece, ...]:
    """Return the whole text, which is short."""
    return _pieces(text, 0, len(text), _places(text, query))


def snippet(text: str, query: Query) -> tuple[Piece, ...]:
    """Return the part of the text around the first match, or its beginning where the stretches looked at have none."""
    indexed = min(len(text), MOST_CHARACTERS)
    stretches = ((at, min(indexed, at + _STRETCH)) for at in range(0, indexed, _STRETCH - _OVERLAP))
    promising = ((start, end) for start, end in stretches if _may_match(text[start:end], query))
    for start, end in islice(promising, _MOST_STRETCHES):
        places = _whole(_places(text[start:end], query), end - start, first=start == 0, last=end == len(text))
        if places:
            shifted = [(begin + start, stop + start, which) for begin, stop, which in places]
            return _cut(text, _best(shifted), shifted)
    return _cut(text, 0, [])


def _may_match(text: str, query: Query) -> bool:
    """Tell whether all words of a phrase are anywhere in a text, be it inside others; cheap."""
    plain = folded(text)
    return any(all(word in plain for word in phrase.words) for phrase in query.phrases)


def _places(text: str, query: Query) -> list[Place]:
    found = list(located_words(text))
    words = [word for word, _, _ in found]
    where = defaultdict[str, list[int]](list)
    for at, word in enumerate(words):
        where[word].append(at)
    places = [
        (found[at][1], found[at + len(phrase.words) - 1][2], which)
        for which, phrase in enumerate(dict.fromkeys(query.phrases))
        for at in _matches(words, where, phrase)
    ]
    return sorted(places)


def _matches(words: Sequence[str], where: Mapping[str, Sequence[int]], phrase: Phrase) -> Iterator[int]:
    *firm, last = phrase.words
    count = len(firm)
    alone = phrase.open_end and not firm
    for at in range(len(words)) if alone else where.get(phrase.words[0], ()):
        end = words[at + count] if at + count < len(words) else ""
        if (end.startswith(last) if phrase.open_end else end == last) and list(words[at : at + count]) == firm:
            yield at


def _whole(places: list[Place], length: int, *, first: bool, last: bool) -> list[Place]:
    """Leave out what touches an edge at which the text goes on: half a word is another word."""
    return [place for place in places if (first or place[0] > 0) and (last or place[1] < length)]


def _best(places: Sequence[Place]) -> int:
    """Return where the first of the snippets begins that have the most phrases; the places are in order."""
    nearest: dict[int, int] = {}  # where each phrase ends next
    most, best = 0, 0
    for begin, end, which in reversed(places):
        nearest[which] = end
        count = sum(stop <= begin + LENGTH - BEFORE for stop in nearest.values())
        if count >= most:
            most, best = count, begin
    return best


def _cut(text: str, at: int, places: Sequence[Place]) -> tuple[Piece, ...]:
    begin, end = max(0, at - BEFORE), min(len(text), max(at - BEFORE, 0) + LENGTH)
    if begin and (space := _SPACE.search(text, begin, min(at, begin + SLACK))):
        begin = space.end()
    if end < len(text) and (space := _SPACE.search(text, max(at, end - SLACK), end)):
        end = space.start()
    pieces = _pieces(text, begin, end, places)
    before = (Piece("…", False),) if text[:begin].strip() else ()
    after = (Piece("…", False),) if text[end:].strip() else ()
    return _joined([*before, *pieces, *after])


def _pieces(text: str, begin: int, end: int, places: Sequence[Place]) -> tuple[Piece, ...]:
    pieces, at = [], begin
    for start, stop, _ in places:
        start, stop = max(start, at), min(stop, end)
        if start < stop:
            pieces += [Piece(text[at:start], False), Piece(text[start:stop], True)]
            at = stop
    return _joined([*pieces, Piece(text[at:end], False)])


def _joined(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Put neighbours of a kind together, each run of white space as one space."""
    joined: list[Piece] = []
    for piece in pieces:
        text = _SPACE.sub(" ", piece.text)
        if joined and joined[-1].match == piece.match:
            joined[-1] = Piece(joined[-1].text + text, piece.match)
        elif text:
            joined.append(Piece(text, piece.match))
    return tuple(joined)
