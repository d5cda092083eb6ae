"""A scripted HTTP provider on loopback: real sockets, exact bytes, no network.

`ScriptedProvider` answers the requests that it gets with the answers that it was given, in order; one request too many
is answered with status 599 and fails the test when the provider is left. It runs in the loop of whoever opens it.

Where reads of the client end: each piece of a body is an HTTP chunk, written with a system call of its own and without
Nagle's algorithm. After it the provider waits until the kernel has taken it and yields to the loop some times. A client
*in the same loop* that waits for data has then read it, so its reads end where the pieces end (as long as the kernel
delivers on loopback at once, as Linux does). For a client in another process nothing is promised: pieces usually arrive
one by one, but may be joined.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, TypeAlias

_YIELDS = 6


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """One answer.

    `body` is sent in one piece or, if it is a sequence, piece by piece. `pace` is the pause after each piece in
    seconds: with 0 it is just long enough for the client to read, with None everything goes out in one write.
    `headers` of None closes the connection before any header. Nothing is sent before `hold` is set. `end` says what
    follows the last byte: the end mark (`complete`), the end mark and a close (`close`), a close without the mark
    (`cut`), a reset (`reset`), or nothing until `release` is set (`hang`).
    """

    body: bytes | Sequence[bytes] = b""
    status: int = 200
    headers: Mapping[str, str] | None = field(default_factory=lambda: {"content-type": "text/event-stream"})
    pace: float | None = 0.0
    end: Literal["complete", "close", "cut", "reset", "hang"] = "complete"
    hold: asyncio.Event | None = None
    release: asyncio.Event = field(default_factory=asyncio.Event)

    def split(self, offsets: Iterable[int]) -> ScriptedAnswer:
        """Return this answer with pieces that end at `offsets` of its body."""
        body = self.body if isinstance(self.body, bytes) else b"".join(self.body)
        ends = [*sorted(offsets), len(body)]
        pieces = [body[start:end] for start, end in zip([0, *ends], ends, strict=False) if end > start]
        return replace(self, body=pieces)

    def bytewise(self) -> ScriptedAnswer:
        """Return this answer with one byte per piece."""
        body = self.body if isinstance(self.body, bytes) else b"".join(self.body)
        return self.split(range(1, len(body)))


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request as the provider got it; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The parsed body."""
        return json.loads(self.body)


Answer: TypeAlias = ScriptedAnswer | Callable[[ReceivedRequest], ScriptedAnswer]


class ScriptedProvider:
    """The server; an async context manager. `url` is its base address with the path `/v1`.

    An answer may be a function of the request. With `repeat` the last answer serves all further requests. `closed`
    counts answers during which the client left.
    """

    def __init__(self, *answers: Answer, repeat: bool = False) -> None:
        self._answers = deque(answers)
        self._repeat = repeat
        self._server: asyncio.Server | None = None
        self._open: set[_Connection] = set()
        self._changed = asyncio.Condition()
        self.requests: list[ReceivedRequest] = []
        self.unexpected = 0
        self.connections = 0
        self.closed = 0
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def queue(self, *answers: Answer) -> None:
        """Add answers."""
        self._answers.extend(answers)

    async def wait_for_requests(self, count: int = 1) -> None:
        """Return when `count` requests have come."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.requests) >= count)

    async def wait_for_closed(self, count: int = 1) -> None:
        """Return when clients left in the middle of `count` answers."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.closed >= count)

    async def start(self, port: int = 0) -> None:
        """Listen on loopback."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", port, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening and drop all connections."""
        assert self._server is not None, "started before"
        self._server.close()
        for connection in tuple(self._open):
            await connection.drop()
        await self._server.wait_closed()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.close()
        if kind is None and self.unexpected:
            raise AssertionError(f"{self.unexpected} requests came for which there was no answer")

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _take(self, request: ReceivedRequest) -> ScriptedAnswer:
        self.requests.append(request)
        await self._notify()
        if not self._answers:
            self.unexpected += 1
            return ScriptedAnswer(b'{"error":{"message":"no answer is left in the script"}}', 599)
        answer = self._answers[0] if self._repeat and len(self._answers) == 1 else self._answers.popleft()
        return answer if isinstance(answer, ScriptedAnswer) else answer(request)


class _Connection(asyncio.Protocol):
    """One connection of a provider, serving one request after the other."""

    def __init__(self, provider: ScriptedProvider) -> None:
        self._provider = provider
        self._received = bytearray()
        self._writable = asyncio.Event()
        self._writable.set()
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "a stream transport"
        self._transport = transport
        transport.set_write_buffer_limits(high=0)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._provider.connections += 1
        self._provider._open.add(self)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._task is None and (request := _parse_request(self._received)) is not None:
            self._task = asyncio.ensure_future(self._serve(request))

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._provider._open.discard(self)
        if self._task is not None:
            self._task.cancel()

    async def drop(self) -> None:
        self._transport.abort()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _serve(self, request: ReceivedRequest) -> None:
        try:
            await self._send(await self._provider._take(request))
        except asyncio.CancelledError:
            self._provider.closed += 1
            await self._provider._notify()
            raise
        self._task = None
        if not self._transport.is_closing():
            self.data_received(b"")

    async def _send(self, answer: ScriptedAnswer) -> None:
        if answer.hold is not None:
            await answer.hold.wait()
        if answer.headers is None:
            self._transport.close()
            return
        pieces = (answer.body,) if isinstance(answer.body, bytes) else answer.body
        head = _head(answer)
        if answer.pace is None:
            await self._write(b"".join((head, *map(_chunk, pieces), _end(answer))))
        else:
            await self._write(head)
            await _until_read()
            for piece in pieces:
                await self._write(_chunk(piece))
                await (asyncio.sleep(answer.pace) if answer.pace else _until_read())
            await self._write(_end(answer))
        match answer.end:
            case "hang":
                await answer.release.wait()
                self._transport.close()
            case "reset":
                self._transport.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
                self._transport.abort()
            case "cut" | "close":
                self._transport.close()
            case "complete":
                pass

    async def _write(self, data: bytes) -> None:
        if data:
            self._transport.write(data)
            await self._writable.wait()


async def _until_read() -> None:
    """Let a client of this loop read what was just written."""
    for _ in range(_YIELDS):
        await asyncio.sleep(0)


def _head(answer: ScriptedAnswer) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} Scripted", "transfer-encoding: chunked"]
    lines += [f"{name}: {value}" for name, value in (answer.headers or {}).items()]
    if answer.end == "close":
        lines.append("connection: close")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""


def _end(answer: ScriptedAnswer) -> bytes:
    return b"0\r\n\r\n" if answer.end in ("complete", "close") else b""


def _parse_request(received: bytearray) -> ReceivedRequest | None:
    """Take one whole request out of `received`, None while it is incomplete."""
    head_end = received.find(b"\r\n\r\n")
    if head_end < 0:
        return None
    first, *lines = received[:head_end].decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    start, length = head_end + 4, int(headers.get("content-length", "0"))
    if len(received) < start + length:
        return None
    body = bytes(received[start : start + length])
    del received[: start + length]
    method, path, _ = first.split(" ", 2)
    return ReceivedRequest(method, path, headers, body)
