"""Calling a tool as the engine does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent.runtime.cancellation import CancelSignal
from agent.runtime.tools import Tool, ToolCallResult, ToolContext, ToolInvocation
from agent.runtime.values import freeze_object


def context(progress: Callable[[str], None] = lambda text: None) -> ToolContext:
    return ToolContext(
        execution_id="execution-1",
        call_id="call-1",
        trace_id="trace-1",
        conversation_id=None,
        principal="Ada",
        signal=CancelSignal(),
        progress=progress,
    )


async def invoke(
    tool: Tool, arguments: dict[str, Any] | None = None, progress: Callable[[str], None] = lambda text: None
) -> ToolCallResult:
    invocation = ToolInvocation("call-1", tool.definition.name, freeze_object(arguments or {}), context(progress))
    result = await tool.handler(invocation)
    assert isinstance(result, ToolCallResult)
    return result
