"""The scripted model, driven by the real engine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from agent.runtime import (
    AgentError,
    BlockDelta,
    BlockStart,
    BlockStop,
    Cancelled,
    Completed,
    MessageStop,
    ModelFailed,
    ModelRequest,
    ReasoningBlock,
    Usage,
)
from agent.runtime.cancellation import CancelSignal
from agent.runtime.runtime import create_runtime
from agent.testing import EventRecorder, Gate, ScriptedModel, calls, fails, says, scripted_tool
from agent.testing.model import Piece


async def test_steps_play_one_after_another_through_the_engine() -> None:
    weather = scripted_tool("weather", "rain", read_only=True)
    usage = Usage(input_tokens=1, output_tokens=2, total_tokens=3)
    recorder = EventRecorder()
    with ScriptedModel(
        calls(("weather", {"city": "Oslo"}), text="Let me look. "),
        says("It ", "rains.", reasoning="rain", usage=usage),
    ) as model:
        result = await create_runtime(model, [weather]).start("Weather?", observer=recorder).result

    assert result.outcome == Completed(stop_reason="end-turn")
    assert weather.arguments == [{"city": "Oslo"}]
    assert recorder.text() == "Let me look. It rains."
    assert recorder.text("reasoning") == "rain"
    assert recorder.messages() == result.messages
    assert result.messages[-1].blocks[0] == ReasoningBlock(text="rain")
    assert result.usage == usage
    assert [message.role for message in model.requests[1].messages] == ["user", "assistant", "tool"]


async def test_a_call_id_may_be_given_and_bad_arguments_are_sent_as_they_are() -> None:
    recorder = EventRecorder()
    with ScriptedModel(calls(("weather", "[1, 2]", "call-7")), says("Sorry.")) as model:
        runtime = create_runtime(model, [scripted_tool("weather")], tool_call_errors="report")
        await runtime.start("Weather?", observer=recorder).result
    assert recorder.text("tool-call") == "[1, 2]"
    assert recorder.messages()[1].tool_calls[0].call_id == "call-7"


async def test_a_step_that_nobody_scripted_fails_the_run_and_the_test() -> None:
    model = ScriptedModel(calls(("weather", {})))
    execution = create_runtime(model, [scripted_tool("weather", read_only=True)]).start("Weather?")
    with pytest.raises(AgentError, match="AssertionError"):
        await execution.result
    with pytest.raises(AssertionError, match="model call 2 is not in the script, which has 1 steps"):
        model.assert_done()


async def test_a_step_that_nobody_asked_for_fails_the_test() -> None:
    model = ScriptedModel(says("Hello"), says("never"))
    with pytest.raises(AssertionError, match="1 model calls were made, the script has 2 steps"), model:
        await create_runtime(model).start("Hi").result


async def test_the_context_manager_does_not_hide_an_error_of_the_test_itself() -> None:
    with pytest.raises(LookupError), ScriptedModel(says("never")):
        raise LookupError


async def test_a_step_may_look_at_the_request_and_its_failed_assertion_reaches_the_test() -> None:
    def greeting(request: ModelRequest) -> Iterable[Piece]:
        assert request.messages[-1].text == "Good morning"
        return says("Good morning to you")

    model = ScriptedModel(greeting, greeting)
    recorder = EventRecorder()
    await create_runtime(model).start("Good morning", observer=recorder).result
    assert recorder.text() == "Good morning to you"
    with pytest.raises(AgentError):
        await create_runtime(model).start("Bye").result
    with pytest.raises(AssertionError, match="Good morning"):
        model.assert_done()


async def test_a_gate_holds_the_stream_in_the_middle_and_a_cancelled_stream_is_closed() -> None:
    gate = Gate()
    recorder = EventRecorder()
    with ScriptedModel(says("first ", gate, "never")) as model:
        execution = create_runtime(model).start("Go", observer=recorder)
        await gate.reached()
        assert (recorder.text(), model.reading) == ("first ", 1)
        execution.cancel("user")
        result = await execution.result
    assert result.outcome == Cancelled(reason="user")
    assert (recorder.text(), model.reading) == ("first ", 0)


async def test_an_opened_gate_and_a_plain_event_let_the_stream_go_on() -> None:
    gate, event = Gate(), asyncio.Event()
    recorder = EventRecorder()
    with ScriptedModel(says("a", gate, "b", event, "c")) as model:
        execution = create_runtime(model).start("Go", observer=recorder)
        await gate.reached()
        gate.open()
        await recorder.wait_for(lambda event: recorder.text() == "ab")
        event.set()
        await execution.result
    assert recorder.text() == "abc"


async def test_a_failure_comes_after_what_was_said() -> None:
    recorder = EventRecorder()
    model = ScriptedModel(fails("no more", after="half", retryable=True, kind="overloaded"))
    with model, pytest.raises(ModelFailed, match="no more") as caught:
        await create_runtime(model).start("Go", observer=recorder).result
    assert (caught.value.retryable, caught.value.kind) == (True, "overloaded")
    assert recorder.text() == "half"


async def test_one_step_used_twice_gives_fresh_events_each_time() -> None:
    step = says("same")
    with ScriptedModel(step, step) as model:
        request = ModelRequest("message-1", ())
        first = [batch async for batch in model.stream(request, CancelSignal())]
        second = [batch async for batch in model.stream(request, CancelSignal())]
    assert first == second
    assert not any(a is b for one, other in zip(first, second, strict=True) for a, b in zip(one, other, strict=True))


async def test_a_step_may_be_a_list_of_batches_of_the_test_itself() -> None:
    recorder = EventRecorder()
    batch = [BlockStart(0, "text"), BlockDelta(0, "text", "a"), BlockDelta(0, "text", "b"), BlockStop(0)]
    with ScriptedModel([batch, MessageStop("stop-sequence")]) as model:
        result = await create_runtime(model).start("Go", observer=recorder).result
    assert result.outcome == Completed(stop_reason="stop-sequence")
    assert 4 in [len(events) for events in recorder.batches]
