"""What a scripted provider says, whatever the protocol: whole answers, each event an HTTP chunk of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

DELTA = "abc "
TURN_ANSWER = DELTA * 8
TURN_TOOL = "weather"
TURN_ARGUMENTS = ('{"city": ', '"Tromso"}')

MODEL = "scripted-model-2025-10-01"

Event: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Script:
    """One protocol: the events of an answer of some deltas, and of one that calls the tool.

    `has_result` says whether a request ends with the result of a tool.
    """

    text: Callable[[Sequence[str]], Iterable[Event]]
    call: Callable[[], Iterable[Event]]
    has_result: Callable[[Event], bool]
    write: Callable[[Event], bytes]
    last: bytes = b""
    content_type: bytes = b"text/event-stream; charset=utf-8"

    @property
    def head(self) -> bytes:
        return (
            b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
            % self.content_type
        )

    @property
    def ending(self) -> bytes:
        return self.last + b"0\r\n\r\n"

    def burst(self, count: int) -> bytes:
        """Return an answer of `count` deltas of four characters."""
        return self._answer(self.text([DELTA] * count))

    def turn(self, request: bytes) -> bytes:
        """Return a call of the tool, or the text that follows its result."""
        return self.burst(8) if self.has_result(json.loads(request)) else self._answer(self.call())

    def _answer(self, events: Iterable[Event]) -> bytes:
        return b"".join([self.head, *map(self.write, events), self.ending])


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def data_event(event: Event) -> bytes:
    return chunk(b"data: " + json.dumps(event).encode() + b"\n\n")


def named_event(event: Event) -> bytes:
    return chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())


def line(event: Event) -> bytes:
    return chunk(json.dumps(event).encode() + b"\n")
