"""The engine: messages, events, limits, registry, hooks, loop and executions. Plain Python, no Django, no network.

The names below are loaded with their modules when they are first used, so that importing one part of the engine does
not load all of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.runtime.cancellation import CancelSignal
    from agent.runtime.events import Cancelled, Completed, Event, Interrupt, MaxTokens, Outcome, encode, to_wire
    from agent.runtime.exceptions import (
        AgentError,
        InvalidArgument,
        InvalidState,
        LimitExceeded,
        ModelFailed,
        ModelProtocolError,
        ToolAlreadyRegisteredError,
        ToolFailed,
    )
    from agent.runtime.execution import AgentExecution, Life, Observer, RunResult
    from agent.runtime.hooks import AgentHook, HookContext, HookEvent, HookFailure, ModelInterceptor, ToolInterceptor
    from agent.runtime.interrupts import Decision
    from agent.runtime.limits import DEFAULT_LIMITS, Limits, PartialLimits
    from agent.runtime.messages import (
        AgentMessage,
        Base64Source,
        Context,
        ImageBlock,
        ModelContext,
        ModelState,
        ReasoningBlock,
        TextBlock,
        ToolCallBlock,
        ToolResultBlock,
        UrlSource,
        Usage,
    )
    from agent.runtime.model import (
        BlockDelta,
        BlockStart,
        BlockStop,
        MessageStop,
        Model,
        ModelEvent,
        ModelRequest,
        StreamError,
    )
    from agent.runtime.ports import Clock, MonotonicClock, ToolDecision, ToolPolicy
    from agent.runtime.registry import Registration, ToolInspection, ToolProvider, ToolRegistry, ToolRegistrySnapshot
    from agent.runtime.runtime import AgentRuntime, create_runtime
    from agent.runtime.state import ExecutionState
    from agent.runtime.tools import (
        Tool,
        ToolAnnotations,
        ToolCallResult,
        ToolContext,
        ToolDefinition,
        ToolInvocation,
    )

__all__ = [
    "DEFAULT_LIMITS",
    "AgentError",
    "AgentExecution",
    "AgentHook",
    "AgentMessage",
    "AgentRuntime",
    "Base64Source",
    "BlockDelta",
    "BlockStart",
    "BlockStop",
    "CancelSignal",
    "Cancelled",
    "Clock",
    "Completed",
    "Context",
    "Decision",
    "Event",
    "ExecutionState",
    "HookContext",
    "HookEvent",
    "HookFailure",
    "ImageBlock",
    "Interrupt",
    "InvalidArgument",
    "InvalidState",
    "Life",
    "LimitExceeded",
    "Limits",
    "MaxTokens",
    "MessageStop",
    "Model",
    "ModelContext",
    "ModelEvent",
    "ModelFailed",
    "ModelInterceptor",
    "ModelProtocolError",
    "ModelRequest",
    "ModelState",
    "MonotonicClock",
    "Observer",
    "Outcome",
    "PartialLimits",
    "ReasoningBlock",
    "Registration",
    "RunResult",
    "StreamError",
    "TextBlock",
    "Tool",
    "ToolAlreadyRegisteredError",
    "ToolAnnotations",
    "ToolCallBlock",
    "ToolCallResult",
    "ToolContext",
    "ToolDecision",
    "ToolDefinition",
    "ToolFailed",
    "ToolInspection",
    "ToolInterceptor",
    "ToolInvocation",
    "ToolPolicy",
    "ToolProvider",
    "ToolRegistry",
    "ToolRegistrySnapshot",
    "ToolResultBlock",
    "UrlSource",
    "Usage",
    "create_runtime",
    "encode",
    "to_wire",
]

_MODULE_OF = {
    "AgentError": "exceptions",
    "AgentExecution": "execution",
    "AgentHook": "hooks",
    "AgentMessage": "messages",
    "AgentRuntime": "runtime",
    "Base64Source": "messages",
    "BlockDelta": "model",
    "BlockStart": "model",
    "BlockStop": "model",
    "CancelSignal": "cancellation",
    "Cancelled": "events",
    "Clock": "ports",
    "Completed": "events",
    "Context": "messages",
    "DEFAULT_LIMITS": "limits",
    "Decision": "interrupts",
    "Event": "events",
    "ExecutionState": "state",
    "HookContext": "hooks",
    "HookEvent": "hooks",
    "HookFailure": "hooks",
    "ImageBlock": "messages",
    "Interrupt": "events",
    "InvalidArgument": "exceptions",
    "InvalidState": "exceptions",
    "Life": "execution",
    "LimitExceeded": "exceptions",
    "Limits": "limits",
    "MaxTokens": "events",
    "MessageStop": "model",
    "Model": "model",
    "ModelContext": "messages",
    "ModelEvent": "model",
    "ModelFailed": "exceptions",
    "ModelInterceptor": "hooks",
    "ModelProtocolError": "exceptions",
    "ModelRequest": "model",
    "ModelState": "messages",
    "MonotonicClock": "ports",
    "Observer": "execution",
    "Outcome": "events",
    "PartialLimits": "limits",
    "ReasoningBlock": "messages",
    "Registration": "registry",
    "RunResult": "execution",
    "StreamError": "model",
    "TextBlock": "messages",
    "Tool": "tools",
    "ToolAlreadyRegisteredError": "exceptions",
    "ToolAnnotations": "tools",
    "ToolCallBlock": "messages",
    "ToolCallResult": "tools",
    "ToolContext": "tools",
    "ToolDecision": "ports",
    "ToolDefinition": "tools",
    "ToolFailed": "exceptions",
    "ToolInspection": "registry",
    "ToolInterceptor": "hooks",
    "ToolInvocation": "tools",
    "ToolPolicy": "ports",
    "ToolProvider": "registry",
    "ToolRegistry": "registry",
    "ToolRegistrySnapshot": "registry",
    "ToolResultBlock": "messages",
    "UrlSource": "messages",
    "Usage": "messages",
    "create_runtime": "runtime",
    "encode": "events",
    "to_wire": "events",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
