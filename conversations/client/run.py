"""A run as an asynchronous program sees it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, Self

from conversations.client import events as ev
from conversations.client.exceptions import ParError
from conversations.client.transcript import Transcript


class Commands(Protocol):
    """Who sends the commands of a run."""

    async def command(self, type: str, **members: Any) -> dict[str, Any]: ...


class RunView:
    """What a run has come to so far."""

    def __init__(self, transcript: Transcript, end: asyncio.Event) -> None:
        self._transcript = transcript
        self._end = end

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.execution_id}>"

    @property
    def execution_id(self) -> str:
        return self._transcript.execution_id

    @property
    def conversation_id(self) -> str:
        return self._transcript.conversation_id

    @property
    def text(self) -> str:
        """The answer so far."""
        return self._transcript.text

    @property
    def messages(self) -> Sequence[ev.Message]:
        """The complete messages so far, the input first."""
        return tuple(self._transcript.messages)

    @property
    def interrupt(self) -> ev.ApprovalRequested | None:
        """The question that waits for an answer."""
        return self._transcript.interrupt

    @property
    def ended(self) -> bool:
        """Whether no more events will come."""
        return self._end.is_set()


class AsyncRun(RunView):
    """A run on the server; it goes on whether anybody follows it or not.

    Iterating takes its events one after another, from where the last iteration stopped, and ends with the run. `text`,
    `messages` and `result()` do not depend on it.
    """

    def __init__(self, commands: Commands, transcript: Transcript) -> None:
        super().__init__(transcript, asyncio.Event())
        self._commands = commands
        self._events: deque[ev.Event] = deque()
        self._news = asyncio.Event()
        self._error: ParError | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ev.Event:
        while (event := self.take()) is None:
            if self.ended:
                self.check()
                raise StopAsyncIteration
            await self.wait()
        return event

    def take(self) -> ev.Event | None:
        """Return the next event if it is there; safe in any thread."""
        try:
            return self._events.popleft()
        except IndexError:
            return None

    async def wait(self) -> None:
        """Return when there is an event to take, or the run has ended."""
        while not self._events and not self.ended:
            self._news.clear()
            await self._news.wait()

    def check(self) -> None:
        """Raise why the run is not followed any more, if so."""
        if self._error is not None:
            raise type(self._error)(self._error.code, self._error.message) from self._error

    async def result(self) -> ev.Result:
        """Wait for the end and return it; raises `ParError` with the run's code if it failed."""
        await self._end.wait()
        return self.value()

    def value(self) -> ev.Result:
        """Return the end of a run that has ended, as `result` does."""
        self.check()
        transcript = self._transcript
        if transcript.failure is not None:
            raise ParError(transcript.failure.code, transcript.failure.message)
        assert transcript.outcome is not None
        return ev.Result(transcript.outcome, self.text, tuple(transcript.messages), transcript.revision)

    async def approve(self, arguments: Mapping[str, Any] | None = None) -> None:
        """Allow the call that waits, with other arguments if given; raises `ParError` if none waits any more."""
        changed = dict(arguments) if arguments is not None else None
        await self._decide("approve", arguments=changed)

    async def reject(self, reason: str | None = None) -> None:
        """Refuse the call that waits and tell the model why; raises `ParError` if none waits any more."""
        await self._decide("reject", reason=reason)

    async def cancel(self) -> str:
        """End the run and return its status; a run that has ended stays as it is."""
        ack = await self._commands.command("cancel", executionId=self.execution_id)
        return str(ack["status"])

    async def _decide(self, type: str, **members: Any) -> None:
        if self.interrupt is None:
            raise ParError("INVALID_STATE", "no interrupt is pending")
        asked = self.interrupt.interrupt_id
        await self._commands.command(type, executionId=self.execution_id, interruptId=asked, **members)

    def feed(self, events: Iterable[ev.Event]) -> None:
        """Take in what the run has to tell."""
        self._events.extend(events)
        if self._transcript.ended:
            self._end.set()
        self._news.set()

    def fail(self, error: ParError) -> None:
        """End the iteration with an error, because the run cannot be followed any more."""
        if not self.ended:
            self._error = error
            self._end.set()
            self._news.set()
