"""A client without a library: it sends whatever bytes it likes."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.site import Site

ANSWER_WITHIN = 20.0
CONTINUATION, TEXT, CLOSE = 0x0, 0x1, 0x8
NARROW = 8 * 1024  # bytes that the kernel keeps for a client that does not read


class RawSocket:
    """A TCP connection to the server of a site."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.final = True  # whether the last frame was the end of its message

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        with suppress(ConnectionError):  # the server may have closed while we still talk
            await self._writer.drain()

    def give(self, data: bytes) -> None:
        """Hand over everything to the kernel or to our own buffer, and wait for nobody to take it."""
        self._writer.write(data)

    async def texts(self, count: int) -> list[bytes]:
        """Return the next texts."""
        found: list[bytes] = []
        text = b""
        async with asyncio.timeout(ANSWER_WITHIN):
            while len(found) < count:
                opcode, payload = await self.frame()
                if opcode in (TEXT, CONTINUATION):
                    text += payload
                    if self.final:
                        found.append(text)
                        text = b""
        return found

    async def frame(self) -> tuple[int, bytes]:
        """Return the opcode and the content of the next frame."""
        opcode, length = await self._reader.readexactly(2)
        if length > 125:
            length = int.from_bytes(await self._reader.readexactly(2 if length == 126 else 8), "big")
        self.final = bool(opcode & 0x80)
        return opcode & 0xF, await self._reader.readexactly(length)

    async def rest(self) -> bytes:
        """Return everything until the server closes."""
        received = b""
        async with asyncio.timeout(ANSWER_WITHIN):
            with suppress(ConnectionError):
                while piece := await self._reader.read(65_536):
                    received += piece
        return received

    async def answer(self) -> bytes:
        """Return the head of the answer to a request, or what came until the server closed."""
        async with asyncio.timeout(ANSWER_WITHIN):
            try:
                return await self._reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError as error:
                return error.partial
            except ConnectionError:
                return b""

    async def close_code(self) -> int | None:
        """Return the code with which the server closes the websocket, None if it just ends the connection."""
        async with asyncio.timeout(ANSWER_WITHIN):
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while True:
                    opcode, payload = await self.frame()
                    if opcode == CLOSE:
                        return int.from_bytes(payload[:2], "big")
        return None

    def reset(self) -> None:
        """Drop the connection with a TCP reset."""
        made: socket.socket = self._writer.get_extra_info("socket")
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


@asynccontextmanager
async def raw(site: Site) -> AsyncIterator[RawSocket]:
    """A fresh connection that has said nothing yet. What it does not read soon fills the buffers on the way."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, NARROW)
    made.setblocking(False)
    await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", site.port))
    reader, writer = await asyncio.open_connection(sock=made, limit=NARROW)
    try:
        yield RawSocket(reader, writer)
    finally:
        writer.transport.abort()


@asynccontextmanager
async def raw_websocket(site: Site, token: str) -> AsyncIterator[RawSocket]:
    """A connection past the handshake."""
    async with raw(site) as made:
        await made.send(upgrade(token))
        assert (await made.answer()).startswith(b"HTTP/1.1 101")
        yield made


def upgrade(token: str, *, without: str = "", line: str = "GET /ai/ws HTTP/1.1", **other: str) -> bytes:
    """Return the request that opens a websocket, with one header left out or others (`_` for `-`) in its place."""
    headers = {
        "Host": "127.0.0.1",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": "par.v1",
        "Authorization": f"Bearer {token}",
    }
    headers |= {name.replace("_", "-"): value for name, value in other.items()}
    headers.pop(without, None)
    return "\r\n".join([line, *(f"{name}: {value}" for name, value in headers.items()), "", ""]).encode("latin-1")


def frame(payload: bytes, *, opcode: int = 0x1, final: bool = True, reserved: int = 0, masked: bool = True) -> bytes:
    """Return a frame, legal or not."""
    first = (0x80 if final else 0) | reserved << 4 | opcode
    flag = 0x80 if masked else 0
    if len(payload) < 126:
        head = struct.pack("!BB", first, flag | len(payload))
    elif len(payload) < 65_536:
        head = struct.pack("!BBH", first, flag | 126, len(payload))
    else:
        head = struct.pack("!BBQ", first, flag | 127, len(payload))
    if not masked:
        return head + payload
    mask = os.urandom(4)
    return head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
