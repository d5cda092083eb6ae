"""What the decoders of all protocols share: blocks that grow, token counts, and JSON that a strict parser refuses."""

from __future__ import annotations

import json
from typing import Any, Literal, TypeAlias

import orjson

from agent.runtime import ids
from agent.runtime.messages import Usage
from agent.runtime.model import BlockDelta, BlockStart, BlockStop, ModelEvent, UsageDetails
from agent.runtime.values import clean_text

MAX_COUNT = 10**12  # no call has more tokens, and all that is made of such numbers can be kept

TextKind: TypeAlias = Literal["text", "reasoning"]


class Blocks:
    """The blocks of one answer, numbered in order of appearance; at most one is open, for a `kind` and a `part`.

    `half` is the first half of an emoji that was cut between two deltas; it waits for the second. `part` is whatever
    tells two neighbouring blocks of one kind apart.
    """

    __slots__ = ("_next", "half", "index", "kind", "part")

    def __init__(self) -> None:
        self._next = 0
        self.index = -1
        self.kind: TextKind | None = None
        self.part: Any = None
        self.half = ""

    def say(self, kind: TextKind, text: str, out: list[ModelEvent], part: Any = None) -> bool:
        """Add to the block of this kind and part; returns whether one had to be opened."""
        if not text:
            return False
        opened = self.kind != kind or self.part != part
        if opened:
            self.close(out)
            self.kind, self.part, self.index = kind, part, self._take_index()
            out.append(BlockStart(self.index, kind))
        if self.half or not text.isascii():
            text = joined_halves(self.half + text)
            self.half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
            text = text.removesuffix(self.half)
        if text:
            out.append(BlockDelta(self.index, kind, clean_text(text)))
        return opened

    def close(self, out: list[ModelEvent]) -> None:
        """End the block that is open, if one is."""
        if self.kind is not None:
            if self.half:
                out.append(BlockDelta(self.index, self.kind, clean_text(self.half)))
                self.half = ""
            out.append(BlockStop(self.index))
            self.kind = self.part = None

    def call(self, name: str, arguments: str, out: list[ModelEvent]) -> str:
        """Add a whole tool call and return the id that it gets."""
        self.close(out)
        call_id, index = ids.call_id(), self._take_index()
        out += (
            BlockStart(index, "tool-call", call_id, name),
            BlockDelta(index, "tool-call", arguments),
            BlockStop(index),
        )
        return call_id

    def _take_index(self) -> int:
        index, self._next = self._next, self._next + 1
        return index


def joined_halves(text: str) -> str:
    """Return `text` with the two halves of each cut emoji put together."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def tolerant_json(payload: bytes) -> Any:
    """Return what a payload holds, also what orjson refuses: half an emoji, no UTF-8; raises `ValueError`."""
    try:
        return orjson.loads(payload)
    except ValueError:
        pass
    try:
        return json.loads(payload.decode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def is_json(payload: bytes) -> bool:
    """Return whether a payload is whole."""
    try:
        orjson.loads(payload)
    except ValueError:
        return False
    return True


def count(value: Any) -> int | None:
    """Return a number of tokens as it can be kept, None for anything else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return min(value, MAX_COUNT) if type(value) is int and value >= 0 else None


def usage_of(given: Any, made: Any, total: Any) -> Usage | None:
    """Return the usage of a call, None where the provider counted neither input nor output."""
    given, made, total = count(given), count(made), count(total)
    if given is None and made is None:
        return None
    sum_of_both = (given or 0) + (made or 0)
    return Usage(
        input_tokens=given or 0,
        output_tokens=made or 0,
        total_tokens=sum_of_both if total is None else total,
    )


def details_of(
    *, cached: Any = None, written: Any = None, reasoning: Any = None, written_for_an_hour: Any = None
) -> UsageDetails | None:
    """Return how the tokens divide, None where nothing is known of it."""
    counts = [count(value) for value in (cached, written, reasoning, written_for_an_hour)]
    return None if counts == [None] * 4 else UsageDetails(*(value or 0 for value in counts))


def member(value: Any, *path: str) -> Any:
    """Return what lies in nested objects, None where something on the way is missing or no object."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
