"""Streams that stand open before the clock starts, so that a figure is of deltas alone."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from uuid import uuid4

from tests.benchmarks.floor import bare_client
from tests.benchmarks.servers import Server
from tests.benchmarks.sockets import Socket

RATE = 50


class Held:
    """Streams of one server that stand open, each with a socket of its own."""

    def __init__(self, provider: str, server: Server) -> None:
        self.server = server
        self.crowd = server.crowd()
        self._provider = provider
        self._name = uuid4().hex
        self.path = f"/hold/{self._name}/v1"

    async def open(self, streams: int, format: str = "text") -> None:
        for socket in await self.crowd.open(streams):
            await self.server.say(socket, self.path, format)
        await self.play(streams, 1, RATE)

    async def play(self, streams: int, count: int, rate: float) -> tuple[float, list[float]]:
        """Let the first streams speak; returns µs of CPU for each delta that a client got, and how late each was."""
        self.crowd.forget()
        gc.collect()
        before = self.server.cpu()
        await self.speak(streams, count, rate)
        await self.crowd.until(pieces=streams * count)
        spent = self.server.cpu() - before
        spoken_to = [socket for socket in self.crowd.sockets if socket.deltas]
        assert len(spoken_to) == streams, f"{len(spoken_to)} sockets got something, {streams} streams spoke"
        for socket in spoken_to:
            check_order(socket, count)
        late = sorted(late for socket in spoken_to for late in socket.latenesses())
        return spent * 1e6 / (streams * count), late

    async def speak(self, streams: int, count: int, rate: float) -> None:
        """Let the first streams send so many deltas; returns when all are sent."""
        await self._ask(f"/play/{self._name}/{streams}/{count}/{rate}")

    async def close(self) -> None:
        await self.end()
        await self.crowd.until(ends=len(self.crowd.sockets))
        await self.crowd.close()

    async def end(self) -> None:
        await self._ask(f"/end/{self._name}")

    async def _ask(self, path: str) -> None:
        async with bare_client() as client:
            (await client.get(f"{self._provider}{path}")).raise_for_status()


@asynccontextmanager
async def held(provider: str, server: Server, streams: int, format: str = "text") -> AsyncIterator[Held]:
    streams_held = Held(provider, server)
    await streams_held.open(streams, format)
    yield streams_held
    await streams_held.close()


def check_order(socket: Socket, count: int) -> None:
    times = [int(piece) for _, text in socket.deltas for piece in text.split()]
    assert len(times) == count, f"{len(times)} deltas came, {count} were sent"
    assert all(one < other for one, other in pairwise(times)), "deltas came out of order"
