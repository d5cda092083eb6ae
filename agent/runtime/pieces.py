"""Large JSON, read so that other threads get their turn: a parser holds all of them up until it returns.

A list of 50,000 small messages takes it a third of a second. So what is nested deeper than `CUT` levels is found by
its brackets, read on its own, and put back in its place.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from agent.runtime.values import MAX_DEPTH, count_parts

SMALL = 64 * 1024  # bytes that are read at once
CUT = 3  # levels that stay together: a body, its context, the list of messages
_DEEPEST = MAX_DEPTH + 10
_BRACKET = re.compile(
    rb'[^"\[\]{}]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\[\]{}]*+)*+([\[\]{}])',
    re.DOTALL,
)


def read_in_pieces(raw: bytes, *, most: int) -> Any:
    """Return what `read_json` returns, and raise as it does; a place in an error is that in its piece."""
    return _read(raw, most)[0]


def _read(raw: bytes, most: int) -> tuple[Any, int]:
    """Return what JSON says, and how many parts it has."""
    if len(raw) <= SMALL:
        parts = _counted(raw, most)
        return orjson.loads(raw), parts
    pieces: list[Any] = []
    frame: list[bytes] = []
    end = found = 0
    for start, stop in _spans(raw):
        piece, parts = _read(raw[start:stop], most - found)
        found += parts
        frame += (raw[end:start], b"[%d]" % len(pieces))
        pieces.append(piece)
        end = stop
    rest = b"".join((*frame, raw[end:]))
    found += _counted(rest, most - found + len(pieces)) - len(pieces)  # each piece's first bracket is in both
    return _filled(orjson.loads(rest), pieces, CUT), found


def _counted(raw: bytes, most: int) -> int:
    parts = count_parts(raw, most)
    if parts > most:
        raise ValueError("JSON of too many parts")
    return parts


def _spans(raw: bytes) -> list[tuple[int, int]]:
    """Return where the lists and objects below `CUT` levels begin and end."""
    spans = []
    depth = at = begun = 0
    while (match := _BRACKET.match(raw, at)) is not None:
        at = match.end()
        if match[1] in b"[{":
            if depth == CUT:
                begun = at - 1
            depth += 1
            if depth > _DEEPEST:
                raise ValueError(f"JSON nested deeper than {MAX_DEPTH} levels")
        else:
            depth -= 1
            if depth == CUT:
                spans.append((begun, at))
    return spans


def _filled(value: Any, pieces: list[Any], levels: int) -> Any:
    """Return a value with its pieces in their places: each list or object so deep is the number of one."""
    if isinstance(value, list):
        if levels == 0:
            return pieces[value[0]]
        return [_filled(item, pieces, levels - 1) for item in value]
    if isinstance(value, dict):
        return {key: _filled(item, pieces, levels - 1) for key, item in value.items()}
    return value
