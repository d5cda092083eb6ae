"""A scripted model server that costs the measured process nothing: a process of its own, answers prebuilt.

The path says what is wanted: `/burst/COUNT/…` sends COUNT deltas of four characters as fast as the socket takes them,
and `/turn/…` answers a user with a tool call and a tool result with a short text, both in the protocol that the path
ends with. The rest is in chat completions: `/paced/COUNT/RATE/…` sends RATE deltas a second by an absolute schedule,
`/hold/NAME/…` opens an answer that says nothing until `/play/NAME/STREAMS/COUNT/RATE` is asked for, and ends with
`/end/NAME`; `/receipt/…` answers with the time when the request came. With `/said/…` the path stands in the last
message. Each event is an HTTP chunk of its own, as real servers write them.
"""

from __future__ import annotations

import asyncio
import json
import sys
from functools import lru_cache, partial

from tests.benchmarks.script import DELTA, Script, chunk, data_event
from tests.benchmarks.stage import Stage, stamp
from tests.benchmarks.streams import CHAT, CHAT_OPENING, SCRIPTS, chat_delta, chat_end

_DONE_WITH = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
_FAILED = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n"
_OPENING = CHAT.head + data_event(CHAT_OPENING)
_PIECE = data_event(chat_delta({"content": DELTA}))
_BEFORE, _AFTER = data_event(chat_delta({"content": "|"})).split(b"\r\n", 1)[1][:-2].split(b'"|"')
_END = b"".join(map(data_event, chat_end("stop"))) + CHAT.ending


def _piece(text: str) -> bytes:
    return chunk(_BEFORE + json.dumps(text).encode() + _AFTER)


@lru_cache
def _burst(script: Script, count: int) -> bytes:
    return script.burst(count)


def _script(path: list[str]) -> Script:
    return SCRIPTS.get("/".join(path[-2:]), CHAT)


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
                self._transport.write(_burst(_script(path), int(count)))
            case ["", "paced", count, rate, *_]:
                self._transport.write(_OPENING)
                loop = asyncio.get_running_loop()
                # The requests come all at once; their streams are spread over the period.
                spread = self._transport.get_extra_info("peername")[1] % 97 / 97
                first = loop.time() + spread / int(rate)
                loop.call_at(first, self._pace, first, 0, int(count), 1 / int(rate))
            case ["", "said", *_]:
                self._answer(json.loads(body)["messages"][-1]["content"].split("/"), body)
            case ["", "hold", name, *_]:
                self._transport.write(_OPENING)
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
                self._transport.write(_OPENING + _piece(f"{stamp()}") + _END)
            case ["", "turn", *_]:
                self._transport.write(_script(path).turn(body))
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
