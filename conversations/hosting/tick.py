"""When deltas have to wait.

A loop that keeps up hands on each delta at once. Where it lags, its time goes into ever more small frames; then deltas
are held and leave together, once every `INTERVAL`. A timer that runs only while there are deltas tells how late the
loop is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

INTERVAL = 0.05
LAG = 0.02
CALM = 10  # ticks without lag until deltas go at once again


class FlushTick:
    """Tells whether the loop is `lagging`, and calls at each tick what was to be flushed."""

    def __init__(self) -> None:
        self.lagging = False
        self._calm = 0
        self._busy = False
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._held: set[Callable[[], None]] = set()

    def watch(self) -> None:
        """Note that there are deltas: the loop's lag matters."""
        self._busy = True
        if self._timer is None:
            self._wait()

    def hold(self, flush: Callable[[], None]) -> None:
        """Call `flush` at the next tick, once however often it is asked for."""
        self._held.add(flush)

    def flush(self) -> None:
        """Let everything go that is held."""
        held, self._held = self._held, set()
        for flush in held:
            flush()

    def stop(self) -> None:
        """Tick no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        self._busy = False
        self._due = loop.time() + INTERVAL
        self._timer = loop.call_at(self._due, self._tick)

    def _tick(self) -> None:
        late = asyncio.get_running_loop().time() - self._due
        self._calm = 0 if late > LAG else self._calm + 1
        self.lagging = self._calm < CALM and (self.lagging or late > LAG)
        self._timer = None
        self.flush()
        if self._busy:
            self._wait()
        else:
            self.lagging = False
