"""How runs end: cancel, deadline, approvals that nobody gives, and everything that comes too late."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.runtime import (
    AgentError,
    AgentMessage,
    BlockDelta,
    BlockStart,
    CancelSignal,
    Context,
    Event,
    HookContext,
    HookEvent,
    InvalidArgument,
    InvalidState,
    Life,
    ModelEvent,
    ModelRequest,
    PartialLimits,
    ToolResultBlock,
    create_runtime,
)
from agent.runtime.events import ToolCallStarted
from agent.runtime.interrupts import Decision
from agent.testing import EventRecorder, FakeClock, ScriptedModel, calls, says, scripted_tool
from agent.tools import tool


def executions(messages: Sequence[AgentMessage]) -> list[str]:
    return [block.execution for m in messages for block in m.blocks if isinstance(block, ToolResultBlock)]


async def test_cancel_in_mid_stream_keeps_stable_messages_and_says_one_terminal_event() -> None:
    """R60, R63, R64."""
    gate = asyncio.Event()
    model = ScriptedModel(says("Hel", gate, "lo"))
    recorder = EventRecorder()
    execution = create_runtime(model).start("Hi", observer=recorder)
    await recorder.wait_for("block-delta")
    assert execution.cancel()
    assert not execution.cancel()
    assert recorder.events[-1].type == "execution-completed"
    result = await execution.result
    assert result.outcome.to_wire() == {"type": "cancelled", "reason": "user"}
    assert [message.role for message in result.recovered.messages] == ["user"]
    assert execution.life is Life.SETTLED
    assert model.reading == 0
    assert not execution.cancel()


async def test_cancel_before_the_first_step_is_a_cancel() -> None:
    execution = create_runtime(ScriptedModel()).start("Hi")
    execution.cancel("early")
    assert (await execution.result).outcome.to_wire() == {"type": "cancelled", "reason": "early"}


async def test_cancel_during_a_tool_says_honestly_what_is_not_known() -> None:
    """E5, B53."""
    started, gate = asyncio.Event(), asyncio.Event()

    async def wait(_: object) -> str:
        started.set()
        await gate.wait()
        return "late"

    slow, other = scripted_tool("slow", wait), scripted_tool("other")
    model = ScriptedModel(calls(("other", {}), ("slow", {}), ("other", {})))
    recorder = EventRecorder()
    execution = create_runtime(model, [slow, other]).start("Hi", observer=recorder)
    await started.wait()
    execution.cancel()
    result = await execution.result
    assert executions(result.recovered.messages) == ["completed", "unknown", "not-executed"]
    assert executions(recorder.messages()) == ["completed", "unknown", "not-executed"]  # E7
    assert len(other.invocations) == 1


class Deaf:
    """A model and a tool that do not listen to cancellation."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.waiting = asyncio.Event()
        self.ended = asyncio.Event()

    async def wait(self) -> None:
        self.waiting.set()
        while not self.release.is_set():
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                continue
        self.ended.set()

    async def stream(self, request: ModelRequest, signal: CancelSignal) -> AsyncGenerator[Sequence[ModelEvent], Any]:
        await self.wait()
        yield (BlockStart(0, "text"), BlockDelta(0, "text", "late"))


@pytest.mark.parametrize("how", ["cancel", "deadline"])
@pytest.mark.parametrize("where", ["model", "tool"])
async def test_what_ignores_the_signal_cannot_hold_up_the_end(how: str, where: str) -> None:
    """R61, R62, R189: the grace period bounds the wait, and what comes late is not published."""
    clock, deaf, seen = FakeClock(), Deaf(), list[Event]()

    async def wait(_: object) -> str:
        await deaf.wait()
        return "late"

    model: Any = deaf if where == "model" else ScriptedModel(calls(("slow", {})))
    tools = [scripted_tool("slow", wait)]
    runtime = create_runtime(model, tools, PartialLimits(max_duration_ms=60_000), clock=clock, cancel_grace_period=5.0)
    execution = runtime.start("Hi", observer=seen.extend)
    await deaf.waiting.wait()
    if how == "cancel":
        execution.cancel()
    else:
        clock.advance(60)
    published = len(seen)
    assert execution.life is Life.SETTLING
    clock.advance(5)
    assert execution.life is Life.SETTLED
    if how == "cancel":
        assert (await execution.result).outcome.type == "cancelled"
    else:
        with pytest.raises(AgentError) as caught:
            await execution.result
        assert caught.value.code == "AGENT_EXECUTION_TIMEOUT"
    deaf.release.set()
    await deaf.ended.wait()
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(seen) == published  # R10


async def test_the_wait_for_a_person_counts_towards_the_deadline() -> None:
    """R66 table: maxDurationMs."""
    clock, recorder = FakeClock(), EventRecorder()
    runtime = create_runtime(
        ScriptedModel(calls(("pay", {}))),
        [pay := scripted_tool("pay", require_confirmation=True)],
        PartialLimits(max_duration_ms=1_000),
        clock=clock,
    )
    execution = runtime.start("Hi", observer=recorder)
    event = await recorder.wait_for("interrupt-requested")
    clock.advance(1)
    with pytest.raises(AgentError) as caught:
        await execution.result
    assert caught.value.code == "AGENT_EXECUTION_TIMEOUT"
    with pytest.raises(InvalidState):
        execution.respond(event.interrupt.id, True)  # R90
    assert pay.invocations == []


@pytest.mark.parametrize("reading", [float("nan"), float("inf"), -1.0])
async def test_a_clock_that_cannot_be_trusted_ends_the_run(reading: float) -> None:
    """R70."""
    clock = FakeClock(0.0)
    gate = asyncio.Event()
    recorder = EventRecorder()
    execution = create_runtime(ScriptedModel(says("a", gate, "b")), clock=clock).start("Hi", observer=recorder)
    await recorder.wait_for("block-delta")
    clock._now = reading  # no clock of ours does this
    gate.set()
    with pytest.raises(AgentError) as caught:
        await execution.result
    assert caught.value.code == "INVALID_STATE"


async def test_a_rejected_call_is_answered_and_the_run_goes_on() -> None:
    """R85, R86."""
    pay = scripted_tool("pay", require_confirmation=True)
    with ScriptedModel(calls(("pay", {"amount": 5})), says("As you like")) as model:
        recorder = EventRecorder()
        execution = create_runtime(model, [pay]).start("Go", observer=recorder)
        event = await recorder.wait_for("interrupt-requested")
        assert event.interrupt.arguments == {"amount": 5}
        execution.decide(event.interrupt.id, Decision("rejected", reason="Too much."))
        result = await execution.result
    block = result.messages[2].blocks[0]
    assert isinstance(block, ToolResultBlock)
    assert (block.status, block.execution) == ("error", "not-executed")
    assert "Too much." in block.content[0].text
    assert pay.invocations == []


async def test_an_approval_with_other_arguments_runs_with_these() -> None:
    pay = scripted_tool("pay", require_confirmation=True)
    with ScriptedModel(calls(("pay", {"amount": 5})), says("ok")) as model:
        recorder = EventRecorder()
        execution = create_runtime(model, [pay]).start("Go", observer=recorder)
        event = await recorder.wait_for("interrupt-requested")
        execution.decide(event.interrupt.id, Decision("modified", arguments={"amount": 1}))  # type: ignore[arg-type]
        await execution.result
    assert pay.arguments == [{"amount": 1}]


async def test_nobody_answering_in_time_counts_as_no() -> None:
    clock, pay = FakeClock(), scripted_tool("pay", require_confirmation=True)
    with ScriptedModel(calls(("pay", {})), says("Later then")) as model:
        recorder = EventRecorder()
        runtime = create_runtime(model, [pay], clock=clock, confirmation_timeout=30.0)
        execution = runtime.start("Go", observer=recorder)
        await recorder.wait_for("interrupt-requested")
        clock.advance(30)
        result = await execution.result
    assert result.outcome.type == "completed"
    assert pay.invocations == []


async def test_wrong_answers_to_an_interrupt_are_explicit_errors() -> None:
    """R89, R193; B50: the second answer loses."""
    pay = scripted_tool("pay", require_confirmation=True)
    recorder = EventRecorder()
    execution = create_runtime(ScriptedModel(calls(("pay", {})), says("ok")), [pay]).start("Go", observer=recorder)
    with pytest.raises(InvalidState):
        execution.respond("interrupt-x", True)
    event = await recorder.wait_for("interrupt-requested")
    with pytest.raises(InvalidArgument):
        execution.respond("interrupt-x", True)
    with pytest.raises(InvalidArgument):
        execution.respond(event.interrupt.id, 1)  # type: ignore[arg-type]
    execution.respond(event.interrupt.id, True)
    with pytest.raises(InvalidState):
        execution.respond(event.interrupt.id, False)
    await execution.result
    with pytest.raises(InvalidState):
        execution.respond(event.interrupt.id, True)
    assert len(pay.invocations) == 1


async def test_an_observer_that_raises_fails_the_run() -> None:
    """E7."""

    def broken(events: Sequence[Event]) -> None:
        if any(isinstance(event, BlockStart) for event in events):
            raise OSError("gone")

    with pytest.raises(AgentError) as caught:
        await create_runtime(ScriptedModel(says("x"))).start("Hi", observer=broken).result
    assert caught.value.code == "AGENT_EXECUTION_FAILED"


async def test_an_observer_may_cancel_from_inside() -> None:
    """E7: nothing is delivered twice."""
    recorder = EventRecorder()

    def observe(events: Sequence[Event]) -> None:
        recorder(events)
        if any(event.type == "tool-call-started" for event in events):
            execution.cancel("enough")

    slow = scripted_tool("slow", "x")
    execution = create_runtime(ScriptedModel(calls(("slow", {}))), [slow]).start("Hi", observer=observe)
    result = await execution.result
    assert result.outcome.type == "cancelled"
    assert slow.invocations == []
    assert executions(result.recovered.messages) == ["not-executed"]


async def test_a_tool_that_cancels_its_own_run_from_inside_is_stopped() -> None:
    async def cancel_and_wait(_: object) -> str:
        execution.cancel("by tool")
        await asyncio.Event().wait()
        return "never"

    tool = scripted_tool("odd", cancel_and_wait)
    execution = create_runtime(ScriptedModel(calls(("odd", {}))), [tool]).start("Hi")
    assert (await execution.result).outcome.to_wire()["reason"] == "by tool"


async def test_progress_is_published_from_a_thread_and_dropped_after_the_end() -> None:
    seen: list[Event] = []
    late: list[Any] = []

    async def work(invocation: Any) -> str:
        await asyncio.to_thread(invocation.context.progress, "half")
        late.append(invocation.context.progress)
        return "x"

    with ScriptedModel(calls(("work", {})), says("ok")) as model:
        await create_runtime(model, [scripted_tool("work", work)]).start("Hi", observer=seen.extend).result
    late[0]("too late")
    assert [event.text for event in seen if event.type == "tool-progress"] == ["half"]
    assert seen[-1].type == "execution-completed"


ACTIONS = st.lists(st.sampled_from(["step", "cancel", "approve", "reject", "tick", "release"]), max_size=30)


FAULTS = st.sets(st.sampled_from(["tool", "observer", "hook", "terminal hook"]))


@given(ACTIONS, FAULTS, st.booleans())
def test_any_interleaving_ends_in_one_terminal_event_with_one_result_for_each_call(
    actions: list[str], faults: set[str], parallel: bool
) -> None:
    """R10, R60, E5 under interleavings of steps, cancel, answers, time, and whatever may raise."""

    class Hook:
        def on_event(self, event: HookEvent, context: HookContext) -> None:
            ordinary = "hook" in faults and event.type == "model-call-completed" and event.payload["callIndex"] == 2
            if ordinary or (
                "terminal hook" in faults and event.type.startswith("execution-") and "started" not in event.type
            ):
                raise OSError("hook")

    async def play() -> None:
        clock, recorder, gate = FakeClock(), EventRecorder(), asyncio.Event()
        raised = False

        def observe(events: Sequence[Event]) -> None:
            nonlocal raised
            recorder(events)
            if "observer" in faults and not raised and any(event.type == "tool-call-completed" for event in events):
                raised = True
                raise OSError("gone")

        free = scripted_tool("free", OSError("x") if "tool" in faults else "x", gate=gate)
        asked = scripted_tool("asked", "y", require_confirmation=True)
        model = ScriptedModel(
            calls(("free", {}), ("asked", {}), ("free", {}), text="a"), says("b", gate, "c", reasoning="r"), says("d")
        )
        runtime = create_runtime(
            model,
            [free, asked],
            PartialLimits(max_duration_ms=10_000),
            clock=clock,
            cancel_grace_period=1.0,
            hooks=[Hook()],
            on_hook_error=lambda failure: None,
            parallel_tool_execution=parallel,
        )
        execution = runtime.start("Hi", observer=observe)
        for action in actions:
            interrupt = execution.slot.interrupt
            if action == "cancel":
                execution.cancel()
            elif action in ("approve", "reject") and interrupt is not None:
                execution.respond(interrupt.id, action == "approve")
            elif action == "tick":
                clock.advance(2)
            elif action == "release":
                gate.set()
            await asyncio.sleep(0)
        execution.cancel("end of test")
        for _ in range(10):
            await asyncio.sleep(0)
        clock.advance(1)
        try:
            recovered = (await execution.result).recovered
        except AgentError as error:
            recovered = error.recovered or Context()
        assert recorder.ended
        issued = [call.call_id for message in recovered.messages for call in message.tool_calls]
        answered = [b.call_id for m in recovered.messages for b in m.blocks if isinstance(b, ToolResultBlock)]
        assert sorted(issued) == sorted(answered)
        assert len(free.invocations) <= 2
        assert len(asked.invocations) <= 1
        assert len({invocation.call_id for invocation in free.invocations}) == len(free.invocations)
        started = [event.call_id for event in recorder.events if isinstance(event, ToolCallStarted)]
        assert len(set(started)) == len(started)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not others, others

    asyncio.run(play())


async def test_a_tool_that_ends_after_its_run_is_audited_and_not_published() -> None:
    """DESIGN 3: "finished after cancel", for coroutines that do not listen and for threads."""
    deaf, ended, recorder = Deaf(), asyncio.Queue[tuple[str, bool]](), EventRecorder()
    release = threading.Event()

    async def wait(_: object) -> str:
        await deaf.wait()
        return "late"

    @tool(name="thread")
    def block() -> str:
        """Wait."""
        release.wait(10)
        raise OSError("late")

    runtime = create_runtime(
        ScriptedModel(calls(("thread", {}), ("task", {}))),
        [block, scripted_tool("task", wait)],
        parallel_tool_execution=True,
        on_late_end=lambda invocation, raised: ended.put_nowait((invocation.name, raised)),
    )
    execution = runtime.start("Hi", observer=recorder)
    await deaf.waiting.wait()
    await recorder.wait_for(lambda event: event.type == "tool-call-started" and event.tool_name == "thread")
    execution.cancel()
    published = len(recorder.events)
    deaf.release.set()
    release.set()
    assert {await ended.get(), await ended.get()} == {("thread", True), ("task", False)}
    assert len(recorder.events) == published
    await execution.result
