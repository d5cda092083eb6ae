"""A thousand connections that come and go while runs stream: nothing lost, nothing run twice, nothing left."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from agent.testing import ScriptedAnswer, ScriptedProvider, chat_stream
from tests.serve.program import Client, Run, browser, program, said
from tests.serve.raw import raw_websocket
from tests.site import Site

SEED = 1
PEOPLE = 20
TURNS = 10
DROPS = 5  # of each person in each turn: a thousand in all
PIECES = 60
PACE = 0.01
PING = 1.0, 5.0  # after how many seconds of silence, and how many a busy client has to answer
MOST_MEMORY = 120.0  # MiB above the beginning
HANDLES = 8 + PEOPLE  # the server keeps a connection to the provider for each run at a time, to use it again
CONNECTIONS = 12  # to PostgreSQL, whatever the number of sockets


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    options = ("--ping", *map(str, PING))
    many = {"PAR_CONNECTIONS_PER_PERSON": "2000"}
    with Site(tmp_path_factory.mktemp("site"), pace=0.01, probed=True, options=options, settings=many) as made:
        yield made


@dataclass
class Person:
    """Somebody with a bad network who talks with one agent in one conversation."""

    site: Site
    token: str
    chance: random.Random
    vanished: list[ClientConnection] = field(default_factory=list)
    conversation_id: str | None = None
    texts: list[str] = field(default_factory=list)
    drops: int = 0

    async def talk(self) -> None:
        for _ in range(TURNS):
            start = {"type": "start", "id": str(uuid4()), "agent": "scripted"}
            start |= {"input": [{"type": "text", "text": start["id"]}]}
            if self.conversation_id is not None:
                start["conversationId"] = self.conversation_id
            ack: dict[str, Any] | None = None
            for _ in range(DROPS):
                ack = await self._come_and_go(start, ack) or ack
            self.texts.append((await self._stay(start)).text)

    async def _come_and_go(self, start: dict[str, Any], ack: dict[str, Any] | None) -> dict[str, Any] | None:
        """Connect, start or follow the run, and drop at some moment; returns the answer if it came."""
        stack = AsyncExitStack()
        client = await self._connect(stack)
        with suppress(TimeoutError):
            async with asyncio.timeout(self.chance.choice((0, 0.02, 0.1, 0.3))):
                if ack is not None and self.chance.random() < 0.5:
                    await client.send(type="subscribe", id="s", executionId=ack["executionId"])
                else:
                    await client.send(**start)
                while True:
                    frame = await client.receive()
                    if frame["type"] == "ack" and frame["id"] == start["id"]:
                        ack = frame
        await self._drop(client, stack)
        return ack

    async def _connect(self, stack: AsyncExitStack) -> Client:
        while True:
            with suppress(InvalidHandshake, OSError):  # a busy server may be too late
                return await stack.enter_async_context(
                    program(self.site, self.token, ping_interval=None, close_timeout=0)
                )

    async def _drop(self, client: Client, stack: AsyncExitStack) -> None:
        self.drops += 1
        match self.chance.choice(("close", "abort", "vanish")):
            case "close":
                await stack.aclose()
            case "abort":
                client.connection.transport.abort()
            case "vanish":
                client.forget()
                self.vanished.append(client.connection)

    async def _stay(self, start: dict[str, Any]) -> Run:
        """Send the same start again, and follow its run to the end."""
        async with AsyncExitStack() as stack:
            client = await self._connect(stack)
            ack = await client.command(**start)
            assert ack["type"] == "ack", ack
            assert self.conversation_id in (None, ack["conversationId"])
            self.conversation_id = ack["conversationId"]
            run = await client.follow(ack["executionId"])
            assert run.status == "completed"
            return run


async def test_a_thousand_connects_and_drops_lose_nothing_and_leave_nothing(
    site: Site, token: str, provider: ScriptedProvider
) -> None:
    """B60, B61: text at every client = text stored, and no start runs twice."""
    chance = random.Random(SEED)
    for turn in range(PEOPLE * TURNS):
        provider.queue(ScriptedAnswer(chat_stream(*(f"{turn}:{n} " for n in range(PIECES))), pace=PACE))
    await Person(site, token, chance).talk()
    handles, memory = site.handles(), site.memory()

    people = [Person(site, token, random.Random(chance.random())) for _ in range(PEOPLE - 1)]
    async with asyncio.TaskGroup() as group:
        for person in people:
            group.create_task(person.talk())

    async with browser(site, token) as http:
        for person in people:
            conversation = (await http.get(f"/ai/conversations/{person.conversation_id}")).json()
            messages = conversation["context"]["messages"]
            answers = [said([message]) for message in messages if message["role"] == "assistant"]
            assert answers == person.texts
            assert len(set(answers)) == TURNS
    assert site.query("SELECT count(*) FROM conversations_execution") == [(PEOPLE * TURNS,)]
    asked = [request.json["messages"][-1]["content"] for request in provider.requests]
    assert len(asked) == len(set(asked)) == PEOPLE * TURNS, "somebody was billed twice"
    assert site.memory() < memory + MOST_MEMORY
    if not site.sqlite:
        (connections,) = site.query("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        assert connections <= (CONNECTIONS,)

    await nothing_is_left(site)
    assert site.handles() <= handles + HANDLES
    assert "Traceback" not in site.log()
    assert "took too long to shut down" not in site.log()


async def nothing_is_left(site: Site) -> None:
    """Wait until the server has noticed that everybody is gone, those who vanished too."""
    async with asyncio.timeout(30):
        while (held := await asyncio.to_thread(site.probe))["connections"]:
            await asyncio.sleep(0.2)
    assert held == {
        "runs": 0,
        "subscribers": 0,
        "readers": 0,
        "connections": 0,
        "frames": 0,
        "bytes": 0,
        "tasks": ["audit", "heartbeat", "pruning", "sign-ins"],
    }


async def test_a_connection_that_vanishes_without_a_word_is_dropped(site: Site, token: str) -> None:
    """Half-open: the ping is not answered. Nothing of the socket is left, and its run goes on."""
    async with program(
        site, token, max_queue=None
    ) as quick:  # which reads on, and answers pings, whatever the test does
        async with raw_websocket(site, token):
            ack = await quick.say("Hello")
            async with asyncio.timeout(20):
                while (await asyncio.to_thread(site.probe))["subscribers"] > 1:
                    await asyncio.sleep(0.1)
        assert (await quick.follow(ack["executionId"])).status == "completed"
    await nothing_is_left(site)


async def test_cancel_acts_at_once_and_a_socket_that_leaves_leaves_nothing(
    site: Site, token: str, provider: ScriptedProvider
) -> None:
    """B60: a long run holds up neither the next command nor the end of its socket."""
    for _ in range(2):
        provider.queue(ScriptedAnswer(chat_stream("a"), hold=asyncio.Event()))
    async with program(site, token) as client:
        ack = await client.say("Hi", "scripted")
        await provider.wait_for_requests(1)
        async with asyncio.timeout(1):
            assert (await client.command(type="cancel", executionId=ack["executionId"]))["status"] == "cancelled"
            await client.finished(ack["executionId"])
        await provider.wait_for_closed(1)
        left = await client.say("Hi", "scripted")
    async with program(site, token) as client:
        await client.command(type="cancel", executionId=left["executionId"])
        assert (await client.follow(left["executionId"])).status == "cancelled"
    with suppress(ConnectionClosed):
        await client.receive()
    await nothing_is_left(site)
    assert "took too long to shut down" not in site.log()
