"""One websocket: commands in, frames out.

Commands are handled one after another and never wait for a run. Everything that is sent goes through the outbox and one
sender task, so that a slow reader holds up nothing but itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any, assert_never
from uuid import UUID

import orjson
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings

from agent.runtime.exceptions import AgentError, InvalidArgument, InvalidState
from agent.runtime.interrupts import Decision
from agent.runtime.state import ExecutionState
from conversations.credentials import Credential
from conversations.exceptions import ExecutionNotFound, Forbidden, RateLimited, Unauthorized
from conversations.hosting.host import ExecutionHost
from conversations.hosting.hub import Format, Reader, snapshot_frame
from conversations.hosting.jobs import Begun, Found, StartRequest
from conversations.hosting.outbox import Outbox
from conversations.models import User
from conversations.websocket import protocol
from conversations.websocket.rate import TokenBucket

logger = logging.getLogger("conversations.websocket")

INTERNAL_ERROR = 4011
UNAUTHENTICATED = 4401
CLOSE = b""


class LiveConsumer(AsyncWebsocketConsumer):
    """Speaks `par.v1` with one client."""

    host: ExecutionHost
    credential: Credential
    user: User
    outbox: Outbox
    sender: asyncio.Task[None]

    async def connect(self) -> None:
        self.host = self.scope["par.host"]
        self.credential = self.scope["credential"]
        self.user = self.credential.user
        self.outbox = Outbox()
        self.gone = False
        self.readers: dict[str, Reader] = {}
        self.rate = TokenBucket(settings.PAR.commands_per_second)
        await self.accept(self.scope["subprotocol"])
        self.outbox.put(
            orjson.dumps(
                {
                    "type": "welcome",
                    "protocol": protocol.PROTOCOL,
                    "user": {"id": str(self.user.pk), "name": self.user.get_username()},
                }
            )
        )
        self.sender = asyncio.create_task(self._send_all(), name="websocket sender")
        self.host.sockets.add(self)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:  # not in `disconnect`: a server that stops waiting for a command cancels this coroutine instead
            self._leave()

    def _leave(self) -> None:
        if not hasattr(self, "sender"):
            return
        self.gone = True
        self.host.sockets.discard(self)
        for reader in self.readers.values():
            self.host.hub.remove(reader)
        self.sender.cancel()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        id: str | None = None
        try:
            id, command = protocol.parse(text_data)
            if not self.rate.take():
                raise RateLimited("too many commands; slow down")
            if not isinstance(command, protocol.Ping) and not await self.host.executor.run(self.credential.holds):
                raise Unauthorized("sign in again")
            await self.handle(id, command)
        except Unauthorized as error:
            self.outbox.put(protocol.error_frame(id, error))
            await self.expire()
        except protocol.BadFrame as error:
            refused = error if self.rate.take() else RateLimited("too many commands; slow down")
            self.outbox.put(protocol.error_frame(error.id, refused))
        except AgentError as error:
            self.outbox.put(protocol.error_frame(id, error))
        except Exception:
            logger.exception("a command failed")
            self.outbox.put(protocol.error_frame(id, AgentError("the server failed", code="INTERNAL_ERROR")))

    async def handle(self, id: str, command: protocol.Command) -> None:
        """Carry out one command and answer it; raises `AgentError` for what is refused."""
        self._authorise(command)
        match command:
            case protocol.Start():
                await self._start(id, command)
            case protocol.Subscribe():
                await self._subscribe(command)
            case protocol.Unsubscribe():
                if reader := self.readers.pop(str(command.conversation_id), None):
                    self.host.hub.remove(reader)
                self.outbox.put(protocol.ack(command.id))
            case protocol.Approve():
                kind: Any = "approved" if command.arguments is None else "modified"
                await self._decide(command, Decision(kind, arguments=command.arguments))
            case protocol.Reject():
                await self._decide(command, Decision("rejected", reason=command.reason))
            case protocol.Cancel():
                status = await self.host.cancel(self.user, str(command.execution_id))
                self.outbox.put(protocol.ack(command.id, executionId=str(command.execution_id), status=status))
            case protocol.Ping():
                self.outbox.put(protocol.ack(command.id))
            case _:
                assert_never(command)

    async def expire(self) -> None:
        """Close the socket of somebody whose sign-in is over, after what was to be sent before."""
        self.outbox.put(CLOSE)

    def _authorise(self, command: protocol.Command) -> None:
        needed = "read" if isinstance(command, protocol.Subscribe | protocol.Unsubscribe | protocol.Ping) else "write"
        if needed not in self.credential.scopes:
            raise Forbidden(f"this token lacks the scope {needed!r}")

    async def _start(self, id: str, command: protocol.Start) -> None:
        wanted = StartRequest(
            agent=command.agent,
            input=command.input,
            request_id=command.id,
            conversation_id=command.conversation_id,
            base_revision=command.base_revision,
            client_id=command.client_id or "",
            limits=command.limits,
        )

        def announce(begun: Begun) -> None:
            if self.gone:
                return
            self.outbox.put(
                protocol.ack(
                    id,
                    executionId=begun.execution_id,
                    conversationId=begun.conversation_id,
                    created=begun.created,
                )
            )
            reader = self.readers.get(begun.conversation_id)
            if reader is None or reader.execution_id is not None or reader.format != command.format:
                self._catch_up(self._follow(begun.conversation_id, command.format))

        await self.host.start_run(self.user, wanted, announce)

    async def _subscribe(self, command: protocol.Subscribe) -> None:
        found = await self._find(command)
        if found.state is not None and not found.state.ended and self.host.hub.live(found.conversation_id) is None:
            found = await self._find(command)  # it ended between the look at the database and the one at the hub
        only = str(command.execution_id) if command.execution_id else None
        reader = self._follow(found.conversation_id, command.format, only)
        live = self.host.hub.live(found.conversation_id)
        running = live.state.execution_id if live else None
        self.outbox.put(
            protocol.ack(
                command.id,
                conversationId=found.conversation_id,
                executionId=only or running or (found.state.execution_id if found.state else None),
                version=found.version,
            )
        )
        if live is not None and reader.wants(live.state.execution_id):
            live.snapshot(reader)
        elif found.state is not None:
            await self._show_past(found.state, command.format)

    async def _find(self, command: protocol.Subscribe) -> Found:
        match command.conversation_id, command.execution_id:
            case None, UUID() as execution_id:
                return await self.host.find_execution(self.user, execution_id)
            case UUID() as conversation_id, None:
                return await self.host.find_conversation(self.user, conversation_id)
            case _:
                raise InvalidArgument("give either conversationId or executionId")

    async def _decide(self, command: protocol.Approve | protocol.Reject, decision: Decision) -> None:
        try:
            self.host.decide(self.user, str(command.execution_id), command.interrupt_id, decision)
        except ExecutionNotFound:
            await self.host.find_execution(self.user, command.execution_id)  # raises if there never was one
            raise InvalidState("the execution has ended") from None
        self.outbox.put(
            protocol.ack(command.id, executionId=str(command.execution_id), interruptId=command.interrupt_id)
        )

    def _follow(self, conversation_id: str, format: Format, only: str | None = None) -> Reader:
        if before := self.readers.get(conversation_id):
            self.host.hub.remove(before)
        reader = self.readers[conversation_id] = Reader(self.outbox, conversation_id, format, only)
        self.host.hub.add(reader)
        return reader

    def _catch_up(self, reader: Reader) -> None:
        live = self.host.hub.live(reader.conversation_id)
        if live is not None and reader.wants(live.state.execution_id):
            live.snapshot(reader)

    async def _send_all(self) -> None:
        try:
            while True:
                frame = await self.outbox.next()
                if frame is CLOSE:
                    await self.close(UNAUTHENTICATED)
                    return
                if frame is not None:
                    await self.send(text_data=frame.decode())
                    continue
                for execution_id in self.outbox.take_owed():
                    await self._make_good(execution_id)
        except Exception as error:
            if type(error).__name__ != "Disconnected":
                logger.exception("a socket could not be written to")
            with contextlib.suppress(Exception):
                await self.close(INTERNAL_ERROR)

    async def _make_good(self, execution_id: str) -> None:
        """Send the snapshot of a run whose events were dropped; it may have ended meanwhile."""
        channel = self.host.hub.channel(execution_id)
        if channel is not None:
            for reader in tuple(self.readers.values()):
                if reader.conversation_id == channel.conversation_id and reader.wants(execution_id):
                    channel.snapshot(reader)
            return
        found = await self.host.find_execution(self.user, UUID(execution_id))
        following = self.readers.get(found.conversation_id)
        if following is not None and found.state is not None:
            await self._show_past(found.state, following.format)

    async def _show_past(self, state: ExecutionState, format: Format) -> None:
        self.outbox.put(snapshot_frame(state), state.execution_id)
        for frame in await self.host.render(state) if format == "html" else ():
            self.outbox.put(frame, state.execution_id)
