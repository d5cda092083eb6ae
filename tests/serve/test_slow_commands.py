"""B60 on a real server: a command that takes long holds up neither its socket nor the end of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.serve.program import WITHIN, program
from tests.site import Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("site"), pace=0.01, probed=True) as made:
        yield made


async def test_a_start_that_the_database_holds_up_holds_up_nothing_else(site: Site, token: str) -> None:
    id = str(uuid4())
    async with program(site, token) as client:
        with site.held():
            await client.send(type="start", id=id, agent="demo", input=[{"type": "text", "text": "What is 2 + 2?"}])
            assert (await client.command(type="ping"))["type"] == "ack"
            assert not [frame for frame in client.frames if frame.get("id") == id]
            await client.connection.close()
            async with asyncio.timeout(WITHIN):
                while (await asyncio.to_thread(site.probe))["subscribers"]:
                    await asyncio.sleep(0.05)
            assert site.query("SELECT count(*) FROM conversations_execution") == [(0,)]
    async with program(site, token) as client:
        again = await client.say("What is 2 + 2?", id=id)
        run = await client.follow(again["executionId"])
        assert (run.status, "4" in run.text) == ("completed", True)
    assert site.query("SELECT count(*) FROM conversations_execution") == [(1,)]
    assert "Traceback" not in site.log()
    assert "took too long to shut down" not in site.log()
