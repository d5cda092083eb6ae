"""The synchronous client: the asynchronous one, on an event loop in a thread of its own.

Any number of threads may use one client and its runs at once. Each event of a run is given to one of the threads that
iterate over it. Tools and `on_approval` are called in threads of the client, never in the caller's.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl as tls
import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from typing import Any, Self, TypeVar
from uuid import UUID

from conversations.client import events as ev
from conversations.client.aio import AsyncClient, Blocks
from conversations.client.asked import OnApproval
from conversations.client.exceptions import NotConnected, ParError
from conversations.client.run import AsyncRun, RunView
from conversations.client.tools import Tool

T = TypeVar("T")


class _Portal:
    """An event loop in a thread; whoever waits in `call` may be interrupted, which cancels what was called."""

    def __init__(self) -> None:
        self._running = threading.Event()
        self._thread = threading.Thread(target=self._main, name="par client", daemon=True)
        self._thread.start()
        self._running.wait()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("an async tool of a sync client cannot wait for that client; make it a plain function")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """End the loop and what is left on it, and the thread."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _main(self) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._running.set()
        await self._stop.wait()


class Run(RunView):
    """What `AsyncRun` is, for threads; iterating takes the events, from where the last iteration stopped."""

    def __init__(self, client: Client, run: AsyncRun) -> None:
        super().__init__(run._transcript, run._end)
        self._client = client
        self._run = run

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ev.Event:
        while True:
            over = self.ended  # looked at first: the last event comes before the end
            if (event := self._run.take()) is not None:
                return event
            if over:
                self._run.check()
                raise StopIteration
            self._client._call(self._run.wait())

    def result(self) -> ev.Result:
        """Wait for the end and return it; raises `ParError` with the run's code if it failed."""
        return self._run.value() if self.ended else self._client._call(self._run.result())

    def approve(self, arguments: Mapping[str, Any] | None = None) -> None:
        """Allow the call that waits, with other arguments if given; raises `ParError` if none waits any more."""
        self._client._call(self._run.approve(arguments))

    def reject(self, reason: str | None = None) -> None:
        """Refuse the call that waits and tell the model why; raises `ParError` if none waits any more."""
        self._client._call(self._run.reject(reason))

    def cancel(self) -> str:
        """End the run and return its status; a run that has ended stays as it is."""
        return self._client._call(self._run.cancel())


class Client:
    """What `AsyncClient` is, for programs without an event loop; the same names, arguments and errors."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        base_path: str = "/ai",
        client_id: str | None = None,
        timeout: float = 60.0,
        reconnect_for: float = 120.0,
        heartbeat: float = 20.0,
        ssl: tls.SSLContext | None = None,
    ) -> None:
        self._client = AsyncClient(
            url,
            token,
            base_path=base_path,
            client_id=client_id,
            timeout=timeout,
            reconnect_for=reconnect_for,
            heartbeat=heartbeat,
            ssl=ssl,
        )
        self._lock = threading.Lock()
        self._portal: _Portal | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address}>"

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def address(self) -> str:
        return self._client.address

    def connect(self) -> None:
        """Connect; raises `NotConnected`, which says why, if the first try fails."""
        with self._lock:
            if self._portal is not None:
                raise ParError("INVALID_STATE", "the client is connected already")
            self._portal = _Portal()
        try:
            self._call(self._client.connect())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Disconnect and end what waits with an error; runs go on at the server. A second call does nothing.

        Waits for tools that run.
        """
        with self._lock:
            portal, self._portal = self._portal, None
        if portal is not None:
            try:
                portal.call(self._client.close())
            finally:
                portal.close()

    def start(
        self,
        agent: str,
        message: str | Blocks = (),
        *,
        conversation: str | UUID | None = None,
        base_revision: int | None = None,
        from_revision: str | UUID | None = None,
        edit: str | None = None,
        regenerate: str | None = None,
        temporary: bool = False,
        limits: Mapping[str, int] | None = None,
        tools: Iterable[Tool] = (),
        on_approval: OnApproval | None = None,
        id: str | UUID | None = None,
    ) -> Run:
        """Start a run and return it as soon as the server has stored it; see `AsyncClient.start`."""
        started = self._client.start(
            agent,
            message,
            conversation=conversation,
            base_revision=base_revision,
            from_revision=from_revision,
            edit=edit,
            regenerate=regenerate,
            temporary=temporary,
            limits=limits,
            tools=tools,
            on_approval=on_approval,
            id=id,
        )
        return Run(self, self._call(started))

    def run(
        self, execution_id: str | UUID, *, tools: Iterable[Tool] = (), on_approval: OnApproval | None = None
    ) -> Run:
        """Return a run by its id, from its beginning, also one that has ended; raises `ParError` if there is none."""
        return Run(self, self._call(self._client.run(execution_id, tools=tools, on_approval=on_approval)))

    def follow(self, conversation_id: str | UUID) -> Iterator[Run]:
        """Yield the run in progress of a conversation and all to come; see `AsyncClient.follow`."""
        runs = self._client.follow(conversation_id)
        try:
            while True:
                yield Run(self, self._call(anext(runs)))
        finally:
            with contextlib.suppress(NotConnected):
                self._call(runs.aclose())

    def command(self, type: str, **members: Any) -> dict[str, Any]:
        """Send a command of docs/protocol.md and return its `ack`; raises `ParError` where it is refused."""
        return self._call(self._client.command(type, **members))

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        portal = self._portal
        if portal is None:
            work.close()
            raise NotConnected("NOT_CONNECTED", "the client is not connected")
        return portal.call(work)
