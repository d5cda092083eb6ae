"""One run of an agent: its life, its gate, its clock and its result (R53-R64, R70).

`AgentExecution` owns everything that belongs to one run. A worker task walks through the loop (`loop.py`) and publishes
events by calling the observer directly, without a queue in between. The *terminal gate* is what makes the end clean:
`cancel()`, the deadline, a failure and the normal end all go through `_close`, which

1. shuts the gate (from here on nothing the worker says is published, R62),
2. fires the signal and uses up the interrupt slot,
3. completes the messages (every call gets one result), hands them to the observer once, then the terminal event,
4. cancels the worker and settles the result as soon as the worker is gone, at the latest after the grace period.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from agent.runtime import events as ev
from agent.runtime.cancellation import CancelSignal
from agent.runtime.exceptions import AgentError, InvalidArgument, InvalidState, LimitExceeded
from agent.runtime.history import History
from agent.runtime.hooks import HookContext, HookRunner
from agent.runtime.ids import message_id
from agent.runtime.interrupts import APPROVED, Decision, InterruptSlot
from agent.runtime.messages import AgentMessage, Context, ModelContext, ToolCallBlock, ToolResultBlock, Usage
from agent.runtime.recovery import CallState, close_open_calls
from agent.runtime.tools import ToolInvocation
from agent.runtime.values import clean_text

if TYPE_CHECKING:
    from agent.runtime.runtime import AgentRuntime

logger = logging.getLogger("agent.runtime")

Observer: TypeAlias = Callable[[Sequence[ev.Event]], None]


class GateClosed(Exception):
    """Raised inside the worker when the run has ended without it; never leaves the execution."""


class Life(Enum):
    """Where an execution stands (R60); it only ever moves down this list."""

    RUNNING = "running"
    SETTLING = "settling"
    SETTLED = "settled"


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run brought (R59): `messages` are the new ones of this run, the input first.

    After `cancelled` the messages are what was complete, repaired so that `recovered` can be replayed.
    """

    outcome: ev.Outcome
    messages: tuple[AgentMessage, ...]
    model_context: ModelContext
    usage: Usage
    recovered: Context


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What one run starts from; the host's identity object `principal` is handed to tools and policy (R8)."""

    execution_id: str
    trace_id: str
    conversation_id: str | None
    agent: str
    principal: Any
    instructions: str
    context: Context
    input: AgentMessage
    observer: Observer | None


class AgentExecution:
    """A run in progress; made by `AgentRuntime.start`, awaited by `await execution.result`."""

    def __init__(self, runtime: AgentRuntime, spec: RunSpec) -> None:
        self.runtime = runtime
        self.spec = spec
        self.id = spec.execution_id
        self.life = Life.RUNNING
        self.signal = CancelSignal()
        self.snapshot = runtime.tools.snapshot()
        self.added: list[AgentMessage] = []
        self.model_context = spec.context.model_context
        self.usage = Usage(input_tokens=0, output_tokens=0, total_tokens=0)
        self.history = History()
        self.calls: dict[str, CallState] = {}
        self._batch: deque[ToolCallBlock] = deque()
        self._results: dict[str, ToolResultBlock] = {}
        self.slot = InterruptSlot()
        self.hook_context = HookContext(spec.trace_id, spec.conversation_id)
        self._hooks = HookRunner(runtime.hooks, self.hook_context, runtime.on_hook_error)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._seq = 0
        self._result: asyncio.Future[RunResult] = self._loop.create_future()
        self._result.add_done_callback(_retrieved)
        self._verdict: RunResult | AgentError | None = None
        self._last_now = -math.inf
        self._started_at = self.now()
        self._deadline = self._started_at + runtime.limits.max_duration_ms / 1000
        self._timer = runtime.clock.call_later(runtime.limits.max_duration_ms / 1000, self._on_timer)
        self._worker = self._loop.create_task(self._work(), name=f"run {self.id}")
        self._worker.add_done_callback(lambda _: self._settle())

    # What the outside does

    @property
    def result(self) -> Awaitable[RunResult]:
        """The result, or the error that ended the run; awaiting it twice is fine."""
        return asyncio.shield(self._result)

    @property
    def verdict(self) -> RunResult | AgentError | None:
        """How the run ended, as soon as its gate has closed; None before."""
        return self._verdict

    @property
    def seq(self) -> int:
        """The number of the last published event."""
        return self._seq

    def cancel(self, reason: str = "user") -> bool:
        """End the run with the outcome `cancelled`; False if it has ended already (R60)."""
        return self._close(ev.Cancelled(reason=reason))

    def respond(self, interrupt_id: str, value: bool) -> None:
        """Answer the pending interrupt with R's boolean (R89)."""
        if not isinstance(value, bool):
            raise InvalidArgument(f"the answer to an interrupt is a boolean, got {value!r}")
        self.decide(interrupt_id, APPROVED if value else Decision("rejected"))

    def decide(self, interrupt_id: str, decision: Decision) -> None:
        """Answer the pending interrupt with any decision; raises `InvalidState` or `InvalidArgument`."""
        self.slot.answer(interrupt_id, decision)

    # What the loop does

    def now(self) -> float:
        """Read the clock; a clock that goes back or yields no finite number is an error (R70)."""
        now = self.runtime.clock.now()
        if not math.isfinite(now) or now < self._last_now:
            raise InvalidState(f"the clock went from {self._last_now!r} to {now!r}")
        self._last_now = now
        return now

    @property
    def open(self) -> bool:
        return self.life is Life.RUNNING

    def check(self) -> None:
        """Stop the worker if the run has ended or its time is up; called at each boundary."""
        if self.open and self.now() >= self._deadline:
            self._close(self._timeout())
        if not self.open:
            raise GateClosed

    def publish(self, event: ev.Event) -> None:
        """Tell hooks and observer of one event; raises `GateClosed` if the run has ended or ends meanwhile."""
        if not self.open:
            raise GateClosed
        self._hooks.ordinary(event, lambda: self.open)
        self.publish_batch((event,))

    def publish_batch(self, events: Sequence[ev.Event]) -> None:
        """Number the events and hand them to the observer as one batch."""
        if not self.open:
            raise GateClosed
        self._deliver(events)
        if not self.open:
            raise GateClosed

    def progress(self, call_id: str, text: str) -> None:
        """Publish a line from a running tool; may be called from any thread, and is dropped once the run has ended."""
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.progress, call_id, text)
        elif self.open and self.calls.get(call_id) == "started":
            try:
                self._deliver((ev.ToolProgress(call_id, clean_text(str(text))),))
            except Exception as error:
                self._close(_unknown(error))

    def add_message(self, message: AgentMessage, model_context: ModelContext | None = None) -> None:
        """Add a stable message and publish all of them so far."""
        start = len(self.added)
        self.added.append(message)
        if model_context is not None:
            self.model_context = model_context
        self.publish(ev.MessagesAdded(tuple(self.added), start, self.model_context))

    def open_batch(self, calls: Sequence[ToolCallBlock]) -> None:
        """Expect results for these calls; they are published in this order."""
        self._batch = deque(calls)
        self._results = {}

    def has_result(self, call: ToolCallBlock) -> bool:
        return call.call_id in self._results or call not in self._batch

    def add_result(self, block: ToolResultBlock) -> None:
        """Take in the one result of a call of the batch, and publish what is next in order."""
        self._results[block.call_id] = block
        while self._batch and (next_block := self._results.pop(self._batch[0].call_id, None)):
            self._batch.popleft()
            self.history.answer(next_block)
            self.add_message(AgentMessage(id=message_id(), role="tool", blocks=(next_block,)))

    @contextmanager
    def failing(self) -> Iterator[None]:
        """End the run at once with what is raised inside, instead of when all tasks beside it have ended."""
        try:
            yield
        except GateClosed:
            pass
        except AgentError as error:
            self._close(error)
        except Exception as error:
            logger.exception("run %s failed", self.id)
            self._close(_unknown(error))

    def late(self, invocation: ToolInvocation, raised: bool) -> None:
        """Note that a tool ended after its run had; nothing of it is published."""
        self.runtime.ended_late(invocation, raised)

    # The end

    def _deliver(self, events: Sequence[ev.Event]) -> None:
        seq, execution_id = self._seq, self.id
        for event in events:
            seq += 1
            event.seq, event.execution_id = seq, execution_id
        self._seq = seq
        if self.spec.observer is not None:
            self.spec.observer(events)

    async def _work(self) -> None:
        from agent.runtime.loop import run_loop  # the loop's module needs this one

        try:
            self._close(await run_loop(self), worker_ends=True)
        except GateClosed:
            pass
        except asyncio.CancelledError:
            self._close(ev.Cancelled(reason="task-cancelled"), worker_ends=True)
            raise
        except AgentError as error:
            self._close(error, worker_ends=True)
        except Exception as error:
            if self.open:
                logger.exception("run %s failed", self.id)
            self._close(_unknown(error), worker_ends=True)

    def _on_timer(self) -> None:
        try:
            left = self._deadline - self.now()
        except InvalidState as error:
            self._close(error)
            return
        if left <= 0:
            self._close(self._timeout())
        elif self.open:
            self._timer = self.runtime.clock.call_later(left, self._on_timer)

    def _timeout(self) -> AgentError:
        seconds = self.runtime.limits.max_duration_ms / 1000
        return LimitExceeded(f"the run took longer than {seconds:g} seconds", code="AGENT_EXECUTION_TIMEOUT")

    def _close(self, end: ev.Outcome | AgentError, *, worker_ends: bool = False) -> bool:
        if not self.open:
            return False
        self.life = Life.SETTLING
        self._timer.cancel()
        self.signal.fire(_reason(end))
        self.slot.close()
        repairs = close_open_calls(self.added, self.calls, self._results)
        start = len(self.added)
        self.added.extend(repairs)
        messages = tuple(self.added)
        recovered = Context(messages=self.spec.context.messages + messages, model_context=self.model_context)
        terminal: ev.ExecutionCompleted | ev.ExecutionFailed
        if isinstance(end, AgentError):
            end.recovered = recovered
            self._verdict = end
            terminal = ev.ExecutionFailed(end.code, end.message, end.retryable)
        else:
            self._verdict = RunResult(end, messages, self.model_context, self.usage, recovered)
            terminal = ev.ExecutionCompleted(end, len(messages))
        try:
            if repairs:
                self._deliver((ev.MessagesAdded(messages, start, self.model_context),))
            self._deliver((terminal,))
        except Exception as error:  # an observer that raises at the end makes `result` raise (E7)
            self._verdict = _unknown(error)
            self._verdict.recovered = recovered
        self._hooks.terminal(terminal)
        if not worker_ends:
            self._worker.cancel()
            self._timer = self.runtime.clock.call_later(self.runtime.cancel_grace_period, self._settle)
        return True

    def _settle(self) -> None:
        if self.life is Life.SETTLED:
            return
        if self.life is Life.RUNNING:  # the worker was cancelled before its first step
            self._close(ev.Cancelled(reason="task-cancelled"))
        self.life = Life.SETTLED
        self._timer.cancel()
        verdict = self._verdict
        if isinstance(verdict, AgentError):
            self._result.set_exception(verdict)
        else:
            assert verdict is not None
            self._result.set_result(verdict)


def _unknown(error: Exception) -> AgentError:
    failure = AgentError(f"the run failed: {type(error).__name__}")
    failure.__cause__ = error
    return failure


def _reason(end: ev.Outcome | AgentError) -> str:
    if isinstance(end, AgentError):
        return end.code
    return end.reason if isinstance(end, ev.Cancelled) else end.type


def _retrieved(future: asyncio.Future[RunResult]) -> None:
    if not future.cancelled():
        future.exception()  # a result that nobody awaits is no fault
