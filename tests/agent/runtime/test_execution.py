"""An execution as a thing of its own: members, state of the model, times, identity."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from agent.runtime import (
    AgentError,
    AgentMessage,
    BlockDelta,
    BlockStart,
    BlockStop,
    Context,
    InvalidArgument,
    Life,
    MessageStop,
    ModelContext,
    ModelState,
    ToolCallResult,
    create_runtime,
)
from agent.runtime.events import ModelCallCompleted
from agent.testing import EventRecorder, FakeClock, ScriptedModel, calls, fails, says, scripted_tool

STATE = ModelState(format="test/v1", data=1)


async def test_runs_of_one_runtime_are_independent() -> None:
    """R53: signal, interrupt slot, budget and result are each run's own."""
    gate = asyncio.Event()
    asked = scripted_tool("asked", "x", require_confirmation=True)
    runtime = create_runtime(ScriptedModel(calls(("asked", {})), says("b", gate)), [asked])
    first, second = EventRecorder(), EventRecorder()
    one, two = runtime.start("1", observer=first), runtime.start("2", observer=second)
    event = await first.wait_for("interrupt-requested")
    await second.wait_for("block-delta")
    two.cancel()
    assert (await two.result).outcome.type == "cancelled"
    assert (one.life, one.signal.cancelled) == (Life.RUNNING, False)
    assert one.slot.interrupt is not None and one.slot.interrupt.id == event.interrupt.id
    one.cancel()
    await one.result
    assert one.id != two.id


async def test_the_members_of_an_execution() -> None:
    """R54, R55: `result` can be awaited more than once, `cancel` and `respond` are plain calls."""
    execution = create_runtime(ScriptedModel(says("x"))).start("Go")
    assert inspect.isawaitable(execution.result)
    assert await execution.result is await execution.result
    assert execution.verdict is await execution.result
    assert execution.cancel() is False


async def test_a_failure_is_not_repeated_and_nothing_else_is_tried() -> None:
    """R6, R69."""
    model = ScriptedModel(fails("down", retryable=True), says("second try"))
    with pytest.raises(AgentError, match="down"):
        await create_runtime(model).start("Go").result
    assert len(model.requests) == 1


@pytest.mark.parametrize("how", ["failure", "cancel"])
async def test_no_new_state_without_a_message_stop(how: str) -> None:
    """R29, R30: what was there before stays as it was."""
    gate = asyncio.Event()
    step = fails("down", after="x") if how == "failure" else says("x", gate, model_state=None)
    recorder = EventRecorder()
    context = Context(model_context=ModelContext(model_state=STATE))
    execution = create_runtime(ScriptedModel(step)).start("Go", context=context, observer=recorder)
    await recorder.wait_for("block-delta")
    execution.cancel()
    try:
        recovered = (await execution.result).recovered
    except AgentError as error:
        assert error.recovered is not None  # noqa: PT017
        recovered = error.recovered
    assert recovered.model_context.model_state == STATE


async def test_the_message_has_the_id_that_the_provider_was_told() -> None:
    """R23: `responseMessageId` is ours and keys the provider's own state."""
    with ScriptedModel(calls(("t", {})), says("ok")) as model:
        result = await create_runtime(model, [scripted_tool("t")]).start("Go").result
    assistants = [message.id for message in result.messages if message.role == "assistant"]
    assert assistants == [request.response_message_id for request in model.requests]
    assert len(set(assistants)) == 2


async def test_a_message_is_stable_only_after_its_stop() -> None:
    """R24."""
    before_stop, stop = asyncio.Event(), asyncio.Event()
    script: list[Any] = [
        BlockStart(0, "text"),
        BlockDelta(0, "text", "x"),
        BlockStop(0),
        before_stop,
        stop,
        MessageStop("end-turn"),
    ]
    recorder = EventRecorder()
    execution = create_runtime(ScriptedModel(script)).start("Go", observer=recorder)
    await recorder.wait_for("block-stop")
    assert [message.role for message in recorder.messages()] == ["user"]
    before_stop.set()
    stop.set()
    await execution.result
    assert [message.role for message in recorder.messages()] == ["user", "assistant"]


@pytest.mark.parametrize("block_type", ["text", "reasoning", "tool-call"])
async def test_the_first_token_is_the_first_delta_that_says_something(block_type: Any) -> None:
    """R119."""
    clock, first, second = FakeClock(), asyncio.Event(), asyncio.Event()
    is_call = block_type == "tool-call"
    script: list[Any] = [
        BlockStart(0, block_type, "c" if is_call else "", "t" if is_call else ""),
        BlockDelta(0, block_type, ""),
        first,
        BlockDelta(0, block_type, "{}"),
        second,
        BlockStop(0),
        MessageStop("tool-use" if is_call else "end-turn"),
    ]
    recorder = EventRecorder()
    runtime = create_runtime(ScriptedModel(script, says("ok")), [scripted_tool("t")], clock=clock)
    execution = runtime.start("Go", observer=recorder)
    await recorder.wait_for("block-start")
    clock.advance(0.2)
    first.set()
    await recorder.wait_for("block-delta")
    clock.advance(0.3)
    second.set()
    event = await recorder.wait_for("model-call-completed")
    assert isinstance(event, ModelCallCompleted)
    assert (event.first_token_latency_ms, event.output_duration_ms) == (200, 300)
    execution.cancel()


async def test_identity_comes_from_the_host_and_never_from_arguments() -> None:
    """R8."""
    tool = scripted_tool("t", "x")
    with ScriptedModel(calls(("t", {"principal": "root", "context": {"principal": "root"}})), says("ok")) as model:
        execution = create_runtime(model, [tool]).start("Go", principal="person 7", conversation_id="c")
        await execution.result
    context = tool.invocations[0].context
    assert (context.principal, context.conversation_id, context.execution_id) == ("person 7", "c", execution.id)


async def test_a_result_is_frozen_before_anybody_sees_it() -> None:
    """R84: what the tool does to its mapping afterwards changes nothing."""
    kept: list[dict[str, Any]] = []

    def answer(invocation: Any) -> dict[str, Any]:
        kept.append({"toolCallId": invocation.call_id, "content": "before", "isError": False})
        return kept[0]

    recorder = EventRecorder()

    def observe(events: Any) -> None:
        recorder(events)
        if any(event.type == "tool-call-completed" for event in events):
            kept[0]["content"] = "after"

    with ScriptedModel(calls(("t", {})), says("ok")) as model:
        result = await create_runtime(model, [scripted_tool("t", answer)]).start("Go", observer=observe).result
    assert result.messages[2].blocks[0].content[0].text == "before"


async def test_no_object_with_computed_attributes_passes_as_a_result() -> None:
    """R83, R192."""

    class Sly(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            return "computed"

    class Looks:
        tool_call_id, content, is_error = "c", "x", False

    for raw in (Sly(toolCallId="c", content="x", isError=False), Looks()):
        model = ScriptedModel(calls(("t", {}, "c")))
        with pytest.raises(AgentError) as caught:
            await create_runtime(model, [scripted_tool("t", lambda _, raw=raw: raw)]).start("Go").result  # type: ignore[misc]
        assert caught.value.code == "MODEL_PROTOCOL_ERROR"
    assert ToolCallResult(tool_call_id="c", content="x", is_error=False)


async def test_interrupts_come_one_after_another() -> None:
    """R91."""
    pay = scripted_tool("pay", "x", require_confirmation=True)
    recorder = EventRecorder()
    with ScriptedModel(calls(("pay", {"n": 1}), ("pay", {"n": 2})), says("ok")) as model:
        execution = create_runtime(model, [pay]).start("Go", observer=recorder)
        first = await recorder.wait_for("interrupt-requested")
        assert recorder.types().count("interrupt-requested") == 1
        execution.respond(first.interrupt.id, True)
        second = await recorder.wait_for(
            lambda event: event.type == "interrupt-requested" and event.interrupt.id != first.interrupt.id
        )
        execution.respond(second.interrupt.id, True)
        await execution.result
    kinds = [kind for kind in recorder.types() if kind.startswith("interrupt")]
    assert kinds == ["interrupt-requested", "interrupt-resolved"] * 2


async def test_the_snapshot_is_sorted_and_its_calls_go_through_it() -> None:
    """R98."""
    with ScriptedModel(says("ok")) as model:
        runtime = create_runtime(model, [scripted_tool("b"), scripted_tool("a")])
        await runtime.start("Go").result
    assert [tool.name for tool in model.requests[0].tools] == ["a", "b"]
    assert runtime.tools.snapshot().get("nothing") is None


async def test_a_run_starts_from_a_user_message() -> None:
    with pytest.raises(InvalidArgument):
        create_runtime(ScriptedModel()).start(AgentMessage(id="m", role="assistant", blocks=()))
