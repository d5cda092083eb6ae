"""JSON in pieces, so that what waits for a reader is one piece of it, whatever its size.

A piece is encoded when it is asked for. The texts behind it are those of the run itself, not copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from agent.runtime.state import TextParts

PIECE = 256 * 1024  # bytes, about
LETTERS = PIECE // 4
ITEM = 8  # bytes of a value beside its letters, about


def weight(value: Any, most: int) -> int:
    """Return about how many bytes of JSON a value makes; who is over `most` is not looked at to the end."""
    total, waiting = 0, [value]
    while waiting and total <= most:
        item = waiting.pop()
        kind = type(item)
        if kind is str:
            total += len(item)
        elif kind is dict:
            total += sum(map(len, item)) + ITEM * len(item)
            waiting.extend(item.values())
        elif kind is list or kind is tuple:
            total += ITEM * len(item)
            if total <= most:
                waiting.extend(item)
        elif kind is TextParts:
            total += sum(map(len, item.parts))
    return total


def encode_in_pieces(value: Any) -> Iterator[bytes]:
    """Yield the JSON of a value."""
    held: list[bytes] = []
    size = 0
    for part in _parts(value):
        held.append(part)
        size += len(part)
        if size >= PIECE:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def cut(frame: bytes) -> Iterator[bytes]:
    """Yield a frame that is there already."""
    if len(frame) <= PIECE:
        yield frame
    else:
        for at in range(0, len(frame), PIECE):
            yield frame[at : at + PIECE]


def with_last(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield each piece and whether it is the last one."""
    before: bytes | None = None
    for piece in pieces:
        if before is not None:
            yield before, False
        before = piece
    if before is not None:
        yield before, True


def _parts(value: Any) -> Iterator[bytes]:
    if weight(value, LETTERS) <= LETTERS:
        yield orjson.dumps(value, default=_whole)
        return
    match value:
        case str():
            yield from _text((value,))
        case TextParts():
            yield from _text(value.parts)
        case dict():
            before = b"{"
            for name, item in value.items():
                yield b"%s%s:" % (before, orjson.dumps(name))
                yield from _parts(item)
                before = b","
            yield b"}"
        case list() | tuple():
            before = b"["
            for item in value:
                yield before
                yield from _parts(item)
                before = b","
            yield b"]"
        case _:
            raise TypeError(f"{type(value).__name__} is no JSON")


def _text(parts: Iterable[str]) -> Iterator[bytes]:
    yield b'"'
    for part in parts:
        for at in range(0, len(part), LETTERS):
            yield orjson.dumps(part[at : at + LETTERS])[1:-1]
    yield b'"'


def _whole(text: TextParts) -> str:
    return "".join(text.parts)
