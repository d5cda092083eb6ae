"""What waits to be sent to one socket.

Frames leave in the order they came. An event goes straight to the socket while that takes it and nothing waits; else it
waits for the sender task. While the delta of a block has not been taken, the deltas that follow it join it, so a slow
reader gets fewer and larger frames and loses no text; nothing else is merged or dropped. When more than `LIMIT` bytes
wait, everything about runs is thrown away, and the reader is owed a snapshot of these runs instead.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent.runtime.events import Event, encode, encode_delta
from agent.runtime.model import BlockDelta

LIMIT = 4 * 1024 * 1024
OVERHEAD = 200  # bytes of a frame beside its text, about


class EventFrame:
    """An event, or consecutive deltas of one block, on the way to any number of sockets; encoded once."""

    __slots__ = ("_bytes", "_event", "_from_seq", "_texts", "cost", "execution_id")

    def __init__(self, event: Event) -> None:
        self.execution_id = event.execution_id
        self.cost = OVERHEAD
        self._event = event
        self._from_seq = event.seq
        self._bytes: bytes | None = None
        self._texts: list[str] | None = None
        if type(event) is BlockDelta:
            self._texts = [event.text]
            self.cost += len(event.text)

    def encode(self) -> bytes:
        if self._bytes is None:
            event = self._event
            if type(event) is BlockDelta and self._texts is not None:
                self._bytes = encode_delta(event, self._from_seq, "".join(self._texts))
            else:
                self._bytes = encode(event)
        return self._bytes

    def copy(self) -> EventFrame:
        """Return the same frame, to be joined by others."""
        twin = EventFrame(self._event)
        twin._from_seq, twin.cost = self._from_seq, self.cost
        twin._texts = self._texts and self._texts.copy()
        return twin

    def goes_on_in(self, other: EventFrame) -> bool:
        """Return whether `other` has the deltas that follow those of this frame."""
        mine, its = self._event, other._event
        return (
            type(mine) is BlockDelta
            and type(its) is BlockDelta
            and mine.index == its.index
            and mine.seq + 1 == other._from_seq
            and mine.execution_id == its.execution_id
        )

    def join(self, other: EventFrame) -> None:
        """Take in the deltas of a frame in which this one goes on. Nobody must have been given this frame yet."""
        assert self._texts is not None
        assert other._texts is not None
        self._texts += other._texts
        self._event = other._event
        self.cost += other.cost - OVERHEAD


@dataclass(slots=True)
class Waiting:
    """A frame in the queue: ready bytes or events; `own` if no other socket has the same frame."""

    cost: int
    execution_id: str | None
    content: bytes | EventFrame
    own: bool = False


class Outbox:
    """The queue between everybody who has something to say and the one socket that it is said to.

    `offer` sends a frame if the socket takes it without waiting, and returns whether it did.
    """

    __slots__ = ("_limit", "_owed", "_size", "_waiting", "_wake", "offer")

    def __init__(self, limit: int = LIMIT) -> None:
        self.offer: Callable[[bytes], bool] | None = None
        self._waiting: deque[Waiting] = deque()
        self._size = 0
        self._limit = limit
        self._wake = asyncio.Event()
        self._owed: set[str] = set()

    def put(self, frame: bytes, execution_id: str | None = None) -> None:
        """Add a ready frame; one that belongs to an execution can be made good by a snapshot, the others are kept."""
        self._add(Waiting(len(frame), execution_id, frame))

    def put_events(self, frames: Sequence[EventFrame]) -> None:
        """Send events, or add them, merged into the one before where both are deltas of one block."""
        for frame in frames:
            if frame.execution_id in self._owed:
                continue
            if not self._waiting:
                if self.offer is None or not self.offer(frame.encode()):
                    self._add(Waiting(frame.cost, frame.execution_id, frame))
            elif not self._join(self._waiting[-1], frame):
                self._add(Waiting(frame.cost, frame.execution_id, frame))

    async def next(self) -> bytes | None:
        """Return the next frame, or None when the reader is owed snapshots (`take_owed` tells of which runs)."""
        while not self._waiting:
            if self._owed:
                return None
            self._wake.clear()
            await self._wake.wait()
        item = self._waiting.popleft()
        self._size -= item.cost
        return item.content if isinstance(item.content, bytes) else item.content.encode()

    def take_owed(self) -> set[str]:
        """Return the executions of which frames were dropped; from now on theirs are taken in again."""
        owed, self._owed = self._owed, set()
        return owed

    def _join(self, last: Waiting, frame: EventFrame) -> bool:
        if isinstance(last.content, bytes) or not last.content.goes_on_in(frame):
            return False
        if not last.own:
            last.content, last.own = last.content.copy(), True
        last.content.join(frame)
        self._size += last.content.cost - last.cost
        last.cost = last.content.cost
        if self._size > self._limit:
            self._overflow()
        return True

    def _add(self, item: Waiting) -> None:
        if item.execution_id is not None and item.execution_id in self._owed:
            return
        self._waiting.append(item)
        self._size += item.cost
        if self._size > self._limit and len(self._waiting) > 1:
            self._overflow()
        self._wake.set()

    def _overflow(self) -> None:
        self._owed.update(item.execution_id for item in self._waiting if item.execution_id is not None)
        self._waiting = deque(item for item in self._waiting if item.execution_id is None)
        self._size = sum(item.cost for item in self._waiting)
        self._wake.set()
