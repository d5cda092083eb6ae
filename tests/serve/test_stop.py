"""How `serve` ends: in bounded time, with exit code 0, whatever its clients and runs do."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import TimeoutExpired

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from agent.testing import ScriptedAnswer, ScriptedProvider, chat_stream
from tests.serve.program import Client, program
from tests.serve.raw import raw
from tests.site import Site

DRAIN = 2.0
ENDS_WITHIN = 30.0


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("site"), pace=0.01, drain=DRAIN, start=False) as made:
        yield made


@pytest.fixture
def running(site: Site) -> Iterator[Site]:
    """A server that the test ends."""
    site.start()
    yield site
    site.stop()
    assert "Traceback" not in site.log()


async def ends(site: Site) -> None:
    assert await asyncio.to_thread(site.process.wait, ENDS_WITHIN) == 0


async def closed(client: Client) -> int | None:
    """Read to the end and return the code with which the server closed."""
    with pytest.raises(ConnectionClosed) as caught:
        await client.until("nothing")
    return caught.value.rcvd.code if caught.value.rcvd else None


async def test_sigterm_lets_a_run_end_and_closes_with_1012(running: Site, token: str) -> None:
    async with program(running, token) as client:
        await client.say("What is 2 + 2?")
        await client.until("block-delta")
        running.process.send_signal(signal.SIGTERM)
        await client.until("draining")
        assert (await client.say("one more"))["code"] == "DRAINING"
        assert (await client.end())["outcome"]["type"] == "completed"
        assert await closed(client) == 1012
    await ends(running)


async def test_a_run_that_never_ends_is_cancelled_when_its_time_is_over(running: Site, token: str) -> None:
    async with program(running, token) as client:
        await client.say("Send a postcard to Ada")
        await client.until("interrupt-requested")
        running.process.send_signal(signal.SIGTERM)
        assert (await client.end())["outcome"] == {"type": "cancelled", "reason": "shutdown"}
        assert await closed(client) == 1012
    await ends(running)


async def test_ctrl_c_twice_does_not_wait_for_runs(tmp_path: Path) -> None:
    with Site(tmp_path, pace=0.01, drain=3_600) as site:
        async with program(site, site.token()) as client:
            await client.say("Tell me a long story")
            await client.until("block-delta")
            site.process.send_signal(signal.SIGINT)
            await client.until("draining")
            site.process.send_signal(signal.SIGINT)
            assert (await client.end())["outcome"] == {"type": "cancelled", "reason": "shutdown"}
            assert await closed(client) == 1012
        await ends(site)
        assert "Traceback" not in site.log()


async def test_clients_that_neither_read_nor_leave_do_not_hold_up_the_end(
    running: Site, token: str, provider: ScriptedProvider
) -> None:
    """Stalled sockets with full buffers, idle HTTP connections, half a request."""
    provider.queue(ScriptedAnswer(chat_stream(*["x" * 100_000] * 50)))
    async with (
        program(running, token, max_size=None) as quick,
        program(running, token, ping_interval=None, close_timeout=0) as stalled,
        httpx.AsyncClient(base_url=running.address) as idle,
        raw(running) as half,
    ):
        assert (await idle.get("/healthz")).status_code == 200
        await half.send(b"POST /ai/agents HTTP/1.1\r\nContent-Le")
        ack = await quick.say("Hi", "scripted")
        await stalled.command(type="subscribe", conversationId=ack["conversationId"])
        stalled.forget()
        await quick.finished(ack["executionId"])
        running.process.send_signal(signal.SIGTERM)
        await ends(running)
        with pytest.raises(httpx.TransportError):
            await idle.get("/healthz")


@pytest.mark.parametrize("delay", [0.0, 0.3, 0.8, 1.2, 1.5])
def test_sigterm_during_the_start_ends_it_cleanly(site: Site, delay: float) -> None:
    """Only before Django runs the command does the signal itself end the process."""
    site.launch()
    heard = False
    try:
        site.process.wait(delay)
    except TimeoutExpired:
        heard = catches(site, signal.SIGTERM)
        site.process.send_signal(signal.SIGTERM)
    code = site.process.wait(ENDS_WITHIN)
    assert code == 0 or (code == -signal.SIGTERM and not heard)
    assert "Traceback" not in site.log()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_start_that_is_stopped_before_it_listens_leaves_the_database_in_good_order(
    site: Site, number: signal.Signals
) -> None:
    site.query("UPDATE conversations_execution SET host_id = NULL")
    site.query("DELETE FROM conversations_hostprocess")
    site.launch()
    eventually(lambda: site.query("SELECT 1 FROM conversations_hostprocess"))
    site.process.send_signal(number)
    assert site.process.wait(ENDS_WITHIN) == 0
    assert site.query("SELECT count(*) FROM conversations_hostprocess WHERE stopped_at IS NOT NULL") == [(1,)]
    assert "Traceback" not in site.log()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_start_listens_to_signals_before_it_opens_the_database(site: Site, number: signal.Signals) -> None:
    site.launch()
    eventually(lambda: catches(site, number, signal.SIGTERM))
    site.process.send_signal(number)
    assert site.process.wait(ENDS_WITHIN) == 0
    assert "Traceback" not in site.log()


def catches(site: Site, *numbers: signal.Signals) -> bool:
    """Return whether the server handles these signals by now."""
    status = Path(f"/proc/{site.process.pid}/status").read_text()
    caught = int(status.split("SigCgt:")[1].split()[0], 16)
    return all(caught >> (number - 1) & 1 for number in numbers)


def eventually(found: Callable[[], object]) -> None:
    deadline = time.monotonic() + ENDS_WITHIN
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.005)
