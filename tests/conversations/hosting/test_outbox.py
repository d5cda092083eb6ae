"""What waits for a socket: in order, merged, bounded."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from agent.runtime import AgentMessage, BlockDelta, BlockStart, BlockStop, ModelContext, TextBlock
from agent.runtime import events as ev
from conversations.hosting.outbox import LIMIT, ROOM, Ended, EventFrame, Outbox


def delta(seq: int, text: str, run: str = "e", index: int = 0) -> BlockDelta:
    return BlockDelta(index, "text", text, run, seq)


async def everything(outbox: Outbox) -> list[Any]:
    frames = []
    while True:
        try:
            frame = await asyncio.wait_for(outbox.next(), 0.01)
        except TimeoutError:
            return frames
        if frame is None:
            return frames
        frames.append(orjson.loads(frame))


async def test_deltas_of_one_block_join_and_nothing_else_does() -> None:
    outbox = Outbox()
    events: list[Any] = [
        BlockStart(0, "text", execution_id="e", seq=1),
        delta(2, "a"),
        delta(3, "b"),
        BlockStop(0, execution_id="e", seq=4),
        BlockStart(1, "text", execution_id="e", seq=5),
        delta(6, "c", index=1),
        delta(1, "x", run="f"),
        delta(7, "d", index=1),
    ]
    for event in events:
        outbox.put_events([EventFrame(event)])
    frames = await everything(outbox)
    assert [(f["executionId"], f.get("fromSeq", f["seq"]), f["seq"]) for f in frames] == [
        ("e", 1, 1),
        ("e", 2, 3),
        ("e", 4, 4),
        ("e", 5, 5),
        ("e", 6, 6),
        ("f", 1, 1),
        ("e", 7, 7),
    ]


@given(st.lists(st.tuples(st.text(max_size=3), st.booleans()), max_size=20))
def test_however_a_reader_reads_it_gets_all_text_in_order(steps: list[tuple[str, bool]]) -> None:
    async def play() -> None:
        outbox, got = Outbox(), []
        for seq, (text, reads) in enumerate(steps, 1):
            outbox.put_events([EventFrame(delta(seq, text))])
            if reads:
                frame = await outbox.next()
                assert frame is not None
                got.append(orjson.loads(frame))
        got += await everything(outbox)
        assert "".join(frame["delta"]["text"] for frame in got) == "".join(text for text, _ in steps)
        expected = 1
        for frame in got:
            assert frame.get("fromSeq", frame["seq"]) == expected
            expected = frame["seq"] + 1

    asyncio.run(play())


async def test_everything_about_a_run_counts_and_is_owed_when_it_is_too_much() -> None:
    """Also HTML and snapshots; answers to commands are kept."""
    outbox = Outbox(limit=1_000)
    outbox.put(b'"answer"')
    for _ in range(3):
        outbox.put(b'"' + b"x" * 398 + b'"', "e")
    outbox.put_events([EventFrame(delta(1, "y"))])
    assert await outbox.next() == b'"answer"'
    assert await outbox.next() is None
    with outbox.replacing() as owed:
        assert owed == {"e"}
    outbox.put_events([EventFrame(delta(2, "z"))])
    assert orjson.loads(await outbox.next() or b"")["seq"] == 2


async def test_a_reader_who_keeps_up_is_never_owed_anything() -> None:
    outbox = Outbox(limit=1_000)
    outbox.put_events([EventFrame(BlockStart(0, "text", execution_id="e", seq=1))])
    for seq in range(2, 2_000):
        outbox.put_events([EventFrame(BlockStop(0, execution_id="e", seq=seq))])
        assert await outbox.next() is not None  # one frame stays in the queue all the time
    with outbox.replacing() as owed:
        assert owed == set()


async def test_one_large_snapshot_passes() -> None:
    outbox = Outbox(limit=10)
    outbox.put(b'"' + b"x" * 100 + b'"', "e")
    assert await outbox.next() is not None


def messages(seq: int, text: str) -> ev.MessagesAdded:
    message = AgentMessage(id="m", role="user", blocks=(TextBlock(text=text),))
    return ev.MessagesAdded((message,), 0, ModelContext(model_state=None), "e", seq)


def test_every_event_counts_with_its_size() -> None:
    """DESIGN 5: not with its number, nor a text with its letters only."""
    outbox, shared = Outbox(), "x" * 100_000
    for seq in range(1, 400):
        outbox.put_events([EventFrame(messages(seq, shared))])
        assert len(outbox._waiting) * len(shared) <= LIMIT
    assert outbox._owed == {"e"}
    outbox = Outbox(limit=10_000)
    outbox.put_events([EventFrame(BlockStart(0, "text", execution_id="e", seq=1))])
    outbox.put_events([EventFrame(delta(2, "\u00e9" * 3_000))])
    assert outbox._owed == {"e"}


def test_a_thousand_small_pieces_count_with_what_each_takes() -> None:
    outbox = Outbox(limit=50_000)
    outbox.put_events([EventFrame(BlockStart(0, "text", execution_id="e", seq=1))])
    for seq in range(2, 1_002):
        outbox.put_events([EventFrame(delta(seq, "ab"))])
    assert outbox._owed == {"e"}


async def test_answers_wait_for_room_and_are_not_sorted_anew_for_each() -> None:
    outbox = Outbox(limit=1_000)
    before = outbox._waiting
    while outbox._kept <= ROOM:
        await asyncio.wait_for(outbox.room(), 1)
        outbox.put(b'"answer"')
    assert outbox._waiting is before
    waiting = asyncio.create_task(outbox.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    assert await outbox.next() == b'"answer"'
    await asyncio.wait_for(waiting, 1)


async def test_after_the_end_only_the_last_frames_come() -> None:
    """B64."""
    outbox = Outbox()
    outbox.offer = lambda frame: True
    outbox.put(b'"secret"', "e")
    while outbox._kept <= ROOM:
        outbox.put(b'"answer"')
    waiting = asyncio.create_task(outbox.room())
    await asyncio.sleep(0)
    outbox.end(b'"last"')
    await asyncio.wait_for(waiting, 1)
    outbox.put(b'"late"')
    outbox.put_events([EventFrame(delta(1, "late"))])
    assert await outbox.next() == b'"last"'
    for _ in range(2):
        outbox.put_events([EventFrame(delta(2, "late"))])
        try:
            raise AssertionError(await outbox.next())
        except Ended:
            pass


async def test_what_is_put_in_for_what_was_dropped_is_not_dropped_again() -> None:
    """Or a run that is larger than the limit could never be shown."""
    outbox = Outbox(limit=1_000)
    outbox.put(b'"' + b"x" * 600 + b'"', "e")
    outbox.put(b'"' + b"x" * 600 + b'"', "e")
    assert await outbox.next() is None
    with outbox.replacing() as owed:
        for execution_id in owed:
            for _ in range(3):
                outbox.put(b'"' + b"y" * 600 + b'"', execution_id)
    outbox.put_events([EventFrame(delta(9, "z"))])
    assert [await outbox.next() is None for _ in range(4)] == [False] * 4
