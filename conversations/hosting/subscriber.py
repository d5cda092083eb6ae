"""A client that follows runs, whatever the wire: its outbox, and what it is interested in.

The websocket and the server-sent events are both built on it. Whoever owns a `Subscriber` closes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

from agent.runtime.exceptions import InvalidArgument, InvalidState
from agent.runtime.state import ExecutionState
from conversations.credentials import Credential
from conversations.exceptions import Unauthorized
from conversations.hosting.hub import Format, Reader
from conversations.hosting.jobs import Found
from conversations.hosting.outbox import Ended, Outbox
from conversations.hosting.snapshot import Frame

if TYPE_CHECKING:
    from conversations.hosting.host import ExecutionHost

PATIENCE = 2.0  # seconds
MOST_CLIENTS = 32


class Subscriber:
    """One open connection: everything that is said to it goes through `outbox` and is taken with `next`.

    `cut_off` drops the connection with all that the client has not read yet.
    """

    def __init__(self, host: ExecutionHost, credential: Credential, cut_off: Callable[[], None] | None = None) -> None:
        self.host = host
        self.credential = credential
        self.user = credential.user
        self.outbox = Outbox()
        self.client_ids: set[str] = set()
        self.gone = False
        self._cut_off = cut_off
        self._readers: dict[str, Reader] = {}
        host.subscribers.add(self)

    def close(self) -> None:
        """Follow nothing any more; a second call does nothing."""
        self.gone = True
        self.host.subscribers.discard(self)
        for reader in self._readers.values():
            self.host.hub.remove(reader)
        self._readers.clear()

    def expire(self, *last: bytes) -> None:
        """End the connection, because its sign-in is over: nothing is sent any more but these `last` frames.

        Whoever does not read is cut off after `PATIENCE`, with what its socket was given already.
        """
        if self.gone:
            return
        self.close()
        self.outbox.end(*last)
        if self._cut_off is not None:
            asyncio.get_running_loop().call_later(PATIENCE, self._cut_off)

    async def next(self) -> Frame:
        """Return the next frame; snapshots for what was dropped are put in. Raises `Unauthorized` after `expire`."""
        while True:
            try:
                frame = await self.outbox.next()
            except Ended:
                raise Unauthorized("sign in again") from None
            if frame is not None:
                return frame
            with self.outbox.replacing() as owed:
                for execution_id in owed:
                    await self._make_good(execution_id)

    async def subscribe(
        self,
        *,
        conversation_id: UUID | None = None,
        execution_id: UUID | None = None,
        format: Format = "text",
        seen: int | None = None,
        answer: Callable[[Found, str | None], None] = lambda found, execution_id: None,
    ) -> Found:
        """Follow a conversation with all its coming runs, or one run.

        `answer` is called with what was found and the run in question before the snapshot is put into the outbox.
        Whoever has `seen` the run's event of that number and no later one needs no snapshot. Raises `InvalidArgument`
        and what `ExecutionHost.find_execution` and `find_conversation` raise.
        """
        found = await self._find(conversation_id, execution_id)
        if found.state is not None and not found.state.ended and self.host.hub.live(found.conversation_id) is None:
            found = await self._find(conversation_id, execution_id)  # it ended between the two looks
        only = str(execution_id) if execution_id else None
        reader = self._follow(found.conversation_id, format, only)
        live = self.host.hub.live(found.conversation_id)
        running = live.state.execution_id if live else None
        answer(found, only or running or (found.state.execution_id if found.state else None))
        if live is not None and reader.wants(live.state.execution_id):
            if live.state.seq != seen:
                live.snapshot(reader)
        elif found.state is not None and (found.state.seq != seen or not found.state.ended):
            await self._show_past(found.state, format)
        return found

    def follow(self, conversation_id: str, format: Format) -> None:
        """Follow a conversation whose run has just been started or found again."""
        reader = self._readers.get(conversation_id)
        if reader is not None and reader.execution_id is None and reader.format == format:
            return
        reader = self._follow(conversation_id, format)
        live = self.host.hub.live(conversation_id)
        if live is not None:
            live.snapshot(reader)

    def unfollow(self, conversation_id: str) -> None:
        if reader := self._readers.pop(conversation_id, None):
            self.host.hub.remove(reader)

    def check_client(self, client_id: str) -> None:
        """Raise `InvalidState` if this connection acts for too many others to act for this client as well."""
        if client_id not in self.client_ids and len(self.client_ids) >= MOST_CLIENTS:
            raise InvalidState(f"a connection acts for at most {MOST_CLIENTS} clients")

    def act_for(self, client_id: str) -> None:
        """Take the calls of this client's front-end tools, those that wait first."""
        self.client_ids.add(client_id)
        for frame in self.host.waiting_calls(self.user, client_id):
            self.outbox.put(frame)

    async def _find(self, conversation_id: UUID | None, execution_id: UUID | None) -> Found:
        match conversation_id, execution_id:
            case None, UUID():
                return await self.host.find_execution(self.user, execution_id)
            case UUID(), None:
                return await self.host.find_conversation(self.user, conversation_id)
            case _:
                raise InvalidArgument("give either conversationId or executionId")

    def _follow(self, conversation_id: str, format: Format, only: str | None = None) -> Reader:
        self.unfollow(conversation_id)
        reader = self._readers[conversation_id] = Reader(self.outbox, conversation_id, format, only)
        if not self.gone:
            self.host.hub.add(reader)
        return reader

    async def _make_good(self, execution_id: str) -> None:
        """Send the snapshot of a run whose events were dropped; it may have ended meanwhile."""
        channel = self.host.hub.channel(execution_id)
        if channel is not None:
            reader = self._readers.get(channel.conversation_id)
            if reader is not None and reader.wants(execution_id):
                channel.snapshot(reader)
            return
        found = await self.host.find_execution(self.user, UUID(execution_id))
        reader = self._readers.get(found.conversation_id)
        if reader is not None and found.state is not None:
            await self._show_past(found.state, reader.format)

    async def _show_past(self, state: ExecutionState, format: Format) -> None:
        self.outbox.put(self.host.hub.past.of(state), state.execution_id)
        for frame in await self.host.render(state) if format == "html" else ():
            self.outbox.put(frame, state.execution_id)
