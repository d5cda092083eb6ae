"""Daphne's server, made to start the host before it listens, to push back on both sides, and to drain before it stops.

Importing this module installs Twisted's asyncio reactor; only the `serve` command does so.

* Start: the host runs on the reactor's loop before the first port is open.
* Sending: a `send` waits while the write buffer of its socket is full (`FlowControlProtocol`).
* Stop: the first signal drains (readiness fails, no new runs, running ones get their time), the second hurries. Open
  sockets are closed with 1012, which a consumer itself could not send.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from io import BytesIO
from typing import Any

import daphne.server
from daphne.http_protocol import HTTPFactory, WebRequest
from daphne.server import Server, twisted_loop  # first: it installs the reactor
from daphne.ws_protocol import WebSocketFactory
from twisted.internet import reactor

from conversations.hosting.host import ExecutionHost
from conversations.hosting.sockets import FlowControlProtocol, InboundQueue

CLOSE_TIME = 2.0
SERVICE_RESTART = 1012
TOO_LARGE = (
    b"HTTP/1.1 413 Content Too Large\r\nContent-Type: application/json\r\nConnection: close\r\n"
    b'Content-Length: 76\r\n\r\n{"error": {"code": "PAYLOAD_TOO_LARGE", "message": "the body is too large"}}'
)


class BoundedRequest(WebRequest):
    """An HTTP request that costs bounded memory: its body has a limit, its answer waits for its reader.

    Daphne alone would keep any body before Django sees it, and any answer that nobody reads. The limit is that of a
    frame, but for uploads and whole conversations: their body stays in the file in which Twisted put it, to be read in
    a thread.
    """

    received = 0
    limit = 0
    body: Any = None
    writable: asyncio.Event | None = None
    content_types: Sequence[bytes] = ()

    def gotLength(self, length: int | None) -> None:
        path, _, _ = self.channel._path.partition(b"?")
        upload = self.server.uploads(self.channel._command, path)
        self.limit = upload or self.server.websocket_max_message_size
        super().gotLength(length)
        if upload:
            self.body = self.content

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """Keep Twisted from taking forms apart, here on the loop: seconds for a million bytes, before any sign-in."""
        self.content_types = self.requestHeaders.getRawHeaders(b"content-type") or ()
        self.requestHeaders.removeHeader(b"content-type")
        super().requestReceived(command, path, version)

    def handleContentChunk(self, data: bytes) -> None:
        before, self.received = self.received, self.received + len(data)
        if self.received <= self.limit:
            super().handleContentChunk(data)
        elif before <= self.limit:
            self.channel.transport.write(TOO_LARGE)
            self.channel.loseConnection()

    def process(self) -> None:
        for value in self.content_types:
            self.requestHeaders.addRawHeader(b"content-type", value)
        if self.received > self.limit:
            return
        if self.body is not None:
            self.body.seek(0)
            self.content = BytesIO()
        super().process()

    def handle_reply(self, message: dict[str, Any]) -> None:
        if self.writable is None and self.channel is not None:
            self.writable = asyncio.Event()
            if not self.channel._waitingForTransport:  # for the reader of the answer before this one
                self.writable.set()
            self.registerProducer(self, True)
        super().handle_reply(message)

    def pauseProducing(self) -> None:
        assert self.writable is not None
        self.writable.clear()

    def resumeProducing(self) -> None:
        assert self.writable is not None
        self.writable.set()

    stopProducing = resumeProducing

    def finish(self) -> None:
        self._release()
        if self.body is not None:
            self.body.close()
        super().finish()

    def connectionLost(self, reason: Any) -> None:
        self._release()
        super().connectionLost(reason)

    def cut_off(self) -> None:
        """Drop the connection with what is not sent yet, if there is an answer that has not ended."""
        if getattr(self, "channel", None) is not None:
            self.channel.transport.abortConnection()

    def _release(self) -> None:
        if self.producer:
            self.unregisterProducer()
            self.resumeProducing()


class BoundedFactory(HTTPFactory):
    """Makes HTTP connections with bounded requests."""

    def buildProtocol(self, addr: Any) -> Any:
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = BoundedRequest
        return protocol


class HostServer(Server):
    """Serves the site and runs its host; `uploads` gives the bytes of a body that may be larger than a frame."""

    def __init__(
        self,
        application: Any,
        *,
        host: Callable[[], ExecutionHost],
        drain_timeout: float,
        ready: Callable[[], None],
        uploads: Callable[[bytes, bytes], int | None],
        **options: Any,
    ) -> None:
        super().__init__(application, signal_handlers=False, websocket_timeout=-1, **options)
        self.make_host = host
        self.drain_timeout = drain_timeout
        self.ready = ready
        self.uploads = uploads
        self.starting = self.wanted = True
        self.hurry = asyncio.Event()
        self.ports: list[Any] = []
        self.draining: asyncio.Task[None] | None = None
        self.fault = ""

    def run(self) -> None:
        WebSocketFactory.protocol = FlowControlProtocol
        daphne.server.HTTPFactory = BoundedFactory
        for number in (signal.SIGTERM, signal.SIGINT):
            twisted_loop.add_signal_handler(number, self.shutdown)
        self.host = twisted_loop.run_until_complete(self._start())
        self.starting = False
        try:
            if self.wanted:
                super().run()  # listens, then runs the reactor until `_drain` stops it
        finally:
            twisted_loop.run_until_complete(self.host.close())

    async def _start(self) -> ExecutionHost:
        host = self.make_host()
        await host.start()
        return host

    def listen_error(self, failure: Any) -> None:
        """Remember why a port could not be opened, and stop."""
        self.fault = str(failure.getErrorMessage())
        self.stop()

    def listen_success(self, port: Any) -> None:
        self.ports.append(port)
        super().listen_success(port)
        self.ready()

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> InboundQueue:
        queue = InboundQueue()
        scope.setdefault("asgi", {"version": "3.0"})
        scope["par.host"] = self.host
        scope["par.offer"] = getattr(protocol, "offer", None)
        scope["par.write"] = getattr(protocol, "write", None)
        scope["par.cut_off"] = protocol.cut_off
        scope["par.body"] = getattr(protocol, "body", None)
        coroutine = self.application(scope, queue.get, partial(self.handle_reply, protocol))
        self.connections[protocol]["application_instance"] = asyncio.ensure_future(coroutine)
        return queue

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        await super().handle_reply(protocol, message)
        writable = getattr(protocol, "writable", None)
        if writable is not None and not writable.is_set():
            await writable.wait()

    def shutdown(self) -> None:
        """Begin to drain; the second time, stop waiting for runs. A start ends in good order, and serves nothing."""
        if self.starting:
            self.wanted = False
        elif self.draining is None:
            self.draining = twisted_loop.create_task(self._drain())
        else:
            self.hurry.set()

    async def _drain(self) -> None:
        try:
            self.host.refuse()
            for port in self.ports:
                await port.stopListening().asFuture(twisted_loop)
            await self.host.drain(self.drain_timeout, self.hurry)
            sockets = [item for item in self.connections if isinstance(item, FlowControlProtocol)]
            for protocol in sockets:
                if protocol.state == protocol.STATE_OPEN:
                    protocol.sendCloseFrame(code=SERVICE_RESTART, reasonUtf8=b"restart")
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_TIME):
                    await asyncio.gather(*(item.closed.wait() for item in sockets))
            await self._end_requests()
        finally:
            reactor.stop()  # type: ignore[misc]

    async def _end_requests(self) -> None:
        """Wait for the answers that are being sent, and cut off the readers that do not take theirs."""
        answers = {
            details["application_instance"]: item
            for item, details in self.connections.items()
            if isinstance(item, BoundedRequest) and "application_instance" in details
        }
        if answers:
            _, late = await asyncio.wait(answers, timeout=CLOSE_TIME)
            for task in late:
                answers[task].cut_off()
            if late:
                await asyncio.wait(late, timeout=CLOSE_TIME)

    def kill_all_applications(self) -> Any:
        finished = twisted_loop.create_future()
        finished.set_result(None)
        for details in self.connections.values():
            details.setdefault("application_instance", finished)
        return super().kill_all_applications()
