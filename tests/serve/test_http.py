"""Runs over plain HTTP, against the real server: polled, followed, stalled, cut off and drained."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import orjson
import pytest

from agent.testing import ScriptedAnswer, ScriptedProvider, chat_stream
from tests.serve.program import Run, browser, said, stored
from tests.site import ROOT, Site

WITHIN = 60.0
SOON = 8.0  # seconds; what another process does to a token is seen within 5
STALLED = 20
PIECES = [f"{n:09d} " * 500 for n in range(2_000)]  # 10 MB
MOST_OF_STALLED = 250.0  # MiB above what the run takes without them
MOST_UNSENT = 512 * 1024  # bytes in the buffer of one connection: two pieces


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("site"), pace=0.01, probed=True) as made:
        yield made


class Events:
    """A reader of the event stream of one run; `run` is what it knows, `kinds` what it was told."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.run = Run()
        self.kinds: list[str] = []
        self.last_id = ""
        self._lines = response.aiter_lines()

    async def next(self) -> dict[str, Any] | None:
        """Return the next frame, None at the end of the stream."""
        fields: dict[str, str] = {}
        async for line in self._lines:
            if line and not line.startswith(":"):
                name, _, value = line.partition(": ")
                fields[name] = value
            elif not line and fields:
                return self._take(fields)
        return None

    def _take(self, fields: dict[str, str]) -> dict[str, Any]:
        frame: dict[str, Any] = orjson.loads(fields["data"])
        assert frame["type"] == fields["event"]
        self.kinds.append(frame["type"])
        if frame["type"] == "snapshot":
            self.run.replace(frame["state"])
        elif "seq" in frame:
            self.run.apply(frame)
        if "id" in fields:
            self.last_id = fields["id"]
            assert frame["seq"] == int(self.last_id)
        return frame

    async def until(self, kind: str) -> dict[str, Any]:
        async with asyncio.timeout(WITHIN):
            while (frame := await self.next()) is not None:
                if frame["type"] == kind:
                    return frame
        raise AssertionError(f"the stream ended without {kind!r}: {self.kinds}")

    async def end(self) -> Run:
        """Read to the end of the stream."""
        async with asyncio.timeout(WITHIN):
            while await self.next() is not None:
                pass
        return self.run


@asynccontextmanager
async def follow(http: httpx.AsyncClient, run: str, **headers: str) -> AsyncIterator[Events]:
    async with http.stream("GET", f"/ai/executions/{run}/events", headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"] == "text/event-stream"
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["x-accel-buffering"] == "no"
        yield Events(response)


async def start(http: httpx.AsyncClient, agent: str = "scripted") -> dict[str, Any]:
    body = {"agent": agent, "input": [{"type": "text", "text": "Hi"}]}
    answer = await http.post("/ai/executions", json=body, headers={"Idempotency-Key": str(uuid4())})
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


async def poll(http: httpx.AsyncClient, run: str) -> dict[str, Any]:
    """Return the run after its end."""
    async with asyncio.timeout(WITHIN):
        while True:
            row: dict[str, Any] = (await http.get(f"/ai/executions/{run}?waitMs=30000")).json()
            if row["status"] in ("completed", "failed", "cancelled"):
                return row


@pytest.mark.skipif(shutil.which("curl") is None or shutil.which("jq") is None, reason="needs curl and jq")
async def test_the_session_of_the_page_works(site: Site, token: str) -> None:
    found = re.search(r"```sh session\n(.*?)```", (ROOT / "docs" / "http.md").read_text(), re.DOTALL)
    assert found is not None
    environment = {"PATH": os.environ["PATH"], "PAR_URL": site.address, "PAR_TOKEN": token}
    shell = await asyncio.create_subprocess_exec(
        "sh", "-ec", found.group(1), env=environment, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await asyncio.wait_for(shell.communicate(), WITHIN)
    assert shell.returncode == 0
    lines = printed.decode().splitlines()
    assert orjson.loads(lines[0].split("}")[0] + "}").keys() == {"executionId", "interruptId"}
    assert "event: execution-completed" in lines
    assert "Ada" in lines[-1]


async def test_large_conversations_of_one_person_are_taken_one_after_another(site: Site, token: str) -> None:
    """Many at once would fill the memory; who is refused may come again."""
    text = [{"type": "text", "text": "x" * 3 * 1024 * 1024}]
    messages = [{"id": "m-1", "role": "user", "blocks": text}]
    context = {"messages": messages, "modelContext": {"checkpoint": None, "modelState": None, "usage": None}}

    async def make(http: httpx.AsyncClient) -> int:
        """Return how often it was refused."""
        for refused in range(600):
            answer = await http.post("/ai/conversations", json={"context": context})
            if answer.status_code == 200:
                return refused
            assert (answer.status_code, answer.json()["error"]["code"]) == (429, "RATE_LIMITED")
            assert int(answer.headers["Retry-After"]) > 0
            await asyncio.sleep(0.2)
        raise AssertionError("there was never room")

    async with browser(site, token) as http:
        before = len((await http.get("/ai/conversations?limit=1000")).json()["conversations"])
        await asyncio.gather(*(make(http) for _ in range(4)))
        assert len((await http.get("/ai/conversations?limit=1000")).json()["conversations"]) == before + 4


async def test_a_run_is_started_and_polled_to_its_end(site: Site, token: str, provider: ScriptedProvider) -> None:
    hold = asyncio.Event()
    provider.queue(ScriptedAnswer(chat_stream("Hel", "lo ", "🙂"), hold=hold))
    async with browser(site, token) as http:
        started = await start(http)
        waiting = asyncio.create_task(poll(http, started["executionId"]))
        await provider.wait_for_requests()
        hold.set()
        row = await waiting
    kept = await stored(site, token, started["conversationId"])
    assert row["messages"] == kept["messages"]
    assert said(kept["messages"]) == "Hello 🙂"
    assert row["revision"]["version"] == kept["conversation"]["revision"] == 1


async def test_the_events_are_the_whole_text_and_end_with_the_run(
    site: Site, token: str, provider: ScriptedProvider
) -> None:
    hold, pieces = asyncio.Event(), [f"{n} ü🙂\n" for n in range(2_000)]
    provider.queue(ScriptedAnswer(chat_stream(*pieces), hold=hold))
    async with browser(site, token) as http:
        started = await start(http)
        async with follow(http, started["executionId"]) as events:
            await events.until("snapshot")
            hold.set()
            run = await events.end()
        assert (events.kinds[0], events.kinds[-1]) == ("snapshot", "execution-completed")
        text = said((await stored(site, token, started["conversationId"]))["messages"])
        assert run.text == text == "".join(pieces)

        again = await http.get(
            f"/ai/executions/{started['executionId']}/events", headers={"Last-Event-ID": events.last_id}
        )
        assert (again.status_code, again.content) == (204, b"")
        async with follow(http, started["executionId"], **{"Last-Event-ID": "3"}) as late:
            assert (await late.end()).text == text
        assert late.kinds == ["snapshot"]
        assert late.last_id == events.last_id


async def test_who_comes_back_with_the_last_event_is_told_nothing_twice(
    site: Site, token: str, provider: ScriptedProvider
) -> None:
    hold = asyncio.Event()
    provider.queue(ScriptedAnswer(chat_stream("Good ", "day."), hold=hold))
    async with browser(site, token) as http:
        run = (await start(http))["executionId"]
        await provider.wait_for_requests()
        async with follow(http, run) as first:
            snapshot = await first.until("snapshot")
        async with follow(http, run, **{"Last-Event-ID": str(snapshot["seq"])}) as second:
            hold.set()
            second.run.seq = snapshot["seq"]
            assert (await second.end()).text == "Good day."
        assert "snapshot" not in second.kinds


@pytest.mark.parametrize("last", ["x", "-1", "1" * 16, "1.5"])
async def test_a_last_event_that_is_no_number_is_refused(site: Site, token: str, last: str) -> None:
    async with browser(site, token) as http:
        answer = await http.get(f"/ai/executions/{uuid4()}/events", headers={"Last-Event-ID": last})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_ARGUMENT")


class Stalled:
    """A reader of events that has asked and does not read on."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, site: Site, token: str, run: str) -> Stalled:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port, limit=1024)
        writer.write(
            f"GET /ai/executions/{run}/events HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n"
            f"Authorization: Bearer {token}\r\nConnection: close\r\n\r\n".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        return cls(reader, writer)

    async def text(self) -> str:
        """Read to the end and return the text that was sent."""
        received = bytearray()
        async with asyncio.timeout(WITHIN):
            while chunk := await self.reader.read(1 << 20):
                received += chunk
        run = Run()
        body = re.sub(rb"\r\n[0-9a-f]+\r\n", b"", b"\r\n" + received)
        for data in re.findall(rb"^data: (.*)$", body, re.MULTILINE):
            frame = orjson.loads(data)
            if frame["type"] == "snapshot":
                run.replace(frame["state"])
            elif "seq" in frame:
                run.apply(frame)
        assert run.ended
        assert run.snapshots > 1
        return run.text

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


async def test_stalled_readers_cost_little_and_get_everything_when_they_wake(
    site: Site, token: str, provider: ScriptedProvider
) -> None:
    """DESIGN 5, for HTTP: a write waits, deltas merge, an overflow becomes a snapshot."""
    await most_memory(site, token, provider, 0)  # the first run leaves memory that is in pieces
    alone = await most_memory(site, token, provider, 0)
    assert await most_memory(site, token, provider, STALLED) < alone + MOST_OF_STALLED


async def most_memory(site: Site, token: str, provider: ScriptedProvider, stalled: int) -> float:
    """Stream `PIECES` to so many stalled readers; return the most memory that the server used until the run's end."""
    hold = asyncio.Event()
    provider.queue(ScriptedAnswer(chat_stream(*PIECES), hold=hold))
    async with browser(site, token) as http, AsyncExitStack() as stack:
        run = (await start(http))["executionId"]
        sleepers = [await Stalled.open(site, token, run) for _ in range(stalled)]
        for sleeper in sleepers:
            stack.push_async_callback(sleeper.close)
        hold.set()
        ended = asyncio.create_task(poll(http, run))
        most = site.memory()
        while not ended.done():
            await asyncio.wait({ended}, timeout=0.02)
            most = max(most, site.memory())
        text = said((await ended)["messages"])
        assert text == "".join(PIECES)
        assert (await asyncio.to_thread(site.probe))["bytes"] <= (stalled + 1) * MOST_UNSENT
        for sleeper in sleepers:
            assert await sleeper.text() == text
    return most


async def test_waiting_holds_no_thread(site: Site, token: str, provider: ScriptedProvider) -> None:
    hold = asyncio.Event()
    provider.queue(ScriptedAnswer(chat_stream("x"), hold=hold))
    async with browser(site, token) as http, AsyncExitStack() as stack:
        run = (await start(http))["executionId"]
        await provider.wait_for_requests()
        before = threads(site)
        polls = [asyncio.create_task(poll(http, run)) for _ in range(40)]
        streams = [await stack.enter_async_context(follow(http, run)) for _ in range(40)]
        for stream in streams:
            await stream.until("snapshot")
        async with asyncio.timeout(WITHIN):
            while (await asyncio.to_thread(site.probe))["connections"] < 80 or threads(site) > before + 20:
                await asyncio.sleep(0.1)
        hold.set()
        assert {row["status"] for row in await asyncio.gather(*polls)} == {"completed"}


def threads(site: Site) -> int:
    found = re.search(r"Threads:\s+(\d+)", Path(f"/proc/{site.process.pid}/status").read_text())
    assert found is not None
    return int(found.group(1))


def left_of_readers(held: dict[str, Any]) -> int:
    """Return how many readers a server still holds, or works for."""
    return max(held["subscribers"], held["tasks"].count("events of a run"))


async def test_nothing_is_left_of_a_reader_that_goes_away(site: Site, token: str, provider: ScriptedProvider) -> None:
    hold = asyncio.Event()
    provider.queue(ScriptedAnswer(chat_stream(*PIECES[:400])[:-3], hold=hold, end="hang"))
    async with browser(site, token) as http:
        run = (await start(http))["executionId"]
        gone = [await Stalled.open(site, token, run) for _ in range(3)]
        async with follow(http, run) as events:
            await events.until("snapshot")
            hold.set()
            await events.until("block-delta")
            gone[0].writer.transport.abort()
            await gone[1].close()
        async with asyncio.timeout(SOON):
            while left_of_readers(await asyncio.to_thread(site.probe)) > 1:
                await asyncio.sleep(0.1)
        await gone[2].close()
        assert (await http.post(f"/ai/executions/{run}/cancel")).json()["status"] == "cancelled"


async def test_a_stream_ends_soon_after_its_token(site: Site, token: str, provider: ScriptedProvider) -> None:
    hold = asyncio.Event()
    provider.queue(ScriptedAnswer(chat_stream("x"), hold=hold))
    mine = site.token()
    async with browser(site, mine) as http, browser(site, token) as other:
        run = (await start(http))["executionId"]
        async with follow(http, run) as events:
            await events.until("snapshot")
            site.shell(f"from conversations.models import ApiToken; ApiToken.find({mine!r}).revoke()")
            revoked = time.monotonic()
            await events.end()
            assert time.monotonic() - revoked < SOON
        assert (await http.get(f"/ai/executions/{run}")).status_code == 401
        hold.set()
        assert (await poll(other, run))["status"] == "completed"


async def test_a_stop_ends_streams_with_their_runs_and_waits_for_no_stalled_reader(tmp_path: Path) -> None:
    """DESIGN 5: drain."""
    async with ScriptedProvider() as provider:
        with Site(tmp_path, pace=0.01, drain=20) as site:
            site.manage("add_agent", "scripted", *f"--protocol openai-chat --base-url {provider.url} --model m".split())
            hold = asyncio.Event()
            provider.queue(ScriptedAnswer(chat_stream(*PIECES[:15]), hold=hold))
            token = site.token()
            async with browser(site, token) as http:
                run = (await start(http))["executionId"]
                stalled = await Stalled.open(site, token, run)
                waiting = asyncio.create_task(poll(http, run))
                async with follow(http, run) as events:
                    await events.until("snapshot")
                    site.process.terminate()
                    await events.until("draining")
                    hold.set()
                    assert (await events.end()).text == "".join(PIECES[:15])
                assert events.kinds[-1] == "execution-completed"
                assert (await waiting)["status"] == "completed"
                assert await asyncio.to_thread(site.process.wait, 15) == 0
                stalled.writer.transport.abort()
            assert "Traceback" not in site.log()
            assert "was destroyed" not in site.log()


def is_idle(held: dict[str, Any]) -> bool:
    """Return whether a server works for nobody."""
    busy = any(held[name] for name in ("connections", "runs", "subscribers", "readers"))
    return not busy and set(held["tasks"]) == {"audit", "heartbeat", "pruning", "sign-ins"}


async def test_nothing_is_left_in_the_end(site: Site) -> None:
    """Runs last."""
    async with asyncio.timeout(30):
        while not is_idle(await asyncio.to_thread(site.probe)):
            await asyncio.sleep(0.2)
    assert "Traceback" not in site.log()


async def test_a_form_is_not_taken_apart_before_the_sign_in(site: Site) -> None:
    """Twisted would do so on the loop; a malformed one gets the API's own words."""
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    async with httpx.AsyncClient(base_url=site.address) as http:
        refused = await http.post("/ai/executions", content=b"--x no form at all", headers=form)
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "AUTH_REQUIRED")
