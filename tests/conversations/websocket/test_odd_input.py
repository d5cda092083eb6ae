"""What is done with odd input over the websocket: the rows of the table in docs/http.md."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from asgiref.sync import sync_to_async

from agent.testing import ScriptedModel, calls, says
from conversations.models import Revision, User
from tests.factories import AgentProfileFactory, UserFactory
from tests.live import Socket, hosted, settled, socket_of

pytestmark = pytest.mark.django_db(transaction=True)

AGENT = "assistant"
READ = {
    "name": "clipboard.read",
    "description": "Read the clipboard.",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}
FRAMES = [
    " ",
    "{",
    "null",
    "[]",
    "\ufeff{}",
    '{"type":"ping","id":"\\ud800"}',
    '{"type":"ping","id":NaN}',
    '{"type":"ping","id":1e999}',
    '{"type":"ping","id":1}',
    '{"type":"ping","id":"1","surprise":1}',
    '{"type":"surprise","id":"1"}',
    '{"type":"ping","id":"%s"}' % ("x" * 65),
    '{"type":"cancel","id":"1","executionId":"x"}',
    '{"type":"subscribe","id":"1","conversationId":"%s"}' % ("x" * 5_000),
    '{"type":"ping","id":"1","x":%s}' % ("[" * 100_000 + "]" * 100_000),
    '{"type":"ping","id":"1","x":%s}' % ('{"x":' * 100_000 + "1" + "}" * 100_000),
    '{"type":"ping","id":"1","x":[%s0]}' % ("0," * 20_001),
]


@pytest.fixture
def user(transactional_db: None) -> User:
    AgentProfileFactory(slug=AGENT, all_tools=True)
    return UserFactory()


async def answer_to(socket: Socket, text: str) -> dict[str, Any]:
    await socket.communicator.send_to(text_data=text)
    return await socket.until("ack", "error")


async def test_a_frame_that_cannot_be_used_is_refused_and_the_socket_goes_on(user: User) -> None:
    """B71, B73."""
    async with hosted() as host, socket_of(host, user) as socket:
        for text in FRAMES:
            answer = await answer_to(socket, text)
            assert (answer["type"], answer["code"]) == ("error", "INVALID_ARGUMENT"), text[:80]
        await socket.communicator.send_to(bytes_data=b"{}")
        assert (await socket.until("error"))["code"] == "INVALID_ARGUMENT"
        doubled = await answer_to(socket, '{"type":"cancel","type":"ping","id":"1","id":"2"}')
        assert (doubled["type"], doubled["id"]) == ("ack", "2")


async def test_odd_text_and_data_are_stored_by_one_rule(user: User) -> None:
    """B69, B71: NUL becomes U+FFFD, a number beyond 64 bits the nearest double, the last of two names counts."""
    model = ScriptedModel(calls(("clipboard.read", {"a": "b\0"})), says("Done\0"))
    async with hosted(model) as host, socket_of(host, user) as socket:
        ack = await socket.say("a\0b", AGENT, clientId="one\0", clientTools=[READ])
        assert ack["type"] == "ack", ack
        call = await socket.until("client-tool-call")
        assert call["arguments"] == {"a": "b\ufffd"}
        frame = orjson.dumps(
            {"type": "tool-result", "id": "1", "executionId": ack["executionId"], "callId": call["callId"], "result": 0}
        ).decode()
        for bad in ("NaN", '"\\ud800"', "[" * 101 + "]" * 101, "[" * 100_000 + "]" * 100_000):
            refused = await answer_to(socket, frame.replace('"result":0', f'"result":{bad}'))
            assert (refused["type"], refused["code"]) == ("error", "INVALID_ARGUMENT"), bad[:80]
        odd = '{"a":"\\u0000","n":1,"n":18446744073709551616}'
        assert (await answer_to(socket, frame.replace('"result":0', f'"result":{odd}')))["type"] == "ack"
        assert (await socket.end())["type"] == "execution-completed"
        await settled(host)
    stored = await sync_to_async(lambda: Revision.objects.get().context)()
    said, asked, told, answered = [message["blocks"][0] for message in stored]
    assert (said["text"], asked["input"], answered["text"]) == ("a\ufffdb", {"a": "b\ufffd"}, "Done\ufffd")
    assert orjson.loads(told["content"][0]["text"]) == {"a": "\ufffd", "n": 2.0**64}
