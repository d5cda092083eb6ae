"""Starts on their way: pictures by address, and what else a client may do meanwhile."""

from __future__ import annotations

import asyncio
import threading
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings

from agent.providers.net import Fetcher, FetchLimits
from agent.runtime.exceptions import InvalidArgument
from agent.runtime.messages import ImageBlock, UrlSource
from agent.testing import ScriptedAnswer, ScriptedModel, ScriptedProvider, says
from conversations.bodies import StartBody
from conversations.exceptions import Draining, RateLimited
from conversations.hosting.host import ExecutionHost
from conversations.hosting.setup import Begun, StartRequest
from conversations.hosting.starts import FETCHING_AT_ONCE
from conversations.models import Execution, User
from conversations.websocket.consumer import STARTS_AT_ONCE
from tests.agent.providers import pictures
from tests.factories import AgentProfileFactory, UserFactory
from tests.live import hosted, settled, socket_of

pytestmark = pytest.mark.django_db(transaction=True)

AGENT = "assistant"
PNG = b64decode(pictures.PNG)
BOMB = b64decode(pictures.png(60_000, 60_000))
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(PNG), PNG)


@pytest.fixture
def user(transactional_db: None) -> User:
    AgentProfileFactory(slug=AGENT)
    return UserFactory()


async def rows(model: type[Any]) -> list[Any]:
    return await sync_to_async(lambda: list(model.objects.order_by("pk")))()


def picture_at(url: str) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "url", "url": url}}


@asynccontextmanager
async def seeing(model: ScriptedModel, *, allow_private: bool) -> AsyncIterator[ExecutionHost]:
    fetcher = Fetcher(FetchLimits(ports=None), allow_private=allow_private)
    host = ExecutionHost(settings.PAR, "test", lambda config: model, fetcher)
    await host.start()
    try:
        yield host
    finally:
        await host.close()


async def test_a_picture_by_address_is_fetched_once_and_kept(user: User) -> None:
    """B76, B79: the model gets the picture, never the address; a repeated start asks nobody again."""
    model, id = ScriptedModel(says("A picture")), str(uuid4())
    async with (
        ScriptedProvider(ScriptedAnswer(PNG, headers={"content-type": "text/html"})) as server,
        seeing(model, allow_private=True) as host,
        socket_of(host, user) as socket,
    ):
        start = {"type": "start", "id": id, "agent": AGENT, "input": [picture_at(server.url)]}
        first = await socket.command(**start)
        await socket.end()
        again = await socket.command(**start)
        assert (again["executionId"], again["created"]) == (first["executionId"], False)
    source = model.requests[0].messages[-1].blocks[0].source
    assert (source.media_type, source.data) == ("image/png", b64encode(PNG).decode())


@pytest.mark.parametrize(
    ("body", "allow_private", "words"),
    [
        (PNG, False, "local, private or reserved"),
        (b"<svg onload=x>", True, "no PNG, JPEG, GIF or WebP"),
        (BOMB, True, "wider or higher"),
    ],
)
async def test_an_address_that_is_no_picture_starts_nothing(
    user: User, body: bytes, allow_private: bool, words: str
) -> None:
    async with (
        ScriptedProvider(ScriptedAnswer(body, headers={"content-type": "image/png"}), repeat=True) as server,
        seeing(ScriptedModel(), allow_private=allow_private) as host,
        socket_of(host, user) as socket,
    ):
        refused = await socket.command(type="start", agent=AGENT, input=[picture_at(server.url)], id=str(uuid4()))
        assert (refused["code"], words in refused["message"]) == ("INVALID_ARGUMENT", True)
        assert await rows(Execution) == []


class SlowPictures:
    """A server that answers every request with a picture once it may."""

    def __init__(self) -> None:
        self.port = 0
        self.may_answer = asyncio.Event()
        self.asked = asyncio.Semaphore(0)
        self.left = asyncio.Semaphore(0)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.asked.release()
        gone = asyncio.create_task(reader.read())
        may = asyncio.create_task(self.may_answer.wait())
        await asyncio.wait({gone, may}, return_when=asyncio.FIRST_COMPLETED)
        if may.done():
            writer.write(ANSWER)
            await writer.drain()
        writer.close()
        may.cancel()
        await gone
        self.left.release()

    async def asked_for(self, count: int) -> None:
        async with asyncio.timeout(10):
            for _ in range(count):
                await self.asked.acquire()

    def start(self, pictures: int = 1) -> dict[str, Any]:
        return {"type": "start", "agent": AGENT, "input": [picture_at(self.url)] * pictures, "id": str(uuid4())}

    def wanted(self) -> StartRequest:
        return StartRequest(uuid4(), StartBody(agent=AGENT, input=(ImageBlock(source=UrlSource(url=self.url)),)))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"


@asynccontextmanager
async def slow_pictures() -> AsyncIterator[SlowPictures]:
    pictures = SlowPictures()
    async with await asyncio.start_server(pictures.answer, "127.0.0.1", 0) as server:
        pictures.port = server.sockets[0].getsockname()[1]
        yield pictures


def ignore(begun: Begun) -> None:
    pass


async def test_a_socket_stays_responsive_while_pictures_are_fetched(user: User) -> None:
    """B60: a ping, another run and its cancel are answered, and the start is, too, once."""
    model = ScriptedModel(says("Hi", asyncio.Event()), says("A picture"))
    async with slow_pictures() as pictures, seeing(model, allow_private=True) as host, socket_of(host, user) as socket:
        start = pictures.start()
        await socket.send(**start)
        await pictures.asked_for(1)
        assert (await socket.command(type="ping"))["type"] == "ack"
        other = await socket.say("Hi", AGENT)
        stopped = await socket.command(type="cancel", executionId=other["executionId"])
        assert stopped["status"] == "cancelled"
        await socket.end()
        assert not [frame for frame in socket.frames if frame.get("id") == start["id"]]
        pictures.may_answer.set()
        assert (await socket.until("ack"))["id"] == start["id"]
        assert (await socket.end())["outcome"]["type"] == "completed"
        assert len([frame for frame in socket.frames if frame.get("id") == start["id"]]) == 1


async def test_a_socket_that_leaves_meanwhile_leaves_at_once_and_the_run_goes_on(user: User) -> None:
    """B60."""
    async with slow_pictures() as pictures, seeing(ScriptedModel(says("A picture")), allow_private=True) as host:
        async with socket_of(host, user) as socket:
            await socket.send(**pictures.start())
            await pictures.asked_for(1)
        assert not host.subscribers
        pictures.may_answer.set()
        await settled(host)
    assert [row.status for row in await rows(Execution)] == ["completed"]


async def test_all_pictures_of_a_start_are_fetched_at_once(user: User) -> None:
    async with (
        slow_pictures() as pictures,
        seeing(ScriptedModel(says("Pictures")), allow_private=True) as host,
        socket_of(host, user) as socket,
    ):
        await socket.send(**pictures.start(16))
        await pictures.asked_for(16)
        pictures.may_answer.set()
        assert (await socket.end())["type"] == "execution-completed"


async def test_one_picture_that_fails_stops_the_others(user: User) -> None:
    async with (
        slow_pictures() as pictures,
        ScriptedProvider(ScriptedAnswer(b"<svg>")) as broken,
        seeing(ScriptedModel(), allow_private=True) as host,
    ):
        sources = [UrlSource(url=url) for url in (pictures.url, broken.url)]
        blocks = tuple(ImageBlock(source=source) for source in sources)
        with pytest.raises(InvalidArgument, match="no PNG"):
            await host.start_run(user, StartRequest(uuid4(), StartBody(agent=AGENT, input=blocks)), ignore)
        async with asyncio.timeout(10):
            await pictures.left.acquire()


async def test_a_person_has_only_a_few_starts_with_pictures_at_a_time(user: User) -> None:
    """Each may hold 16 pictures in memory."""
    async with slow_pictures() as pictures, seeing(ScriptedModel(), allow_private=True) as host:
        starts = [asyncio.create_task(host.start_run(user, pictures.wanted(), ignore)) for _ in range(FETCHING_AT_ONCE)]
        await pictures.asked_for(FETCHING_AT_ONCE)
        with pytest.raises(RateLimited):
            await host.start_run(user, pictures.wanted(), ignore)
        host.refuse()
        assert [type(each) for each in await asyncio.gather(*starts, return_exceptions=True)] == [Draining] * len(
            starts
        )


async def test_a_socket_has_only_a_few_starts_without_an_answer(user: User) -> None:
    release = threading.Event()
    async with hosted() as host, socket_of(host, user) as socket:
        real = host.jobs.begin

        def held(*args: Any) -> Begun:
            release.wait(10)
            return real(*args)

        host.jobs.begin = held  # type: ignore[method-assign]
        # Straight to the consumer: the sign-in is looked up by the thread that is held.
        host.executor.run = direct(host.executor.run, host.jobs)  # type: ignore[method-assign]
        for _ in range(STARTS_AT_ONCE):
            await socket.send(type="start", agent="nobody", input=[{"type": "text", "text": "Hi"}])
        refused = await socket.say("Hi", AGENT)
        assert refused["code"] == "RATE_LIMITED"
        release.set()
        codes = [(await socket.until("error"))["code"] for _ in range(STARTS_AT_ONCE)]
        assert codes == ["AGENT_NOT_FOUND"] * STARTS_AT_ONCE


def direct(run: Any, jobs: Any) -> Any:
    async def executor(job: Any, *args: Any) -> Any:
        return await (run(job, *args) if job is jobs.begin else sync_to_async(job)(*args))

    return executor


async def test_a_drain_refuses_a_start_that_still_fetches_at_once(user: User) -> None:
    """A stop does not wait for somebody else's server, and nothing is launched after it."""
    async with slow_pictures() as pictures, seeing(ScriptedModel(), allow_private=True) as host:
        start = asyncio.create_task(host.start_run(user, pictures.wanted(), ignore))
        await pictures.asked_for(1)
        async with asyncio.timeout(5):
            await host.drain(3600)
            with pytest.raises(Draining):
                await start
    assert await rows(Execution) == []


async def test_a_start_that_is_stored_late_is_cancelled_and_not_left_running(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second signal does not wait for the database either, and closing tells the truth about the run."""
    release, hurry = threading.Event(), asyncio.Event()
    async with hosted(ScriptedModel(says("a", asyncio.Event()))) as host:
        real, begun = host.jobs.begin, asyncio.Event()
        loop = asyncio.get_running_loop()

        def held(*args: Any) -> Begun:
            loop.call_soon_threadsafe(begun.set)
            release.wait(10)
            return real(*args)

        monkeypatch.setattr(host.jobs, "begin", held)
        start = asyncio.create_task(host.start_run(user, text(), ignore))
        await begun.wait()
        draining = asyncio.create_task(host.drain(3600, hurry))
        hurry.set()
        while not host.stopping:
            await asyncio.sleep(0)
        release.set()
        await asyncio.gather(start, draining)
        (row,) = await rows(Execution)
        assert (row.status, row.outcome) == ("cancelled", {"type": "cancelled", "reason": "shutdown"})


async def test_closing_does_not_wait_for_ever_for_what_is_stuck(
    user: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("conversations.hosting.host.END_WITHIN", 0.05)
    async with asyncio.timeout(10), hosted() as host:
        stuck = host.spawn(asyncio.Event().wait(), "something stuck")
    assert stuck.cancelled()
    assert "something stuck did not end" in caplog.text


def text() -> StartRequest:
    return StartRequest(uuid4(), StartBody.from_wire({"agent": AGENT, "input": [{"type": "text", "text": "Hi"}]}))
