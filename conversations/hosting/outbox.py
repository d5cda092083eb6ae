"""What waits to be sent to one socket.

Frames leave in the order they came. While the first delta of a block has not been taken, the deltas that follow it join
it, so a slow reader gets fewer and larger frames and loses no text; nothing else is merged or dropped. When more than
`LIMIT` bytes wait, everything about runs is thrown away, and the reader is owed a snapshot of these runs instead.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

from agent.runtime.events import Event, encode, encode_delta
from agent.runtime.model import BlockDelta

LIMIT = 4 * 1024 * 1024
OVERHEAD = 200  # bytes of a frame beside its text, about


class EventFrame:
    """An event on its way to any number of sockets; encoded once, when the first of them takes it."""

    __slots__ = ("_bytes", "event")

    def __init__(self, event: Event) -> None:
        self.event = event
        self._bytes: bytes | None = None

    def encode(self) -> bytes:
        if self._bytes is None:
            self._bytes = encode(self.event)
        return self._bytes


@dataclass(slots=True)
class Waiting:
    """A frame in the queue: ready bytes, or an event with the deltas that joined it."""

    cost: int
    execution_id: str | None
    ready: bytes | None = None
    frame: EventFrame | None = None
    last: BlockDelta | None = None
    texts: list[str] = field(default_factory=list)

    def encode(self) -> bytes:
        if self.ready is not None:
            return self.ready
        assert self.frame is not None
        first = self.frame.event
        if self.last is None or type(first) is not BlockDelta:
            return self.frame.encode()
        return encode_delta(self.last, first.seq, "".join(self.texts))

    def join(self, event: BlockDelta) -> bool:
        """Take `event` in if it goes on where this delta ends."""
        first = self.frame.event if self.frame is not None else None
        if type(first) is not BlockDelta:
            return False
        before = self.last or first
        if before.execution_id != event.execution_id or before.index != event.index or before.seq + 1 != event.seq:
            return False
        if self.last is None:
            self.texts.append(first.text)
        self.last = event
        self.texts.append(event.text)
        self.cost += len(event.text)
        return True


class Outbox:
    """The queue between everybody who has something to say and the one task that sends."""

    __slots__ = ("_limit", "_owed", "_size", "_waiting", "_wake")

    def __init__(self, limit: int = LIMIT) -> None:
        self._waiting: deque[Waiting] = deque()
        self._size = 0
        self._limit = limit
        self._wake = asyncio.Event()
        self._owed: set[str] = set()

    def put(self, frame: bytes, execution_id: str | None = None) -> None:
        """Add a ready frame; one that belongs to an execution can be made good by a snapshot, the others are kept."""
        self._add(Waiting(len(frame), execution_id, ready=frame))

    def put_event(self, frame: EventFrame) -> None:
        """Add an event, merged into the one before it where both are deltas of one block."""
        event = frame.event
        if event.execution_id in self._owed:
            return
        text = 0
        if type(event) is BlockDelta:
            text = len(event.text)
            if self._waiting and self._waiting[-1].join(event):
                self._size += text
                if self._size > self._limit:
                    self._overflow()
                return
        self._add(Waiting(OVERHEAD + text, event.execution_id, frame=frame))

    async def next(self) -> bytes | None:
        """Return the next frame, or None when the reader is owed snapshots (`take_owed` tells of which runs)."""
        while not self._waiting:
            if self._owed:
                return None
            self._wake.clear()
            await self._wake.wait()
        item = self._waiting.popleft()
        self._size -= item.cost
        return item.encode()

    def take_owed(self) -> set[str]:
        """Return the executions of which frames were dropped; from now on theirs are taken in again."""
        owed, self._owed = self._owed, set()
        return owed

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
