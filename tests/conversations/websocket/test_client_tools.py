"""Front-end tools over the websocket: declared, called, answered once, delivered again (R87, R102, R105-R107)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from agent.testing import ScriptedModel, calls, says
from conversations.models import Execution, User
from tests.factories import AgentProfileFactory, UserFactory
from tests.live import Socket, hosted, settled, socket_of

pytestmark = pytest.mark.django_db(transaction=True)

AGENT = "assistant"
READ = {
    "name": "clipboard.read",
    "description": "Read the clipboard.",
    "inputSchema": {"type": "object", "properties": {"format": {"type": "string"}}},
    "annotations": {"readOnlyHint": True},
}
WRITE = READ | {"name": "clipboard.write", "annotations": {}}


@pytest.fixture
def user(transactional_db: None) -> User:
    AgentProfileFactory(slug=AGENT, all_tools=True)
    return UserFactory()


async def begin(socket: Socket, *tools: dict[str, Any], client: str = "one") -> dict[str, Any]:
    return await socket.say("Hi", AGENT, clientId=client, clientTools=list(tools or (READ,)))


def result_of(model: ScriptedModel) -> Any:
    return model.requests[-1].messages[-1].blocks[0]


@pytest.mark.parametrize(("result", "told"), [("plain", "plain"), ({"a": [1, None]}, '{"a":[1,null]}'), (None, "null")])
async def test_a_call_goes_to_the_client_and_its_result_to_the_model(user: User, result: Any, told: str) -> None:
    """R107."""
    model = ScriptedModel(calls(("clipboard.read", {"format": "text"})), says("Done"))
    async with hosted(model) as host, socket_of(host, user) as socket:
        ack = await begin(socket)
        call = await socket.until("client-tool-call")
        assert (call["executionId"], call["name"], call["arguments"]) == (
            ack["executionId"],
            "clipboard.read",
            {"format": "text"},
        )
        answer = {"type": "tool-result", "executionId": ack["executionId"], "callId": call["callId"], "result": result}
        async with socket_of(host, user) as other:
            assert (await other.command(**answer))["type"] == "ack"
            assert (await other.command(**answer))["type"] == "ack"  # the first ack may have been lost
            assert (await other.command(**(answer | {"result": "else"})))["code"] == "INVALID_STATE"
            assert (await socket.end())["type"] == "execution-completed"
            assert (await other.command(**answer))["type"] == "ack"
    block = result_of(model)
    assert (block.status, block.execution, block.content[0].text) == ("success", "completed", told)


async def test_a_failure_of_the_client_is_told_to_the_model(user: User) -> None:
    model = ScriptedModel(calls(("clipboard.read", {})), says("Done"))
    async with hosted(model) as host, socket_of(host, user) as socket:
        ack = await begin(socket)
        call = await socket.until("client-tool-call")
        answer = {"executionId": ack["executionId"], "callId": call["callId"], "result": "It is empty."}
        await socket.send(type="tool-result", isError=True, **answer)
        await socket.end()
    assert (result_of(model).status, result_of(model).content[0].text) == ("error", "It is empty.")


async def test_arguments_that_break_the_schema_never_reach_the_client(user: User) -> None:
    """R106."""
    model = ScriptedModel(calls(("clipboard.read", {"format": 7})), says("Done"))
    async with hosted(model) as host, socket_of(host, user) as socket:
        await begin(socket)
        await socket.end()
        assert not any(frame["type"] == "client-tool-call" for frame in socket.frames)
    assert (result_of(model).status, result_of(model).execution) == ("error", "not-executed")


async def test_a_tool_that_is_not_read_only_is_confirmed_first(user: User) -> None:
    """R87."""
    model = ScriptedModel(calls(("clipboard.write", {})), says("Done"))
    async with hosted(model) as host, socket_of(host, user) as socket:
        ack = await begin(socket, WRITE)
        asked = await socket.until("interrupt-requested")
        assert asked["interrupt"]["tool"]["source"] == "FRONTEND_LOCAL"
        ids = {"executionId": ack["executionId"], "interruptId": asked["interrupt"]["id"]}
        await socket.command(type="approve", **ids)
        call = await socket.until("client-tool-call")
        await socket.send(type="tool-result", executionId=ack["executionId"], callId=call["callId"], result="ok")
        assert (await socket.end())["type"] == "execution-completed"


async def test_a_call_is_delivered_again_to_a_client_that_comes_back(user: User) -> None:
    model = ScriptedModel(calls(("clipboard.read", {})), says("Done"))
    async with hosted(model) as host:
        async with socket_of(host, user) as first:
            ack = await begin(first)
            call = await first.until("client-tool-call")
        async with socket_of(host, user) as stranger, socket_of(host, user) as second:
            await stranger.command(type="subscribe", conversationId=ack["conversationId"], clientId="another")
            await second.command(type="subscribe", conversationId=ack["conversationId"], clientId="one")
            assert await second.until("client-tool-call") == call
            ids = {"executionId": ack["executionId"], "callId": call["callId"]}
            await second.send(type="tool-result", result="late", **ids)
            await asyncio.gather(second.end(), stranger.end())
            assert not any(frame["type"] == "client-tool-call" for frame in stranger.frames)
    assert result_of(model).content[0].text == "late"


@pytest.mark.parametrize(("connected", "words"), [(True, "may have run"), (False, "was not run")])
async def test_a_client_that_does_not_answer_is_told_of_honestly(user: User, connected: bool, words: str) -> None:
    gate = asyncio.Event()
    model = ScriptedModel([gate, *calls(("clipboard.read", {}))], says("Done"))
    async with hosted(model, client_tool_timeout=0.01) as host, socket_of(host, user) as watcher:
        async with socket_of(host, user) as client:
            ack = await begin(client)
            await watcher.command(type="subscribe", conversationId=ack["conversationId"])
            if connected:
                gate.set()
                await watcher.end()
        gate.set()
        if not connected:
            await watcher.end()
        ids = {"executionId": ack["executionId"], "callId": "call-1"}
        late = await watcher.command(type="tool-result", result="late", **ids)
        assert late["code"] == "INVALID_STATE"
    assert result_of(model).status == "error"
    assert words in result_of(model).content[0].text


async def test_stop_while_a_call_waits_ends_the_run_at_once(user: User) -> None:
    """B52, B53: whether the client ran the tool is unknown, and the result says so."""
    async with hosted(ScriptedModel(calls(("clipboard.read", {})))) as host, socket_of(host, user) as socket:
        ack = await begin(socket)
        await socket.until("client-tool-call")
        await socket.send(type="cancel", executionId=ack["executionId"])
        assert (await socket.end())["outcome"] == {"type": "cancelled", "reason": "user"}
        await settled(host)
        execution = await sync_to_async(Execution.objects.get)()
        assert execution.transcript[-1]["blocks"][0]["execution"] == "unknown"


@pytest.mark.parametrize(
    ("tools", "client"),
    [
        ([READ], None),
        ([READ, READ], "one"),
        ([READ | {"name": "local.calculate"}], "one"),
        ([READ | {"name": "a b"}], "one"),
        ([READ | {"description": " "}], "one"),
        ([READ | {"inputSchema": {"type": "string"}}], "one"),
        ([READ | {"inputSchema": {"$ref": "#"}}], "one"),
        ([READ | {"inputSchema": None}], "one"),
        ([READ | {"more": 1}], "one"),
        ([READ | {"name": f"t{n}"} for n in range(33)], "one"),
    ],
    ids=["nobody", "twice", "taken", "name", "description", "no object", "keyword", "null", "unknown", "too many"],
)
async def test_tools_that_cannot_be_used_are_refused_with_the_start(
    user: User, tools: list[dict[str, Any]], client: str | None
) -> None:
    """R99, R101, R105."""
    async with hosted(ScriptedModel()) as host, socket_of(host, user) as socket:
        who = {} if client is None else {"clientId": client}
        answer = await socket.say("Hi", AGENT, clientTools=tools, **who)
        assert answer["code"] == "INVALID_ARGUMENT"
        assert not await sync_to_async(Execution.objects.exists)()


async def test_calls_come_to_nobody_without_the_scope_write_and_to_nobody_else(user: User) -> None:
    model = ScriptedModel(calls(("clipboard.read", {})), says("Done"))
    async with hosted(model) as host, socket_of(host, user) as socket:
        ack = await begin(socket)
        call = await socket.until("client-tool-call")
        async with socket_of(host, user, scopes=("read",)) as reader:
            refused = await reader.command(type="subscribe", conversationId=ack["conversationId"], clientId="one")
            assert refused["code"] == "FORBIDDEN"
        stranger = await sync_to_async(UserFactory)()
        async with socket_of(host, stranger) as other:
            ids = {"executionId": ack["executionId"], "callId": call["callId"]}
            refused = await other.command(type="tool-result", result="x", **ids)
            assert refused["code"] == "EXECUTION_NOT_FOUND"
        await socket.send(type="cancel", executionId=ack["executionId"])
        await socket.end()
