"""Those who wait are told, with a real connection to a server that says what a test has written down."""

from __future__ import annotations

import asyncio

import orjson
import pytest
from websockets.asyncio.server import ServerConnection, serve

from conversations.client import AsyncClient, NotConnected, ParError

CONVERSATION = "01890a5d-ac96-774b-bcce-b302099a8000"
WELCOME = orjson.dumps({"type": "welcome", "protocol": "par.v1", "user": {"id": "7", "name": "demo"}}).decode()


class Server:
    """Answers the only command of each connection with the next of its answers, and hangs up once `cut` is set."""

    def __init__(self, *answers: dict[str, object]) -> None:
        self._answers = list(answers)
        self.cut = asyncio.Event()

    async def __call__(self, socket: ServerConnection) -> None:
        await socket.send(WELCOME)
        command = orjson.loads(await socket.recv())
        await socket.send(orjson.dumps({"id": command["id"], **self._answers.pop(0)}).decode())
        await self.cut.wait()
        self.cut.clear()


FOLLOWED = {"type": "ack", "conversationId": CONVERSATION, "executionId": None, "version": 1}


async def test_who_follows_a_conversation_that_is_gone_after_a_reconnect_is_told() -> None:
    server = Server(FOLLOWED, {"type": "error", "code": "CONVERSATION_NOT_FOUND", "message": "it was deleted"})
    async with serve(server, "127.0.0.1", 0, subprotocols=["par.v1"]) as serving:
        port = serving.sockets[0].getsockname()[1]
        async with AsyncClient(f"http://127.0.0.1:{port}", "par_token") as client, asyncio.timeout(30):
            following = client.follow(CONVERSATION)
            server.cut.set()
            with pytest.raises(ParError, match="it was deleted") as caught:
                await anext(following)
            server.cut.set()
    assert not isinstance(caught.value, NotConnected)
