"""One websocket: commands in, frames out.

Commands are handled one after another and never wait for a run, nor for the start of one. Everything that is sent goes
through the outbox: events straight to a socket that takes them, all else by one sender task, so that a slow reader
holds up nothing but itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Iterable
from typing import Any, assert_never

import orjson
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings

from agent.runtime.exceptions import AgentError
from conversations.exceptions import RateLimited, Unauthorized
from conversations.hosting.host import ExecutionHost
from conversations.hosting.jobs import Found
from conversations.hosting.setup import Begun, StartRequest
from conversations.hosting.snapshot import pieces_of
from conversations.hosting.subscriber import Subscriber
from conversations.websocket import protocol
from conversations.websocket.rate import TokenBucket

logger = logging.getLogger("conversations.websocket")

INTERNAL_ERROR = 4011
UNAUTHENTICATED = 4401
STARTS_AT_ONCE = 16


class LiveConsumer(AsyncWebsocketConsumer):
    """Speaks `par.v1` with one client."""

    host: ExecutionHost
    subscriber: Subscriber
    sender: asyncio.Task[None]

    async def connect(self) -> None:
        self.host = self.scope["par.host"]
        self.credential = self.scope["credential"]
        self.user = self.credential.user
        self.rate = TokenBucket(settings.PAR.commands_per_second)
        self.starts: set[asyncio.Task[None]] = set()
        await self.accept(self.scope["subprotocol"])
        self.subscriber = Subscriber(self.host, self.credential, self.scope.get("par.cut_off"))
        self._put(
            orjson.dumps(
                {
                    "type": "welcome",
                    "protocol": protocol.PROTOCOL,
                    "user": {"id": str(self.user.pk), "name": self.user.get_username()},
                }
            )
        )
        self.subscriber.outbox.offer = self.scope.get("par.offer")
        self.sender = asyncio.create_task(self._send_all(), name="websocket sender")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:  # not in `disconnect`: a server that stops waiting for a command cancels this coroutine instead
            if hasattr(self, "sender"):
                self.subscriber.close()
                self.sender.cancel()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        await self.subscriber.outbox.room()  # who does not read the answers is not heard
        id: str | None = None
        try:
            if not self.rate.take(len(text_data or bytes_data or "")):  # before anything is read: that may be dear
                id = protocol.id_of(text_data)
                raise RateLimited("too many commands; slow down")
            id, command = protocol.parse(text_data)
            if not isinstance(command, protocol.Ping) and not await self.host.executor.run(self.credential.holds):
                raise Unauthorized("sign in again")
            await self.handle(id, command)
        except Unauthorized as error:
            self.subscriber.expire(protocol.error_frame(id, error))
        except protocol.BadFrame as error:
            self._put(protocol.error_frame(error.id, error))
        except Exception as error:
            self._refuse(id, error)

    async def handle(self, id: str, command: protocol.Command) -> None:
        """Carry out one command and answer it; raises `AgentError` for what is refused."""
        self._authorise(command)
        match command:
            case protocol.Start():
                await self._start(id, command)
            case protocol.Subscribe():
                await self._subscribe(command)
            case protocol.Unsubscribe():
                self.subscriber.unfollow(str(command.conversation_id))
                self._put(protocol.ack(command.id))
            case protocol.Approve() | protocol.Reject():
                await self._decide(command)
            case protocol.Cancel():
                status = await self.host.cancel(self.user, command.execution_id)
                self._put(protocol.ack(command.id, executionId=str(command.execution_id), status=status))
            case protocol.ToolResult():
                await self.host.answer_client_call(self.user, command.execution_id, command)
                self._put(protocol.ack(command.id, executionId=str(command.execution_id), callId=command.call_id))
            case protocol.Ping():
                self._put(protocol.ack(command.id))
            case _:
                assert_never(command)

    def _authorise(self, command: protocol.Command) -> None:
        reads = isinstance(command, protocol.Subscribe | protocol.Unsubscribe | protocol.Ping)
        if isinstance(command, protocol.Subscribe) and command.client_id is not None:
            reads = False  # calls of tools come with it
        self.credential.demand("read" if reads else "write")
        if isinstance(command, protocol.Start | protocol.Subscribe) and command.client_id is not None:
            self.subscriber.check_client(command.client_id)

    async def _start(self, id: str, command: protocol.Start) -> None:
        def announce(begun: Begun) -> None:
            if self.subscriber.gone:
                return
            told = {"executionId": begun.execution_id, "conversationId": begun.conversation_id}
            reset = {"modelStateReset": True} if begun.state_dropped else {}
            self._put(protocol.ack(id, **told, created=begun.created, **reset))
            self.subscriber.follow(begun.conversation_id, command.format)
            if command.client_id is not None:
                self.subscriber.act_for(command.client_id)

        if len(self.starts) >= STARTS_AT_ONCE:
            raise RateLimited("too many starts wait for their answers; slow down")
        start = self.host.start_run(self.user, StartRequest(command.id, command), announce)
        answering = self.host.spawn(self._answer_refusal(id, start), "answer to a start")
        self.starts.add(answering)
        answering.add_done_callback(self.starts.discard)

    async def _answer_refusal(self, id: str, start: Awaitable[Begun]) -> None:
        """Wait for a start, which may have pictures to fetch, and answer it if it is refused."""
        try:
            await start
        except Exception as error:
            self._refuse(id, error)

    async def _subscribe(self, command: protocol.Subscribe) -> None:
        def answer(found: Found, execution_id: str | None) -> None:
            self._put(
                protocol.ack(
                    command.id,
                    conversationId=found.conversation_id,
                    executionId=execution_id,
                    version=found.version,
                )
            )

        await self.subscriber.subscribe(
            conversation_id=command.conversation_id,
            execution_id=command.execution_id,
            format=command.format,
            answer=answer,
        )
        if command.client_id is not None:
            self.subscriber.act_for(command.client_id)

    async def _decide(self, command: protocol.Approve | protocol.Reject) -> None:
        await self.host.decide(self.user, command.execution_id, command.interrupt_id, command.decision())
        self._put(protocol.ack(command.id, executionId=str(command.execution_id), interruptId=command.interrupt_id))

    def _refuse(self, id: str | None, error: Exception) -> None:
        if not isinstance(error, AgentError):
            logger.error("a command failed", exc_info=error)
            error = AgentError("the server failed", code="INTERNAL_ERROR")
        self._put(protocol.error_frame(id, error))

    def _put(self, frame: bytes) -> None:
        self.subscriber.outbox.put(frame)

    async def _write(self, pieces: Iterable[bytes]) -> None:
        await self.send(text_data=b"".join(pieces).decode())

    async def _send_all(self) -> None:
        write = self.scope.get("par.write") or self._write
        try:
            while True:
                await write(pieces_of(await self.subscriber.next()))
        except Unauthorized:
            await self.close(UNAUTHENTICATED)
        except Exception as error:
            if type(error).__name__ != "Disconnected":
                logger.exception("a socket could not be written to")
            with contextlib.suppress(Exception):
                await self.close(INTERNAL_ERROR)
        finally:
            self.subscriber.outbox.end()  # nobody takes anything any more
