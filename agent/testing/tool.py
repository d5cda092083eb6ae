"""Tools that answer what the test wrote down, and a way to call any tool without an engine."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agent.runtime.cancellation import CancelSignal
from agent.runtime.ids import call_id, trace_id
from agent.runtime.tools import Tool, ToolAnnotations, ToolCallResult, ToolContext, ToolDefinition, ToolInvocation
from agent.runtime.values import freeze_object
from agent.testing.gate import Waitable

Answer: TypeAlias = str | ToolCallResult | Mapping[str, Any] | BaseException
ScriptedResult: TypeAlias = Answer | Callable[[ToolInvocation], Answer | Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class ScriptedTool(Tool):
    """A tool that remembers its calls."""

    invocations: list[ToolInvocation] = field(default_factory=list)

    @property
    def arguments(self) -> list[dict[str, Any]]:
        """The arguments of each call, in order."""
        return [dict(invocation.arguments) for invocation in self.invocations]


def scripted_tool(
    name: str,
    result: ScriptedResult = "",
    *,
    read_only: bool = False,
    require_confirmation: bool = False,
    gate: Waitable | None = None,
    input_schema: Mapping[str, Any] | None = None,
) -> ScriptedTool:
    """Return a tool that takes any arguments, waits at `gate` and answers `result`.

    A string is a success, a mapping or `ToolCallResult` is handed back as it is, an exception is raised; a function
    gets the invocation and returns one of these.
    """
    invocations: list[ToolInvocation] = []

    async def handle(invocation: ToolInvocation) -> ToolCallResult | Mapping[str, Any]:
        invocations.append(invocation)
        if gate is not None:
            await gate.wait()
        answer = result(invocation) if callable(result) else result
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, str):
            return ToolCallResult(tool_call_id=invocation.call_id, content=answer, is_error=False)
        return answer

    definition = ToolDefinition(
        name=name,
        description=f"The scripted tool {name}.",
        input_schema=input_schema or {"type": "object", "properties": {}},
        annotations=ToolAnnotations(read_only_hint=read_only, require_confirmation=require_confirmation),
    )
    return ScriptedTool(definition, handle, invocations=invocations)


async def call_tool(
    tool: Tool,
    arguments: Mapping[str, Any] | None = None,
    *,
    principal: Any = None,
    conversation_id: str | None = None,
    signal: CancelSignal | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> ToolCallResult:
    """Call a tool as the engine would and return its result; `progress` gets its progress lines."""
    call = call_id()
    context = ToolContext(
        execution_id="execution-test",
        call_id=call,
        trace_id=trace_id(),
        conversation_id=conversation_id,
        principal=principal,
        signal=signal or CancelSignal(),
        progress=progress,
        ended_late=lambda raised: None,
    )
    result = await tool.handler(ToolInvocation(call, tool.definition.name, freeze_object(arguments or {}), context))
    return result if isinstance(result, ToolCallResult) else ToolCallResult.from_wire(result)
