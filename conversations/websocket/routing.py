"""Where the websocket lives: `{base path}/ws`."""

from __future__ import annotations

from typing import Any

from channels.routing import URLRouter
from django.conf import settings
from django.urls import path

from conversations.websocket.consumer import LiveConsumer
from conversations.websocket.handshake import Handshake, Receive, Send

_live: Any = Handshake(LiveConsumer.as_asgi())
_router = URLRouter([path(f"{settings.PAR.base_path.strip('/')}/ws", _live)])


async def websocket_application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Route a websocket; an unknown path is refused before the upgrade, which the server answers with 403."""
    try:
        await _router(scope, receive, send)
    except ValueError as error:
        if not str(error).startswith("No route found"):
            raise
        await receive()
        await send({"type": "websocket.close", "code": 4404})
