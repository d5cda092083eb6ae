"""The clock that is moved by hand."""

from __future__ import annotations

import pytest

from agent.runtime import LimitExceeded, PartialLimits
from agent.runtime.runtime import create_runtime
from agent.testing import EventRecorder, FakeClock, Gate, ScriptedModel, says


def test_timers_run_in_the_order_of_their_times_each_at_its_own_moment() -> None:
    clock, rung = FakeClock(start=0), list[tuple[str, float]]()
    clock.call_later(2, lambda: rung.append(("late", clock.now())))
    clock.call_later(1, lambda: rung.append(("early", clock.now())))
    clock.call_later(3, lambda: rung.append(("too late", clock.now())))
    clock.advance(2.5)
    assert rung == [("early", 1), ("late", 2)]
    assert clock.now() == 2.5


def test_a_cancelled_timer_stays_silent_and_a_timer_may_set_another() -> None:
    clock, rung = FakeClock(start=0), list[float]()
    clock.call_later(1, lambda: rung.append(-1)).cancel()
    clock.call_later(1, lambda: clock.call_later(1, lambda: rung.append(clock.now())) and None)
    clock.advance(5)
    assert rung == [2]


def test_the_clock_never_goes_back() -> None:
    with pytest.raises(ValueError, match="does not go back"):
        FakeClock().advance(-1)


async def test_it_drives_the_deadline_of_a_run() -> None:
    clock, gate, recorder = FakeClock(), Gate(), EventRecorder()
    runtime = create_runtime(ScriptedModel(says("a", gate)), limits=PartialLimits(max_duration_ms=5_000), clock=clock)
    execution = runtime.start("Go", observer=recorder)
    await gate.reached()
    clock.advance(4.9)
    assert not recorder.ended
    clock.advance(0.1)
    assert recorder.ended
    with pytest.raises(LimitExceeded, match="5 seconds"):
        await execution.result
