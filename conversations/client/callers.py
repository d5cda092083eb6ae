"""Who waits for what: the answers of commands, runs with their tools and approvals, followed conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from conversations.client.asked import OnApproval
from conversations.client.effects import Called, Settled, Told
from conversations.client.events import ApprovalRequested
from conversations.client.exceptions import NotConnected, ParError
from conversations.client.run import AsyncRun, Commands
from conversations.client.tools import Tool
from conversations.client.transcript import Transcript

Question: TypeAlias = tuple[AsyncRun, ApprovalRequested, OnApproval]
Found: TypeAlias = "asyncio.Queue[AsyncRun | ParError]"


@dataclass(slots=True)
class _Wish:
    """A command that a caller waits for, and what belongs to the run that it begins."""

    answer: asyncio.Future[Any]
    tools: Mapping[str, Tool] = field(default_factory=dict)
    on_approval: OnApproval | None = None


class Callers:
    """The callers of one client; what they get acts through `commands`."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._wishes: dict[str, _Wish] = {}
        self._runs: dict[str, AsyncRun] = {}
        self._tools: dict[str, Mapping[str, Tool]] = {}
        self._approvals: dict[str, OnApproval] = {}
        self._followers: dict[str, set[Found]] = {}

    @contextmanager
    def waiting(
        self, id: str, tools: Mapping[str, Tool], on_approval: OnApproval | None
    ) -> Iterator[asyncio.Future[Any]]:
        """Give a caller the future answer of a command."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._wishes[id] = _Wish(answer, tools, on_approval)
        try:
            yield answer
        finally:
            self._wishes.pop(id, None)

    @contextmanager
    def following(self, conversation_id: str) -> Iterator[Found]:
        """Give a caller the runs of a conversation as they are found."""
        found: Found = asyncio.Queue()
        followers = self._followers.setdefault(conversation_id, set())
        followers.add(found)
        try:
            yield found
        finally:
            followers.discard(found)
            if not followers and self._followers.get(conversation_id) is followers:
                del self._followers[conversation_id]

    def follows(self, conversation_id: str) -> bool:
        """Whether anybody follows a conversation."""
        return conversation_id in self._followers

    def settle(self, settled: Settled) -> None:
        """Give a command its answer, and the run that it begins its tools."""
        wish = self._wishes.get(settled.id)
        if wish is None or wish.answer.done():
            return
        if isinstance(settled.answer, ParError):
            wish.answer.set_exception(settled.answer)
        elif settled.run is None:
            wish.answer.set_result(settled.answer)
        else:
            run = self._run_of(settled.run)
            if wish.tools:
                self._tools[run.execution_id] = wish.tools
            if wish.on_approval is not None:
                self._approvals[run.execution_id] = wish.on_approval
            wish.answer.set_result(run)

    def tell(self, told: Told) -> list[Question]:
        """Tell a run its news, and return the questions in it that `on_approval` answers."""
        run = self._run_of(told.run)
        run.feed(told.events)
        handler = self._approvals.get(run.execution_id)
        if run.ended:
            self._forget(run.execution_id)
        if handler is None:
            return []
        return [(run, event, handler) for event in told.events if isinstance(event, ApprovalRequested)]

    def find(self, found: Transcript) -> None:
        """Give a run to those who follow its conversation."""
        run = self._run_of(found)
        for follower in self._followers.get(run.conversation_id, ()):
            follower.put_nowait(run)

    def abandon(self, run: Transcript, error: ParError) -> None:
        """Tell those who wait for a run that it cannot be followed any more."""
        self._run_of(run).fail(error)
        self._forget(run.execution_id)

    def leave(self, conversation_id: str, error: ParError) -> None:
        """Tell those who follow a conversation that it cannot be followed any more."""
        for follower in self._followers.get(conversation_id, ()):
            follower.put_nowait(error)

    def tool(self, called: Called) -> Tool | None:
        """Return the tool that is called."""
        return self._tools.get(called.execution_id, {}).get(called.name)

    def dismiss(self, error: ParError) -> None:
        """Tell everybody who waits that the connection is at an end."""
        for wish in self._wishes.values():
            if not wish.answer.done():
                wish.answer.set_exception(NotConnected(error.code, error.message))
        for run in tuple(self._runs.values()):
            run.fail(NotConnected(error.code, error.message))
            self._forget(run.execution_id)
        for conversation_id in self._followers:
            self.leave(conversation_id, NotConnected(error.code, error.message))

    def _run_of(self, transcript: Transcript) -> AsyncRun:
        if transcript.execution_id not in self._runs:
            self._runs[transcript.execution_id] = AsyncRun(self._commands, transcript)
        return self._runs[transcript.execution_id]

    def _forget(self, execution_id: str) -> None:
        for kept in (self._runs, self._tools, self._approvals):
            kept.pop(execution_id, None)
