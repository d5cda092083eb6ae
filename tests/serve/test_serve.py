"""The real server over real sockets: what an operator and a program meet."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from agent.testing import ScriptedAnswer, ScriptedProvider, chat_stream
from tests.serve.program import program
from tests.site import ROOT, Site

PROTOCOL_PAGE = ROOT / "docs" / "protocol.md"


async def test_the_client_of_the_protocol_page_gets_its_answer(site: Site, token: str) -> None:
    found = re.search(r"```python client\n(.*?)```", PROTOCOL_PAGE.read_text(), re.DOTALL)
    assert found is not None
    environment = {"PAR_TOKEN": token, "PAR_WS": site.socket_address, "PATH": "/usr/bin"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", found.group(1), env=environment, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0
    assert "391" in printed.decode()
    assert "execution-completed" in printed.decode()


async def test_an_added_agent_speaks_with_its_server(site: Site, token: str) -> None:
    """The key goes out, and the stream comes back whole."""
    async with ScriptedProvider(ScriptedAnswer(chat_stream("Hel", "lo ", "🙂")), repeat=True) as provider:
        site.manage(
            "add_agent",
            "helper",
            *("--protocol", "openai-chat", "--base-url", provider.url, "--model", "m1", "--api-key", "sk-test-123"),
        )
        async with program(site, token) as client:
            ack = await client.say("Hi", "helper")
            ended = await client.end()
            assert ended["type"] == "execution-completed", ended
            assert client.text() == "Hello 🙂"
        (request,) = provider.requests
        assert request.headers["authorization"] == "Bearer sk-test-123"
        assert request.json["messages"][-1] == {"role": "user", "content": "Hi"}
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=site.address, headers=headers) as http:
        stored = (await http.get(f"/ai/conversations/{ack['conversationId']}")).json()
        assert [block["text"] for m in stored["context"]["messages"] for block in m["blocks"]] == ["Hi", "Hello 🙂"]
        assert stored["conversation"]["revision"] == 1


async def test_a_dead_provider_is_told_in_words_and_without_the_key(site: Site, token: str) -> None:
    site.manage(
        "add_agent",
        "dead",
        *("--protocol", "openai-chat", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--api-key", "sk-test-9"),
    )
    async with program(site, token) as client:
        await client.say("Hi", "dead")
        failed = await client.end()
    assert failed["errorCode"] == "MODEL_FAILED"
    assert "sk-test-9" not in json.dumps(client.frames)
    assert "sk-test-9" not in site.log()


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_the_limit_is_refused_before_it_is_kept(site: Site, chunked: bool) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield b"x" * 65_536

    content: Any = endless() if chunked else b"x" * (4 * 1024 * 1024)
    async with httpx.AsyncClient(base_url=site.address) as http:
        try:
            answer = await http.post("/ai/agents", content=content)
        except httpx.TransportError:
            pass  # the connection was closed while the body was still being written
        else:
            assert (answer.status_code, answer.json()["error"]["code"]) == (413, "PAYLOAD_TOO_LARGE")
        assert (await http.get("/healthz")).status_code == 200


async def test_a_frame_to_the_client_may_be_larger_than_one_from_it(site: Site, token: str) -> None:
    text = "x" * (1024 * 1024 - 400)
    async with program(site, token, max_size=None) as client:
        ack = await client.say(text)
        await client.end()
        await client.send(type="subscribe", id="s", executionId=ack["executionId"])
        snapshot = await client.until("snapshot")
        assert snapshot["state"]["messages"][0]["blocks"][0]["text"] == text
        await client.send(type="ping", id="p")
        assert (await client.until("ack"))["id"] == "p"


async def test_strangers_are_sent_away_with_a_code_they_can_read(site: Site) -> None:
    async with connect(site.socket_address, subprotocols=["par.v1"]) as connection:
        with pytest.raises(ConnectionClosed) as caught:
            await connection.recv()
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 4401


async def test_health_and_the_shape_of_errors(site: Site, token: str) -> None:
    """R153."""
    async with httpx.AsyncClient(base_url=site.address) as http:
        assert (await http.get("/healthz")).json()["status"] == "ok"
        assert (await http.get("/readyz")).status_code == 200
        nobody = await http.get("/ai/conversations")
        assert (nobody.status_code, nobody.json()["error"]["code"]) == (401, "AUTH_REQUIRED")
        headers = {"Authorization": f"Bearer {token}"}
        foreign = await http.get(f"/ai/conversations/{uuid4()}", headers=headers)
        assert (foreign.status_code, foreign.json()["error"]["code"]) == (404, "CONVERSATION_NOT_FOUND")
        nothing = await http.get("/ai/nothing", headers=headers)
        assert (nothing.status_code, nothing.json()["error"]["code"]) == (404, "NOT_FOUND")
        wrong = await http.delete("/ai/conversations", headers=headers)
        assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "METHOD_NOT_ALLOWED")
        assert "GET" in wrong.headers["allow"]


def test_a_second_server_is_refused_on_every_database(site: Site) -> None:
    """Two would not see each other's runs: a cancel would reach the wrong one."""
    done = site.run("serve", "--port", "0")
    assert done.returncode != 0
    assert "another process serves this database; run one" in done.stderr


def test_a_taken_port_is_told_in_words(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with Site(tmp_path, pace=0, start=False) as other:
            done = other.run("serve", "--port", str(taken.getsockname()[1]))
    assert done.returncode != 0
    assert "already in use" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("port", ["abc", "65536"])
def test_a_port_that_is_none_is_told_in_words(port: str, tmp_path: Path) -> None:
    done = run_serve(tmp_path, PORT=port)
    assert done.returncode != 0
    assert f"'{port}' is no port" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("", "migrations are not applied: run `manage.py bootstrap --migrate` first"),
        ("sqlite:////nowhere/at/all", "the database cannot be used: unable to open database file"),
    ],
)
def test_a_database_that_is_not_prepared_is_told_in_words(address: str, told: str, tmp_path: Path) -> None:
    done = run_serve(tmp_path, PORT="0", **({"DATABASE_URL": address} if address else {}))
    assert done.returncode != 0
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def run_serve(place: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Start a server that must not come up."""
    given = {"PATH": "/usr/bin", "PAR_ENV_FILE": "", "PAR_ENVIRONMENT": "development", "PAR_DATA_DIR": str(place)}
    return subprocess.run(
        [sys.executable, "manage.py", "serve"],
        cwd=ROOT,
        env=given | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_log_of_a_server_shows_no_failure(site: Site) -> None:
    """Runs last: what the tests above did must not have left a traceback."""
    assert "Traceback" not in site.log()
