"""Streams that stand open until somebody lets them speak: what is measured then holds no start and no end of a run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

PARAGRAPH = 40  # deltas


class Stage:
    """Answers that are held open, by a name of the client's choice; `make` turns a text into a piece of the stream."""

    def __init__(self, make: Callable[[str], bytes], ending: bytes) -> None:
        self._make = make
        self._ending = ending
        self._streams: dict[str, list[asyncio.Transport]] = {}

    def join(self, name: str, stream: asyncio.Transport) -> None:
        self._streams.setdefault(name, []).append(stream)

    async def play(self, name: str, streams: int, count: int, rate: float) -> None:
        """Send `count` deltas on each of the first streams, `rate` a second, spread evenly; each text is its time.

        The time is the monotonic clock's, which all processes of a machine share, in microseconds.
        """
        loop = asyncio.get_running_loop()
        while len(self._streams.get(name, ())) < streams:
            await asyncio.sleep(0.01)
        cast = self._streams[name][:streams]
        first, gap = loop.time(), 1 / rate / streams
        due = 0
        while due < count * streams:
            behind = loop.time() - first - due * gap
            if behind < 0:
                await asyncio.sleep(-behind)
                continue
            number, stream = divmod(due, streams)
            cast[stream].write(self._make(f"{stamp()}" + (" " if number % PARAGRAPH else "\n\n")))
            due += 1
            if due % 64 == 0:
                await asyncio.sleep(0)

    def end(self, name: str) -> None:
        """End these answers."""
        for stream in self._streams.pop(name, ()):
            stream.write(self._ending)


def stamp() -> int:
    """Return the time in microseconds."""
    return time.monotonic_ns() // 1000
