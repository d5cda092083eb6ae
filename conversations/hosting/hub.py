"""Fan-out: from the runs of this process to the sockets of this process.

A `Channel` is one run as readers see it: the reducer's state and the Markdown being rendered. A `Reader` is the
interest of one socket in one conversation. Events go straight into the readers' outboxes, the deltas of one batch as
one frame, deltas at the next tick while the loop lags; who comes late gets the state as a snapshot.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, Literal, TypeAlias

from agent.runtime.events import Event
from agent.runtime.model import BlockDelta
from agent.runtime.state import ExecutionState
from conversations.hosting.markdown import MarkdownRun
from conversations.hosting.outbox import EventFrame, Outbox
from conversations.hosting.snapshot import PastSnapshots, Snapshot
from conversations.hosting.tick import FlushTick

logger = logging.getLogger("conversations.hosting")

Format: TypeAlias = Literal["text", "html"]

RENDER_INTERVAL = 0.15


class Reader:
    """One socket's interest in one conversation, or in one run of it only."""

    __slots__ = ("conversation_id", "execution_id", "format", "outbox")

    def __init__(self, outbox: Outbox, conversation_id: str, format: Format, execution_id: str | None = None) -> None:
        self.outbox = outbox
        self.conversation_id = conversation_id
        self.format: Format = format
        self.execution_id = execution_id

    def wants(self, execution_id: str) -> bool:
        return self.execution_id is None or self.execution_id == execution_id


class Channel:
    """A live run as its readers see it."""

    def __init__(self, hub: EventHub, conversation_id: str, execution_id: str) -> None:
        self.hub = hub
        self.conversation_id = conversation_id
        self.state = ExecutionState(execution_id, conversation_id)
        self._held: list[EventFrame] = []
        self._markdown: MarkdownRun | None = None
        self._rendering: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()

    def publish(self, events: Sequence[Event]) -> None:
        """Take in a batch of events and hand it to all readers."""
        can_wait = True
        for event in events:
            self.state.apply(event)
            frame = EventFrame(event)
            if self._held and self._held[-1].goes_on_in(frame):
                self._held[-1].join(frame)
            else:
                self._held.append(frame)
            can_wait = can_wait and type(event) is BlockDelta
        tick = self.hub.tick
        tick.watch()
        if can_wait and tick.lagging:
            tick.hold(self.flush)
        else:
            self.flush()
        if self._markdown is not None or any(reader.format == "html" for reader in self._readers()):
            self._render(events)

    def flush(self, but: Reader | None = None) -> None:
        """Hand out what is held, to all readers `but` one."""
        held, self._held = self._held, []
        if held:
            for reader in self._readers():
                if reader is not but:
                    reader.outbox.put_events(held)

    def _readers(self) -> list[Reader]:
        return [each for each in self.hub.readers(self.conversation_id) if each.wants(self.state.execution_id)]

    def snapshot(self, reader: Reader) -> None:
        """Give a reader the state of the run, and the HTML that goes with it."""
        self.flush(but=reader)  # the snapshot has what is held
        reader.outbox.put(Snapshot(self.state), self.state.execution_id)
        if reader.format == "html":
            if self._markdown is None:
                self._markdown = MarkdownRun(self.state)
                self._wake_renderer()
            for frame in self._markdown.replay():
                reader.outbox.put(frame, self.state.execution_id)

    async def rendered(self, seconds: float) -> None:
        """Wait until all HTML of the run has been handed out, at most so long; it goes on by itself then."""
        if self._rendering is not None:
            self._hurry.set()
            await asyncio.wait({self._rendering}, timeout=seconds)

    def _render(self, events: Sequence[Event]) -> None:
        if self._markdown is None:
            self._markdown = MarkdownRun(self.state)
        else:
            self._markdown.feed(events)
        self._wake_renderer()

    def _wake_renderer(self) -> None:
        if self._markdown is not None and self._markdown.dirty and (self._rendering is None or self._rendering.done()):
            self._rendering = self.hub.spawn(self._render_soon(self._markdown))

    async def _render_soon(self, markdown: MarkdownRun) -> None:
        while markdown.dirty:
            try:
                frames = await markdown.tick()
            except Exception:  # looks must not decide whether a turn is stored
                logger.exception("run %s could not be rendered", self.state.execution_id)
                self._markdown = None  # the next event begins anew; after the last one the page shows the bare text
                return
            for reader in self._readers():
                if reader.format == "html":
                    for frame in frames:
                        reader.outbox.put(frame, self.state.execution_id)
            if not self.state.ended:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._hurry.wait(), RENDER_INTERVAL)


class EventHub:
    """All live runs and all readers of this process."""

    def __init__(self) -> None:
        self.tick = FlushTick()
        self.past = PastSnapshots()
        self._channels: dict[str, Channel] = {}
        self._latest: dict[str, Channel] = {}
        self._readers: dict[str, set[Reader]] = {}
        self._rendering: set[asyncio.Task[None]] = set()

    def spawn(self, rendering: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run what renders as a task of the hub."""
        task = asyncio.get_running_loop().create_task(rendering, name="rendering of a run")
        self._rendering.add(task)
        task.add_done_callback(self._rendering.discard)
        return task

    async def stop(self) -> None:
        """End what is still being rendered, and the tick."""
        self.tick.stop()
        for task in self._rendering:
            task.cancel()
        await asyncio.gather(*self._rendering, return_exceptions=True)

    def open(self, conversation_id: str, execution_id: str) -> Channel:
        """Make the channel of a run that is about to start."""
        channel = Channel(self, conversation_id, execution_id)
        self._channels[execution_id] = self._latest[conversation_id] = channel
        return channel

    def close(self, channel: Channel) -> None:
        """Forget a run that has ended; its readers stay for the next one."""
        self._channels.pop(channel.state.execution_id, None)
        if self._latest.get(channel.conversation_id) is channel:
            del self._latest[channel.conversation_id]

    def channel(self, execution_id: str) -> Channel | None:
        return self._channels.get(execution_id)

    def live(self, conversation_id: str) -> Channel | None:
        """Return the run in progress of a conversation."""
        return self._latest.get(conversation_id)

    def readers(self, conversation_id: str) -> set[Reader]:
        return self._readers.get(conversation_id, set())

    def tell(self, state: ExecutionState) -> None:
        """Give the readers of a conversation the state of a run that ended elsewhere."""
        snapshot = self.past.of(state)
        for reader in self.readers(str(state.conversation_id)):
            if reader.wants(state.execution_id):
                reader.outbox.put(snapshot, state.execution_id)

    def add(self, reader: Reader) -> None:
        if live := self.live(reader.conversation_id):
            live.flush()  # those who were there get what is held; the new one begins after it
        self._readers.setdefault(reader.conversation_id, set()).add(reader)

    def remove(self, reader: Reader) -> None:
        readers = self._readers.get(reader.conversation_id)
        if readers is not None:
            readers.discard(reader)
            if not readers:
                del self._readers[reader.conversation_id]
