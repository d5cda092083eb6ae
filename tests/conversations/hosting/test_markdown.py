"""The HTML of a run: whole for everybody, whenever they come."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from agent.runtime import BlockDelta, BlockStart, BlockStop, ExecutionState
from agent.runtime.events import ModelCallStarted
from conversations.hosting.markdown import MarkdownRun
from conversations.rendering import render


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
def test_a_reader_who_comes_late_sees_what_the_others_see(pieces: list[str], data: st.DataObject) -> None:
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
            frames = run.take(run.tick())
            early += frames
            late += frames if late else []
        if position == joins:
            late = list(run.replay()) or [orjson.dumps({"part": 0, "html": ""})]
    while run.dirty:
        frames = run.take(run.tick())
        early += frames
        late += frames if late else []
    assert html_of(early) == render("".join(pieces))
    assert not late or html_of(late) == html_of(early)


def test_a_long_tail_is_shown_whole_while_the_model_pauses() -> None:
    state = ExecutionState("e")
    events = numbered(ModelCallStarted(1, "m"), BlockStart(0, "text"), BlockDelta(0, "text", "x" * 9_000))
    for event in events:
        state.apply(event)
    run = MarkdownRun(state)
    frames = run.take(run.tick())
    more = BlockDelta(0, "text", "y" * 10, seq=4)
    run.feed([more])
    while run.dirty:
        frames += run.take(run.tick())
    assert "y" * 10 in html_of(frames)
