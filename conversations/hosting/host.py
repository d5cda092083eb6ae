"""The runs of this process: started, found, decided, cancelled, drained.

A run belongs to the host, never to a socket or a request. Whoever starts one may go away.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any
from uuid import UUID

from agent.governance import audit
from agent.providers.config import ModelConfig
from agent.providers.net import Fetcher
from agent.providers.registry import build_model
from agent.providers.transport import Transport
from agent.runtime.exceptions import AgentError, InvalidState
from agent.runtime.interrupts import Decision
from agent.runtime.model import Model
from agent.runtime.state import ExecutionState
from conversations.bodies import ToolResultBody
from conversations.credentials import holding
from conversations.exceptions import Draining
from conversations.hosting.answers import Answer, Answers, Question
from conversations.hosting.audit import AuditTrail
from conversations.hosting.enclosures import FileReader
from conversations.hosting.executor import DatabaseExecutor
from conversations.hosting.hub import EventHub
from conversations.hosting.jobs import Found, Jobs
from conversations.hosting.markdown import MarkdownRun
from conversations.hosting.pictures import PICTURE_LIMITS
from conversations.hosting.places import LargeBodies, Places
from conversations.hosting.pruning import prune_hourly
from conversations.hosting.run import HostedRun
from conversations.hosting.setup import Begun, StartRequest
from conversations.hosting.starts import Starts
from conversations.hosting.subscriber import Subscriber
from conversations.models import User
from conversations.revocation import RevocationNews

if TYPE_CHECKING:
    from agent.conf import ParSettings

logger = logging.getLogger("conversations.hosting")

HEARTBEAT = 5.0
RENDERED_AT_ONCE = 2
SIGN_IN_CHECK = 5.0
END_WITHIN = 10.0  # seconds for what is still being stored when the host closes
NEVER = 10.0 * 365 * 86_400
DRAINING_FRAME = b'{"type":"draining"}'


class ExecutionHost:
    """Owns every run, task, thread and connection that serving needs; one per process, on one event loop.

    `channel` names the process. `model` makes the adapter of a configuration and `fetcher` gets pictures by address;
    left out, the real ones are used.
    """

    def __init__(
        self,
        par: ParSettings,
        channel: str,
        model: Callable[[ModelConfig], Model] | None = None,
        fetcher: Fetcher | None = None,
    ) -> None:
        self.par = par
        self.model = model or (lambda config: build_model(config, self.transport, demo_pace=par.demo_pace))
        self.executor = DatabaseExecutor()
        self.transport = Transport(connect_timeout=par.connect_timeout, idle_timeout=par.read_timeout or NEVER)
        self.fetcher = fetcher or Fetcher(PICTURE_LIMITS)
        self.file_reader = FileReader()
        self.hub = EventHub()
        self.places = Places(par.connections_per_person)
        self.large_bodies = LargeBodies()
        self.jobs = Jobs(channel)
        self.trail = AuditTrail(lambda entries: self.executor.run(audit.write, entries))
        self.subscribers: set[Subscriber] = set()
        self.revocations = RevocationNews()
        self._rendering = asyncio.Semaphore(RENDERED_AT_ONCE)
        self.accepting = False
        self.stopping = False
        self.starts = Starts(self)
        self._runs: dict[str, HostedRun] = {}
        self._answers = Answers()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._services: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Open connections, register the process, end what a crash left behind."""
        await self.executor.run(self.jobs.register)
        await self.fetcher.start()
        await self.transport.start(preload=await self.executor.run(self.jobs.protocols))
        self.revocations.connect()
        loop = asyncio.get_running_loop()
        self._services.append(loop.create_task(self._heartbeat(), name="heartbeat"))
        self._services.append(loop.create_task(self._watch_sign_ins(), name="sign-ins"))
        self._services.append(loop.create_task(prune_hourly(), name="pruning"))
        if self.par.audit_enabled:
            self._services.append(loop.create_task(self.trail.run(), name="audit"))
        self.accepting = True

    async def close(self) -> None:
        """Cancel what runs, store it, and give everything back."""
        if not self.stopping:
            await self.drain(0)
        self.revocations.disconnect()
        self.trail.close()
        heartbeat, watch, pruning, *others = self._services
        for service in (heartbeat, watch, pruning):
            service.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await service
        await asyncio.gather(*others)
        await self._end_tasks()
        await self.hub.stop()
        await self.executor.run(self.jobs.unregister)
        await self.transport.close()
        await self.fetcher.close()
        await asyncio.to_thread(self.executor.close)

    def refuse(self) -> None:
        """Take no new runs, and tell every client."""
        self._accept_no_more()
        for subscriber in self.subscribers:
            subscriber.outbox.put(DRAINING_FRAME)

    async def drain(self, timeout: float, hurry: asyncio.Event | None = None) -> None:
        """Let runs end for `timeout` seconds or until `hurry`; cancel the rest with reason `shutdown`.

        A start that is being stored counts as a run, one that still fetches pictures is refused.
        """
        self._accept_no_more()
        await self._all_ended(timeout, hurry)
        self.stopping = True
        for run in tuple(self._runs.values()):
            run.stop()
        await self._all_ended(self.par.cancel_grace_period + 10)

    def _accept_no_more(self) -> None:
        self.accepting = False
        self.starts.stop_fetching()

    async def _all_ended(self, timeout: float, hurry: asyncio.Event | None = None) -> None:
        async def all_ended() -> None:
            await self.starts.done()
            for run in tuple(self._runs.values()):
                await run.ended.wait()

        waiters: set[asyncio.Task[Any]] = {asyncio.create_task(all_ended())}
        if hurry is not None:
            waiters.add(asyncio.create_task(hurry.wait()))
        try:
            await asyncio.wait(waiters, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiter in waiters:
                waiter.cancel()

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run `work` as a task of the host; a failure is logged."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def start_run(self, user: User, wanted: StartRequest, announce: Callable[[Begun], None]) -> Begun:
        """Store the start and launch the run; the same id again gives the first answer.

        `announce` is called once the start is stored and before the run's first event, so a reader added there misses
        nothing. The start goes on when the caller is cancelled. Raises what `setup.begin` and `fetch_pictures` raise,
        `Draining`, and `RateLimited`.
        """
        self.check_accepting()
        return await asyncio.shield(self.starts.add(user, wanted, announce))

    def check_accepting(self) -> None:
        """Raise `Draining` once no new runs are taken."""
        if not self.accepting:
            raise Draining("the server is about to stop; try again in a moment")

    async def find_execution(self, user: User, execution_id: UUID) -> Found:
        """Return a run of this person; raises `ExecutionNotFound`."""
        return await self.executor.run(self.jobs.find_execution, user, execution_id)

    async def find_conversation(self, user: User, conversation_id: UUID) -> Found:
        """Return a conversation of this person; raises `ConversationNotFound`."""
        return await self.executor.run(self.jobs.find_conversation, user, conversation_id)

    async def render(self, state: ExecutionState) -> list[bytes]:
        """Return the `rendered` frames of a run that is over; a few at a time, so that live runs do not wait."""
        async with self._rendering:
            return await MarkdownRun(state).tick()

    async def decide(self, user: User, execution_id: UUID, interrupt_id: str, decision: Decision) -> None:
        """Answer the pending approval of a run; the first answer wins.

        The same answer again changes nothing, so that it may be sent again after a lost connection; another one raises
        `InvalidState`. Raises `ExecutionNotFound`, and `InvalidState` when the run has ended.
        """

        def answer(run: HostedRun) -> None:
            assert run.execution is not None
            run.execution.decide(interrupt_id, decision)

        await self._answer((user.pk, execution_id, interrupt_id), decision, user, answer)

    async def answer_client_call(self, user: User, execution_id: UUID, body: ToolResultBody) -> None:
        """Take the result of a front-end tool, by the same rules as `decide`."""
        result = ToolResultBody(call_id=body.call_id, result=body.result, is_error=body.is_error)
        question = user.pk, execution_id, body.call_id
        await self._answer(question, result, user, lambda run: run.client_calls.answer(result))

    async def _answer(self, question: Question, answer: Answer, user: User, give: Callable[[HostedRun], None]) -> None:
        if self._answers.repeated(question, answer):
            return
        _, execution_id, _ = question
        run = self._runs.get(str(execution_id))
        if run is None or run.begun.user_id != user.pk or run.execution is None:
            await self.find_execution(user, execution_id)  # raises if there never was one
            raise InvalidState("the execution has ended")
        give(run)
        self._answers.add(question, answer)

    def waiting_calls(self, user: User, client_id: str) -> Iterator[bytes]:
        """Return the calls of front-end tools that wait for this client."""
        for run in self.runs_of(user.pk):
            if run.begun.client_id == client_id:
                yield from run.client_calls.pending()

    def tell_client(self, user_id: int, client_id: str, frame: bytes) -> bool:
        """Send a frame to every connection of a client; returns whether there was one."""
        there = [each for each in self.subscribers if each.user.pk == user_id and client_id in each.client_ids]
        for subscriber in there:
            subscriber.outbox.put(frame)
        return bool(there)

    async def cancel(self, user: User, execution_id: UUID) -> str:
        """Cancel a run and return its status; cancelling one that has ended changes nothing."""
        id = str(execution_id)
        run = self._runs.get(id)
        if run is not None and run.begun.user_id == user.pk:
            if run.execution is not None and run.execution.cancel("user"):
                self.spawn(self.executor.run(self.jobs.note_cancel, id), f"cancel of run {id}")
                return "cancelled"
            return run.verdict  # its end may wait for the database
        found = await self.find_execution(user, execution_id)
        if found.state is not None and not found.state.ended and id in self._runs:
            return await self.cancel(user, execution_id)
        return found.state.status if found.state else "completed"

    def running(self, execution_id: str) -> HostedRun | None:
        """Return a run of this process that has not ended."""
        return self._runs.get(execution_id)

    def runs_of(self, user_id: int) -> list[HostedRun]:
        """Return the runs of a person in this process that have not ended."""
        return [run for run in self._runs.values() if run.begun.user_id == user_id]

    def take(self, run: HostedRun) -> None:
        """Own a run that is about to begin."""
        self._runs[run.id] = run

    def forget(self, run: HostedRun) -> None:
        """Let go of a run that has ended and is stored."""
        self._runs.pop(run.id, None)

    async def _heartbeat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            try:
                for state in await self.executor.run(self.jobs.beat, tuple(self._runs)):
                    self.hub.tell(state)
            except Exception:
                logger.exception("the heartbeat could not be written")

    async def _watch_sign_ins(self) -> None:
        while True:
            await self.revocations.wait(SIGN_IN_CHECK)
            try:
                await self.expire_subscribers()
            except Exception:
                logger.exception("the sign-ins of open connections could not be checked")

    async def expire_subscribers(self) -> None:
        """End the connections whose token or session is over."""
        connected = tuple(self.subscribers)
        if not connected:
            return
        good = await self.executor.run(holding, {each.credential for each in connected})
        for each in connected:
            if each.credential not in good:
                each.expire()

    async def _end_tasks(self) -> None:
        if self._tasks:
            _, late = await asyncio.wait(tuple(self._tasks), timeout=END_WITHIN)
            for task in late:
                logger.error("%s did not end", task.get_name())
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=END_WITHIN)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) and not isinstance(error, AgentError):
            logger.error("%s failed", task.get_name(), exc_info=error)
