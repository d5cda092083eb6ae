"""Runs over HTTP inside the test's own process: what each operation answers, and to whom."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agent.testing import Gate, calls, fails, says
from conversations.hosting.hub import Channel
from conversations.models import ApiToken, Conversation, Execution, IdempotentRequest, Revision, User
from tests.conversations.api.program import AGENT, Program, code, program, start_of
from tests.factories import AgentProfileFactory, UserFactory
from tests.live import socket_of, token_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.fixture
def user() -> User:
    AgentProfileFactory(slug=AGENT, all_tools=True)
    return UserFactory()


async def test_a_run_is_started_and_read_to_its_end(user: User) -> None:
    async with program(user, says("Good ", "day.")) as http:
        started = await http.start()
        assert started["created"]
        row = await http.read(started["executionId"], "?waitMs=10000")
    times = row["createdAt"], row["finishedAt"]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", time) for time in times), times
    assert (row["status"], row["outcome"]["type"], row["revision"]["version"]) == ("completed", "completed", 1)
    assert [message["blocks"][0]["text"] for message in row["messages"]] == ["Hi", "Good day."]
    assert row["finishedAt"] >= row["createdAt"]


async def test_the_same_key_gives_the_first_answer_on_every_wire(user: User) -> None:
    """DESIGN 8."""
    async with program(user, says("Once.")) as http:
        key = str(uuid4())
        first = (await http.post("", start_of(), **{"Idempotency-Key": key})).json()
        again = (await http.post("", start_of(), **{"Idempotency-Key": key})).json()
        assert again == first | {"created": False}
        assert code(await http.post("", start_of("Another"), **{"Idempotency-Key": key})) == (400, "INVALID_ARGUMENT")
        assert http.host is not None
        async with socket_of(http.host, user) as socket:
            ack = await socket.say("Hi", AGENT, id=key)
        assert (ack["executionId"], ack["created"]) == (first["executionId"], False)
        await http.read(first["executionId"], "?waitMs=10000")
    assert await Execution.objects.acount() == 1


@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        (b"{", {}, (400, "INVALID_ARGUMENT")),
        (b"", {}, (400, "INVALID_ARGUMENT")),
        (b"[]", {}, (400, "INVALID_ARGUMENT")),
        (b'{"agent": "x", "input": [], "agent": NaN}', {}, (400, "INVALID_ARGUMENT")),
        (b"[" * 50_000 + b"]" * 50_000, {}, (400, "INVALID_ARGUMENT")),
        (start_of(surprise=1), {}, (400, "INVALID_ARGUMENT")),
        (start_of(conversation_id=str(uuid4())), {}, (400, "INVALID_ARGUMENT")),
        (start_of(" "), {}, (400, "INVALID_ARGUMENT")),
        (start_of(baseRevision=1), {}, (400, "INVALID_ARGUMENT")),
        (start_of() | {"agent": "unknown"}, {}, (404, "AGENT_NOT_FOUND")),
        (start_of(conversationId=str(uuid4())), {}, (404, "CONVERSATION_NOT_FOUND")),
        (start_of(), {"Idempotency-Key": "not a UUID"}, (400, "INVALID_ARGUMENT")),
        (start_of(), {"content_type": "text/plain"}, (415, "UNSUPPORTED_MEDIA_TYPE")),
        (start_of(), {"content_type": "application/x-www-form-urlencoded"}, (415, "UNSUPPORTED_MEDIA_TYPE")),
        (start_of(), {"Authorization": "Bearer nonsense"}, (401, "AUTH_REQUIRED")),
    ],
)
async def test_a_start_that_cannot_be_used_is_refused_in_words(
    user: User, body: Any, headers: dict[str, str], expected: tuple[int, str]
) -> None:
    """R153."""
    async with program(user) as http:
        answer = await http.post("", body, **headers)
        assert code(answer) == expected
        if expected[0] == 415:
            assert answer["Accept"] == "application/json"
    assert not await Execution.objects.aexists()


async def test_a_server_that_stops_says_when_to_come_again(user: User) -> None:
    async with program(user) as http:
        assert http.host is not None
        http.host.refuse()
        answer = await http.post("", start_of())
    assert code(answer) == (503, "DRAINING")
    assert int(answer["Retry-After"]) > 0


async def test_without_a_host_nothing_is_promised(user: User) -> None:
    http = Program(None, await token_of(user))
    answers = [await http.post("", start_of()), await http.get(f"/{uuid4()}"), await http.post(f"/{uuid4()}/adopt")]
    assert {code(answer) for answer in answers} == {(503, "NOT_SERVED")}


async def test_somebody_elses_run_looks_like_none(user: User) -> None:
    """R125."""
    async with program(user, says("Mine.")) as http:
        run = (await http.start())["executionId"]
        await http.read(run, "?waitMs=10000")
        stranger = Program(http.host, await token_of(await sync_to_async(UserFactory)()))
        for path, body in (
            ("cancel", None),
            ("adopt", None),
            ("respond", {"interruptId": "i", "value": True}),
            ("tool-results", {"callId": "c", "result": 1}),
        ):
            answers = [await stranger.post(f"/{id}/{path}", body) for id in (run, uuid4())]
            assert {code(answer) for answer in answers} == {(404, "EXECUTION_NOT_FOUND")}, path
        for path in ("", "?waitMs=1000", "/events"):
            answers = [await stranger.get(f"/{id}{path}") for id in (run, uuid4())]
            assert {code(answer) for answer in answers} == {(404, "EXECUTION_NOT_FOUND")}, path


async def test_reading_needs_no_right_to_write_and_the_rest_does(user: User) -> None:
    async with program(user, says("Hi.")) as http:
        run = (await http.start())["executionId"]
        await http.read(run, "?waitMs=10000")
        reader = Program(http.host, await token_of(user, "read"))
        assert (await reader.read(run))["status"] == "completed"
        for path in ("", f"/{run}/cancel", f"/{run}/respond", f"/{run}/tool-results", f"/{run}/adopt"):
            assert code(await reader.post(path, {})) == (403, "FORBIDDEN"), path
        assert code(await reader.get(f"/{run}/events?clientId=me")) == (403, "FORBIDDEN")


async def test_a_wait_ends_when_a_person_is_needed_and_passes_what_they_have_seen(user: User) -> None:
    """R86, R89."""
    async with program(user, calls(("local.send_postcard", {"to": "Ada", "text": "Hi"})), says("Sent.")) as http:
        run = (await http.start())["executionId"]
        row = await http.read(run, "?waitMs=10000")
        assert (row["status"], row["interrupt"]["tool"]["name"]) == ("waiting_input", "local.send_postcard")
        interrupt = row["interrupt"]["id"]
        waiting = asyncio.create_task(http.read(run, f"?waitMs=10000&seenInterrupt={interrupt}"))
        still = await http.read(run, f"?waitMs=1&seenInterrupt={interrupt}")
        assert still["status"] == "waiting_input"
        for body in (
            {"interruptId": interrupt, "value": 1},
            {"interruptId": interrupt, "value": "true"},
            {"interruptId": interrupt},
            {"interruptId": interrupt, "value": False, "arguments": {}},
            {"interruptId": interrupt, "value": True, "reason": "why"},
        ):
            assert code(await http.post(f"/{run}/respond", body)) == (400, "INVALID_ARGUMENT"), body
        wrong = await http.post(f"/{run}/respond", {"interruptId": "interrupt-0", "value": True})
        assert code(wrong) == (400, "INVALID_ARGUMENT")
        for _ in range(2):
            answer = await http.post(f"/{run}/respond", {"interruptId": interrupt, "value": True})
            assert (answer.status_code, answer.json()) == (200, {"executionId": run, "interruptId": interrupt})
        other = await http.post(f"/{run}/respond", {"interruptId": interrupt, "value": False})
        assert code(other) == (409, "INVALID_STATE")
        assert (await waiting)["status"] == "completed"


async def test_a_wait_sees_the_end_at_once_and_holds_no_thread_and_no_connection(user: User) -> None:
    gate = Gate()
    async with program(user, says("Half, ", gate, "whole.")) as http:
        run = (await http.start())["executionId"]
        await gate.reached()
        waiting = asyncio.create_task(http.read(run, "?waitMs=30000"))
        assert (await http.read(run, "?waitMs=20"))["current"]["blocks"][0]["text"] == "Half, "
        gate.open()
        async with asyncio.timeout(10):
            row = await waiting
    assert row["messages"][-1]["blocks"][0]["text"] == "Half, whole."


@pytest.mark.parametrize("query", ["waitMs=-1", "waitMs=30001", "waitMs=soon", f"seenInterrupt={'x' * 65}"])
async def test_a_wait_has_limits(user: User, query: str) -> None:
    async with program(user) as http:
        assert code(await http.get(f"/{uuid4()}?{query}")) == (400, "INVALID_ARGUMENT")


async def test_a_run_is_stopped_as_often_as_one_likes(user: User) -> None:
    gate = Gate()
    async with program(user, says("Half, ", gate)) as http:
        run = (await http.start())["executionId"]
        await gate.reached()
        for _ in range(2):
            answer = await http.post(f"/{run}/cancel")
            assert (answer.status_code, answer.json()) == (200, {"executionId": run, "status": "cancelled"})
        assert (await http.read(run, "?waitMs=10000"))["outcome"] == {"type": "cancelled", "reason": "user"}


async def test_a_wait_does_not_outlive_the_sign_in(user: User) -> None:
    """B64."""
    gate = Gate()
    async with program(user, says("Half, ", gate, "secret.")) as http:
        run = (await http.start())["executionId"]
        await gate.reached()
        waiting = asyncio.create_task(http.get(f"/{run}?waitMs=30000"))
        while not http.host.running(run)._news._waiters:  # type: ignore[union-attr]
            await asyncio.sleep(0)
        await ApiToken.objects.filter(user=user).aupdate(revoked_at=timezone.now())
        gate.open()
        assert code(await waiting) == (401, "AUTH_REQUIRED")


async def test_a_reader_and_a_poller_hear_of_the_end_in_that_order(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever knows of an end may go on at once; a follower must not see the next run begin before it."""
    told = asyncio.Event()

    async def rendered(channel: Channel, seconds: float) -> None:
        await told.wait()

    monkeypatch.setattr(Channel, "rendered", rendered)
    async with program(user, says("Done.")) as http:
        run = (await http.start())["executionId"]
        while not await Execution.objects.filter(status="completed").aexists():
            await asyncio.sleep(0)
        assert ((await http.read(run))["status"], (await http.read(run))["finishedAt"]) == ("running", None)
        told.set()
        assert (await http.read(run, "?waitMs=10000"))["status"] == "completed"


async def stopped(http: Program, gate: Gate) -> tuple[str, str]:
    """Stop a run in the middle of its text; returns the ids of execution and conversation."""
    started = await http.start()
    await gate.reached()
    await http.post(f"/{started['executionId']}/cancel")
    await http.read(started["executionId"], "?waitMs=10000")
    return started["executionId"], started["conversationId"]


async def test_an_adopted_run_becomes_part_of_its_conversation_once(user: User) -> None:
    """DESIGN 3: nobody loses work."""
    gate = Gate()
    async with program(user, says("Half, ", gate, reasoning="Hm."), says("Whole.")) as http:
        assert http.host is not None
        run, conversation = await stopped(http, gate)
        async with socket_of(http.host, user) as page:
            await page.command(type="subscribe", conversationId=conversation)
            await page.until("snapshot")
            first, again = await http.post(f"/{run}/adopt"), await http.post(f"/{run}/adopt")
            assert first.status_code == 200, first.content
            row = first.json()["conversation"]
            assert (row["conversationId"], row["revision"]) == (conversation, 1)
            assert again.json() == first.json()
            told = await page.until("snapshot")
        assert (told["executionId"], told["state"]["revision"]["version"]) == (run, 1)
        revision = await Revision.objects.aget()
        assert revision.kind == "recovered"
        assert [m["blocks"] for m in revision.context] == [[text("Hi")], [text("Half, ")]]
        read = await http.read(run)
        assert (read["status"], read["messages"], read["current"]) == ("cancelled", revision.context, None)
        goes_on = await http.start("Go on", conversationId=conversation, baseRevision=1)
        assert (await http.read(goes_on["executionId"], "?waitMs=10000"))["revision"]["version"] == 2
        row = (await http.post(f"/{run}/adopt")).json()["conversation"]
        assert row["revision"] == 1, "what the run became, and not what the caller has not seen"


async def test_a_run_that_was_overtaken_cannot_be_adopted(user: User) -> None:
    gate = Gate()
    async with program(user, says("Half, ", gate), says("Another.")) as http:
        run, conversation = await stopped(http, gate)
        other = (await http.start("Again", conversationId=conversation))["executionId"]
        await http.read(other, "?waitMs=10000")
        answer = await http.post(f"/{run}/adopt")
        assert code(answer) == (409, "CONVERSATION_CONFLICT")
        assert answer.json()["error"]["currentRevision"] == 1
        assert code(await http.post(f"/{other}/adopt")) == (409, "INVALID_STATE")
    assert (await Conversation.objects.aget()).version == 1


async def test_nothing_is_adopted_while_an_answer_is_being_written(user: User) -> None:
    first, second = Gate(), Gate()
    async with program(user, says("Half, ", first), says("More", second)) as http:
        run, conversation = await stopped(http, first)
        live = (await http.start("Again", conversationId=conversation))["executionId"]
        await second.reached()
        for id in (run, live):
            assert code(await http.post(f"/{id}/adopt")) == (409, "INVALID_STATE")
        second.open()
        assert (await http.read(live, "?waitMs=10000"))["status"] == "completed"


async def test_a_failed_run_is_adopted_with_the_calls_that_it_made(user: User) -> None:
    steps = calls(("local.calculate", {"expression": "1+1"}), text="Let me see."), fails("gone")
    async with program(user, *steps) as http:
        run = (await http.start())["executionId"]
        assert (await http.read(run, "?waitMs=10000"))["error"]["code"] == "MODEL_FAILED"
        assert (await http.post(f"/{run}/adopt")).status_code == 200
    revision = await Revision.objects.aget()
    assert [message["role"] for message in revision.context] == ["user", "assistant", "tool"]


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


async def test_a_refused_request_gives_its_key_back(user: User) -> None:
    async with program(user) as http:
        key = {"Idempotency-Key": str(uuid4())}
        for body in ({"interruptId": "one", "value": True}, {"interruptId": "two", "value": True}):
            assert code(await http.post(f"/{uuid4()}/respond", body, **key)) == (404, "EXECUTION_NOT_FOUND")
    assert not await IdempotentRequest.objects.aexists()
