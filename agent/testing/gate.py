"""Points at which a double waits until the test lets it go on."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol


class Waitable(Protocol):
    """Anything with a coroutine method `wait`: a `Gate` or an `asyncio.Event`."""

    async def wait(self) -> Any: ...


class Gate:
    """A closed gate; the test can wait until somebody stands before it, and open it for good."""

    def __init__(self) -> None:
        self._reached = asyncio.Event()
        self._opened = asyncio.Event()

    async def wait(self) -> None:
        """Arrive at the gate and return when it is open."""
        self._reached.set()
        await self._opened.wait()

    async def reached(self) -> None:
        """Return when somebody has arrived."""
        async with asyncio.timeout(10):
            await self._reached.wait()

    def open(self) -> None:
        """Let through whoever waits and whoever comes."""
        self._opened.set()
