"""The asynchronous client: one connection that comes back by itself, and the runs that it carries."""

from __future__ import annotations

import asyncio
import ssl as tls
from collections.abc import AsyncGenerator, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Self, TypeAlias, assert_never
from uuid import UUID, uuid4

from conversations.client import effects as core
from conversations.client.asked import OnApproval, decide, outcome_of
from conversations.client.callers import Callers
from conversations.client.connection import websocket_address
from conversations.client.exceptions import NotConnected, ParError, Unanswered
from conversations.client.link import Link, closed
from conversations.client.run import AsyncRun
from conversations.client.session import Session
from conversations.client.tools import Tool

Blocks: TypeAlias = Sequence[Mapping[str, Any]]


class AsyncClient:
    """A client of one site; a context manager, or `connect` and `close`.

    `url` is the site's address. Any number of tasks of one event loop may use it at once. `timeout` is how long a
    command may take, a new connection included; `reconnect_for` how long to try for a new connection, 0 for never;
    `heartbeat` how often a ping makes sure that the other side is there. All in seconds. `client_id` names this client
    for its tools: give one to come back to them after a restart of the program.
    """

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
        self.timeout = timeout
        self._session = Session(client_id or str(uuid4()))
        self._link = Link(
            websocket_address(url, base_path),
            token,
            self._session,
            self._perform,
            welcome_within=timeout,
            reconnect_for=reconnect_for,
            heartbeat=heartbeat,
            ssl=ssl,
        )
        self._callers = Callers(self)
        self._tasks: set[asyncio.Task[None]] = set()
        self._keeper: asyncio.Task[None] | None = None
        self._over: ParError | None = NotConnected("NOT_CONNECTED", "connect first")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address}>"

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def address(self) -> str:
        """Where the websocket is."""
        return self._link.address

    async def connect(self) -> None:
        """Connect; raises `NotConnected`, which says why, if the first try fails."""
        if self._keeper is not None:
            raise ParError("INVALID_STATE", "the client is connected already")
        opened = asyncio.Event()
        self._over = None
        self._keeper = asyncio.create_task(self._keep(opened), name="par client")
        try:
            await opened.wait()
            self._check()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Disconnect and end what waits with an error; runs go on at the server. A second call does nothing."""
        keeper, self._keeper = self._keeper, None
        tasks = [task for task in (keeper, *self._tasks) if task not in (None, asyncio.current_task())]
        for task in tasks:
            assert task is not None
            task.cancel()
        await asyncio.gather(*filter(None, tasks), return_exceptions=True)
        self._finish(closed())

    async def start(
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
    ) -> AsyncRun:
        """Start a run and return it as soon as the server has stored it.

        `message` is a text, or blocks as docs/protocol.md shows them. `from_revision` begins elsewhere than at the
        conversation's head; `edit` takes the place of a message of that id; `regenerate`, without a message, has the
        message of that id answered again. `limits` have names like `max_model_calls`.
        `on_approval` is asked for each approval; without it, iterate and call `approve` or `reject`. The same `id` (a
        UUID) again gives the same run, so that a program may repeat a start of which it does not know the end.
        """
        known = {tool.name: tool for tool in tools}
        members: dict[str, Any] = {
            "agent": agent,
            "input": [{"type": "text", "text": message}] if isinstance(message, str) else list(message),
            "conversationId": str(conversation) if conversation is not None else None,
            "baseRevision": base_revision,
            "fromRevisionId": str(from_revision) if from_revision is not None else None,
            "editMessageId": edit,
            "regenerateMessageId": regenerate,
            "temporary": temporary or None,
            "limits": {_camel(name): value for name, value in limits.items()} if limits is not None else None,
        }
        if known:
            members["clientId"] = self._session.client_id
            members["clientTools"] = [tool.to_wire() for tool in known.values()]
        run: AsyncRun = await self._ask("start", str(id or uuid4()), members, known, on_approval)
        return run

    async def run(
        self, execution_id: str | UUID, *, tools: Iterable[Tool] = (), on_approval: OnApproval | None = None
    ) -> AsyncRun:
        """Return a run by its id, from its beginning, also one that has ended; raises `ParError` if there is none."""
        known = {tool.name: tool for tool in tools}
        members = {
            "executionId": str(execution_id),
            "clientId": self._session.client_id if known else None,
        }
        run: AsyncRun = await self._ask("subscribe", str(uuid4()), members, known, on_approval)
        return run

    async def follow(self, conversation_id: str | UUID) -> AsyncGenerator[AsyncRun]:
        """Yield the run in progress of a conversation (or its last one, if no revision holds that) and all to come.

        Those that this client started are not among them. Raises `ParError` if there is no such conversation.
        """
        conversation = str(conversation_id)
        try:
            with self._callers.following(conversation) as found:
                await self.command("subscribe", conversationId=conversation)
                while not isinstance(run := await found.get(), ParError):
                    yield run
                raise type(run)(run.code, run.message) from run
        finally:
            if not self._callers.follows(conversation):
                self._perform(self._session.unfollow(conversation))

    async def command(self, type: str, **members: Any) -> dict[str, Any]:
        """Send a command of docs/protocol.md and return its `ack`; raises `ParError` where it is refused."""
        ack: dict[str, Any] = await self._ask(type, str(uuid4()), members)
        return ack

    async def _ask(
        self,
        type: str,
        id: str,
        members: Mapping[str, Any],
        tools: Mapping[str, Tool] | None = None,
        on_approval: OnApproval | None = None,
    ) -> Any:
        self._check()
        _, effects = self._session.command(type, id=id, **members)
        try:
            with self._callers.waiting(id, tools or {}, on_approval) as answer:
                self._perform(effects)
                async with asyncio.timeout(self.timeout):
                    return await answer
        except TimeoutError:
            raise Unanswered(type, self.timeout) from None
        finally:
            self._session.forget(id)

    async def _keep(self, opened: asyncio.Event) -> None:
        """Stay connected; whatever ends that is the error of everybody who waits."""
        end = closed()
        try:
            await self._link.keep(opened)
        except ParError as error:
            end = error
        finally:
            self._finish(end)
            opened.set()

    def _perform(self, effects: Iterable[core.Effect]) -> None:
        for effect in effects:
            match effect:
                case core.Send():
                    self._link.send(effect.text)
                case core.Later():
                    self._spawn(self._again(effect))
                case core.Settled():
                    self._callers.settle(effect)
                case core.Told():
                    for question in self._callers.tell(effect):
                        self._spawn(decide(*question))
                case core.Found():
                    self._callers.find(effect.run)
                case core.Abandoned():
                    self._callers.abandon(effect.run, effect.error)
                case core.Unfollowed():
                    self._callers.leave(effect.conversation_id, effect.error)
                case core.Called():
                    self._spawn(self._answer(effect))
                case _:
                    assert_never(effect)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _again(self, later: core.Later) -> None:
        await asyncio.sleep(later.seconds)
        self._perform(self._session.again(later.id))

    async def _answer(self, called: core.Called) -> None:
        result, is_error = await outcome_of(self._callers.tool(called), called)
        try:
            effects = self._session.tool_result(called, result, is_error)
        except ParError as error:
            effects = self._session.tool_result(called, error.message, True)
        self._perform(effects)

    def _check(self) -> None:
        if self._over is not None:
            raise NotConnected(self._over.code, self._over.message) from self._over

    def _finish(self, error: ParError) -> None:
        """Give everybody who waits an error; a later `connect` begins with nothing."""
        self._session.reset()
        self._over = self._over or error
        self._callers.dismiss(error)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in others)
