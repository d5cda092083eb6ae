"""Scripted tools, and calling a tool without an engine."""

from __future__ import annotations

import asyncio

import pytest

from agent.runtime import ToolCallResult, ToolFailed, ToolInvocation
from agent.runtime.runtime import create_runtime
from agent.testing import EventRecorder, Gate, ScriptedModel, call_tool, calls, says, scripted_tool
from agent.tools import ToolContext, tool


async def test_a_scripted_tool_answers_a_string_a_mapping_or_what_its_function_returns() -> None:
    async def echo(invocation: ToolInvocation) -> str:
        return f"{invocation.arguments['text']}!"

    assert (await call_tool(scripted_tool("plain", "hello"))).content == "hello"
    wire = {"toolCallId": "call-1", "content": "no", "isError": True}
    assert await call_tool(scripted_tool("wire", wire)) == ToolCallResult.from_wire(wire)
    echoing = scripted_tool("echo", echo)
    assert (await call_tool(echoing, {"text": "ho"})).content == "ho!"
    assert echoing.arguments == [{"text": "ho"}]


async def test_a_scripted_tool_raises_the_exception_it_was_given() -> None:
    with pytest.raises(LookupError, match="gone"):
        await call_tool(scripted_tool("broken", LookupError("gone")))
    with ScriptedModel(calls(("broken", {}))) as model, pytest.raises(ToolFailed):
        await create_runtime(model, [scripted_tool("broken", LookupError("gone"))]).start("Go").result


async def test_a_scripted_tool_waits_at_its_gate() -> None:
    gate, recorder = Gate(), EventRecorder()
    slow = scripted_tool("slow", "at last", gate=gate)
    with ScriptedModel(calls(("slow", {})), says("Good.")) as model:
        execution = create_runtime(model, [slow]).start("Go", observer=recorder)
        await gate.reached()
        assert len(slow.invocations) == 1
        assert "tool-call-completed" not in recorder.types()
        gate.open()
        await execution.result
    assert recorder.messages()[2].blocks[0].model_dump()["content"] == ({"type": "text", "text": "at last"},)


def test_the_annotations_of_a_scripted_tool_decide_whether_a_person_is_asked() -> None:
    assert not scripted_tool("free").definition.needs_confirmation
    assert scripted_tool("careful", require_confirmation=True).definition.needs_confirmation
    assert scripted_tool("reader", read_only=True).definition.annotations.read_only_hint


async def test_a_decorated_tool_can_be_called_with_principal_progress_and_signal() -> None:
    @tool
    async def report(context: ToolContext) -> str:
        """Report."""
        context.progress("half way")
        assert not context.signal.cancelled
        return f"{context.principal} in {context.conversation_id}"

    said: list[str] = []
    result = await call_tool(report, principal="Ada", conversation_id="c1", progress=said.append)
    assert (result.content, said) == ("Ada in c1", ["half way"])


async def test_progress_from_a_thread_reaches_the_recorder_in_order() -> None:
    @tool
    def count(context: ToolContext) -> str:
        """Count."""
        for number in range(3):
            context.progress(str(number))
        return "counted"

    recorder = EventRecorder()
    with ScriptedModel(calls(("local.count", {})), says("Done.")) as model:
        await create_runtime(model, [count]).start("Go", observer=recorder).result
    progress = [event for event in recorder.events if event.type == "tool-progress"]
    assert [getattr(event, "text", None) for event in progress] == ["0", "1", "2"]
    assert asyncio.all_tasks() == {asyncio.current_task()}
