"""The cooperative cancellation signal of one execution (R61).

The execution fires it after its terminal gate has closed. Whoever is handed the signal may look at `cancelled` or
wait for it; nobody but the execution fires it.
"""

from __future__ import annotations

import asyncio


class CancelSignal:
    """Fires once, with a reason; safe to read from any thread, to be fired on the loop only."""

    __slots__ = ("_event", "reason")

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.reason: str | None = None

    @property
    def cancelled(self) -> bool:
        return self.reason is not None

    async def wait(self) -> None:
        """Return when the signal has fired."""
        await self._event.wait()

    def fire(self, reason: str) -> None:
        """Fire with `reason`; a second call does nothing."""
        if self.reason is not None:
            return
        self.reason = reason
        self._event.set()
