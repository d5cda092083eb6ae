"""Where websockets go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any


async def websocket_application(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Accept and close: there is no protocol yet."""
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": 4500})
