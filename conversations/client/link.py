"""The connection that comes back by itself: it carries frames between a session and the site."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl as tls
from collections.abc import Callable, Iterable
from typing import Any

import orjson
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from conversations.client.connection import TOO_LARGE, Patience, refusal
from conversations.client.effects import Effect
from conversations.client.exceptions import NotConnected, ParError, ProtocolViolation
from conversations.client.session import Session

logger = logging.getLogger("par.client")

PROTOCOL = "par.v1"
LARGEST_FRAME = 64 * 1024 * 1024
CLOSE_WITHIN = 2.0
STEADY = 10.0  # seconds after which a connection counts as good, even if nothing was said


class Link:
    """Connects, again and again, until that is of no use; `perform` gets the effects of what arrives."""

    def __init__(
        self,
        address: str,
        token: str,
        session: Session,
        perform: Callable[[Iterable[Effect]], None],
        *,
        welcome_within: float,
        reconnect_for: float,
        heartbeat: float,
        ssl: tls.SSLContext | None,
    ) -> None:
        self.address = address
        self._session = session
        self._perform = perform
        self._welcome_within = welcome_within
        self._patience = Patience(reconnect_for)
        self._outgoing: asyncio.Queue[str] = asyncio.Queue()
        self._options: dict[str, Any] = {
            "subprotocols": [Subprotocol(PROTOCOL)],
            "additional_headers": {"Authorization": f"Bearer {token}"},
            "compression": None,
            "max_size": LARGEST_FRAME,
            "ping_interval": heartbeat,
            "ping_timeout": heartbeat,
            "close_timeout": CLOSE_WITHIN,
        }
        if ssl is not None:
            self._options["ssl"] = ssl

    def send(self, text: str) -> None:
        """Send a frame over the connection that is open now."""
        self._outgoing.put_nowait(text)

    async def keep(self, opened: asyncio.Event) -> None:
        """Stay connected, and set `opened` with the first connection; raises `NotConnected` where that is at an end."""
        while True:
            try:
                await self._connection(opened)
            except Exception as error:
                await self._recover(error, opened)

    async def _recover(self, error: Exception, opened: asyncio.Event) -> None:
        """Wait before the next try; raises `NotConnected` where there is none."""
        if (refused := refusal(error)) is not None:
            raise refused from error
        reason = str(error) or type(error).__name__
        if not opened.is_set():
            raise NotConnected("NOT_CONNECTED", f"no connection to {self.address}: {reason}") from error
        pause = self._patience.pause()
        if pause is None:
            words = f"the connection to {self.address} was lost and did not come back: {reason}"
            raise NotConnected("NOT_CONNECTED", words) from error
        logger.info("no connection to %s (%s); trying again in %.1f s", self.address, reason, pause)
        await asyncio.sleep(pause)

    async def _connection(self, opened: asyncio.Event) -> None:
        async with connect(self.address, **self._options) as socket:
            async with asyncio.timeout(self._welcome_within):
                _check_welcome(await socket.recv())
            since = asyncio.get_running_loop().time()
            self._outgoing = asyncio.Queue()
            writer = asyncio.create_task(self._write(socket), name="par client writer")
            too_large = False
            try:
                opened.set()
                self._perform(self._session.welcomed())
                await self._read(socket)
            except ConnectionClosed as closed:
                too_large = closed.rcvd is not None and closed.rcvd.code == TOO_LARGE
                raise
            finally:
                if asyncio.get_running_loop().time() - since > STEADY:
                    self._patience.worked()
                self._perform(self._session.disconnected(too_large=too_large))
                writer.cancel()
                await asyncio.gather(writer, return_exceptions=True)

    async def _read(self, socket: ClientConnection) -> None:
        while True:
            effects = self._session.receive(await socket.recv())
            self._patience.worked()
            self._perform(effects)

    async def _write(self, socket: ClientConnection) -> None:
        with contextlib.suppress(ConnectionClosed):  # the reader sees it too
            while True:
                await socket.send(await self._outgoing.get())


def closed() -> ParError:
    """Return the error of a client that was closed."""
    return NotConnected("CLOSED", "the client was closed")


def _check_welcome(data: str | bytes) -> None:
    try:
        frame = orjson.loads(data)
    except ValueError:
        frame = None
    if not isinstance(frame, dict) or frame.get("type") != "welcome" or frame.get("protocol") != PROTOCOL:
        raise ProtocolViolation("the server does not begin as par.v1 does")
