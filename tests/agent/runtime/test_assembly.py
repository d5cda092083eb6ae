"""From stream to message, to the letter."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.runtime import (
    AgentError,
    BlockDelta,
    BlockStart,
    BlockStop,
    MessageStop,
    ReasoningBlock,
    StreamError,
    TextBlock,
    create_runtime,
)
from agent.runtime.assembly import MessageAssembler
from agent.runtime.events import StatusChanged
from agent.testing import EventRecorder, ScriptedModel

TEXT = [BlockStart(0, "text"), BlockDelta(0, "text", "x"), BlockStop(0)]
STOP = MessageStop("end-turn")


@pytest.mark.parametrize(
    "stream",
    [
        [*TEXT, BlockDelta(0, "text", "y"), STOP],
        [*TEXT, BlockStop(0), STOP],
        [*TEXT, BlockStart(0, "text"), STOP],
        [BlockDelta(0, "text", "x"), STOP],
        [BlockStop(0), STOP],
        [BlockStart(-1, "text"), STOP],
        [BlockStart(0, "text"), BlockDelta(0, "reasoning", "x"), BlockStop(0), STOP],
        [BlockStart(0, "text"), BlockDelta(0, "text", "x"), STOP],
        [BlockStart(0, "text"), BlockDelta(0, "text", "x"), BlockStop(0)],
        [STOP],
        [BlockStart(0, "text"), BlockStop(0), STOP],
        [BlockStart(0, "text"), BlockDelta(0, "text", ""), BlockStop(0), STOP],
        [BlockStart(0, "tool-call", "c", "t"), BlockStop(0), MessageStop("tool-use")],
        [StatusChanged("streaming")],
        [],
    ],
)
async def test_a_stream_that_breaks_the_contract_is_a_protocol_error(stream: list[Any]) -> None:
    """R40, R41, R44, R45, R196."""
    with pytest.raises(AgentError) as caught:
        await create_runtime(ScriptedModel([tuple(stream)] if stream else [])).start("Go").result
    assert caught.value.code == "MODEL_PROTOCOL_ERROR"


async def test_what_came_before_the_fault_is_shown_and_no_more() -> None:
    recorder = EventRecorder()
    batch = (*TEXT[:2], BlockDelta(7, "text", "wrong"), BlockDelta(0, "text", "late"))
    with pytest.raises(AgentError):
        await create_runtime(ScriptedModel([batch])).start("Go", observer=recorder).result
    assert recorder.text() == "x"


async def test_nothing_is_read_after_the_message_stop() -> None:
    """R44, R50: late upstream errors are ignored."""
    model = ScriptedModel([(*TEXT, STOP, StreamError("late")), (BlockStart(9, "text"),)])
    assert (await create_runtime(model).start("Go").result).outcome.type == "completed"
    assert model.reading == 0


def test_what_a_refusal_says_counts_as_output() -> None:
    """R48: nothing of it is kept where it is too long."""
    for length, code in ((98, "MODEL_REFUSED"), (101, "MODEL_OUTPUT_LIMIT_EXCEEDED")):
        assembler = MessageAssembler(100)
        assembler.feed([*TEXT[:2], StreamError("no", code="MODEL_REFUSED", kind="refusal", refusal="n" * length)])
        assert assembler.failure is not None and assembler.failure.code == code
        assert (assembler.error is None) == (length == 101)


def test_blocks_stand_in_the_order_of_their_index_and_empty_ones_are_dropped() -> None:
    """R45, R47."""
    assembler = MessageAssembler(100)
    assembler.feed(
        [
            BlockStart(2, "text"),
            BlockStart(0, "reasoning"),
            BlockStart(1, "text"),
            BlockDelta(2, "text", "b"),
            BlockDelta(0, "reasoning", "a"),
            BlockStop(2),
            BlockStop(1),
            BlockStop(0),
            STOP,
        ]
    )
    assert assembler.blocks() == [ReasoningBlock(text="a"), TextBlock(text="b")]


PIECES = st.lists(
    st.tuples(st.sampled_from(["text", "reasoning"]), st.lists(st.text(max_size=5), max_size=4)), max_size=5
)


@given(PIECES, st.data())
def test_however_a_stream_is_cut_into_batches_the_message_is_the_same(
    wanted: list[tuple[Any, list[str]]], data: st.DataObject
) -> None:
    events: list[Any] = []
    for index, (block_type, pieces) in enumerate(wanted):
        events.append(BlockStart(index, block_type))
        events += [BlockDelta(index, block_type, piece) for piece in pieces]
        events.append(BlockStop(index))
    events.append(STOP)
    whole = MessageAssembler(1_000)
    whole.feed(events)
    cut = MessageAssembler(1_000)
    while events:
        size = data.draw(st.integers(1, len(events)))
        cut.feed(events[:size])
        events = events[size:]
    assert cut.blocks() == whole.blocks()
    assert (cut.failure, cut.produced) == (whole.failure, whole.produced) == (None, whole.produced)


def test_the_limit_counts_text_reasoning_and_arguments_together() -> None:
    """R48."""
    assembler = MessageAssembler(3)
    batch = [
        BlockStart(0, "text"),
        BlockDelta(0, "text", "a"),
        BlockStart(1, "reasoning"),
        BlockDelta(1, "reasoning", "b"),
        BlockStart(2, "tool-call", "c", "t"),
        BlockDelta(2, "tool-call", "{}"),
    ]
    accepted = assembler.feed(batch)
    assert accepted == batch[:5]
    assert assembler.failure is not None
    assert assembler.failure.code == "MODEL_OUTPUT_LIMIT_EXCEEDED"
