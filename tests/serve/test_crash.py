"""A server that is killed at any moment: each run ends once and honestly, and its conversation goes on."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from agent.testing import ScriptedAnswer, ScriptedProvider, chat_stream
from agent.testing.http_provider import ReceivedRequest
from tests.serve.program import Client, program, stored
from tests.site import Site

SEED = 7
KILLS = 4
RUNS = 9
ORDER = {"name": "shop.order", "description": "Order.", "inputSchema": {"type": "object", "properties": {}}}
KINDS = ("plain", "postcard", "order", "order and postcard", "time and order")
STARTS = 1.5  # seconds that the start of a server takes, about


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("site"), pace=0.01, drain=5) as made:
        yield made


def answer(request: ReceivedRequest) -> ScriptedAnswer:
    """Call the tools that the person names, then talk; each at a pace that a kill can hit."""
    last = request.json["messages"][-1]
    names = [tool["function"]["name"] for tool in request.json.get("tools", ())]
    wanted: list[tuple[str, dict[str, Any]]] = []
    for word in last["content"].split() if last["role"] == "user" else ():
        arguments = {"to": "Ada", "text": "Hello"} if word == "postcard" else {}
        wanted += [(name, arguments) for name in names if name.endswith(word)]
    return ScriptedAnswer(chat_stream(*(f"{n} " for n in range(20)), tool_calls=wanted), pace=0.02)


@dataclass
class Talk:
    """A run and what its client saw of it before the server was killed."""

    text: str
    chance: random.Random
    id: str = field(default_factory=lambda: str(uuid4()))
    execution_id: str | None = None
    conversation_id: str = ""
    dispatched: set[str] = field(default_factory=set)
    ended: bool = False

    @property
    def start(self) -> dict[str, Any]:
        said = [{"type": "text", "text": self.text}]
        client = {"clientId": self.id, "clientTools": [ORDER]}
        return {"type": "start", "id": self.id, "agent": "scripted", "input": said, **client}

    async def until_the_kill(self, site: Site, token: str) -> None:
        with suppress(ConnectionClosed, InvalidHandshake, OSError):
            async with program(site, token) as client:
                await asyncio.sleep(self.chance.random())
                await client.send(**self.start)
                while True:
                    await self._react(client, await client.receive())

    async def _react(self, client: Client, frame: dict[str, Any]) -> None:
        match frame["type"]:
            case "ack" if frame["id"] == self.id:
                self.execution_id, self.conversation_id = frame["executionId"], frame["conversationId"]
            case "interrupt-requested" if self.chance.random() < 0.7:
                await asyncio.sleep(self.chance.random() / 4)
                decided = {"executionId": frame["executionId"], "interruptId": frame["interrupt"]["id"]}
                await client.send(type="approve", id="a", **decided)
            case "client-tool-call":
                self.dispatched.add(frame["callId"])
                if self.chance.random() < 0.7:
                    await asyncio.sleep(self.chance.random() / 4)
                    result = {"executionId": frame["executionId"], "callId": frame["callId"], "result": "ordered"}
                    await client.send(type="tool-result", id="t", **result)
            case "execution-completed":
                self.ended = True

    async def after_the_kill(self, client: Client) -> str:
        """Check how the run ended, and go on in its conversation; returns how."""
        again = await client.command(**self.start)
        assert again["type"] == "ack", again
        if self.execution_id is None:  # the kill came before the answer; now it is certain
            self.execution_id, self.conversation_id = again["executionId"], again["conversationId"]
        assert again["executionId"] == self.execution_id
        await client.command(type="subscribe", executionId=self.execution_id)
        state = (await client.until("snapshot"))["state"]
        if again["created"]:  # it was never stored, so it runs now
            assert not self.ended
            await client.command(type="cancel", executionId=self.execution_id)
            end = "created, then " + (await client.finished(self.execution_id)).status
        else:
            self._check_end(state)
            end = str(state["status"])
        more = {"type": "start", "id": str(uuid4()), "agent": "scripted", "conversationId": self.conversation_id}
        ack = await client.command(**more, input=[{"type": "text", "text": "plain"}])
        assert ack["type"] == "ack", ack
        assert (await client.follow(ack["executionId"])).status == "completed"
        return end

    def _check_end(self, state: dict[str, Any]) -> None:
        assert state["status"] == "completed" or state["error"]["code"] == "EXECUTION_LOST", state
        assert state["status"] == "completed" or not self.ended, "an ended run is a stored run"
        blocks = [block for message in state["messages"] for block in message["blocks"]]
        calls = [block["callId"] for block in blocks if block["type"] == "tool-call"]
        results = {block["callId"]: block["execution"] for block in blocks if block["type"] == "tool-result"}
        assert sorted(calls) == sorted(b["callId"] for b in blocks if b["type"] == "tool-result"), "one result each"
        for call in self.dispatched:
            assert results[call] in ("completed", "unknown"), "a tool that was called may have had its effect"
        for block in blocks:
            if block["type"] == "tool-result" and "shop" in block["name"] and block["callId"] not in self.dispatched:
                assert block["execution"] in ("not-executed", "unknown"), "nobody was asked for it"


async def crash(site: Site, token: str, talks: list[Talk], chance: random.Random, *, drains: bool = False) -> None:
    """Kill the server while `talks` run, and start it again, not always at the first attempt."""
    async with asyncio.TaskGroup() as group:
        for talk in talks:
            group.create_task(talk.until_the_kill(site, token))
        await asyncio.sleep(0.3 + chance.random() * 2)
        if drains:
            site.process.send_signal(signal.SIGTERM)
            await asyncio.sleep(chance.random() / 5)
        await asyncio.to_thread(site.kill)
    for _ in range(chance.choice((0, 1))):
        site.launch()
        await asyncio.sleep(chance.random() * STARTS)
        await asyncio.to_thread(site.kill)
    expire_heartbeats(site)
    await asyncio.to_thread(site.start)


def expire_heartbeats(site: Site) -> None:
    """Let the time pass after which a process counts as lost; SQLite has one process and needs none."""
    site.query("UPDATE conversations_hostprocess SET heartbeat_at = '2020-01-01 00:00:00+00:00'")


async def test_a_server_killed_at_any_moment_loses_no_run_and_tells_no_lie(
    site: Site, token: str, provider: ScriptedProvider
) -> None:
    """DESIGN 5 crash; E5, B51, B53: exactly one end each, `unknown` for what may have happened."""
    chance = random.Random(SEED)
    provider.queue(*[answer] * 1_000)
    told: list[str] = []
    starts = 0
    for number in range(KILLS):
        talks = [Talk(KINDS[n % len(KINDS)], random.Random(chance.random())) for n in range(RUNS)]
        await crash(site, token, talks, chance, drains=number % 4 == 3)
        assert site.query("SELECT count(*) FROM conversations_execution WHERE finished_at IS NULL") == [(0,)]
        async with asyncio.TaskGroup() as group:
            ends = [group.create_task(checked(site, token, talk)) for talk in talks]
        told += [end.result() for end in ends]
        starts += 2 * len(talks)
    assert site.query("SELECT count(*) FROM conversations_execution") == [(starts,)]
    assert {"completed", "failed"} <= set(told)
    for request in provider.requests:
        check_history(request.json["messages"])
    if site.sqlite:
        assert site.query("PRAGMA integrity_check") == [("ok",)]
    assert "Traceback" not in site.log()


async def checked(site: Site, token: str, talk: Talk) -> str:
    async with program(site, token) as client:
        end = await talk.after_the_kill(client)
    conversation = await stored(site, token, talk.conversation_id)
    assert conversation["conversation"]["revision"] == (2 if end.endswith("completed") else 1), end
    return end


def check_history(messages: list[dict[str, Any]]) -> None:
    """A provider refuses a history in which a call has no answer, or an answer no call."""
    open_calls: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
            continue
        assert not open_calls
        open_calls = {call["id"] for call in message.get("tool_calls") or ()}
    assert not open_calls
