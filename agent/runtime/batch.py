"""The tool calls of one answer, which have passed preflight (R78-R91, R199).

They run one after another in model order. With `parallel_tool_execution` those that nobody has to confirm run first, at
most `max_concurrent_tools` at a time and never while an interrupt is pending; the others follow, one after another.
Whatever the order in which they end, results are published in the order of the calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import ValidationError

from agent.runtime import events as ev
from agent.runtime.exceptions import AgentError, LimitExceeded, ModelProtocolError, ToolFailed
from agent.runtime.hooks import tool_call
from agent.runtime.ids import interrupt_id
from agent.runtime.interrupts import Decision
from agent.runtime.messages import ResultStatus, ToolCallBlock, ToolExecution, tool_result
from agent.runtime.ports import ToolDecision
from agent.runtime.tools import ToolCallResult, ToolContext, ToolDefinition, ToolInvocation

if TYPE_CHECKING:
    from agent.runtime.execution import AgentExecution

UNVERIFIED = "unverified-previous-invocation"
ALLOW = ToolDecision("allow")


async def run_batch(run: AgentExecution, calls: Sequence[ToolCallBlock]) -> None:
    """Run the calls of one answer; raises what ends the run."""
    run.open_batch(calls)
    if run.runtime.parallel_tool_execution and len(calls) > 1:
        free = [call for call in calls if await Call(run, call).judge() == ALLOW]
        if len(free) > 1:
            await run_together(run, free)
    for call in calls:
        if not run.has_result(call):
            await Call(run, call).run()


def refuse_batch(run: AgentExecution, calls: Sequence[ToolCallBlock], problems: Mapping[int, str]) -> None:
    """Answer each call of a batch of which at least one is not valid; none of them runs."""
    run.open_batch(calls)
    for index, call in enumerate(calls):
        why = problems.get(index, "not executed, because another call of the same answer was not valid")
        Call(run, call).answer(why, failed=True)


async def run_together(run: AgentExecution, calls: Sequence[ToolCallBlock]) -> None:
    """Run calls at the same time; the first that fails ends the run at once, whatever the others do.

    A call that has come to need a confirmation meanwhile is left without a result.
    """
    slots = asyncio.Semaphore(run.runtime.max_concurrent_tools)

    async def one(block: ToolCallBlock) -> None:
        async with slots:
            with run.failing():
                call = Call(run, block)
                if call.problem() is None and await call.judge() == ALLOW:
                    await call.dispatch()

    async with asyncio.TaskGroup() as group:
        for block in calls:
            group.create_task(one(block), name=f"tool {block.name} of run {run.id}")
    run.check()


class Call:
    """One call on its way: rights, confirmation, rights again, dispatch, result."""

    def __init__(self, run: AgentExecution, block: ToolCallBlock) -> None:
        definition = run.snapshot.get(block.name)
        self.execution = run
        self.block = block
        self._definition = definition
        self.invocation: ToolInvocation
        self.context = ToolContext(
            execution_id=run.id,
            call_id=block.call_id,
            trace_id=run.spec.trace_id,
            conversation_id=run.spec.conversation_id,
            principal=run.spec.principal,
            signal=run.signal,
            progress=lambda text: run.progress(block.call_id, text),
            ended_late=lambda raised: run.late(self.invocation, raised),
        )
        self.invocation = ToolInvocation(block.call_id, block.name, block.input, self.context)

    @property
    def definition(self) -> ToolDefinition:
        assert self._definition is not None, "preflight knows the tool"
        return self._definition

    async def judge(self) -> ToolDecision:
        """Return what applies now: the strictest of the host's policy, the tool and its past (R7, R87, E6)."""
        run = self.execution
        run.check()
        verdict = ALLOW
        if run.runtime.policy is not None:
            verdict = await run.runtime.policy.decide(self.definition, self.invocation)
            run.check()
        if verdict.verdict == "deny":
            return verdict
        if self.block.name in run.history.unverified:
            return ToolDecision("confirm", UNVERIFIED)
        if self.definition.needs_confirmation and verdict.verdict == "allow":
            return ToolDecision("confirm")
        return ALLOW if verdict.verdict == "allow" else verdict

    async def run(self) -> None:
        """Take the call to its result; raises what ends the run."""
        if problem := self.problem():
            self.answer(problem, failed=True)
            return
        verdict = await self.judge()
        if verdict.verdict == "confirm":
            decision = await self.ask(verdict.reason)
            if not decision.allows:
                why = "Nobody answered in time." if decision.kind == "timeout" else "The user rejected this call."
                self.answer(" ".join(filter(None, (why, decision.reason))), failed=True)
                return
            if decision.arguments is not None:
                block = self.block
                self.invocation = ToolInvocation(block.call_id, block.name, decision.arguments, self.context)
                if problem := self.problem():
                    self.answer(f"{self.changed()}{problem}", failed=True)
                    return
            verdict = await self.judge()
        if verdict.verdict == "deny":
            self.answer(verdict.reason or "this tool may not be used", failed=True)
        else:
            await self.dispatch()

    def problem(self) -> str | None:
        """Return what is wrong with the arguments, before anybody is asked or anything runs."""
        return self.execution.snapshot.check(self.block.name, self.invocation.arguments)

    def changed(self) -> str:
        """Return a line that tells the model which arguments a person put in the place of its own; else nothing."""
        if self.invocation.arguments == self.block.input:
            return ""
        return f"The user changed the arguments to {orjson.dumps(self.invocation.arguments).decode()}.\n\n"

    async def ask(self, reason: str | None) -> Decision:
        """Ask a person and wait for the answer, at most `confirmation_timeout` seconds (R86-R91)."""
        run, arguments = self.execution, self.invocation.arguments
        interrupt = ev.Interrupt(id=interrupt_id(), tool=self.definition, arguments=arguments, reason=reason)
        answer = run.slot.open(interrupt)
        run.publish(ev.StatusChanged("waiting-confirmation"))
        run.publish(ev.InterruptRequested(interrupt, self.block.call_id))

        def expire() -> None:
            if not answer.done():
                run.slot.answer(interrupt.id, Decision("timeout"))

        timer = run.runtime.clock.call_later(run.runtime.confirmation_timeout, expire)
        try:
            decision = await answer
        finally:
            timer.cancel()
        run.check()
        run.publish(ev.InterruptResolved(interrupt.id, decision.allows, decision.kind, decision.arguments))
        return decision

    async def dispatch(self) -> None:
        """Run the tool and publish its result, unless the run has ended meanwhile (R72, R84)."""
        run, block = self.execution, self.block
        run.check()
        run.publish(ev.StatusChanged("calling-tool"))
        run.publish(ev.ToolCallStarted(block.call_id, block.name, self.invocation.arguments))
        run.check()
        result = await self.invoke()
        run.check()
        limit = run.runtime.limits.max_tool_result_characters
        if len(result.content) > limit:
            run.calls[block.call_id] = "omitted"
            raise LimitExceeded(
                f"{block.name} returned {len(result.content):,} characters, more than {limit:,}",
                code="TOOL_RESULT_LIMIT_EXCEEDED",
            )
        run.publish(ev.ToolCallCompleted(block.call_id, block.name, result.is_error))
        ran: ToolExecution = "completed" if block.call_id in run.calls else "not-executed"
        self.answer(self.changed() + result.content, failed=result.is_error, execution=ran)

    async def invoke(self) -> ToolCallResult:
        """Call the tool through the interceptors; returns its checked result, raises what ends the run (R81-R84)."""
        run = self.execution
        try:
            raw = await tool_call(self.enter, run.runtime.tool_interceptors, self.invocation)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if not run.open or (task is not None and task.cancelling()):
                raise
            return self.raised(error)  # the tool was cancelled from inside, which is its own failure
        except Exception as error:
            if not run.open:
                run.late(self.invocation, raised=True)
            if isinstance(error, AgentError) and not isinstance(error, ToolFailed):
                raise
            return self.raised(error)
        if not run.open:
            run.late(self.invocation, raised=False)
        return checked(raw, self.block.call_id)

    async def enter(self, invocation: ToolInvocation) -> ToolCallResult | Mapping[str, Any]:
        """Enter the tool itself, past all interceptors: from here on it may have had an effect."""
        run = self.execution
        run.check()
        run.calls[self.block.call_id] = "started"
        return await run.snapshot.invoke(invocation)

    def raised(self, error: BaseException) -> ToolCallResult:
        """Apply the policy for tools that raise: end the run (R81), or tell the model without details."""
        run, name = self.execution, self.block.name
        if run.runtime.tool_exceptions == "fail":
            if isinstance(error, ToolFailed):
                raise error
            raise ToolFailed(f"{name} failed: {type(error).__name__}") from error
        run.runtime.report(self.invocation, error)
        content = f"{name} failed with an internal error."
        return ToolCallResult(tool_call_id=self.block.call_id, content=content, is_error=True)

    def answer(self, text: str, *, failed: bool, execution: ToolExecution = "not-executed") -> None:
        """Give the call its one result."""
        status: ResultStatus = "error" if failed else "success"
        self.execution.add_result(tool_result(self.block, text, status=status, execution=execution))


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
