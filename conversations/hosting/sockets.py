"""Daphne's websocket, made to push back on both sides and to send without a detour.

* Sending: a socket registers itself as Twisted's producer, so it knows when its write buffer is full. While nothing is
  buffered a frame goes to the kernel at once; Twisted alone would wait for the next turn of the loop. A large message
  goes in pieces, so that no more than one waits in the buffer. While that is full, only the latest of the client's
  pings is remembered to be answered, as RFC 6455 allows.
* Receiving: when `INBOUND_LIMIT` frames wait for a consumer, the transport stops reading.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from autobahn.websocket.types import ConnectionDeny
from daphne.ws_protocol import WebSocketProtocol

from conversations.hosting.pieces import PIECE, with_last

INBOUND_LIMIT = 64
CONTINUATION, TEXT = 0, 1


class InboundQueue(asyncio.Queue[dict[str, Any]]):
    """What a consumer has yet to take; lets its socket read again when half is taken."""

    protocol: FlowControlProtocol | None = None

    def _get(self) -> dict[str, Any]:
        event: dict[str, Any] = super()._get()
        if self.protocol is not None and self.protocol.held and self.qsize() <= INBOUND_LIMIT // 2:
            self.protocol.release()
        return event


class FlowControlProtocol(WebSocketProtocol):
    """A websocket that knows when it can be written to, and stops reading when nobody takes what it reads."""

    writable: asyncio.Event | None = None
    held = False
    busy = False
    unanswered: bytes | None = None
    maxMessagePayloadSize: int
    maxFramePayloadSize: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.closed = asyncio.Event()

    def onConnect(self, request: Any) -> Any:
        if not request.headers.get("sec-websocket-protocol", "").isascii():
            raise ConnectionDeny(400, "subprotocols are ASCII")  # type: ignore[no-untyped-call]  # daphne would fail
        return super().onConnect(request)

    def onOpen(self) -> None:
        super().onOpen()
        self.failByDrop = False  # a frame over the limit is answered with its close code
        self.writable = asyncio.Event()
        self.writable.set()
        self.transport.unregisterProducer()  # the HTTP channel's
        self.transport.registerProducer(self, True)

    def offer(self, frame: bytes) -> bool:
        """Send a text that is one piece if the socket can be written to now; returns whether it was sent."""
        if self.state != self.STATE_OPEN or self.writable is None or not self.writable.is_set():
            return False
        if self.busy or len(frame) > PIECE:
            return False
        self.sendFrame(opcode=TEXT, payload=frame)
        return True

    async def write(self, pieces: Iterable[bytes]) -> None:
        """Send a text in these pieces, each once the socket can be written to, and nothing that is offered meanwhile.

        When the call is over, the socket can be written to again.
        """
        if self.writable is None:
            return  # it was never opened
        self.busy = True
        try:
            opcode = TEXT
            for piece, last in with_last(pieces):
                await self.writable.wait()
                if self.state != self.STATE_OPEN:
                    return
                self.sendFrame(opcode=opcode, payload=piece, fin=last)
                opcode = CONTINUATION
                if not last:
                    await asyncio.sleep(0)  # a reader who takes it all at once must not hold up the others
            await self.writable.wait()
        finally:
            self.busy = False

    def sendMessage(self, *args: Any, **options: Any) -> None:
        """Send a frame of any size: the limits of autobahn are meant for what comes in."""
        limits = self.maxMessagePayloadSize, self.maxFramePayloadSize
        self.maxMessagePayloadSize = self.maxFramePayloadSize = 0
        try:
            super().sendMessage(*args, **options)
        finally:
            self.maxMessagePayloadSize, self.maxFramePayloadSize = limits

    def sendData(self, data: bytes, sync: bool = False, chopsize: int | None = None) -> None:
        transport = self.transport
        if (
            self.state == self.STATE_OPEN
            and transport.connected
            and not transport.dataBuffer
            and not (transport._tempDataBuffer or transport.disconnecting)
        ):
            sent = transport.writeSomeData(data)
            if isinstance(sent, int):  # otherwise the connection is lost, which the transport will find out
                data = data[sent:]
        if data:
            transport.write(data)

    def pauseProducing(self) -> None:
        if self.writable is not None:
            self.writable.clear()

    def resumeProducing(self) -> None:
        self.stopProducing()
        ping, self.unanswered = self.unanswered, None
        if ping is not None:
            self.sendPong(ping)

    def stopProducing(self) -> None:
        if self.writable is not None:
            self.writable.set()

    def onPing(self, payload: bytes) -> None:
        if self.writable is None or self.writable.is_set():
            self.sendPong(payload)
        else:
            self.unanswered = payload

    def cut_off(self) -> None:
        """Drop the connection with what is not sent yet."""
        self.transport.abortConnection()

    def onClose(self, wasClean: bool, code: int | None, reason: str | None) -> None:
        if self in self.factory.server_class.connections:  # else it was refused before there was an application
            super().onClose(wasClean, code, reason)
        self.closed.set()
        self.stopProducing()  # autobahn unregisters the producer before it drops a connection

    def onMessage(self, payload: bytes, isBinary: bool) -> None:
        super().onMessage(payload, isBinary)
        if not self.held and self.application_queue.qsize() >= INBOUND_LIMIT:
            self.held = True
            self.application_queue.protocol = self
            self.transport.pauseProducing()

    def processData(self) -> bool:
        return not self.held and bool(super().processData())

    def release(self) -> None:
        """Read on."""
        self.held = False
        self.consumeData()
        if not self.held and self.transport.connected and not self.transport.disconnecting:
            self.transport.resumeProducing()
