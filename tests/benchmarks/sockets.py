"""Websocket clients that cost little: the measured server must not wait for whoever measures it."""

from __future__ import annotations

import asyncio
import base64
import os
import struct
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import orjson

PATIENCE = 120.0
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


class Socket(asyncio.Protocol):
    """One websocket; keeps the text of each delta with the time when it came."""

    def __init__(self, crowd: Crowd, request: bytes) -> None:
        self.crowd = crowd
        self.deltas: list[tuple[float, str]] = []
        self.closed = asyncio.Event()
        self._request = request
        self._buffer = b""
        self._open = False
        self._answers: dict[str, asyncio.Future[dict[str, Any]]] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        self._buffer += data
        if not self._open:
            head, separator, rest = self._buffer.partition(b"\r\n\r\n")
            if not separator:
                return
            assert head.startswith(b"HTTP/1.1 101"), head
            self._buffer = rest
            self._open = True
            self.crowd.arrived()
        for opcode, payload in self._frames():
            if opcode == TEXT:
                self._take(orjson.loads(payload), now)
            elif opcode == PING:
                self._send(PONG, payload)
            elif opcode == CLOSE:
                self.crowd.fail(f"a socket was closed: {payload!r}")

    def _frames(self) -> Iterator[tuple[int, bytes]]:
        buffer, at = self._buffer, 0
        while len(buffer) >= at + 2:
            opcode, length, start = buffer[at] & 15, buffer[at + 1], at + 2
            if length == 126:
                start += 2
                length = int.from_bytes(buffer[at + 2 : start], "big")
            elif length == 127:
                start += 8
                length = int.from_bytes(buffer[at + 2 : start], "big")
            if start > len(buffer) or start + length > len(buffer):
                break
            at = start + length
            yield opcode, buffer[start:at]
        self._buffer = buffer[at:]

    def _take(self, frame: dict[str, Any], now: float) -> None:
        match frame["type"]:
            case "block-delta":
                text = frame["delta"]["text"]
                self.deltas.append((now, text))
                self.crowd.heard(len(text.split()))
            case "ack":
                self._answers.pop(frame["id"]).set_result(frame)
            case "execution-completed":
                self.crowd.finished()
            case "execution-failed" | "error":
                self.crowd.fail(str(frame))

    def send(self, frame: dict[str, Any]) -> None:
        self._send(TEXT, orjson.dumps(frame))

    async def command(self, frame: dict[str, Any]) -> dict[str, Any]:
        """Send a command with an `id` and return its `ack`."""
        answer = self._answers[frame["id"]] = asyncio.get_running_loop().create_future()
        self.send(frame)
        return await asyncio.wait_for(answer, PATIENCE)

    def _send(self, opcode: int, payload: bytes) -> None:
        size = len(payload)
        length = bytes([0x80 | size]) if size < 126 else struct.pack("!BH", 0x80 | 126, size)
        self._transport.write(bytes([0x80 | opcode]) + length + bytes(4) + payload)  # a mask of zeros changes nothing

    async def close(self) -> None:
        self._transport.abort()
        await self.closed.wait()

    def latenesses(self) -> Iterator[float]:
        """Yield for each delta that is its time how late it came, in ms."""
        for came, text in self.deltas:
            for piece in text.split():
                yield came * 1e3 - int(piece) / 1e3


class Crowd:
    """Sockets of one server that are waited for together."""

    def __init__(self, address: str, token: str) -> None:
        self._address = urlsplit(address)
        self._token = token
        self.sockets: list[Socket] = []
        self._counts = {"open": 0, "pieces": 0, "ends": 0}
        self._goal: tuple[str, int] | None = None
        self._reached = asyncio.Event()
        self._fault = ""

    async def open(self, count: int) -> list[Socket]:
        """Open so many more sockets and return them."""
        host, port = self._address.hostname, self._address.port
        loop = asyncio.get_running_loop()
        for start in range(0, count, 50):
            for _ in range(min(50, count - start)):
                key = base64.b64encode(os.urandom(16)).decode()
                request = (
                    f"GET /ai/ws HTTP/1.1\r\nhost: {host}:{port}\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
                    f"sec-websocket-version: 13\r\nsec-websocket-key: {key}\r\n"
                    f"authorization: Bearer {self._token}\r\n\r\n"
                ).encode()
                _, made = await loop.create_connection(lambda request=request: Socket(self, request), host, port)
                self.sockets.append(made)
            await self.until(open=len(self.sockets))
        return self.sockets[-count:]

    async def until(self, **goal: int) -> None:
        """Wait until so many are `open`, `pieces` have come or `ends`."""
        ((name, count),) = goal.items()
        self._reached.clear()
        self._goal = name, count
        self._count(name, 0)
        async with asyncio.timeout(PATIENCE):
            await self._reached.wait()
        if self._fault:
            raise RuntimeError(self._fault)

    def forget(self) -> None:
        """Count deltas and ends from the start again."""
        self._counts["pieces"] = self._counts["ends"] = 0
        for socket in self.sockets:
            socket.deltas.clear()

    def arrived(self) -> None:
        self._count("open", 1)

    def heard(self, pieces: int) -> None:
        self._count("pieces", pieces)

    def finished(self) -> None:
        self._count("ends", 1)

    def fail(self, fault: str) -> None:
        self._fault = fault
        self._reached.set()

    def _count(self, name: str, more: int) -> None:
        self._counts[name] += more
        if self._goal is not None and (self._fault or self._counts[self._goal[0]] >= self._goal[1]):
            self._reached.set()

    async def close(self) -> None:
        for socket in self.sockets:
            await socket.close()
        self.sockets.clear()
        self._counts["open"] = 0
