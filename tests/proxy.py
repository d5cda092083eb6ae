"""A TCP proxy that breaks: after so many bytes, at once, or without a word."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Literal


class Proxy:
    """Passes connections on to a port of this machine; each is cut after the next of `budgets` bytes, both ways.

    With `silent`, nothing passes any more and nobody is told: to the client ("down"), or both ways ("both").
    """

    def __init__(self, port: int, budgets: Iterable[int] = ()) -> None:
        self.silent: Literal["", "down", "both"] = ""
        self.connections = 0
        self.swallowed = 0
        self._port = port
        self._budgets: Iterator[int] = iter(budgets)
        self._open: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    async def until(self, what: Callable[[], bool]) -> None:
        """Return when something is true of the proxy."""
        async with asyncio.timeout(30):
            while not what():
                self._changed.clear()
                await self._changed.wait()

    def cut(self) -> None:
        """Break all connections now."""
        for connection in self._open:
            connection.cancel()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._changed.set()
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        left = [next(self._budgets, -1)]
        with contextlib.suppress(OSError, asyncio.CancelledError):
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._port)
            ways = [
                asyncio.ensure_future(self._carry(reader, inner_writer, left, ("both",))),
                asyncio.ensure_future(self._carry(inner_reader, writer, left, ("both", "down"))),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
                inner_writer.transport.abort()
        writer.transport.abort()
        self._open.discard(task)

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: list[int], silenced: tuple[str, ...]
    ) -> None:
        while data := await reader.read(4096):
            if self.silent in silenced:
                self.swallowed += len(data)
                self._changed.set()
                continue
            if 0 <= left[0] <= len(data):
                writer.write(data[: left[0]])
                await writer.drain()
                return
            left[0] -= len(data) if left[0] >= 0 else 0
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def proxy_to(port: int, budgets: Iterable[int] = ()) -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy to a port, and its address."""
    proxy = Proxy(port, budgets)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    async with server:
        yield proxy, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        proxy.cut()
        while proxy._open:
            await asyncio.sleep(0)
