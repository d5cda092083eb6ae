"""An observer that remembers what a run published."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeAlias

from agent.runtime.events import TERMINAL, Event, MessagesAdded
from agent.runtime.messages import AgentMessage
from agent.runtime.model import BlockDelta, BlockType

Wanted: TypeAlias = str | type | Callable[[Event], bool]


class EventRecorder:
    """Records events and checks their numbers: consecutive from 1, and nothing after the terminal event.

    `batches` keeps the events as they were handed over.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.batches: list[tuple[Event, ...]] = []
        self._arrived = asyncio.Event()

    def __call__(self, events: Sequence[Event]) -> None:
        """Take a batch; raises `AssertionError`, which ends the run, where its numbers are wrong."""
        for event in events:
            last = self.events[-1] if self.events else None
            assert not isinstance(last, TERMINAL), f"{event.type!r} came after {last!r}"
            assert event.seq == len(self.events) + 1, (
                f"{event.type!r} has seq {event.seq} after {len(self.events)} events"
            )
            self.events.append(event)
        self.batches.append(tuple(events))
        self._arrived.set()

    @property
    def ended(self) -> bool:
        """Whether the terminal event has come."""
        return bool(self.events) and isinstance(self.events[-1], TERMINAL)

    def types(self, *, without: Sequence[str] = ()) -> list[str]:
        """Return the types in order; the ones in `without` are left out."""
        return [event.type for event in self.events if event.type not in without]

    def text(self, block_type: BlockType = "text") -> str:
        """Return all deltas of one kind of block, joined."""
        deltas = [event for event in self.events if isinstance(event, BlockDelta)]
        return "".join(delta.text for delta in deltas if delta.block_type == block_type)

    def messages(self) -> tuple[AgentMessage, ...]:
        """Return the stable messages as last published."""
        published = [event.messages for event in self.events if isinstance(event, MessagesAdded)]
        return published[-1] if published else ()

    async def wait_for(self, wanted: Wanted) -> Event:
        """Return the first event of a type (its name or class) or with a property, now or as soon as it comes.

        Raises `AssertionError` when the run ends without it, or after ten seconds.
        """
        seen = 0
        try:
            async with asyncio.timeout(10):
                while True:
                    for event in self.events[seen:]:
                        if _fits(event, wanted):
                            return event
                    seen = len(self.events)
                    if self.ended:
                        break
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            pass
        raise AssertionError(f"waited in vain for {wanted!r}; there were {self.types()}")


def _fits(event: Event, wanted: Wanted) -> bool:
    if isinstance(wanted, str):
        return event.type == wanted
    if isinstance(wanted, type):
        return isinstance(event, wanted)
    return wanted(event)
