"""Server-sent events inside the test's own process: each frame, and what a stream does besides."""

from __future__ import annotations

from collections.abc import AsyncIterator

import orjson
import pytest
from django.utils import timezone

from agent.runtime import events as ev
from agent.runtime.state import ExecutionState
from agent.testing import Gate, calls, says
from conversations.api.events import NOTHING, event_of
from conversations.hosting.pieces import PIECE
from conversations.hosting.snapshot import Frame, Snapshot
from conversations.models import ApiToken, User
from tests.conversations.api.program import AGENT, HostedClient, Program, code, program, start_of
from tests.docs.test_protocol import EXAMPLES, SAMPLES
from tests.factories import AgentProfileFactory, UserFactory


def fields(event: bytes) -> dict[str, str]:
    assert event.endswith(b"\n\n")
    return dict(line.split(": ", 1) for line in event.decode().splitlines() if line)  # type: ignore[misc]


def whole(frame: Frame) -> tuple[bytes, bool]:
    parts, over = event_of(frame)
    return b"".join(parts), over


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: str(sample.type))
def test_an_event_has_its_number_its_type_and_the_very_frame(sample: ev.Event) -> None:
    sample.execution_id, sample.seq = "e", 17
    frame = ev.encode(sample)
    event, over = whole(frame)
    assert fields(event) == {"id": "17", "event": sample.type, "data": frame.decode()}
    assert over == isinstance(sample, ev.TERMINAL)


def test_merged_deltas_have_the_number_of_the_last() -> None:
    frame = ev.encode_delta(ev.BlockDelta(0, "text", "b", "e", 9), 6, "ab")
    assert fields(whole(frame)[0])["id"] == "9"


@pytest.mark.parametrize("status", ["running", "waiting_input", "suspended", "completed", "failed", "cancelled"])
def test_the_snapshot_of_a_run_that_has_ended_is_the_last_event(status: str) -> None:
    state = ExecutionState("e", "c", agent="a-b", seq=5, status=status)  # type: ignore[arg-type]
    event, over = whole(Snapshot(state))
    assert fields(event)["id"] == "5"
    assert over == state.ended


def test_frames_without_a_number_leave_the_last_one_as_it_is() -> None:
    (call,) = (orjson.dumps(orjson.loads(text)) for kind, text in EXAMPLES if kind == "client-tool-call")
    for frame in (call, b'{"type":"draining"}'):
        event, over = whole(frame)
        assert "id" not in fields(event)
        assert not over


def test_a_small_event_is_one_part_and_a_large_one_is_many() -> None:
    (one,), _ = event_of(b'{"type":"draining"}')
    assert one == b'event: draining\ndata: {"type":"draining"}\n\n'
    frame = b'{"type":"block-delta","seq":3,"delta":"%s"}' % (b"x" * 5 * PIECE)
    parts = list(event_of(frame)[0])
    assert b"".join(parts) == b"id: 3\nevent: block-delta\ndata: %s\n\n" % frame
    assert max(map(len, parts)) < 2 * PIECE


@pytest.fixture
def user(transactional_db: None) -> User:
    AgentProfileFactory(slug=AGENT, all_tools=True)
    return UserFactory()


async def events(http: Program, run: str, query: str = "") -> AsyncIterator[dict[str, str]]:
    """Yield the events of a run as they come; a comment has no fields."""
    answer = await http.get(f"/{run}/events{query}")
    assert answer.status_code == 200
    async for part in answer.streaming_content:
        yield fields(part) if part != NOTHING else {}


async def test_a_call_of_a_front_end_tool_comes_with_its_client(user: User) -> None:
    """R107."""
    tool = {
        "name": "clipboard.read",
        "description": "Read the clipboard.",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
    }
    async with program(user, calls(("clipboard.read", {})), says("Done.")) as http:
        run = (await http.start(clientId="me", clientTools=[tool]))["executionId"]
        async for event in events(http, run, "?clientId=me"):
            if event.get("event") == "client-tool-call":
                call = orjson.loads(event["data"])
                body = {"callId": call["callId"], "result": {"text": "x"}}
                for _ in range(2):
                    answer = await http.post(f"/{run}/tool-results", body)
                    assert answer.json() == {"executionId": run, "callId": call["callId"]}
                assert code(await http.post(f"/{run}/tool-results", body | {"result": 1})) == (409, "INVALID_STATE")
        row = await http.read(run)
    assert row["messages"][-2]["blocks"][0]["content"] == [{"type": "text", "text": '{"text":"x"}'}]


async def test_a_quiet_stream_shows_that_it_lives(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conversations.api.events.KEEP_ALIVE", 0.01)
    gate = Gate()
    async with program(user, says("Half, ", gate, "whole.")) as http:
        run = (await http.start())["executionId"]
        await gate.reached()
        quiet, last = 0, {}
        async for event in events(http, run):
            quiet += not event
            if quiet > 3:
                gate.open()
            last = event or last
    assert last["event"] == "execution-completed"


async def test_a_stream_whose_sign_in_is_over_ends(user: User) -> None:
    gate = Gate()
    async with program(user, says(gate)) as http:
        assert http.host is not None
        run = (await http.start())["executionId"]
        await gate.reached()
        async for event in events(http, run):
            if event.get("event") == "snapshot":
                await ApiToken.objects.aupdate(revoked_at=timezone.now())
                await http.host.expire_subscribers()
        assert not http.host.subscribers
        assert code(await http.get(f"/{run}/events")) == (401, "AUTH_REQUIRED")
        gate.open()


async def test_the_page_needs_the_header_against_forgery(user: User) -> None:
    async with program(user, says("Hi.")) as http:
        page = HostedClient(http.host)
        page.handler.enforce_csrf_checks = True
        await page.aforce_login(user)
        body = orjson.dumps(start_of())
        refused = await page.post("/ai/executions", body, content_type="application/json")
        assert code(refused) == (403, "FORBIDDEN")
        await page.get("/accounts/login/")
        secret = "a" * 32
        page.cookies["csrftoken"] = secret
        answer = await page.post(
            "/ai/executions", body, content_type="application/json", headers={"X-CSRFToken": secret}
        )
        assert answer.status_code == 202, answer.content
        run = answer.json()["executionId"]
        assert (await page.get(f"/ai/executions/{run}?waitMs=10000")).json()["status"] == "completed"


async def test_streams_long_polls_and_sockets_count_as_connections_of_a_person(user: User) -> None:
    gate = Gate()
    async with program(user, says(gate), connections_per_person=1) as http:
        run = (await http.start())["executionId"]
        await gate.reached()
        async for _ in events(http, run):
            for path in (f"/{run}/events", f"/{run}?waitMs=1"):
                assert code(await http.get(path)) == (429, "RATE_LIMITED")
            assert (await http.get(f"/{run}")).status_code == 200
            gate.open()
        assert (await http.get(f"/{run}?waitMs=1")).status_code == 200
