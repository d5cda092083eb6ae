"""The cooperative cancellation signal of one execution (R61).

The execution fires it after its terminal gate has closed. Whoever is handed the signal may look at `cancelled`, wait
for it, or register a callback; nobody but the execution fires it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class CancelSignal:
    """Fires once, with a reason; safe to read from any thread, to be fired on the loop only."""

    __slots__ = ("_callbacks", "_event", "reason")

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._callbacks: list[Callable[[], None]] = []
        self.reason: str | None = None

    @property
    def cancelled(self) -> bool:
        return self.reason is not None

    async def wait(self) -> None:
        """Return when the signal has fired."""
        await self._event.wait()

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Call `callback` on the loop when the signal fires, at once if it has."""
        if self.cancelled:
            callback()
        else:
            self._callbacks.append(callback)

    def fire(self, reason: str) -> None:
        """Fire with `reason`; a second call does nothing."""
        if self.reason is not None:
            return
        self.reason = reason
        self._event.set()
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()
