"""Connections to PostgreSQL stay few, whatever the sockets do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack

import httpx
import pytest

from tests.serve.program import browser, program
from tests.site import Site

SOCKETS = 100
AT_MOST = 13  # as docs/deployment.md says: 8 for pages, 4 for runs and sockets, 1 for the lock

OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
COUNT = f"SELECT count(*), count(*) FILTER (WHERE state LIKE 'idle in transaction%') {OTHERS}"
END_ALL = f"SELECT pg_terminate_backend(pid, 10000) {OTHERS}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("site"), pace=0.01) as made:
        if made.sqlite:
            pytest.skip("SQLite has no connections to count")
        yield made


async def come_and_go(site: Site, token: str, door: asyncio.Semaphore) -> None:
    """Start a run and vanish at once; come back and stop it."""
    async with AsyncExitStack() as stack:
        async with door:
            client = await stack.enter_async_context(program(site, token))
        ack = await client.say("Show me what you can do")
        client.connection.transport.abort()
    async with AsyncExitStack() as stack:
        async with door:
            client = await stack.enter_async_context(program(site, token))
        assert (await client.command(type="cancel", executionId=ack["executionId"]))["type"] == "ack"


async def test_a_hundred_sockets_that_come_and_go_need_few_connections(site: Site, token: str) -> None:
    """B61: bounded while they work, when they idle, and after the database has ended them all."""
    door = asyncio.Semaphore(8)  # a slow machine answers no hundred handshakes within daphne's five seconds
    working = asyncio.gather(*(come_and_go(site, token, door) for _ in range(SOCKETS)))
    most = 0
    while not working.done():
        ((held, _),) = await asyncio.to_thread(site.query, COUNT)
        most = max(most, held)
        await asyncio.wait({working}, timeout=0.1)
    await working
    async with AsyncExitStack() as stack:
        idle = [await stack.enter_async_context(program(site, token)) for _ in range(SOCKETS)]
        ((held, in_transaction),) = await asyncio.to_thread(site.query, COUNT)
        assert 0 < max(most, held) <= AT_MOST
        assert in_transaction == 0
        await asyncio.to_thread(site.query, END_ALL)
        for client in idle[:20]:
            ack = await client.say("Show me what you can do")
            assert ack["type"] == "ack", ack
        async with browser(site, token) as http:
            answers: list[httpx.Response] = await asyncio.gather(*(http.get("/ai/agents") for _ in range(20)))
            assert {answer.status_code for answer in answers} == {200}
    assert "too many" not in site.log()
