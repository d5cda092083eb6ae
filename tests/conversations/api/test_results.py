"""Readers are sent an excerpt of a long result; the whole is a request away, also while the run goes on."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async

from agent.governance import tools as governed
from agent.testing import Gate, calls, says, scripted_tool
from conversations import store
from conversations.models import Conversation, Revision, User
from tests.conversations.api.program import AGENT, Program, code, program
from tests.factories import AgentProfileFactory, ToolRecordFactory, UserFactory
from tests.live import token_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

LONG = "<script>x()</script>" + "é" * 40_000 + "end"
CALL_ID = "call/1 ?x%"


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch) -> User:
    tools = {"read_all": scripted_tool("read_all", LONG, read_only=True)}
    monkeypatch.setattr(governed, "installed_tools", lambda: tools)
    monkeypatch.setattr(governed, "sync_tool_records", lambda: None)
    ToolRecordFactory(name="read_all")
    AgentProfileFactory(slug=AGENT, all_tools=True)
    return UserFactory()


async def whole(http: Program, path: str) -> Any:
    return await http.client.get(f"/ai{path}", headers=http.headers)


async def test_the_whole_result_is_there_live_and_later(user: User) -> None:
    gate = Gate()
    steps = [calls(("read_all", {}, CALL_ID)), says("Read", gate, ".")]
    async with program(user, *steps) as http:
        started = await http.start()
        await gate.reached()
        live = await http.read(started["executionId"])
        (block,) = live["messages"][2]["blocks"]
        path = f"/executions/{started['executionId']}/tool-results/{quote(block['callId'])}"
        while_live = await whole(http, path)
        gate.open()
        ended = await http.read(started["executionId"], "?waitMs=10000")
        later = await whole(http, path)
    assert (len(block["content"][0]["text"]) < 17_000, block["omitted"]) == (True, len(LONG) - 16_000)
    assert ended["messages"][2]["blocks"] == [block]
    for answer in (while_live, later):
        assert (answer.status_code, answer.content.decode()) == (200, LONG)
        assert answer["Content-Type"] == "text/plain; charset=utf-8"
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Content-Security-Policy"] == "default-src 'none'; sandbox"
    stored = await Revision.objects.alatest("pk")
    assert store.result_in(stored.context, block["callId"]) == LONG


async def test_a_copy_of_a_conversation_has_its_results_too(user: User) -> None:
    async with program(user, calls(("read_all", {}, CALL_ID)), says("Read.")) as http:
        started = await http.start()
        row = await http.read(started["executionId"], "?waitMs=10000")
        call_id = row["messages"][2]["blocks"][0]["callId"]
        copy = await sync_to_async(store.fork)(user, (await Conversation.objects.aget()).pk)
        answer = await whole(http, f"/conversations/{copy.pk}/tool-results/{quote(call_id)}")
    assert answer.content.decode() == LONG


async def test_results_of_others_are_as_unknown_as_none(user: User) -> None:
    stranger = await sync_to_async(UserFactory)()
    async with program(user, calls(("read_all", {})), says("Read.")) as http:
        started = await http.start()
        row = await http.read(started["executionId"], "?waitMs=10000")
        call_id = row["messages"][2]["blocks"][0]["callId"]
        theirs = Program(http.host, await token_of(stranger))
        for id in (started["executionId"], str(uuid4())):
            answer = await whole(theirs, f"/executions/{id}/tool-results/{call_id}")
            assert (code(answer), id in answer.json()["error"]["message"]) == ((404, "EXECUTION_NOT_FOUND"), True)
        for id in (started["conversationId"], str(uuid4())):
            answer = await whole(theirs, f"/conversations/{id}/tool-results/{call_id}")
            assert code(answer) == (404, "CONVERSATION_NOT_FOUND")
        for path in ("executions", "conversations"):
            id = started[f"{path[:-1]}Id"]
            assert code(await whole(http, f"/{path}/{id}/tool-results/none")) == (404, "NOT_FOUND")
            assert code(await whole(http, f"/{path}/{id}/tool-results/%25_%5C")) == (404, "NOT_FOUND")
