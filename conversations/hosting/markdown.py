"""The Markdown of one live run, rendered once for all readers of `format: "html"`.

What is open, what grew and what was sent is known and changed on the loop alone; a tick hands single blocks to a
thread, which touches nothing else. What was sent is remembered, so that a late reader gets the same parts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import orjson

from agent.runtime import events as ev
from agent.runtime.model import BlockDelta, BlockStart, BlockStop
from agent.runtime.state import ExecutionState
from conversations.rendering import BlockStream, Part

Key: TypeAlias = tuple[str, int]

SHOWN = ("text", "reasoning")


class _Due(NamedTuple):
    """A block that is to be rendered now, for the last time if it `stopped`."""

    key: Key
    stream: BlockStream
    stopped: bool


class MarkdownRun:
    """Text and reasoning blocks of a run; `dirty` tells whether a tick is due."""

    def __init__(self, state: ExecutionState) -> None:
        self._execution_id = state.execution_id
        self._message_id = state.message_id or ""
        self._streams: dict[Key, BlockStream] = {}
        self._open: set[Key] = set()
        self._fed: set[Key] = set()
        self._stopped: set[Key] = set()
        self._sent: dict[Key, dict[int, bytes]] = {}
        for message in state.messages:
            if message["role"] == "assistant":
                for index, block in enumerate(message["blocks"]):
                    if block["type"] in SHOWN:
                        self._start((message["id"], index), block["text"], stopped=True)
        for index, streamed in state.blocks.items():
            if streamed.type in SHOWN:
                self._start((self._message_id, index), streamed.text, stopped=streamed.stopped or state.ended)

    @property
    def dirty(self) -> bool:
        return bool(self._fed or self._stopped or self._behind())

    def feed(self, events: Sequence[ev.Event]) -> None:
        """Note what a batch of events adds."""
        for event in events:
            if type(event) is BlockDelta:
                if (stream := self._streams.get(key := (self._message_id, event.index))) and key in self._open:
                    stream.feed(event.text)
                    self._fed.add(key)
            elif isinstance(event, ev.ModelCallStarted):
                self._message_id = event.response_message_id
            elif isinstance(event, BlockStart):
                if event.block_type in SHOWN:
                    self._start((self._message_id, event.index), "", stopped=False)
            elif isinstance(event, BlockStop):
                self._stop((self._message_id, event.index))
            elif isinstance(event, ev.MessagesAdded):
                self._add(event)
            elif isinstance(event, ev.TERMINAL):
                self._stopped |= self._open

    async def tick(self) -> list[bytes]:
        """Return the frames of what was noted since the last tick; one call at a time."""
        parts = await asyncio.to_thread(_render, self._due())
        return [self._keep(key, part) for key, part in parts]

    def replay(self) -> Iterator[bytes]:
        """Return the frames that bring a late reader to where the others are."""
        for parts in self._sent.values():
            yield from parts.values()

    def _due(self) -> list[_Due]:
        keys = sorted(self._fed | self._stopped | self._behind())
        due = [_Due(key, self._streams[key], key in self._stopped) for key in keys]
        self._open -= self._stopped
        self._fed.clear()
        self._stopped.clear()
        return due

    def _keep(self, key: Key, part: Part) -> bytes:
        """Return the frame of a part, and remember it for those who come late."""
        frame = self._sent.setdefault(key, {})[part.part] = self._frame(key, part)
        return frame

    def _add(self, event: ev.MessagesAdded) -> None:
        for message in event.messages[event.from_index :]:
            if message.role != "assistant":
                continue
            if message.id == self._message_id and any(key[0] == message.id for key in self._streams):
                self._stopped |= {key for key in self._open if key[0] == message.id}
                continue
            for index, block in enumerate(message.blocks):
                if block.type == "text" or block.type == "reasoning":
                    self._start((message.id, index), block.text, stopped=True)

    def _start(self, key: Key, text: str, *, stopped: bool) -> None:
        self._streams[key] = stream = BlockStream()
        self._open.add(key)
        if text:
            stream.feed(text)
            self._fed.add(key)
        if stopped:
            self._stopped.add(key)

    def _behind(self) -> set[Key]:
        return {key for key in self._open if self._streams[key].behind}

    def _stop(self, key: Key) -> None:
        if key in self._open:
            self._stopped.add(key)

    def _frame(self, key: Key, part: Part) -> bytes:
        return orjson.dumps(
            {
                "type": "rendered",
                "executionId": self._execution_id,
                "messageId": key[0],
                "blockIndex": key[1],
                "part": part.part,
                "html": str(part.html),
                "final": part.final,
            }
        )


def _render(due: Iterable[_Due]) -> list[tuple[Key, Part]]:
    return [(key, part) for key, stream, stopped in due for part in (stream.finish() if stopped else stream.tick())]
