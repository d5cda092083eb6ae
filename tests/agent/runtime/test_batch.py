"""Several calls of one answer: order, parallel tools, and tools whose last effect is not known."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent.runtime import (
    AgentError,
    AgentMessage,
    Context,
    InvalidArgument,
    TextBlock,
    ToolCallBlock,
    ToolDecision,
    ToolResultBlock,
    create_runtime,
)
from agent.testing import EventRecorder, FakeClock, ScriptedModel, calls, says, scripted_tool


def results(messages: Any) -> list[str]:
    return [b.content[0].text for m in messages for b in m.blocks if isinstance(b, ToolResultBlock)]


async def test_parallel_tools_run_together_and_their_results_keep_the_order_of_the_calls() -> None:
    """DESIGN 3."""
    second_ended = asyncio.Event()

    async def first(_: object) -> str:
        await second_ended.wait()  # so the first can only end if the second runs beside it
        return "1"

    async def second(_: object) -> str:
        second_ended.set()
        return "2"

    tools = [scripted_tool("first", first), scripted_tool("second", second)]
    with ScriptedModel(calls(("first", {}), ("second", {})), says("ok")) as model:
        recorder = EventRecorder()
        runtime = create_runtime(model, tools, parallel_tool_execution=True)
        result = await asyncio.wait_for(runtime.start("Go", observer=recorder).result, 10)
    assert results(result.messages) == ["1", "2"]
    completed = [event.tool_name for event in recorder.events if event.type == "tool-call-completed"]
    assert completed == ["second", "first"]


async def test_no_more_than_so_many_run_at_a_time() -> None:
    running, most = 0, 0

    async def work(_: object) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return "x"

    with ScriptedModel(calls(*[("work", {})] * 7), says("ok")) as model:
        runtime = create_runtime(
            model, [scripted_tool("work", work)], parallel_tool_execution=True, max_concurrent_tools=3
        )
        await runtime.start("Go").result
    assert most == 3


async def test_nothing_runs_while_a_person_is_asked() -> None:
    """Confirmed calls come after the parallel ones, one by one; results stay in call order."""
    pay, look = scripted_tool("pay", "paid", require_confirmation=True), scripted_tool("look", "seen")
    with ScriptedModel(calls(("pay", {}), ("look", {}), ("look", {}), ("pay", {})), says("ok")) as model:
        recorder = EventRecorder()
        execution = create_runtime(model, [pay, look], parallel_tool_execution=True).start("Go", observer=recorder)
        for count in (1, 2):
            asked: list[Any] = []

            def is_next(event: Any, asked: list[Any] = asked, count: int = count) -> bool:
                asked.extend([event] if event.type == "interrupt-requested" else [])
                return len(asked) == count

            event = await recorder.wait_for(is_next)
            assert len(look.invocations) == 2
            execution.respond(event.interrupt.id, True)
        result = await execution.result
    assert results(result.messages) == ["paid", "seen", "seen", "paid"]


async def test_a_parallel_tool_that_fails_ends_the_run_at_once_and_the_others_stay_honest() -> None:
    """R81, E5: also when another one does not listen to cancellation."""
    clock, release = FakeClock(), asyncio.Event()
    started = asyncio.Event()

    async def deaf(_: object) -> str:
        started.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    async def breaks(_: object) -> str:
        await started.wait()
        raise OSError("x")

    tools = [scripted_tool("deaf", deaf), scripted_tool("quick", "q"), scripted_tool("breaks", breaks)]
    runtime = create_runtime(
        ScriptedModel(calls(("deaf", {}), ("quick", {}), ("breaks", {}))),
        tools,
        clock=clock,
        parallel_tool_execution=True,
        cancel_grace_period=1,
    )
    recorder = EventRecorder()
    execution = runtime.start("Go", observer=recorder)
    await recorder.wait_for("execution-failed")
    clock.advance(1)
    with pytest.raises(AgentError) as caught:
        await execution.result
    release.set()
    assert caught.value.code == "TOOL_FAILED"
    assert caught.value.recovered is not None
    blocks = [b for m in caught.value.recovered.messages for b in m.blocks if isinstance(b, ToolResultBlock)]
    assert [block.execution for block in blocks] == ["unknown", "completed", "unknown"]


async def test_a_bound_that_allows_nothing_is_refused() -> None:
    with pytest.raises(InvalidArgument):
        create_runtime(ScriptedModel(), max_concurrent_tools=0)


def past(*executions: str) -> Context:
    """A history in which the tool `look` ended in these ways, one after another."""
    messages: list[AgentMessage] = []
    for n, execution in enumerate(executions):
        call = ToolCallBlock(call_id=f"c{n}", name="look", input={})
        status = "success" if execution == "completed" else "error"
        result: Any = {"call_id": call.call_id, "name": "look", "status": status, "execution": execution}
        messages.append(AgentMessage(id=f"a{n}", role="assistant", blocks=(call,)))
        answer = ToolResultBlock(content=(TextBlock(text="x"),), **result)
        messages.append(AgentMessage(id=f"t{n}", role="tool", blocks=(answer,)))
    return Context(messages=tuple(messages))


@pytest.mark.parametrize(
    ("executions", "asks"),
    [
        (["completed"], False),
        (["unknown"], True),
        (["result-omitted"], True),
        (["not-executed"], False),
        (["unknown", "completed"], False),
        (["unknown", "not-executed"], True),
        (["completed", "unknown", "not-executed"], True),
        (["result-omitted", "completed", "completed"], False),
    ],
)
async def test_a_tool_whose_last_effect_is_not_known_needs_a_person_even_if_read_only(
    executions: list[str], asks: bool
) -> None:
    """E6."""
    look = scripted_tool("look", "x", read_only=True)
    with ScriptedModel(calls(("look", {})), calls(("look", {})), says("ok")) as model:
        recorder = EventRecorder()
        execution = create_runtime(model, [look]).start("Go", context=past(*executions), observer=recorder)
        if asks:
            event = await recorder.wait_for("interrupt-requested")
            assert event.interrupt.reason == "unverified-previous-invocation"
            execution.respond(event.interrupt.id, True)
        await execution.result
    assert recorder.types().count("interrupt-requested") == (1 if asks else 0)  # the completed call cleared it
    assert len(look.invocations) == 2


async def test_a_rejected_unverified_call_stays_unverified() -> None:
    """E6."""
    look = scripted_tool("look", "x", read_only=True)
    with ScriptedModel(calls(("look", {})), calls(("look", {})), says("ok")) as model:
        recorder = EventRecorder()
        execution = create_runtime(model, [look]).start("Go", context=past("unknown"), observer=recorder)
        seen: list[str] = []
        while len(seen) < 2:
            event = await recorder.wait_for(
                lambda event: event.type == "interrupt-requested" and event.interrupt.id not in seen
            )
            seen.append(event.interrupt.id)
            execution.respond(event.interrupt.id, False)
        await execution.result
    assert look.invocations == []


async def test_denied_beats_unverified() -> None:
    class Deny:
        async def decide(self, definition: object, invocation: object) -> ToolDecision:
            return ToolDecision("deny", "no")

    look = scripted_tool("look", "x", read_only=True)
    with ScriptedModel(calls(("look", {})), says("ok")) as model:
        result = await create_runtime(model, [look], policy=Deny()).start("Go", context=past("unknown")).result
    assert results(result.messages) == ["no"]


@pytest.mark.parametrize("broken", ["double call", "double result", "orphan result"])
async def test_a_history_that_breaks_the_contract_is_refused(broken: str) -> None:
    """R75."""
    messages = list(past("completed").messages)
    context = Context(
        messages=tuple(
            {"double call": [*messages, messages[0]], "double result": [*messages, messages[1]]}.get(
                broken, messages[1:]
            )
        )
    )
    with pytest.raises(AgentError) as caught:
        await create_runtime(ScriptedModel()).start("Go", context=context).result
    assert caught.value.code == "MODEL_PROTOCOL_ERROR"
