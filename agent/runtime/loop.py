"""The agent loop: model call, preflight, tools, again (R1, R52, R71-R77)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING

from agent.runtime import events as ev
from agent.runtime.assembly import AssembledBlock, AssembledCall, MessageAssembler
from agent.runtime.batch import refuse_batch, run_batch
from agent.runtime.exceptions import LimitExceeded, ModelProtocolError
from agent.runtime.history import History
from agent.runtime.hooks import model_stream
from agent.runtime.ids import message_id
from agent.runtime.messages import AgentMessage, Block, ModelContext, TextBlock, ToolCallBlock
from agent.runtime.model import ModelRequest
from agent.runtime.preflight import check_budget, check_stop, find_problem
from agent.runtime.values import FrozenDict

if TYPE_CHECKING:
    from agent.runtime.execution import AgentExecution


async def run_loop(run: AgentExecution) -> ev.Outcome:
    """Walk through model calls and tools until the model ends its turn; returns the outcome."""
    spec, limits = run.spec, run.runtime.limits
    run.publish(
        ev.ExecutionStarted(spec.conversation_id, spec.agent, len(spec.context.messages), run.snapshot.revision)
    )
    run.history = History.of((*spec.context.messages, spec.input))
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
            problems = preflight(run, calls)
            accepted += len(calls)
        message = stable_message(run, call_index, answer, blocks, problems)
        if not calls:
            completed = ev.Completed(stop_reason=stop.stop_reason)
            return ev.MaxTokens() if stop.stop_reason == "max-tokens" else completed
        assert message is not None
        if problems:
            refuse_batch(run, message.tool_calls, problems)
        else:
            await run_batch(run, message.tool_calls)
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
        volatile_prompt=runtime.volatile_prompt,
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
    end = answer.stop or answer.error
    if end is not None and end.usage is not None:
        run.usage = run.usage.plus(end.usage)
    if answer.failure is not None:
        keep_shown_text(run, answer)
        raise answer.failure
    assert answer.stop is not None
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


def preflight(run: AgentExecution, calls: list[AssembledCall]) -> dict[int, str]:
    """Check the whole batch before any of it runs (R74); returns the problems by position under the policy `report`."""
    issued = run.history.issued
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
