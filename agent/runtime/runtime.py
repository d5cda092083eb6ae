"""The factory of executions: one model, one set of tools, one set of rules (R53, R66, R67)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

from agent.runtime.exceptions import InvalidArgument
from agent.runtime.execution import AgentExecution, Observer, RunSpec
from agent.runtime.hooks import AgentHook, ModelInterceptor, OnHookError, ToolInterceptor
from agent.runtime.ids import message_id, trace_id, uuid7
from agent.runtime.limits import DEFAULT_LIMITS, Limits, PartialLimits
from agent.runtime.messages import AgentMessage, Context, TextBlock
from agent.runtime.model import Model
from agent.runtime.ports import Clock, MonotonicClock, ToolPolicy
from agent.runtime.registry import ToolRegistry
from agent.runtime.tools import Tool, ToolInvocation

logger = logging.getLogger("agent.runtime")

FaultPolicy: TypeAlias = Literal["fail", "report"]
OnLateEnd: TypeAlias = Callable[[ToolInvocation, bool], None]


class AgentRuntime:
    """Starts runs of one agent; keeps no "current run" (R53).

    `tool_call_errors` and `tool_exceptions` say whether a bad call and a tool that raises end the run (`fail`, the
    contract's own rule) or are told to the model (`report`). A `volatile_prompt` says that the instructions are other
    ones in each run (P24). `call_trace` is a hook that comes before all others
    (R118). `on_late_end(invocation, raised)` hears of tools that ended after their run had, to be audited. Times are in
    seconds.
    """

    def __init__(
        self,
        *,
        model: Model,
        tools: ToolRegistry,
        limits: Limits,
        clock: Clock | None = None,
        policy: ToolPolicy | None = None,
        call_trace: AgentHook | None = None,
        hooks: Sequence[AgentHook] = (),
        on_hook_error: OnHookError | None = None,
        model_interceptors: Sequence[ModelInterceptor] = (),
        tool_interceptors: Sequence[ToolInterceptor] = (),
        tool_call_errors: FaultPolicy = "fail",
        tool_exceptions: FaultPolicy = "fail",
        parallel_tool_execution: bool = False,
        max_concurrent_tools: int = 5,
        on_late_end: OnLateEnd | None = None,
        cancel_grace_period: float = 5.0,
        confirmation_timeout: float = 300.0,
        max_tokens: int | None = None,
        temperature: float | None = None,
        volatile_prompt: bool = False,
    ) -> None:
        if max_concurrent_tools < 1:
            raise InvalidArgument(f"max_concurrent_tools is at least 1, got {max_concurrent_tools!r}")
        if not isinstance(limits, Limits):
            raise InvalidArgument(f"all five limits must be given, got {limits!r}")
        self.model = model
        self.tools = tools
        self.limits = limits
        self.clock = clock or MonotonicClock()
        self.policy = policy
        self.hooks = tuple(hooks) if call_trace is None else (call_trace, *hooks)
        self.on_hook_error = on_hook_error
        self.model_interceptors = tuple(model_interceptors)
        self.tool_interceptors = tuple(tool_interceptors)
        self.tool_call_errors = tool_call_errors
        self.tool_exceptions = tool_exceptions
        self.parallel_tool_execution = parallel_tool_execution
        self.max_concurrent_tools = max_concurrent_tools
        self.on_late_end = on_late_end
        self.cancel_grace_period = cancel_grace_period
        self.confirmation_timeout = confirmation_timeout
        self.max_tokens = max_tokens
        self.temperature = temperature
        self.volatile_prompt = volatile_prompt

    def start(
        self,
        input: str | AgentMessage,
        *,
        context: Context | None = None,
        instructions: str = "",
        observer: Observer | None = None,
        conversation_id: str | None = None,
        agent: str = "",
        principal: Any = None,
        execution_id: str | None = None,
        trace: str | None = None,
    ) -> AgentExecution:
        """Start one run on the running loop; `input` is the user's message, `context` what was said before.

        `observer` is called on the loop with batches of events. `instructions` become the system message of each
        model call and are no part of the conversation.
        """
        if isinstance(input, str):
            input = AgentMessage(id=message_id(), role="user", blocks=(TextBlock(text=input),))
        if input.role != "user":
            raise InvalidArgument(f"a run starts from a user message, got role {input.role!r}")
        spec = RunSpec(
            execution_id=execution_id or str(uuid7()),
            trace_id=trace or trace_id(),
            conversation_id=conversation_id,
            agent=agent,
            principal=principal,
            instructions=instructions,
            context=context or Context(),
            input=input,
            observer=observer,
        )
        return AgentExecution(self, spec)

    def ended_late(self, invocation: ToolInvocation, raised: bool) -> None:
        """Hand the late end of a tool to whoever audits; without anybody it is logged."""
        if self.on_late_end is not None:
            self.on_late_end(invocation, raised)
        else:
            logger.warning("tool %s ended after run %s", invocation.name, invocation.context.execution_id)

    def report(self, invocation: ToolInvocation, error: BaseException) -> None:
        """Log a tool's exception that the model is told about without details."""
        logger.error("tool %s failed in run %s", invocation.name, invocation.context.execution_id, exc_info=error)


def create_runtime(
    model: Model, tools: Iterable[Tool] = (), limits: PartialLimits | None = None, **options: Any
) -> AgentRuntime:
    """Return a runtime with the factory's limits, of which some may be given (R66)."""
    chosen = DEFAULT_LIMITS.model_copy(update=limits.model_dump(exclude_none=True) if limits else {})
    return AgentRuntime(model=model, tools=ToolRegistry(tools), limits=chosen, **options)
