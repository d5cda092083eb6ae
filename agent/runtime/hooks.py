"""Hooks, which see what happens, and interceptors, which wrap it (R110-R118, R198).

A hook is called synchronously on the loop, gets lifecycle events with frozen payloads (never deltas or ModelState), and
must not wait for the network. A hook that raises on an ordinary event fails the run; on the terminal event its failure
goes to `on_hook_error` and changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from agent.runtime import events as ev
from agent.runtime.cancellation import CancelSignal
from agent.runtime.exceptions import InvalidState
from agent.runtime.model import Model, ModelEvent, ModelRequest
from agent.runtime.tools import ToolCallResult, ToolInvocation
from agent.runtime.values import FrozenDict, freeze_object

logger = logging.getLogger("agent.hooks")

HookEventType: TypeAlias = Literal[
    "execution-started",
    "model-call-started",
    "model-call-completed",
    "tool-call-started",
    "tool-call-completed",
    "interrupt-requested",
    "interrupt-resolved",
    "execution-completed",
    "execution-failed",
]

HOOK_PAYLOADS: Mapping[str, tuple[str, ...]] = {
    "execution-started": ("initialMessageCount", "toolRevision"),
    "model-call-started": ("callIndex", "responseMessageId"),
    "model-call-completed": (
        "callIndex",
        "responseMessageId",
        "stopReason",
        "usage",
        "firstTokenLatencyMs",
        "outputDurationMs",
    ),
    "tool-call-started": ("callId", "toolName", "arguments"),
    "tool-call-completed": ("callId", "toolName", "isError"),
    "interrupt-requested": ("interrupt",),
    "interrupt-resolved": ("interruptId", "value"),
    "execution-completed": ("outcome", "addedMessageCount"),
    "execution-failed": ("errorCode", "errorMessage"),
}


@dataclass(frozen=True, slots=True)
class HookEvent:
    """A lifecycle event with exactly the payload of R111, wire names."""

    type: str
    payload: FrozenDict


@dataclass(frozen=True, slots=True)
class HookContext:
    """Where it happens (R112)."""

    trace_id: str
    conversation_id: str | None


class AgentHook(Protocol):
    """Sees lifecycle events of a run (R110)."""

    def on_event(self, event: HookEvent, context: HookContext) -> None: ...


@dataclass(frozen=True, slots=True)
class HookFailure:
    """What `on_hook_error` gets (R115)."""

    hook_index: int
    event: HookEvent
    context: HookContext
    cause: Exception


OnHookError: TypeAlias = Callable[[HookFailure], None]


class HookRunner:
    """The hooks of one execution, called in order of registration."""

    __slots__ = ("_context", "_hooks", "_on_error")

    def __init__(self, hooks: Sequence[AgentHook], context: HookContext, on_error: OnHookError | None) -> None:
        self._hooks = tuple(hooks)
        self._context = context
        self._on_error = on_error

    def ordinary(self, event: ev.Event, still_open: Callable[[], bool]) -> None:
        """Tell the hooks; what one raises goes up, and none is told once the run has ended (R113, R115)."""
        if not self._hooks or (told := hook_event(event)) is None:
            return
        for hook in self._hooks:
            hook.on_event(told, self._context)
            if not still_open():
                return

    def terminal(self, event: ev.Event) -> None:
        """Tell every hook of the end; a failure changes nothing (R114)."""
        if not self._hooks or (told := hook_event(event)) is None:
            return
        for index, hook in enumerate(self._hooks):
            try:
                hook.on_event(told, self._context)
            except Exception as error:
                self._report(HookFailure(index, told, self._context, error))

    def _report(self, failure: HookFailure) -> None:
        if self._on_error is None:
            logger.error("hook %d failed at the end of a run", failure.hook_index, exc_info=failure.cause)
            return
        try:
            self._on_error(failure)
        except Exception:
            logger.exception("on_hook_error failed")


def hook_event(event: ev.Event) -> HookEvent | None:
    """Return what hooks may see of an event, None for what is not theirs."""
    names = HOOK_PAYLOADS.get(event.type)
    if names is None:
        return None
    wire = ev.to_wire(event)
    return HookEvent(event.type, freeze_object({name: wire[name] for name in names}))


NextModel: TypeAlias = Callable[[ModelRequest], AsyncGenerator[Sequence[ModelEvent], Any]]
NextTool: TypeAlias = Callable[[ToolInvocation], Awaitable[ToolCallResult | Mapping[str, Any]]]


class ModelInterceptor(Protocol):
    """Wraps one model call, an async stream (R116); `next` may be called once (R117)."""

    def intercept(
        self, request: ModelRequest, context: HookContext, signal: CancelSignal, next: NextModel
    ) -> AsyncGenerator[Sequence[ModelEvent], Any]: ...


class ToolInterceptor(Protocol):
    """Wraps one tool call (R116); `next` may be called once (R117)."""

    def intercept(
        self, invocation: ToolInvocation, next: NextTool
    ) -> Awaitable[ToolCallResult | Mapping[str, Any]]: ...


A = TypeVar("A")
R = TypeVar("R")


def once(function: Callable[[A], R]) -> Callable[[A], R]:
    """Return `function` so that a second call raises `InvalidState`: no double billing, no double effect (R117)."""
    called = False

    def guarded(argument: A) -> R:
        nonlocal called
        if called:
            raise InvalidState("`next` was called a second time")
        called = True
        return function(argument)

    return guarded


def model_stream(
    model: Model,
    interceptors: Sequence[ModelInterceptor],
    request: ModelRequest,
    context: HookContext,
    signal: CancelSignal,
) -> AsyncGenerator[Sequence[ModelEvent], Any]:
    """Open one model call through all interceptors, the first outermost (R118)."""

    def layer(depth: int) -> NextModel:
        if depth == len(interceptors):
            return lambda wanted: model.stream(wanted, signal)
        return lambda wanted: interceptors[depth].intercept(wanted, context, signal, once(layer(depth + 1)))

    return layer(0)(request)


async def tool_call(
    invoke: NextTool, interceptors: Sequence[ToolInterceptor], invocation: ToolInvocation
) -> ToolCallResult | Mapping[str, Any]:
    """Make one tool call through all interceptors, the first outermost (R118)."""

    def layer(depth: int) -> NextTool:
        if depth == len(interceptors):
            return invoke
        return lambda wanted: interceptors[depth].intercept(wanted, once(layer(depth + 1)))

    return await layer(0)(invocation)
