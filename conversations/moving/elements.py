"""A large JSON file, one conversation at a time: memory and pauses depend on the largest of them, not on the file.

Only brackets and texts are looked at to find where a conversation begins and ends; what is between is then read as
JSON, unless it has more parts than a conversation needs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from mmap import mmap
from typing import Any, TypeAlias

import orjson

from agent.runtime.values import MAX_DEPTH, read_json
from conversations.exceptions import ImportInvalid

MOST_CONVERSATIONS = 20_000  # of an import, as many files as it may have
MOST_PARTS = 1_000_000  # of one conversation
MOST_BRACKETS = 5_000_000  # of an import

Buffer: TypeAlias = bytes | mmap

_BRACKET = re.compile(
    rb'[^"\[\]{}]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\[\]{}]*+)*+([\[\]{}])',
    re.DOTALL,
)
_LIST_OF_OURS = re.compile(rb'(?<!\\)"conversations"\s*:\s*\Z')
_BEFORE = 200  # bytes in which the name of a list must be
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Element:
    """A conversation in a file: where it stands and what it says, as it was read."""

    place: str
    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """Where a conversation stands in the file, in bytes."""

    place: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Layout:
    """A file's conversations, and the JSON around them with an empty list in their place; None for a bare list."""

    spans: tuple[Span, ...]
    envelope: dict[str, Any] | None


@dataclass(slots=True)
class Room:
    """How much more the files of one import may hold."""

    conversations: int = field(default_factory=lambda: MOST_CONVERSATIONS)
    brackets: int = field(default_factory=lambda: MOST_BRACKETS)


def layout_of(data: Buffer, root: str = "$", room: Room | None = None) -> Layout:
    """Return where the conversations of a JSON file stand; `root` is the place of all of it.

    What they take of the `room` is gone for the next file. Raises `ImportInvalid`.
    """
    room = room or Room()
    start = len(_BOM) if data[: len(_BOM)] == _BOM else 0
    opening = data[start : start + 4096].lstrip()[:1]
    if opening == b"[":
        spans, _, _ = _spans(data, start, root, room)
        return Layout(spans, None)
    if opening == b"{":
        found = _listed(data, start, root, room)
        if found is None:
            return Layout((Span(root, start, len(data)),), None)
        spans, inner, end = found
        return Layout(spans, _json(data[start:inner] + data[end:], root))
    raise ImportInvalid(root, "this is no JSON: a list of conversations or an export of this site is needed")


def elements(data: Buffer, layout: Layout) -> Iterator[Element]:
    """Yield the conversations of a file; raises `ImportInvalid` for what is no JSON object."""
    for span in layout.spans:
        yield Element(span.place, _json(data[span.start : span.end], span.place))


def _listed(data: Buffer, start: int, root: str, room: Room) -> tuple[tuple[Span, ...], int, int] | None:
    """Return the spans in the list `conversations` of an object, and where the inside of that list begins and ends."""
    depth = 0
    for at, bracket in _brackets(data, start, room):
        if bracket == b"[" and depth == 1 and _LIST_OF_OURS.search(data[max(start, at - _BEFORE) : at]):
            return _spans(data, at, f"{root}.conversations", room, inside=True)
        depth += 1 if bracket in b"[{" else -1
    return None


def _spans(
    data: Buffer, start: int, place: str, room: Room, *, inside: bool = False
) -> tuple[tuple[Span, ...], int, int]:
    """Return the objects of the list that begins at `start`, and where its inside begins and ends.

    A list that is not `inside` of something is all that there is.
    """
    spans: list[Span] = []
    depth, begun, inner, gap = 0, 0, 0, 0
    for at, bracket in _brackets(data, start, room):
        here = f"{place}[{len(spans)}]"
        if bracket in b"[{":
            depth += 1
            if depth == 1:
                inner = gap = at + 1
            elif depth == 2:
                _check_gap(data[gap:at], here, first=not spans)
                if bracket == b"[":
                    raise ImportInvalid(here, "a conversation is a JSON object")
                begun = at
            elif depth > 2 + MAX_DEPTH:
                raise ImportInvalid(here, f"JSON nested deeper than {MAX_DEPTH} levels")
            continue
        depth -= 1
        if depth == 1:
            if bracket != b"}":
                raise ImportInvalid(here, "this is no JSON: a bracket closes what it did not open")
            room.conversations -= 1
            if room.conversations < 0:
                raise ImportInvalid(place, f"more than {MOST_CONVERSATIONS} conversations")
            spans.append(Span(here, begun, at + 1))
            gap = at + 1
        elif depth < 1:
            if bracket != b"]" or data[gap:at].strip():
                raise ImportInvalid(here, "a list of JSON objects is needed")
            if not inside and data[at + 1 :].strip():
                raise ImportInvalid(place, "there is more after the end of the list")
            return tuple(spans), inner, at
    raise ImportInvalid(f"{place}[{len(spans)}]", "the file ends in the middle of a conversation; is it whole?")


def _check_gap(gap: bytes, here: str, *, first: bool) -> None:
    if gap.strip() != (b"" if first else b","):
        raise ImportInvalid(here, "a list of JSON objects is needed")


def _brackets(data: Buffer, start: int, room: Room) -> Iterator[tuple[int, bytes]]:
    """Yield the brackets outside of texts; stops where no further bracket can be found."""
    at = start
    while (match := _BRACKET.match(data, at)) is not None:
        room.brackets -= 1
        if room.brackets < 0:
            raise ImportInvalid("$", f"JSON of more than {MOST_BRACKETS} lists and objects")
        at = match.end()
        yield at - 1, match[1]


def _json(raw: bytes, place: str) -> dict[str, Any]:
    """Return a JSON object; what stands in it is not clean yet."""
    try:
        found = _read(raw)
    except json.JSONDecodeError as error:
        raise ImportInvalid(place, f"this is no JSON: {error}") from error
    except RecursionError as error:
        raise ImportInvalid(place, f"JSON nested deeper than {MAX_DEPTH} levels") from error
    except ValueError as error:
        raise ImportInvalid(place, str(error)) from error
    if not isinstance(found, dict):
        raise ImportInvalid(place, "a JSON object is needed")
    return found


def _read(raw: bytes) -> Any:
    try:
        return read_json(raw, most=MOST_PARTS)
    except orjson.JSONDecodeError:
        return json.loads(raw)  # takes NaN and half a surrogate pair, which others write
