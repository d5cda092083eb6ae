"""The HTML of a run: whole for everybody, whenever they come."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.runtime import BlockDelta, BlockStart, BlockStop, ExecutionState
from agent.runtime.events import ModelCallStarted
from conversations.hosting.hub import EventHub, Reader
from conversations.hosting.markdown import MarkdownRun
from conversations.rendering import BlockStream, Part, render


def numbered(*events: Any) -> list[Any]:
    for seq, event in enumerate(events, 1):
        event.seq = seq
    return list(events)


def html_of(frames: list[bytes]) -> str:
    """Return what a page shows that replaces parts by their number."""
    parts: dict[int, str] = {}
    for frame in map(orjson.loads, frames):
        parts[frame["part"]] = frame["html"]
    return "".join(parts[number] for number in sorted(parts))


@given(
    st.lists(st.sampled_from(["# a\n", "b **c**", "\n\n", "- d\n", "```\n", "e\n", "[x]: /y\n"]), max_size=12),
    st.data(),
)
async def test_a_reader_who_comes_late_sees_what_the_others_see(pieces: list[str], data: st.DataObject) -> None:
    events = numbered(
        ModelCallStarted(1, "m"),
        BlockStart(0, "text"),
        *[BlockDelta(0, "text", piece) for piece in pieces],
        BlockStop(0),
    )
    state = ExecutionState("e")
    state.apply(events[0])
    run = MarkdownRun(state)
    run.feed(events[:1])
    early: list[bytes] = []
    late: list[bytes] = []
    joins = data.draw(st.integers(1, len(events)))
    for position, event in enumerate(events[1:], 1):
        run.feed([event])
        if data.draw(st.booleans()):
            frames = await run.tick()
            early += frames
            late += frames if late else []
        if position == joins:
            late = list(run.replay()) or [orjson.dumps({"part": 0, "html": ""})]
    while run.dirty:
        frames = await run.tick()
        early += frames
        late += frames if late else []
    assert html_of(early) == render("".join(pieces))
    assert not late or html_of(late) == html_of(early)


async def test_a_long_tail_is_shown_whole_while_the_model_pauses() -> None:
    state = ExecutionState("e")
    events = numbered(ModelCallStarted(1, "m"), BlockStart(0, "text"), BlockDelta(0, "text", "x" * 9_000))
    for event in events:
        state.apply(event)
    run = MarkdownRun(state)
    frames = await run.tick()
    more = BlockDelta(0, "text", "y" * 10, seq=4)
    run.feed([more])
    while run.dirty:
        frames += await run.tick()
    assert "y" * 10 in html_of(frames)


class Name(str):
    """The id of a message that remembers in which threads it was looked up."""

    __slots__ = ("threads",)
    threads: set[int]

    def __hash__(self) -> int:
        self.threads.add(threading.get_ident())
        return super().__hash__()


class Held:
    """Holds a tick in its thread, in the middle of its work, until the test lets it go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._loop = asyncio.get_running_loop()
        self._inside, self._go = asyncio.Event(), threading.Event()
        for name in ("tick", "finish"):
            monkeypatch.setattr(BlockStream, name, self._holding(getattr(BlockStream, name)))

    def _holding(self, work: Callable[[BlockStream], list[Part]]) -> Callable[[BlockStream], list[Part]]:
        def held(stream: BlockStream) -> list[Part]:
            self._loop.call_soon_threadsafe(self._inside.set)
            assert self._go.wait(30)
            return work(stream)

        return held

    async def inside(self) -> None:
        await asyncio.wait_for(self._inside.wait(), 30)

    def let_go(self) -> None:
        self._go.set()


@pytest.mark.parametrize("stopped", [False, True])
async def test_what_comes_while_a_tick_is_at_work_is_rendered_by_the_next_one(
    monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    """Nothing that a tick reads in its thread may change on the loop, or the HTML of the run is lost."""
    name = Name("m")
    name.threads = set()
    run = MarkdownRun(ExecutionState("e"))
    run.feed(numbered(ModelCallStarted(1, name), BlockStart(0, "text"), BlockDelta(0, "text", "one ")))
    held = Held(monkeypatch)
    first = asyncio.create_task(run.tick())
    await held.inside()
    run.feed([BlockDelta(0, "text", "two"), *([BlockStop(0)] if stopped else [])])
    for index in range(1, 200):
        run.feed([BlockStart(index, "text"), BlockDelta(index, "text", f"block {index}"), BlockStop(index)])
        assert run.dirty
    held.let_go()
    frames = await first
    while run.dirty:
        frames += await run.tick()

    shown = {frame["blockIndex"]: frame["html"] for frame in map(orjson.loads, frames)}
    assert shown == {0: "<p>one two</p>\n", **{index: f"<p>block {index}</p>\n" for index in range(1, 200)}}
    finals = {frame["blockIndex"] for frame in map(orjson.loads, frames) if frame["final"]}
    assert finals == set(range(0 if stopped else 1, 200))
    assert name.threads == {threading.get_ident()}, "a tick's thread touches nothing but its blocks"


async def test_after_a_failure_the_html_of_a_run_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    frames: list[bytes] = []
    outbox = SimpleNamespace(put=lambda frame, execution_id: frames.append(frame), put_events=lambda events: None)
    hub = EventHub()
    channel = hub.open("c", "e")
    hub.add(Reader(cast(Any, outbox), "c", "html"))

    async def broken(run: object) -> list[bytes]:
        raise RuntimeError("no thread")

    begun = numbered(ModelCallStarted(1, "m"), BlockStart(0, "text"), BlockDelta(0, "text", "one\n\n"))
    with monkeypatch.context() as patch:
        patch.setattr(MarkdownRun, "tick", broken)
        channel.publish(begun)
        await channel.rendered(30)
    assert frames == []
    channel.publish([BlockDelta(0, "text", "two", seq=4)])
    await channel.rendered(30)

    assert html_of(frames) == "<p>one</p>\n<p>two</p>\n"
    channel.snapshot(Reader(cast(Any, outbox), "c", "html"))
    assert frames[-1] == frames[0], "and who comes late gets it too"
