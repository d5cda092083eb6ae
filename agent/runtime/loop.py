"""The agent loop: model call, preflight, tools, again (R1, R52, R71-R85)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from agent.runtime import events as ev
from agent.runtime.assembly import AssembledBlock, AssembledCall, MessageAssembler
from agent.runtime.exceptions import AgentError, LimitExceeded, ModelProtocolError, ToolFailed
from agent.runtime.hooks import model_stream, tool_call
from agent.runtime.ids import interrupt_id, message_id
from agent.runtime.interrupts import Decision
from agent.runtime.messages import (
    AgentMessage,
    Block,
    ModelContext,
    TextBlock,
    ToolCallBlock,
    ToolExecution,
    Usage,
    tool_result,
)
from agent.runtime.model import ModelRequest
from agent.runtime.preflight import check_budget, check_history, check_stop, find_problem
from agent.runtime.tools import ToolCallResult, ToolContext, ToolDefinition, ToolInvocation
from agent.runtime.values import FrozenDict

if TYPE_CHECKING:
    from agent.runtime.execution import AgentExecution


async def run_loop(run: AgentExecution) -> ev.Outcome:
    """Walk through model calls and tools until the model ends its turn; returns the outcome."""
    spec, limits = run.spec, run.runtime.limits
    run.publish(
        ev.ExecutionStarted(spec.conversation_id, spec.agent, len(spec.context.messages), run.snapshot.revision)
    )
    issued = check_history((*spec.context.messages, spec.input))
    run.add_message(spec.input)
    accepted = 0
    for call_index in range(1, limits.max_model_calls + 1):
        run.check()
        answer = await call_model(run, call_index)
        stop = answer.stop
        assert stop is not None
        blocks = answer.blocks()
        calls = [block for block in blocks if isinstance(block, AssembledCall)]
        check_stop(stop.stop_reason, len(calls), len(blocks))
        problems: dict[int, str] = {}
        if calls:
            check_budget(limits, model_calls=call_index, accepted=accepted, batch=len(calls))
            problems = preflight(run, calls, issued)
            accepted += len(calls)
        message = stable_message(run, call_index, answer, blocks, problems)
        if not calls:
            completed = ev.Completed(stop_reason=stop.stop_reason)
            return ev.MaxTokens() if stop.stop_reason == "max-tokens" else completed
        assert message is not None
        if problems:
            for index, call in enumerate(message.tool_calls):
                why = problems.get(index, "not executed, because another call of the same answer was not valid")
                add_result(run, call, why, failed=True, execution="not-executed")
            continue
        for call in message.tool_calls:
            await run_tool(run, call)
    raise LimitExceeded(f"more than {limits.max_model_calls} model calls", code="AGENT_MAX_MODEL_CALLS")


class Answer(MessageAssembler):
    """A model stream with its times; milliseconds are of the execution's clock."""

    __slots__ = ("first_token", "message_id", "started", "stopped")

    def __init__(self, message_id: str, max_characters: int, started: float) -> None:
        super().__init__(max_characters)
        self.message_id = message_id
        self.started = started
        self.first_token: float | None = None
        self.stopped = started


async def call_model(run: AgentExecution, call_index: int) -> Answer:
    """Make one model call and publish its blocks as they come; raises what the stream failed with."""
    spec, runtime = run.spec, run.runtime
    answer = Answer(message_id(), runtime.limits.max_model_output_characters, run.now())
    messages = (*spec.context.messages, *run.added)
    if spec.instructions.strip():
        system = AgentMessage(id=f"system-{run.id}", role="system", blocks=(TextBlock(text=spec.instructions),))
        messages = (system, *messages)
    request = ModelRequest(
        response_message_id=answer.message_id,
        messages=messages,
        tools=run.snapshot.tools,
        model_state=run.model_context.model_state,
        max_tokens=runtime.max_tokens,
        temperature=runtime.temperature,
    )
    run.publish(ev.StatusChanged("streaming"))
    run.publish(ev.ModelCallStarted(call_index, answer.message_id))
    stream = model_stream(runtime.model, runtime.model_interceptors, request, run.hook_context, run.signal)
    async with aclosing(stream):
        async for batch in stream:
            shown = answer.feed(batch)
            if answer.produced and answer.first_token is None:
                answer.first_token = run.now()
            if shown:
                run.publish_batch(shown)
            elif not run.open:
                run.check()
            if answer.ended:
                break
    answer.close()
    run.check()
    answer.stopped = run.now()
    if answer.failure is not None:
        keep_shown_text(run, answer)
        raise answer.failure
    assert answer.stop is not None
    if answer.stop.usage is not None:
        run.usage = add_usage(run.usage, answer.stop.usage)
    if not answer.produced and answer.stop.stop_reason != "max-tokens":
        raise ModelProtocolError("the model answered nothing")
    return answer


def keep_shown_text(run: AgentExecution, answer: Answer) -> None:
    """Keep the text of a refused or filtered answer: it was shown, and it must be in `recovered`."""
    error = answer.error
    if error is not None and error.code in ("MODEL_REFUSED", "MODEL_CONTENT_FILTERED"):
        text = answer.visible_text() + error.refusal
        if text.strip():
            run.add_message(AgentMessage(id=answer.message_id, role="assistant", blocks=(TextBlock(text=text),)))


def preflight(run: AgentExecution, calls: list[AssembledCall], issued: set[str]) -> dict[int, str]:
    """Check the whole batch before any of it runs (R74); returns the problems by position under the policy `report`."""
    problems: dict[int, str] = {}
    for index, call in enumerate(calls):
        problem = find_problem(call, run.snapshot, issued)
        if problem is None:
            issued.add(call.call_id)
            continue
        if run.runtime.tool_call_errors == "fail" or not call.call_id.strip() or call.call_id in issued:
            raise ModelProtocolError(problem)
        issued.add(call.call_id)
        problems[index] = problem
    return problems


def stable_message(
    run: AgentExecution, call_index: int, answer: Answer, blocks: list[AssembledBlock], problems: Mapping[int, str]
) -> AgentMessage | None:
    """Publish the end of the model call and its stable message (R77); None for an answer without blocks."""
    stop = answer.stop
    assert stop is not None
    first = None if answer.first_token is None else round((answer.first_token - answer.started) * 1000)
    took = None if answer.first_token is None else round((answer.stopped - answer.first_token) * 1000)
    run.publish(ev.ModelCallCompleted(call_index, answer.message_id, stop.stop_reason, stop.usage, first, took))
    context = ModelContext(model_state=stop.model_state)
    if not blocks:
        run.model_context = context
        return None
    stable: list[Block] = [
        ToolCallBlock(call_id=block.call_id, name=block.name or "unnamed", input=block.arguments or FrozenDict())
        if isinstance(block, AssembledCall)
        else block
        for block in blocks
    ]
    message = AgentMessage(id=answer.message_id, role="assistant", blocks=tuple(stable))
    run.add_message(message, context)
    return message


async def run_tool(run: AgentExecution, call: ToolCallBlock) -> None:
    """Run one call: rights, confirmation, rights again, dispatch, result (R78-R85)."""
    run.check()
    definition = run.snapshot.get(call.name)
    assert definition is not None
    context = ToolContext(
        execution_id=run.id,
        call_id=call.call_id,
        trace_id=run.spec.trace_id,
        conversation_id=run.spec.conversation_id,
        principal=run.spec.principal,
        signal=run.signal,
        progress=lambda text: run.progress(call.call_id, text),
    )
    invocation = ToolInvocation(call.call_id, call.name, call.input, context)
    verdict = await judge(run, definition, invocation)
    if verdict is not None and verdict.verdict == "deny":
        return add_result(run, call, verdict.reason or "this tool may not be used", failed=True)
    if definition.needs_confirmation or (verdict is not None and verdict.verdict == "confirm"):
        decision = await ask(run, definition, invocation, verdict.reason if verdict else None)
        if not decision.allows:
            why = "Nobody answered in time." if decision.kind == "timeout" else "The user rejected this call."
            return add_result(run, call, " ".join(filter(None, (why, decision.reason))), failed=True)
        if decision.arguments is not None:
            invocation = ToolInvocation(call.call_id, call.name, decision.arguments, context)
        verdict = await judge(run, definition, invocation)
        if verdict is not None and verdict.verdict == "deny":
            return add_result(run, call, verdict.reason or "this tool may not be used any more", failed=True)
    run.check()
    run.publish(ev.StatusChanged("calling-tool"))
    run.publish(ev.ToolCallStarted(call.call_id, call.name, invocation.arguments))
    run.check()
    run.calls[call.call_id] = "started"
    result = await dispatch(run, invocation)
    run.check()
    if len(result.content) > run.runtime.limits.max_tool_result_characters:
        run.calls[call.call_id] = "omitted"
        raise LimitExceeded(
            f"{call.name} returned {len(result.content):,} characters", code="TOOL_RESULT_LIMIT_EXCEEDED"
        )
    run.publish(ev.ToolCallCompleted(call.call_id, call.name, result.is_error))
    add_result(run, call, result.content, failed=result.is_error, execution="completed")
    return None


async def judge(run: AgentExecution, definition: ToolDefinition, invocation: ToolInvocation) -> Any:
    """Ask the host's policy, if there is one."""
    policy = run.runtime.policy
    if policy is None:
        return None
    verdict = await policy.decide(definition, invocation)
    run.check()
    return verdict


async def ask(
    run: AgentExecution, definition: ToolDefinition, invocation: ToolInvocation, reason: str | None
) -> Decision:
    """Ask a person and wait for the answer, at most `confirmation_timeout` seconds (R86-R91)."""
    interrupt = ev.Interrupt(id=interrupt_id(), tool=definition, arguments=invocation.arguments, reason=reason)
    answer = run.slot.open(interrupt)
    run.publish(ev.StatusChanged("waiting-confirmation"))
    run.publish(ev.InterruptRequested(interrupt, invocation.call_id))

    def expire() -> None:
        if not answer.done():
            run.slot.answer(interrupt.id, Decision("timeout"))

    timer = run.runtime.clock.call_later(run.runtime.confirmation_timeout, expire)
    try:
        decision = await answer
    finally:
        timer.cancel()
    run.check()
    run.publish(ev.InterruptResolved(interrupt.id, decision.allows))
    return decision


async def dispatch(run: AgentExecution, invocation: ToolInvocation) -> ToolCallResult:
    """Call the tool through the interceptors; returns its checked result, raises what ends the run (R81-R84)."""
    try:
        raw = await tool_call(run.snapshot.invoke, run.runtime.tool_interceptors, invocation)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if not run.open or (task is not None and task.cancelling()):
            raise
        return raised(run, invocation, error)
    except Exception as error:
        if isinstance(error, AgentError) and not isinstance(error, ToolFailed):
            raise
        return raised(run, invocation, error)
    return checked(raw, invocation.call_id)


def raised(run: AgentExecution, invocation: ToolInvocation, error: BaseException) -> ToolCallResult:
    """Apply the policy for tools that raise: end the run (R81), or tell the model without details."""
    if run.runtime.tool_exceptions == "fail":
        if isinstance(error, ToolFailed):
            raise error
        raise ToolFailed(f"{invocation.name} failed: {type(error).__name__}") from error
    run.runtime.report(invocation, error)
    return ToolCallResult(
        tool_call_id=invocation.call_id, content=f"{invocation.name} failed with an internal error.", is_error=True
    )


def checked(raw: object, call_id: str) -> ToolCallResult:
    """Return a tool's answer as a frozen result; only the declared type or a plain mapping will do (R82, R83)."""
    if type(raw) is ToolCallResult:
        result = raw
    elif type(raw) is dict:
        try:
            result = ToolCallResult.from_wire(raw)
        except ValidationError as error:
            raise ModelProtocolError(f"a tool result breaks the contract: {error.error_count()} faults") from error
    else:
        raise ModelProtocolError(f"a tool returned {type(raw).__name__}, no tool result")
    if result.tool_call_id != call_id:
        raise ModelProtocolError(f"a tool answered call {result.tool_call_id!r} instead of {call_id!r}")
    return result


def add_result(
    run: AgentExecution,
    call: ToolCallBlock,
    text: str,
    *,
    failed: bool,
    execution: ToolExecution = "not-executed",
) -> None:
    """Add the `tool` message that answers `call`."""
    block = tool_result(call, text, status="error" if failed else "success", execution=execution)
    run.add_message(AgentMessage(id=message_id(), role="tool", blocks=(block,)))


def add_usage(total: Usage, more: Usage) -> Usage:
    return Usage(
        input_tokens=total.input_tokens + more.input_tokens,
        output_tokens=total.output_tokens + more.output_tokens,
        total_tokens=total.total_tokens + more.total_tokens,
    )
