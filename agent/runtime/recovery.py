"""What remains of a run that did not complete: valid to replay, and honest about what happened (R63, E5).

Every call gets exactly one result. A call that never started is `not-executed`; one that started and whose end is not
known is `unknown`; one whose result was too large is `result-omitted`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from agent.runtime.ids import message_id
from agent.runtime.messages import AgentMessage, ToolExecution, ToolResultBlock, tool_result

CallState: TypeAlias = Literal["started", "omitted"]

_WORDS: Mapping[ToolExecution, str] = {
    "not-executed": "The run ended before this tool was started. It was not executed.",
    "unknown": "The run ended while this tool was running. It is not known whether it took effect.",
    "result-omitted": "The tool ran to its end, but its result was too large to be kept.",
}


def close_open_calls(
    messages: Sequence[AgentMessage],
    states: Mapping[str, CallState],
    results: Mapping[str, ToolResultBlock] | None = None,
) -> tuple[AgentMessage, ...]:
    """Return the `tool` messages that answer each call of `messages` that has no result yet.

    `states` says of the calls that were dispatched how far they came; `results` are those that have ended and whose
    turn to be published had not come.
    """
    answered = {block.call_id for message in messages for block in message.blocks if isinstance(block, ToolResultBlock)}
    repairs: list[AgentMessage] = []
    for message in messages:
        for call in message.tool_calls:
            if call.call_id in answered:
                continue
            if results and (real := results.get(call.call_id)):
                repairs.append(AgentMessage(id=message_id(), role="tool", blocks=(real,)))
                continue
            execution: ToolExecution = "not-executed"
            if state := states.get(call.call_id):
                execution = "unknown" if state == "started" else "result-omitted"
            block = tool_result(call, _WORDS[execution], status="error", execution=execution)
            repairs.append(AgentMessage(id=message_id(), role="tool", blocks=(block,)))
    return tuple(repairs)
