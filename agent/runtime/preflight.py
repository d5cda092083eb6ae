"""What is checked for a whole batch of calls before any of its tools runs (R52, R71, R74-R76)."""

from __future__ import annotations

from collections.abc import Collection

from agent.runtime.assembly import AssembledCall
from agent.runtime.exceptions import LimitExceeded, ModelProtocolError
from agent.runtime.limits import Limits
from agent.runtime.messages import StopReason
from agent.runtime.registry import ToolRegistrySnapshot


def check_stop(stop_reason: StopReason, calls: int, blocks: int) -> None:
    """Check stop reason against number of calls (R52); raises `ModelProtocolError`."""
    if stop_reason == "tool-use" and not calls:
        raise ModelProtocolError("the model stopped for tool use without a call")
    if stop_reason != "tool-use" and calls:
        raise ModelProtocolError(f"the model stopped with {stop_reason!r} beside {calls} tool calls")
    if not blocks and stop_reason != "max-tokens":
        raise ModelProtocolError("the model answered nothing")


def check_budget(limits: Limits, *, model_calls: int, accepted: int, batch: int) -> None:
    """Check that the batch fits and that a model call is left to use its results (R71, R76); raises `LimitExceeded`."""
    if model_calls >= limits.max_model_calls:
        raise LimitExceeded(
            f"the model asked for tools in the last of {limits.max_model_calls} model calls",
            code="AGENT_MAX_MODEL_CALLS",
        )
    if accepted + batch > limits.max_tool_calls:
        raise LimitExceeded(
            f"more than {limits.max_tool_calls} tool calls in one execution", code="AGENT_MAX_TOOL_CALLS"
        )


def find_problem(call: AssembledCall, snapshot: ToolRegistrySnapshot, issued: Collection[str]) -> str | None:
    """Return what is wrong with one call, None if it may run; `issued` are the ids seen before it (R74, R75)."""
    if not call.call_id.strip():
        return "the call has no id"
    if call.call_id in issued:
        return f"the call id {call.call_id!r} was used before"
    if snapshot.get(call.name) is None:
        available = ", ".join(tool.name for tool in snapshot.tools) or "none"
        return f"there is no tool named {call.name!r}; available: {available}"
    return call.problem
