"""One hosted run: an execution of the engine, its channel to readers, and what is stored of it.

The engine's terminal event is held back until the turn is stored: readers get `revision-saved`, then the terminal
event, so an ended run is a stored run. While the database is away the end waits; a run whose turn cannot be stored ends
as failed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent.governance.audit import AuditEntry
from agent.providers.metering import CallUsage
from agent.runtime import events as ev
from agent.runtime.exceptions import AgentError
from agent.runtime.execution import AgentExecution, RunResult
from agent.runtime.hooks import NextTool
from agent.runtime.messages import AgentMessage, ModelContext
from agent.runtime.state import RunStatus
from agent.runtime.tools import ToolCallResult, ToolInvocation
from conversations.hosting.client_tools import ClientCalls
from conversations.hosting.ending import Ending
from conversations.hosting.hub import Channel
from conversations.hosting.jobs import Progress
from conversations.hosting.setup import Begun

if TYPE_CHECKING:
    from conversations.hosting.host import ExecutionHost

logger = logging.getLogger("conversations.hosting")

SAVE_FAILED = "CONVERSATION_SAVE_FAILED"
SAVE_WITHIN = 60.0  # seconds that an ended run waits for a database that is away
SAVE_WITHIN_DRAINING = 5.0
RENDER_WAIT = 1.0  # seconds that the end of a run waits for its HTML, after it was stored


class HostedRun:
    """A run of this process, from its start to the moment it is stored."""

    def __init__(self, host: ExecutionHost, begun: Begun, channel: Channel) -> None:
        self.host = host
        self.begun = begun
        self.channel = channel
        self.id = begun.execution_id
        self.ended = asyncio.Event()
        self.execution: AgentExecution | None = None
        self.calls: list[CallUsage] = []
        self.client_calls = ClientCalls(
            self.id,
            host.par.client_tool_timeout,
            lambda frame: host.tell_client(begun.user_id, begun.client_id, frame),
        )
        self._checkpoint = asyncio.Lock()
        self._news = asyncio.Event()

    @property
    def verdict(self) -> RunStatus:
        """The status that a run whose gate has closed ends with, before it is stored and told."""
        verdict = self.execution.verdict if self.execution is not None else None
        if not isinstance(verdict, RunResult):
            return "failed"
        return "cancelled" if isinstance(verdict.outcome, ev.Cancelled) else "completed"

    def observe(self, events: Sequence[ev.Event]) -> None:
        """Pass events on to readers; the terminal one goes the long way round."""
        last = events[-1]
        if isinstance(last, ev.TERMINAL):
            if len(events) > 1:
                self.channel.publish(events[:-1])
            self.host.spawn(self._finish(last), f"end of run {self.id}")
            return
        self.channel.publish(events)
        if isinstance(last, ev.InterruptRequested):
            self._wake()
        answered = isinstance(last, ev.MessagesAdded) and last.messages[-1].role == "tool"
        if answered or isinstance(last, ev.InterruptRequested | ev.InterruptResolved):
            self.host.spawn(self.checkpoint(), f"checkpoint of run {self.id}")

    def stop(self) -> None:
        """Cancel the run because its process ends."""
        if self.execution is not None:
            self.execution.cancel("shutdown")

    async def settled(self, seen_interrupt: str | None) -> None:
        """Return when the run has ended, or asks a person something else than `seen_interrupt`."""
        while not self.ended.is_set():
            asked = self.channel.state.interrupt
            if asked is not None and asked["id"] != seen_interrupt:
                return
            await self._news.wait()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def checkpoint(self, dispatched: str | None = None) -> None:
        """Store the transcript so far, so that a crash is honest about what may have happened."""
        execution = self.execution
        if execution is None:
            return
        async with self._checkpoint:
            if not execution.open:
                return
            interrupt = execution.slot.interrupt
            calls = dict(execution.calls)
            if dispatched is not None:
                calls[dispatched] = "started"
            progress = Progress(
                self.id,
                tuple(execution.added),
                execution.model_context,
                calls,
                interrupt.to_wire() if interrupt else None,
                execution.seq,
            )
            await self.host.executor.run(self.host.jobs.write_progress, progress)

    async def intercept(self, invocation: ToolInvocation, next: NextTool) -> ToolCallResult | Mapping[str, Any]:
        """Store that a tool with side effects is about to run, then let it run (a tool interceptor)."""
        execution = self.execution
        assert execution is not None
        definition = execution.snapshot.get(invocation.name)
        if definition is None or not definition.annotations.read_only_hint:
            try:
                await self.checkpoint(invocation.call_id)
            except Exception as error:
                raise AgentError("The run could not be stored before a tool.", code=SAVE_FAILED) from error
            execution.check()
        return await next(invocation)

    def ended_late(self, invocation: ToolInvocation, raised: bool) -> None:
        """Audit that a tool ended after its run had; nobody sees its result."""
        payload = {"callId": invocation.call_id, "raised": raised}
        self.note("tool-finished-after-cancel", payload, tool_name=invocation.name)

    def note(self, event: str, payload: dict[str, Any], *, tool_name: str = "") -> None:
        """Audit what happened beside the run's own events."""
        self.host.trail.add(
            AuditEntry(
                event=event,
                user_id=self.begun.user_id,
                execution_id=self.id,
                conversation_id=self.begun.conversation_id,
                trace_id=self.begun.trace_id,
                tool_name=tool_name,
                payload=payload,
            )
        )

    async def abandon(self, error: AgentError) -> None:
        """End a run that could not be set up."""
        message = AgentMessage.from_wire(self.begun.input)
        ending = Ending(self.id, None, error, (message,), ModelContext(model_state=None), None, 0)
        await self._store(ending, [ev.ExecutionFailed(error.code, error.message, error.retryable)])

    async def _finish(self, terminal: ev.ExecutionCompleted | ev.ExecutionFailed) -> None:
        assert self.execution is not None
        if isinstance(terminal, ev.ExecutionFailed):
            logger.warning(
                "run %s of agent %s failed with %s: %s (%s)",
                self.id,
                self.channel.state.agent,
                terminal.error_code,
                terminal.error_message,
                type(getattr(self.execution.verdict, "__cause__", None)).__name__,
            )
        base = self.begun.setup.stored_state if self.begun.setup is not None else None
        await self._store(Ending.of(self.execution, self.channel.state, self.calls, base), [terminal])

    async def _store(self, ending: Ending, closing: list[ev.Event]) -> None:
        ended = time.monotonic()

        def patience() -> float:
            return ended + (SAVE_WITHIN if self.host.accepting else SAVE_WITHIN_DRAINING)

        try:
            async with self._checkpoint:
                saved = await self.host.executor.insist(patience, self.host.jobs.finish, ending)
        except Exception as error:
            closing = [await self._not_saved(ending, error, patience)]
        else:
            if saved is not None:
                revision = ev.RevisionSaved(
                    str(saved.public_id), saved.number, self.begun.conversation_id, saved.version
                )
                closing = [revision, *closing]
        await self.channel.rendered(RENDER_WAIT)
        for number, event in enumerate(closing, self.channel.state.seq + 1):
            event.seq, event.execution_id = number, self.id
        self.channel.publish(closing)
        self.host.hub.close(self.channel)
        self.host.forget(self)
        self.ended.set()
        self._wake()

    async def _not_saved(self, ending: Ending, error: Exception, patience: Callable[[], float]) -> ev.ExecutionFailed:
        code, message = SAVE_FAILED, "The turn could not be stored."
        if isinstance(error, AgentError):
            code, message = error.code, error.message
        else:
            logger.error("run %s could not be stored", self.id, exc_info=error)
        try:
            await self.host.executor.insist(patience, self.host.jobs.fail, ending, code, message)
        except Exception:
            logger.exception("the failure of run %s could not be stored", self.id)
        return ev.ExecutionFailed(code, message)
