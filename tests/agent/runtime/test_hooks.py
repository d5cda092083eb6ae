"""Hooks see, interceptors wrap, and neither can break an end."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

import pytest

from agent.runtime import (
    AgentError,
    AgentExecution,
    BlockDelta,
    CancelSignal,
    HookContext,
    HookEvent,
    HookFailure,
    ModelEvent,
    ModelRequest,
    ToolInvocation,
    Usage,
    create_runtime,
)
from agent.runtime.hooks import HOOK_PAYLOADS, NextModel, NextTool
from agent.testing import EventRecorder, ScriptedModel, calls, fails, says, scripted_tool

USAGE = Usage(input_tokens=1, output_tokens=2, total_tokens=3)


class Watcher:
    """A hook that remembers, and does something on one type of event."""

    def __init__(self, on: str = "", do: Callable[[], Any] = lambda: None) -> None:
        self.seen: list[HookEvent] = []
        self.contexts: set[HookContext] = set()
        self._on = on
        self._do = do

    def on_event(self, event: HookEvent, context: HookContext) -> None:
        self.seen.append(event)
        self.contexts.add(context)
        if event.type == self._on:
            self._do()

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.seen]


def raises() -> None:
    raise OSError("hook")


async def test_hooks_see_the_lifecycle_with_exactly_these_payloads_and_no_deltas() -> None:
    """R110, R111, R112."""
    watcher, pay = Watcher(), scripted_tool("pay", "ok", require_confirmation=True)
    with ScriptedModel(calls(("pay", {"n": 1}), usage=USAGE), says("Done", reasoning="Hm")) as model:
        recorder = EventRecorder()
        execution = create_runtime(model, [pay], hooks=[watcher]).start(
            "Go", observer=recorder, conversation_id="c", trace="t"
        )
        event = await recorder.wait_for("interrupt-requested")
        execution.respond(event.interrupt.id, True)
        await execution.result
    assert watcher.types == [
        "execution-started",
        "model-call-started",
        "model-call-completed",
        "interrupt-requested",
        "interrupt-resolved",
        "tool-call-started",
        "tool-call-completed",
        "model-call-started",
        "model-call-completed",
        "execution-completed",
    ]
    for seen in watcher.seen:
        assert tuple(seen.payload) == HOOK_PAYLOADS[seen.type]
    assert watcher.contexts == {HookContext("t", "c")}
    completed = watcher.seen[2].payload
    assert completed["usage"] == {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}
    assert completed["firstTokenLatencyMs"] >= 0
    with pytest.raises(TypeError):
        watcher.seen[5].payload["arguments"]["n"] = 2


async def test_a_hook_that_raises_on_an_ordinary_event_fails_the_run() -> None:
    """R113."""
    watcher = Watcher()
    with pytest.raises(AgentError) as caught:
        await (
            create_runtime(ScriptedModel(says("x")), hooks=[Watcher("model-call-started", raises), watcher])
            .start("Go")
            .result
        )
    assert caught.value.code == "AGENT_EXECUTION_FAILED"
    assert watcher.types == ["execution-started", "execution-failed"]


@pytest.mark.parametrize("ends", ["execution-completed", "execution-failed"])
async def test_a_hook_that_raises_at_the_end_changes_nothing(ends: str) -> None:
    """R114, R115, R190."""
    failures, after = list[HookFailure](), Watcher()
    step = says("x") if ends == "execution-completed" else fails("down")
    execution = create_runtime(
        ScriptedModel(step), hooks=[Watcher(ends, raises), after], on_hook_error=failures.append
    ).start("Go")
    if ends == "execution-completed":
        assert (await execution.result).outcome.type == "completed"
    else:
        with pytest.raises(AgentError, match="down"):
            await execution.result
    assert after.types[-1] == ends
    (failure,) = failures
    assert (failure.hook_index, failure.event.type, str(failure.cause)) == (0, ends, "hook")


@pytest.mark.parametrize("callback", ["none", "raises"])
async def test_without_a_working_callback_the_failure_is_logged(
    callback: str, caplog: pytest.LogCaptureFixture
) -> None:
    """R114, R115."""

    def broken(failure: HookFailure) -> None:
        raise OSError("callback")

    with caplog.at_level(logging.ERROR, "agent.hooks"):
        await (
            create_runtime(
                ScriptedModel(says("x")),
                hooks=[Watcher("execution-completed", raises)],
                on_hook_error=broken if callback == "raises" else None,
            )
            .start("Go")
            .result
        )
    assert [record.name for record in caplog.records] == ["agent.hooks"]


async def test_a_hook_that_cancels_keeps_the_event_from_later_hooks() -> None:
    """R115, R190."""
    running: list[AgentExecution] = []
    later = Watcher()
    cancels = Watcher("model-call-started", lambda: running[0].cancel("by hook"))
    recorder = EventRecorder()
    running.append(create_runtime(ScriptedModel(says("x")), hooks=[cancels, later]).start("Go", observer=recorder))
    result = await running[0].result
    assert result.outcome.to_wire() == {"type": "cancelled", "reason": "by hook"}
    assert later.types == ["execution-started", "execution-completed"]
    assert "model-call-started" not in recorder.types()


async def test_the_call_trace_hook_comes_first() -> None:
    """R118."""
    order: list[str] = []
    first = Watcher("execution-started", lambda: order.append("trace"))
    second = Watcher("execution-started", lambda: order.append("hook"))
    await create_runtime(ScriptedModel(says("x")), hooks=[second], call_trace=first).start("Go").result
    assert order == ["trace", "hook"]


class Wrap:
    """Interceptors that note their order."""

    def __init__(self, name: str, order: list[str]) -> None:
        self.name = name
        self.order = order


class WrapModel(Wrap):
    async def intercept(
        self, request: ModelRequest, context: HookContext, signal: CancelSignal, next: NextModel
    ) -> AsyncGenerator[Sequence[ModelEvent], Any]:
        self.order.append(f"{self.name} in")
        async for batch in next(request):
            yield batch
        self.order.append(f"{self.name} out")


class WrapTool(Wrap):
    async def intercept(self, invocation: ToolInvocation, next: NextTool) -> Any:
        self.order.append(f"{self.name} in")
        result = await next(invocation)
        self.order.append(f"{self.name} out")
        return result


async def test_interceptors_nest_in_the_order_of_the_list() -> None:
    """R116, R118."""
    order: list[str] = []
    with ScriptedModel(calls(("t", {})), says("ok")) as model:
        await (
            create_runtime(
                model,
                [scripted_tool("t", "x")],
                model_interceptors=[WrapModel("a", order), WrapModel("b", order)],
                tool_interceptors=[WrapTool("c", order), WrapTool("d", order)],
            )
            .start("Go")
            .result
        )
    assert [word for word in order if "c" in word or "d" in word] == ["c in", "d in", "d out", "c out"]
    assert order[:2] == ["a in", "b in"]


async def test_an_interceptor_may_change_the_request_and_answer_itself() -> None:
    """R199."""

    class Answers:
        async def intercept(self, invocation: ToolInvocation, next: NextTool) -> Any:
            return {"toolCallId": invocation.call_id, "content": "from the cache", "isError": True}

    tool = scripted_tool("t", "x")
    with ScriptedModel(calls(("t", {})), says("ok")) as model:
        result = await create_runtime(model, [tool], tool_interceptors=[Answers()]).start("Go").result
    assert tool.invocations == []
    assert result.messages[2].blocks[0].content[0].text == "from the cache"


async def test_next_may_be_called_once_only() -> None:
    """R117: no double billing, no double effect."""

    class TwiceTool:
        async def intercept(self, invocation: ToolInvocation, next: NextTool) -> Any:
            await next(invocation)
            return await next(invocation)

    tool = scripted_tool("t", "x")
    with pytest.raises(AgentError) as caught:
        await (
            create_runtime(ScriptedModel(calls(("t", {}))), [tool], tool_interceptors=[TwiceTool()]).start("Go").result
        )
    assert caught.value.code == "INVALID_STATE"
    assert len(tool.invocations) == 1

    class TwiceModel:
        async def intercept(
            self, request: ModelRequest, context: HookContext, signal: CancelSignal, next: NextModel
        ) -> AsyncGenerator[Sequence[ModelEvent], Any]:
            for _ in range(2):
                async for batch in next(request):
                    yield [event for event in batch if isinstance(event, BlockDelta)] and batch[:0]

    model = ScriptedModel(says("x"))
    with pytest.raises(AgentError) as caught:
        await create_runtime(model, model_interceptors=[TwiceModel()]).start("Go").result
    assert caught.value.code == "INVALID_STATE"
    assert len(model.requests) == 1


async def test_an_interceptor_that_raises_ends_the_run() -> None:
    """R81."""

    class Broken:
        async def intercept(self, invocation: ToolInvocation, next: NextTool) -> Any:
            raise OSError("x")

    with pytest.raises(AgentError) as caught:
        await (
            create_runtime(ScriptedModel(calls(("t", {}))), [scripted_tool("t")], tool_interceptors=[Broken()])
            .start("Go")
            .result
        )
    assert caught.value.code == "TOOL_FAILED"
