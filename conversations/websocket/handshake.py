"""Who may open a socket: decided before the consumer exists.

A refusal is accepted and closed, since a browser cannot read the status of a refused upgrade:
4401 not signed in, 4403 a cookie from a page that is not ours, 4406 no common subprotocol, 4429 too many connections of
this person, 4500 not run by `serve`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Any, TypeAlias

from conversations.credentials import TICKET, identify
from conversations.exceptions import RateLimited, Unauthorized, WrongOrigin
from conversations.hosting.host import ExecutionHost
from conversations.websocket.protocol import PROTOCOL

logger = logging.getLogger("conversations.websocket")

Receive: TypeAlias = Callable[[], Awaitable[dict[str, Any]]]
Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]

UNAUTHENTICATED = 4401
WRONG_ORIGIN = 4403
NO_SUBPROTOCOL = 4406
TOO_MANY = 4429
NOT_SERVED = 4500


class Refused(Exception):
    """Raised when a socket may not be opened; `code` is its close code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Handshake:
    """ASGI middleware that puts `credential` and `subprotocol` into the scope, or closes the socket."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        offered: list[str] = scope["subprotocols"]
        named = [each for each in offered if not each.startswith(TICKET)]  # a ticket is a secret and never sent back
        chosen = PROTOCOL if PROTOCOL in named else None
        place = ExitStack()
        try:
            host: ExecutionHost | None = scope.get("par.host")
            if host is None:
                raise Refused(NOT_SERVED)
            if offered and chosen is None:
                raise Refused(NO_SUBPROTOCOL)
            try:
                credential = await host.executor.run(identify, dict(scope["headers"]), offered)
                place.enter_context(host.places.held(credential.user.pk))
            except Unauthorized:
                raise Refused(UNAUTHENTICATED) from None
            except WrongOrigin:
                raise Refused(WRONG_ORIGIN) from None
            except RateLimited:
                raise Refused(TOO_MANY) from None
        except Refused as refused:
            logger.info("a socket from %s was refused with %d", scope.get("client"), refused.code)
            await receive()  # websocket.connect
            # A browser that offered subprotocols fails with 1006 unless one of them is chosen.
            await send({"type": "websocket.accept", "subprotocol": chosen or (named[0] if named else None)})
            await send({"type": "websocket.close", "code": refused.code})
            while (await receive())["type"] != "websocket.disconnect":
                pass
        else:
            known = {"credential": credential, "subprotocol": chosen, "subprotocols": named}
            with place:
                await self.application({**scope, **known}, receive, send)
