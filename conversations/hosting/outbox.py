"""What waits to be sent to one socket.

Frames leave in the order they came. An event goes straight to the socket while that takes it and nothing waits; else it
waits for the sender task. While the delta of a block has not been taken, the deltas that follow it join it, so a slow
reader gets fewer and larger frames and loses no text; nothing else is merged or dropped. When more than `LIMIT` bytes
about runs wait, they are thrown away, and the reader is owed a snapshot of these runs instead. All else is kept;
whoever causes it asks for `room` first. Bytes are those that a frame takes in memory, more or less.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from agent.runtime.events import Event, encode, encode_delta
from agent.runtime.model import BlockDelta
from conversations.hosting.snapshot import Frame, Snapshot

LIMIT = 4 * 1024 * 1024
ROOM = 64 * 1024
OVERHEAD = 200  # bytes of a frame beside its text, about
PIECE = 60  # bytes of a text beside its letters, about


class Ended(Exception):
    """Raised by `Outbox.next` when nothing will be sent any more."""


class EventFrame:
    """An event, or consecutive deltas of one block, on the way to any number of sockets; encoded once."""

    __slots__ = ("_bytes", "_event", "_from_seq", "_texts", "execution_id")

    def __init__(self, event: Event) -> None:
        self.execution_id = event.execution_id
        self._event = event
        self._from_seq = event.seq
        self._bytes: bytes | None = None
        self._texts: list[str] | None = None
        if type(event) is BlockDelta:
            self._texts = [event.text]

    def cost(self) -> int:
        """Return the bytes that this frame takes while it waits."""
        if self._texts is None:
            return OVERHEAD + len(self.encode())
        return OVERHEAD + sum(PIECE + (len(text) if text.isascii() else 4 * len(text)) for text in self._texts)

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
        twin._from_seq = self._from_seq
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


@dataclass(slots=True)
class Waiting:
    """A frame in the queue: ready, or events; `own` if no other socket has the same frame."""

    cost: int
    execution_id: str | None
    content: Frame | EventFrame
    own: bool = False


class Outbox:
    """The queue between everybody who has something to say and the one socket that it is said to.

    `offer` sends a frame if the socket takes it without waiting, and returns whether it did.
    """

    __slots__ = ("_ended", "_kept", "_limit", "_owed", "_replacing", "_roomy", "_size", "_waiting", "_wake", "offer")

    def __init__(self, limit: int = LIMIT) -> None:
        self.offer: Callable[[bytes], bool] | None = None
        self._waiting: deque[Waiting] = deque()
        self._size = 0  # of what is about runs
        self._kept = 0  # of all else
        self._limit = limit
        self._wake = asyncio.Event()
        self._roomy = asyncio.Event()
        self._owed: set[str] = set()
        self._replacing: set[str] = set()
        self._ended = False

    def put(self, frame: Frame, execution_id: str | None = None) -> None:
        """Add a ready frame; one that belongs to an execution can be made good by a snapshot, the others are kept."""
        size = frame.weight(self._limit) if isinstance(frame, Snapshot) else len(frame)
        self._add(Waiting(OVERHEAD + size, execution_id, frame))

    def put_events(self, frames: Sequence[EventFrame]) -> None:
        """Send events, or add them, merged into the one before where both are deltas of one block."""
        for frame in frames:
            if frame.execution_id in self._owed:
                continue
            if not self._waiting:
                if self.offer is None or not self.offer(frame.encode()):
                    self._add(Waiting(frame.cost(), frame.execution_id, frame))
            elif not self._join(self._waiting[-1], frame):
                self._add(Waiting(frame.cost(), frame.execution_id, frame))

    async def room(self) -> None:
        """Wait while a reader that does not read has `ROOM` bytes of answers to read."""
        while self._kept > ROOM:
            self._roomy.clear()
            await self._roomy.wait()

    def end(self, *last: bytes) -> None:
        """Throw away what waits and take nothing more; `next` gives the `last` frames and then raises `Ended`."""
        self.offer = None
        self._ended = True
        self._waiting = deque(Waiting(0, None, frame) for frame in last)
        self._size = self._kept = 0
        self._owed.clear()
        self._wake.set()
        self._roomy.set()

    async def next(self) -> Frame | None:
        """Return the next frame, or None when the reader is owed snapshots (`replacing` tells of which runs)."""
        while not self._waiting:
            if self._ended:
                raise Ended
            if self._owed:
                return None
            self._wake.clear()
            await self._wake.wait()
        item = self._waiting.popleft()
        if item.execution_id is not None:
            self._size -= item.cost
        else:
            self._kept -= item.cost
            self._roomy.set()
        return item.content.encode() if isinstance(item.content, EventFrame) else item.content

    @contextmanager
    def replacing(self) -> Iterator[set[str]]:
        """Give the executions of which frames were dropped; what is put in for them meanwhile counts for nothing.

        It may be larger than the limit itself: it could never be sent if it were dropped again.
        """
        self._replacing, self._owed = self._owed, set()
        try:
            yield self._replacing
        finally:
            self._replacing = set()

    def _join(self, last: Waiting, frame: EventFrame) -> bool:
        if not isinstance(last.content, EventFrame) or not last.content.goes_on_in(frame):
            return False
        if not last.own:
            last.content, last.own = last.content.copy(), True
        last.content.join(frame)
        grown = frame.cost() - OVERHEAD
        last.cost += grown
        self._size += grown
        if self._size > self._limit:
            self._overflow()
        return True

    def _add(self, item: Waiting) -> None:
        if self._ended or item.execution_id in self._owed:
            return
        self._waiting.append(item)
        if item.execution_id is None:
            self._kept += item.cost
        elif item.execution_id in self._replacing:
            item.cost = 0
        else:
            self._size += item.cost
            if self._size > self._limit and len(self._waiting) > 1:
                self._overflow()
        self._wake.set()

    def _overflow(self) -> None:
        self._owed.update(item.execution_id for item in self._waiting if item.execution_id is not None)
        self._waiting = deque(item for item in self._waiting if item.execution_id is None)
        self._size = 0
        self._wake.set()
