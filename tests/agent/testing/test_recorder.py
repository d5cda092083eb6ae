"""The recorder of events."""

from __future__ import annotations

import asyncio

import pytest

from agent.runtime import BlockDelta
from agent.runtime.events import Event, ExecutionCompleted, ExecutionFailed, StatusChanged
from agent.runtime.runtime import create_runtime
from agent.testing import EventRecorder, Gate, ScriptedModel, says


def status(seq: int) -> StatusChanged:
    return StatusChanged("streaming", seq=seq)


@pytest.mark.parametrize("numbers", [(2,), (0,), (1, 1), (1, 3), (2, 1)])
def test_numbers_that_are_not_consecutive_from_one_are_refused(numbers: tuple[int, ...]) -> None:
    with pytest.raises(AssertionError, match="has seq"):
        EventRecorder()([status(number) for number in numbers])


def test_nothing_may_follow_the_terminal_event() -> None:
    recorder = EventRecorder()
    recorder([ExecutionFailed("MODEL_FAILED", "x", seq=1)])
    assert recorder.ended
    with pytest.raises(AssertionError, match="came after"):
        recorder([status(2)])


def test_batches_and_types_are_kept_as_they_came() -> None:
    recorder = EventRecorder()
    recorder([status(1), BlockDelta(0, "text", "a", seq=2)])
    recorder([BlockDelta(0, "text", "b", seq=3)])
    assert [len(batch) for batch in recorder.batches] == [2, 1]
    assert recorder.types() == ["status", "block-delta", "block-delta"]
    assert recorder.types(without=["block-delta"]) == ["status"]
    assert recorder.text() == "ab"
    assert recorder.messages() == ()


async def test_waiting_finds_past_and_future_events_by_name_class_or_property() -> None:
    gate = Gate()
    recorder = EventRecorder()
    execution = create_runtime(ScriptedModel(says("one", gate, "two"))).start("Go", observer=recorder)
    assert (await recorder.wait_for("execution-started")).seq == 1
    delta = await recorder.wait_for(BlockDelta)
    assert isinstance(delta, BlockDelta) and delta.text == "one"

    def is_second(event: Event) -> bool:
        return isinstance(event, BlockDelta) and event.text == "two"

    waiting = [asyncio.create_task(recorder.wait_for(wanted)) for wanted in (is_second, "execution-completed")]
    await gate.reached()
    gate.open()
    second, last = await asyncio.gather(*waiting)
    assert isinstance(second, BlockDelta) and isinstance(last, ExecutionCompleted)
    assert recorder.events[-1] is last
    await execution.result


async def test_waiting_for_what_can_no_longer_come_fails_at_once() -> None:
    recorder = EventRecorder()
    await create_runtime(ScriptedModel(says("done"))).start("Go", observer=recorder).result
    with pytest.raises(AssertionError, match="waited in vain for 'tool-progress'"):
        await recorder.wait_for("tool-progress")
