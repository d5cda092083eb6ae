"""Seams of the runtime: objects that a host hands in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from agent.runtime.tools import ToolDefinition, ToolInvocation


class Timer(Protocol):
    """A callback that waits for its time."""

    def cancel(self) -> None:
        """Make sure that the callback is not called any more."""
        ...


class Clock(Protocol):
    """A monotonic clock with timers (R70)."""

    def now(self) -> float:
        """Return seconds since any fixed point; finite and never going back."""
        ...

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` on the running loop after `delay` seconds of this clock."""
        ...


class MonotonicClock:
    """The clock of the machine and the timers of the running loop."""

    def now(self) -> float:
        return time.monotonic()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay, callback)


@dataclass(frozen=True, slots=True)
class ToolDecision:
    """What the host's rights say about one call; `reason` is told to the model (deny) or the person (confirm)."""

    verdict: Literal["allow", "confirm", "deny"]
    reason: str | None = None


class ToolPolicy(Protocol):
    """Rights, judged on every call (R7): before a confirmation is asked, and again before the tool runs."""

    async def decide(self, definition: ToolDefinition, invocation: ToolInvocation) -> ToolDecision:
        """Return the verdict for this call now."""
        ...
