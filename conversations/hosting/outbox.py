"""What waits to be sent to one socket.

Frames leave in the order they came. While the first delta of a block has not been taken, the deltas that follow it join
it, so a slow reader gets fewer and larger frames and loses no text; nothing else is merged or dropped. When more than
`LIMIT` characters wait, all events are thrown away, and the reader is owed a snapshot of their runs instead.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TypeAlias

from agent.runtime.events import Event, encode, encode_delta
from agent.runtime.model import BlockDelta

LIMIT = 4 * 1024 * 1024


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


class MergedDeltas:
    """Consecutive deltas of one block, of one socket."""

    __slots__ = ("event", "from_seq", "texts")

    def __init__(self, first: BlockDelta) -> None:
        self.from_seq = first.seq
        self.event = first
        self.texts = [first.text]

    def encode(self) -> bytes:
        return encode_delta(self.event, self.from_seq, "".join(self.texts))


Waiting: TypeAlias = EventFrame | MergedDeltas | bytes


class Outbox:
    """The queue between everybody who has something to say and the one task that sends."""

    __slots__ = ("_limit", "_size", "_waiting", "_wake", "owed")

    def __init__(self, limit: int = LIMIT) -> None:
        self._waiting: deque[Waiting] = deque()
        self._size = 0
        self._limit = limit
        self._wake = asyncio.Event()
        self.owed: set[str] = set()

    def put(self, frame: bytes) -> None:
        """Add a ready frame; answers to commands are never dropped."""
        self._waiting.append(frame)
        self._wake.set()

    def put_event(self, frame: EventFrame) -> None:
        """Add an event, merged into the one before it where both are deltas of one block."""
        event = frame.event
        if event.execution_id in self.owed:
            return
        if type(event) is BlockDelta:
            self._size += len(event.text)
            if self._merge(event):
                return
        else:
            self._size += 256
        if self._size > self._limit:
            self._overflow(event.execution_id)
            return
        self._waiting.append(frame)
        self._wake.set()

    async def next(self) -> bytes | None:
        """Return the next frame, or None when the reader is owed snapshots (`take_owed` tells of which runs)."""
        while not self._waiting:
            if self.owed:
                return None
            self._wake.clear()
            await self._wake.wait()
        item = self._waiting.popleft()
        if not self._waiting:
            self._size = 0
        return item if isinstance(item, bytes) else item.encode()

    def take_owed(self) -> set[str]:
        """Return the executions whose events were dropped; from now on theirs are taken in again."""
        owed, self.owed = self.owed, set()
        return owed

    def _overflow(self, execution_id: str) -> None:
        self.owed.add(execution_id)
        self.owed.update(item.event.execution_id for item in self._waiting if not isinstance(item, bytes))
        self._waiting = deque(item for item in self._waiting if isinstance(item, bytes))
        self._size = 0
        self._wake.set()

    def _merge(self, event: BlockDelta) -> bool:
        if not self._waiting or self._size > self._limit:
            return False
        last = self._waiting[-1]
        if isinstance(last, bytes) or type(last.event) is not BlockDelta:
            return False
        before = last.event
        if before.execution_id != event.execution_id or before.index != event.index or before.seq + 1 != event.seq:
            return False
        if isinstance(last, EventFrame):
            last = self._waiting[-1] = MergedDeltas(before)
        last.event = event
        last.texts.append(event.text)
        return True
