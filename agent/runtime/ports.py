"""Seams of the runtime: objects that a host hands in."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal, Protocol

from agent.runtime.tools import ToolDefinition, ToolInvocation


class Clock(Protocol):
    """A monotonic clock (R70)."""

    def now(self) -> float:
        """Return seconds since any fixed point; finite and never going back."""
        ...


class MonotonicClock:
    """The clock of the machine."""

    def now(self) -> float:
        return time.monotonic()


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
