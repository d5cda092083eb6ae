"""A scripted chat-completions server that costs the measured process nothing: a process of its own, answers prebuilt.

The path says what is wanted: `/burst/COUNT/…` sends COUNT deltas of four characters as fast as the socket takes them,
`/paced/COUNT/RATE/…` sends RATE of them a second by an absolute schedule, `/turn/…` answers a user with a tool call and
a tool result with a short text. `/hold/NAME/…` opens an answer that says nothing until `/play/NAME/STREAMS/COUNT/RATE`
is asked for, and ends with `/end/NAME`; `/receipt/…` answers with the time when the request came. With `/said/…` the
path stands in the last message. Each event is an HTTP chunk of its own, as real servers write them.
"""

from __future__ import annotations

import asyncio
import json
import sys
from functools import lru_cache, partial

from tests.benchmarks.stage import Stage, stamp

DELTA = "abc "
TURN_ANSWER = DELTA * 8
TURN_ARGUMENTS = ('{"city": ', '"Tromso"}')

_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


def _event(delta: dict[str, object], finish: str | None = None) -> bytes:
    return _chunk_of([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}])


def _chunk_of(choices: list[dict[str, object]], usage: dict[str, int] | None = None) -> bytes:
    chunk = {
        "id": "chatcmpl-5f1c2d3e4a5b6c7d8e9f0a1b2c3d4e5f",
        "object": "chat.completion.chunk",
        "created": 1_760_000_000,
        "model": "scripted-model-2025-10-01",
        "service_tier": "default",
        "system_fingerprint": "fp_0123456789",
        "choices": choices,
        "usage": usage,
        "obfuscation": "0123456789",
    }
    return _chunk(b"data: " + json.dumps(chunk).encode() + b"\n\n")


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _piece(text: str) -> bytes:
    data = _BEFORE + json.dumps(text).encode() + _AFTER
    return b"%x\r\n%b\r\n" % (len(data), data)


_DONE_WITH = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
_FAILED = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n"
_OPENING = _event({"role": "assistant", "content": "", "refusal": None})
_PIECE = _event({"content": DELTA})
_BEFORE, _AFTER = _event({"content": "|"}).split(b"\r\n", 1)[1][:-2].split(b'"|"')
_DONE = _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
_USAGE = _chunk_of([], {"prompt_tokens": 1_200, "completion_tokens": 40, "total_tokens": 1_240})
_END = _event({}, "stop") + _USAGE + _DONE


@lru_cache
def _burst(count: int) -> bytes:
    return _HEAD + _OPENING + _PIECE * count + _END


@lru_cache
def _turn(after_result: bool) -> bytes:
    if after_result:
        return _HEAD + _OPENING + _PIECE * 8 + _END
    function = {"name": "weather", "arguments": ""}
    opened = {"index": 0, "id": "call_of_the_provider", "type": "function", "function": function}
    pieces = [{"index": 0, "function": {"arguments": piece}} for piece in TURN_ARGUMENTS]
    events = b"".join(_event({"tool_calls": [call]}) for call in (opened, *pieces))
    return _HEAD + _OPENING + events + _event({}, "tool_calls") + _USAGE + _DONE


class Connection(asyncio.Protocol):
    """Reads one request after another and answers each."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._tasks: set[asyncio.Task[None]] = set()
        self._buffer = bytearray()
        self._wanted = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) < self._wanted:
            return
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._buffer[:end]).lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0] or 0)
        self._wanted = end + 4 + length
        if len(self._buffer) < self._wanted:
            return
        body = bytes(self._buffer[end + 4 : self._wanted])
        del self._buffer[: self._wanted]
        self._wanted = 0
        self._answer(head.split(b" ", 2)[1].decode().split("/"), body)

    def _answer(self, path: list[str], body: bytes) -> None:
        match path:
            case ["", "burst", count, *_]:
                self._transport.write(_burst(int(count)))
            case ["", "paced", count, rate, *_]:
                self._transport.write(_HEAD + _OPENING)
                loop = asyncio.get_running_loop()
                # The requests come all at once; their streams are spread over the period.
                spread = self._transport.get_extra_info("peername")[1] % 97 / 97
                first = loop.time() + spread / int(rate)
                loop.call_at(first, self._pace, first, 0, int(count), 1 / int(rate))
            case ["", "said", *_]:
                self._answer(json.loads(body)["messages"][-1]["content"].split("/"), body)
            case ["", "hold", name, *_]:
                self._transport.write(_HEAD + _OPENING)
                self._stage.join(name, self._transport)
            case ["", "play", name, streams, count, rate]:
                playing = self._stage.play(name, int(streams), int(count), float(rate))
                task = asyncio.get_running_loop().create_task(playing)
                self._tasks.add(task)
                task.add_done_callback(self._played)
            case ["", "end", name]:
                self._stage.end(name)
                self._transport.write(_DONE_WITH)
            case ["", "receipt", *_]:
                self._transport.write(_HEAD + _OPENING + _piece(f"{stamp()}") + _END)
            case ["", "turn", *_]:
                after_result = json.loads(body)["messages"][-1]["role"] == "tool"
                self._transport.write(_turn(after_result))
            case _:
                self._transport.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")

    def _played(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._transport.write(_FAILED if task.exception() else _DONE_WITH)

    def _pace(self, first: float, sent: int, count: int, period: float) -> None:
        if self._transport.is_closing():
            return
        if sent == count:
            self._transport.write(_END)
            return
        self._transport.write(_PIECE)
        asyncio.get_running_loop().call_at(first + (sent + 1) * period, self._pace, first, sent + 1, count, period)


async def serve() -> None:
    """Listen on a free port of loopback, print it, and leave when standard input is closed."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(partial(Connection, Stage(_piece, _END)), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve())
