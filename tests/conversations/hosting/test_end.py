"""An ended run is a stored run: what happens while the database is away."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError

from agent.testing import ScriptedModel, says
from conversations.hosting import run
from conversations.hosting.host import ExecutionHost
from conversations.models import Execution, User
from tests.factories import AgentProfileFactory, UserFactory
from tests.live import hosted, settled, socket_of

pytestmark = pytest.mark.django_db(transaction=True)

AGENT = "assistant"


@pytest.fixture
def user(transactional_db: None) -> User:
    AgentProfileFactory(slug=AGENT)
    return UserFactory()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conversations.hosting.executor.FIRST_PAUSE", 0.001)


class Away:
    """A database that is away for so many ends of runs; `after` lets the write through and loses its answer."""

    def __init__(self, host: ExecutionHost, name: str, times: int, *, after: bool = False) -> None:
        self.left, self.after = times, after
        self.tries = 0
        self.first = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._real = getattr(host.jobs, name)
        setattr(host.jobs, name, self)

    def __call__(self, *args: Any) -> Any:
        self.tries += 1
        self._loop.call_soon_threadsafe(self.first.set)
        if self.left:
            self.left -= 1
            if self.after:
                self._real(*args)
            raise OperationalError("the server closed the connection unexpectedly")
        return self._real(*args)


async def stored() -> Execution:
    return await sync_to_async(Execution.objects.select_related("conversation").get)()


async def test_an_end_is_stored_when_the_database_is_back_and_told_then(user: User) -> None:
    async with hosted(ScriptedModel(says("Good day."))) as host, socket_of(host, user) as socket:
        away = Away(host, "finish", 5)
        await socket.say("Hi", AGENT)
        assert (await socket.end())["type"] == "execution-completed"
        assert away.tries == 6
        assert [frame["type"] for frame in socket.frames[-2:]] == ["revision-saved", "execution-completed"]
        row = await stored()
        assert (row.status, row.conversation.version) == ("completed", 1)


async def test_an_end_whose_answer_was_lost_is_stored_once(user: User) -> None:
    async with hosted(ScriptedModel(says("Good day."))) as host, socket_of(host, user) as socket:
        Away(host, "finish", 1, after=True)
        await socket.say("Hi", AGENT)
        saved = await socket.until("revision-saved")
        assert (saved["number"], saved["version"]) == (1, 1)
        assert (await socket.end())["type"] == "execution-completed"
        assert (await stored()).conversation.version == 1


async def test_a_failed_end_waits_for_the_database_too(user: User) -> None:
    async with hosted(ScriptedModel(says("Half"))) as host, socket_of(host, user) as socket:

        def refused(*args: Any) -> Any:
            raise ValueError("cannot be stored")

        host.jobs.finish = refused  # type: ignore[method-assign]
        away = Away(host, "fail", 3)
        await socket.say("Hi", AGENT)
        assert (await socket.end())["errorCode"] == "CONVERSATION_SAVE_FAILED"
        assert away.tries == 4
        assert (await stored()).status == "failed"


async def test_a_cancel_does_not_wait_for_the_end_to_be_stored(user: User) -> None:
    """B60: the socket stays responsive while the database is away."""
    async with hosted(ScriptedModel(says("Good day."))) as host, socket_of(host, user) as socket:
        away = Away(host, "finish", 1_000_000)
        ack = await socket.say("Hi", AGENT)
        await away.first.wait()
        stopped = await socket.command(type="cancel", executionId=ack["executionId"])
        assert (stopped["status"], host.running(ack["executionId"]) is None) == ("completed", False)
        away.left = 0
        assert (await socket.end())["type"] == "execution-completed"


async def test_a_database_that_stays_away_ends_the_run_in_words(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SAVE_WITHIN", 0.05)
    async with hosted(ScriptedModel(says("Good day."))) as host, socket_of(host, user) as socket:
        for name in ("finish", "fail"):
            Away(host, name, 1_000_000)
        await socket.say("Hi", AGENT)
        assert (await socket.end())["errorCode"] == "CONVERSATION_SAVE_FAILED"
        await settled(host)


async def test_a_drain_does_not_wait_as_long_for_the_database(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SAVE_WITHIN", 3600.0)
    monkeypatch.setattr(run, "SAVE_WITHIN_DRAINING", 0.05)
    async with hosted(ScriptedModel(says("Good day."))) as host, socket_of(host, user) as socket:
        away, _ = Away(host, "finish", 1_000_000), Away(host, "fail", 1_000_000)
        await socket.say("Hi", AGENT)
        await away.first.wait()
        host.refuse()
        assert (await socket.end())["errorCode"] == "CONVERSATION_SAVE_FAILED"
