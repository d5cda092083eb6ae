"""A host and sockets inside the test's own process, with scripted models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import orjson
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings

from agent.conf import ParSettings
from agent.runtime import ExecutionState
from agent.testing import ScriptedModel
from conversations.hosting.host import ExecutionHost
from conversations.models import ApiToken, User
from conversations.websocket.routing import websocket_application

TERMINAL = ("execution-completed", "execution-failed")


@asynccontextmanager
async def hosted(model: ScriptedModel | None = None, **changes: Any) -> AsyncIterator[ExecutionHost]:
    """A running host whose agents all speak with `model`; `changes` are settings."""
    par: ParSettings = settings.PAR.model_copy(update=changes)
    scripted = model or ScriptedModel()
    host = ExecutionHost(par, "test", lambda config: scripted)
    await host.start()
    try:
        yield host
    finally:
        await host.close()


async def token_of(user: User, *scopes: str) -> str:
    """Return a new bearer token of a person."""
    _, plain = await sync_to_async(ApiToken.issue)(user, "test", scopes=scopes or ("read", "write"))
    return plain


class Socket:
    """A client of `par.v1` that keeps every frame in `frames`."""

    def __init__(self, host: ExecutionHost | None, headers: dict[str, str], subprotocols: list[str]) -> None:
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        path = f"{settings.PAR.base_path}/ws"
        self.communicator = WebsocketCommunicator(websocket_application, path, raw, subprotocols)
        if host is not None:
            self.communicator.scope["par.host"] = host
        self.frames: list[dict[str, Any]] = []
        self.states: dict[str, ExecutionState] = {}

    async def connect(self) -> tuple[bool, int | str | None]:
        connected, chosen = await self.communicator.connect(timeout=10)
        return connected, chosen

    async def receive(self) -> dict[str, Any]:
        """Return the next frame."""
        frame: dict[str, Any] = orjson.loads(await self.communicator.receive_from(timeout=10))
        self.frames.append(frame)
        return frame

    async def until(self, *types: str) -> dict[str, Any]:
        """Return the next frame of one of these types."""
        while (frame := await self.receive())["type"] not in types:
            pass
        return frame

    async def end(self) -> dict[str, Any]:
        """Return the terminal event of the run that is being followed."""
        return await self.until(*TERMINAL)

    async def send(self, **frame: Any) -> str:
        """Send a command; returns its id."""
        frame.setdefault("id", str(uuid4()))
        await self.communicator.send_to(text_data=orjson.dumps(frame).decode())
        return str(frame["id"])

    async def command(self, **frame: Any) -> dict[str, Any]:
        """Send a command and return its answer."""
        id = await self.send(**frame)
        while True:
            answer = await self.until("ack", "error")
            if answer["id"] == id:
                return answer

    async def say(self, text: str, agent: str, **more: Any) -> dict[str, Any]:
        """Start a run with a text and return the answer."""
        return await self.command(type="start", agent=agent, input=[{"type": "text", "text": text}], **more)

    def text(self, execution_id: str) -> str:
        """Return the text of all deltas of a run that were received."""
        deltas = [f for f in self.frames if f["type"] == "block-delta" and f["executionId"] == execution_id]
        return "".join(frame["delta"].get("text", "") for frame in deltas)

    async def close(self) -> None:
        await self.communicator.disconnect(timeout=10)


@asynccontextmanager
async def socket_of(
    host: ExecutionHost, user: User, *, scopes: tuple[str, ...] = ("read", "write")
) -> AsyncIterator[Socket]:
    """An open socket of a person, past its `welcome`."""
    socket = Socket(host, {"authorization": f"Bearer {await token_of(user, *scopes)}"}, ["par.v1"])
    connected, chosen = await socket.connect()
    assert connected, chosen
    assert (await socket.receive())["type"] == "welcome"
    try:
        yield socket
    finally:
        await socket.close()


async def settled(host: ExecutionHost) -> None:
    """Return when the host has no run and no task left."""
    async with asyncio.timeout(10):
        while host._runs or host._tasks:
            await asyncio.gather(*host._tasks, return_exceptions=True)
            await asyncio.sleep(0)
