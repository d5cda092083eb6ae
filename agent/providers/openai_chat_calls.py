"""Collects the tool calls of a chat completions stream from their fragments (B02-B13, B24)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agent.providers.calls import (
    MAX_CALLS,
    MAX_NAME,
    FinishedCall,
    arguments_text,
    is_object,
    kept_id,
    settled_arguments,
)
from agent.runtime.values import clean_text

_MARKS = re.compile(r'\\.|\\\Z|["{}\[\]]', re.DOTALL)
_BRACKETS = {"{": 1, "[": 1, "}": -1, "]": -1}


@dataclass(slots=True)
class _PendingCall:
    """A call that grows; whether it is whole can be asked after every piece, at the cost of the new pieces only."""

    provider_id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    _looked_at: int = 0
    _depth: int = 0
    _in_string: bool = False
    _escape: bool = False
    _closed: bool | None = None

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def whole(self) -> bool:
        """Whether the pieces are one JSON object so far; decided once, when its last bracket has come."""
        while self._looked_at < len(self.pieces):
            piece = self.pieces[self._looked_at]
            if self._closed is not None:
                self._closed = self._closed and not piece.strip()
            elif self._closes(piece):
                self._closed = is_object("".join(self.pieces[: self._looked_at + 1]))
            self._looked_at += 1
        return self._closed is True

    def _closes(self, piece: str) -> bool:
        """Return whether a piece brings the bracket that closes the first one."""
        closes = False
        for mark in _MARKS.findall("\\" + piece if self._escape else piece):
            self._escape = mark == "\\"  # what it escapes is yet to come
            if mark == '"':
                self._in_string = not self._in_string
            elif mark in _BRACKETS and not self._in_string:
                self._depth += _BRACKETS[mark]
                closes = closes or self._depth == 0
        return closes


class PendingCalls:
    """The calls of one answer; `limit` bounds the characters of all that is kept of them."""

    __slots__ = ("_by_index", "_calls", "_left")

    def __init__(self, limit: int) -> None:
        self._calls: list[_PendingCall] = []
        self._by_index: dict[int, _PendingCall] = {}
        self._left = limit

    def take(self, delta: dict[str, Any]) -> bool:
        """Take in the fragments of a delta; returns False when the limit is passed."""
        fragments = delta.get("tool_calls")
        if isinstance(fragments, list):
            for position, fragment in enumerate(fragments):
                if self._left < 0:
                    return False
                if isinstance(fragment, dict):
                    self._take(fragment, fragment.get("function"), first=position == 0)
        if isinstance(function := delta.get("function_call"), dict):
            self._take({"index": 0}, function, first=True)  # the deprecated form, one call without an id
        return self._left >= 0

    def _take(self, fragment: dict[str, Any], function: Any, *, first: bool) -> None:
        function = function if isinstance(function, dict) else {}
        provider_id, name = kept_id(fragment.get("id")), _text(function.get("name"))[:MAX_NAME]
        call = self._find(_index(fragment.get("index")), provider_id, name, first=first)
        self._left -= 0 if call.provider_id else len(provider_id)
        self._left -= 0 if call.name else len(name)
        call.provider_id = call.provider_id or provider_id
        call.name = call.name or name
        arguments = function.get("arguments")
        if arguments is not None:
            piece = arguments_text(arguments)
            self._left -= len(piece) + 1  # one more, for pieces without end that hold nothing
            call.pieces.append(piece)

    def _find(self, index: int | None, provider_id: str, name: str, *, first: bool) -> _PendingCall:
        """Return the call that a fragment belongs to.

        An index decides, then an id, then the order. A fragment with a name of its own opens a call all the same where
        the call it seems to continue is whole and has another id: some servers give every call the index 0.
        """
        call: _PendingCall | None = None
        if index is not None:
            call = self._by_index.get(index)
        elif provider_id:
            call = next((call for call in reversed(self._calls) if call.provider_id == provider_id), None)
        elif self._calls:
            call = self._calls[-1]
            if name and (not first or call.whole):
                call = None
        if call is not None and name and provider_id and call.provider_id not in ("", provider_id) and call.whole:
            call = None
        if call is None:
            call = _PendingCall()
            self._calls.append(call)
            if len(self._calls) > MAX_CALLS:
                self._left = -1  # nobody means that; and every fragment looks through the calls
            if index is not None:
                self._by_index[index] = call
        return call

    def finished(self, *, cut: bool) -> Iterator[FinishedCall]:
        """Yield the calls in the order in which they appeared; where the answer was `cut`, only whole ones."""
        for call in self._calls:
            text = call.text
            if cut and not is_object(text):
                continue
            if call.name or text.strip():
                arguments = clean_text(settled_arguments(text))
                yield FinishedCall(clean_text(call.provider_id), clean_text(call.name), arguments)


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value.strip() else ""


def _index(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if type(value) is int else None
