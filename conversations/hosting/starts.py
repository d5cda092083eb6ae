"""Starts on their way: pictures fetched, files kept, rows stored, runs launched."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.runtime.exceptions import AgentError
from agent.runtime.ports import ToolDecision
from agent.runtime.registry import ToolRegistry
from agent.runtime.runtime import AgentRuntime
from agent.runtime.tools import ToolDefinition, ToolInvocation
from conversations.bodies import Given
from conversations.exceptions import RateLimited
from conversations.hosting.audit import AuditHook
from conversations.hosting.enclosures import Enclosed, SeeingModel, discard, enclosed, encloses
from conversations.hosting.models import model_of_run
from conversations.hosting.pictures import fetch_pictures, has_addresses
from conversations.hosting.run import HostedRun
from conversations.hosting.setup import Begun, RunSetup, StartRequest
from conversations.models import User

if TYPE_CHECKING:
    from conversations.hosting.host import ExecutionHost

logger = logging.getLogger("conversations.hosting")

FETCHING_AT_ONCE = 4  # starts of one person, each of which may hold 16 pictures

Input = tuple[Given, ...]


class Starts:
    """The starts of a host that are not answered yet."""

    def __init__(self, host: ExecutionHost) -> None:
        self._host = host
        self._starts: set[asyncio.Task[Begun]] = set()
        self._fetches: dict[asyncio.Task[Input], int] = {}

    def add(self, user: User, wanted: StartRequest, announce: Callable[[Begun], None]) -> asyncio.Task[Begun]:
        """Begin a start that goes on whatever becomes of its caller; see `ExecutionHost.start_run`."""
        start = self._host.spawn(self._start(user, wanted, announce), "start of a run")
        self._starts.add(start)
        start.add_done_callback(self._starts.discard)
        return start

    def stop_fetching(self) -> None:
        """Refuse the starts that wait for pictures."""
        for fetch in tuple(self._fetches):
            fetch.cancel()

    async def done(self) -> None:
        """Return when every start is answered."""
        while self._starts:
            await asyncio.wait(tuple(self._starts))

    async def _start(self, user: User, wanted: StartRequest, announce: Callable[[Begun], None]) -> Begun:
        host = self._host
        input = await self._input(user, wanted)
        try:
            begun = await host.executor.run(host.jobs.begin, user, wanted, input.blocks if input else None)
        except BaseException:
            if input is not None:
                await discard(input, host.executor)
            raise
        announce(begun)
        if begun.setup is not None:
            run = launch(host, begun, begun.setup, user)
            if host.stopping:
                run.stop()
        elif input is not None:
            await discard(input, host.executor)
        return begun

    async def _input(self, user: User, wanted: StartRequest) -> Enclosed | None:
        """Return the input as it is stored; None where it is nothing but text, or was sent before."""
        host, blocks = self._host, wanted.body.input
        if not encloses(blocks) or await host.executor.run(host.jobs.repeated, user, wanted):
            return None
        host.check_accepting()
        if has_addresses(wanted.body):
            blocks = await self._fetched(user, wanted)
        return await enclosed(blocks, user, host.file_reader, host.executor)

    async def _fetched(self, user: User, wanted: StartRequest) -> Input:
        """Return the input with its pictures by address."""
        host = self._host
        if list(self._fetches.values()).count(user.pk) >= FETCHING_AT_ONCE:
            raise RateLimited("too many pictures are being fetched; try again in a moment")
        fetch: asyncio.Task[Input] = host.spawn(fetch_pictures(wanted.body, host.fetcher), "pictures of a start")
        self._fetches[fetch] = user.pk
        fetch.add_done_callback(self._fetches.pop)
        await asyncio.wait({fetch})
        host.check_accepting()
        return fetch.result()


def launch(host: ExecutionHost, begun: Begun, setup: RunSetup, user: User) -> HostedRun:
    """Begin a run whose start is stored; one that cannot be set up ends as failed."""
    run = HostedRun(host, begun, host.hub.open(begun.conversation_id, begun.execution_id))
    host.take(run)
    if setup.state_dropped:
        run.note("model-state-reset", {"model": setup.models[0][1].model})
    try:
        front_end = run.client_calls.tools(setup.client_tools)
        runtime = AgentRuntime(
            model=SeeingModel(
                model_of_run(setup, host.model, run.calls.append, run.note), user.pk, host.jobs, host.executor
            ),
            tools=ToolRegistry((*setup.tools, *front_end)),
            limits=setup.limits,
            policy=HostedPolicy(host, user),
            hooks=[AuditHook(host.trail, user_id=user.pk, execution_id=run.id)] if host.par.audit_enabled else [],
            tool_interceptors=[run],
            on_late_end=run.ended_late,
            tool_call_errors=setup.tool_call_errors,
            tool_exceptions=setup.tool_exceptions,
            parallel_tool_execution=setup.parallel_tools,
            cancel_grace_period=host.par.cancel_grace_period,
            confirmation_timeout=host.par.live_approval_timeout,
            max_tokens=setup.models[0][1].max_tokens,
            temperature=setup.models[0][1].temperature,
            volatile_prompt=setup.volatile_prompt,
        )
        run.execution = runtime.start(
            setup.message,
            context=setup.context,
            instructions=setup.instructions,
            observer=run.observe,
            conversation_id=begun.conversation_id,
            agent=setup.agent,
            principal=user,
            execution_id=run.id,
            trace=begun.trace_id,
        )
    except Exception as error:
        logger.exception("run %s could not be set up", run.id)
        known = error if isinstance(error, AgentError) else AgentError("The agent could not be set up.")
        host.spawn(run.abandon(known), f"end of run {run.id}")
    return run


class HostedPolicy:
    """The rights of one person, read from the database on every call (R7)."""

    def __init__(self, host: ExecutionHost, user: User) -> None:
        self._host = host
        self._user = user

    async def decide(self, definition: ToolDefinition, invocation: ToolInvocation) -> ToolDecision:
        return await self._host.executor.run(self._host.jobs.judge, definition, self._user.pk)
