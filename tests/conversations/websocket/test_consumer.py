"""The websocket as a client sees it: start, follow, decide, cancel, and wrong input."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any
from uuid import uuid4

import orjson
import pytest
from asgiref.sync import sync_to_async
from django.db import connection

from agent.runtime import ExecutionState
from agent.testing import ScriptedModel, calls, fails, says
from conversations.hosting.outbox import Outbox
from conversations.models import Conversation, Execution, Revision, User
from conversations.store import load_context
from tests.factories import AgentProfileFactory, UserFactory
from tests.live import Socket, hosted, settled, socket_of

pytestmark = pytest.mark.django_db(transaction=True)

AGENT = "assistant"


@pytest.fixture
def user(transactional_db: None) -> User:
    AgentProfileFactory(slug=AGENT, all_tools=True)
    return UserFactory()


async def rows(model: type[Any], **filters: Any) -> list[Any]:
    return await sync_to_async(lambda: list(model.objects.filter(**filters).order_by("pk")))()


async def test_a_first_turn_creates_the_conversation_and_its_revision(user: User) -> None:
    async with hosted(ScriptedModel(says("Hel", "lo"))) as host, socket_of(host, user) as socket:
        ack = await socket.say("Hi there", AGENT)
        assert ack["type"] == "ack", ack
        assert ack["created"] is True
        ended = await socket.end()
        assert ended["outcome"] == {"type": "completed", "stopReason": "end-turn"}
        kinds = [frame["type"] for frame in socket.frames]
        assert kinds[-2:] == ["revision-saved", "execution-completed"]
        assert socket.text(ack["executionId"]) == "Hello"
        (conversation,) = await rows(Conversation, owner=user)
        assert str(conversation.pk) == ack["conversationId"]
        assert (conversation.title, conversation.version) == ("Hi there", 1)
        (revision,) = await rows(Revision)
        assert [message["role"] for message in revision.context] == ["user", "assistant"]
        (execution,) = await rows(Execution)
        assert (execution.status, execution.last_seq) == ("completed", ended["seq"])
        await settled(host)


async def test_events_are_numbered_without_a_gap_and_merged_ones_say_what_they_hold(user: User) -> None:
    pieces = [f"{n} " for n in range(500)]
    async with hosted(ScriptedModel(says(*pieces))) as host, socket_of(host, user) as socket:
        ack = await socket.say("Hi", AGENT)
        await socket.end()
        expected = 1
        for frame in socket.frames:
            if "seq" in frame:
                assert frame.get("fromSeq", frame["seq"]) == expected
                expected = frame["seq"] + 1
        assert socket.text(ack["executionId"]) == "".join(pieces)


async def test_the_second_turn_gets_the_first_as_its_context(user: User) -> None:
    with ScriptedModel(says("One"), says("Two")) as model:
        async with hosted(model) as host, socket_of(host, user) as socket:
            ack = await socket.say("first", AGENT)
            await socket.end()
            await socket.say("second", AGENT, conversationId=ack["conversationId"], baseRevision=1)
            assert (await socket.end())["type"] == "execution-completed"
    assert [message.text for message in model.requests[1].messages] == ["first", "One", "second"]
    (conversation,) = await rows(Conversation, owner=user)
    assert conversation.version == 2
    context = await sync_to_async(lambda: load_context(conversation, Revision.objects.get(number=2)))()
    assert [message.text for message in context.messages] == ["first", "One", "second", "Two"]


async def test_a_plain_turn_is_two_transactions(user: User) -> None:
    """DESIGN 5."""
    statements: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        statements.append(sql)
        return execute(sql, *rest)

    async with hosted(ScriptedModel(says("Hi")), audit_enabled=False) as host, socket_of(host, user) as socket:
        noting = await host.executor.run(lambda: connection.execute_wrapper(note))
        await host.executor.run(noting.__enter__)
        await socket.say("Hi", AGENT)
        await socket.end()
        await settled(host)
        await host.executor.run(noting.__exit__, None, None, None)
    if connection.vendor == "sqlite":  # on PostgreSQL the jobs are spread over threads
        assert sum(sql.startswith("BEGIN") for sql in statements) == 2, statements


async def test_the_same_start_twice_runs_once(user: User) -> None:
    """Idempotent by the id of `start`, whatever socket it comes on."""
    id = str(uuid4())
    with ScriptedModel(says("once")) as model:
        async with hosted(model) as host, socket_of(host, user) as one, socket_of(host, user) as two:
            first, second = await asyncio.gather(one.say("Hi", AGENT, id=id), two.say("Hi", AGENT, id=id))
            assert first["executionId"] == second["executionId"]
            assert sorted([first["created"], second["created"]]) == [False, True]
            await one.end()
            again = await one.say("Hi", AGENT, id=id)
            assert (again["executionId"], again["created"]) == (first["executionId"], False)
            other = await one.say("Other", AGENT, id=id)
            assert (other["type"], other["code"]) == ("error", "INVALID_ARGUMENT")


async def test_a_late_reader_gets_a_snapshot_and_goes_on_from_there(user: User) -> None:
    gate = asyncio.Event()
    async with hosted(ScriptedModel(says("Hel", gate, "lo"))) as host, socket_of(host, user) as one:
        ack = await one.say("Hi", AGENT)
        await one.until("block-delta")
        async with socket_of(host, user) as two:
            answer = await two.command(type="subscribe", conversationId=ack["conversationId"])
            assert answer["executionId"] == ack["executionId"]
            snapshot = await two.until("snapshot")
            state = ExecutionState.from_wire(snapshot["state"])
            assert state.blocks[0].text == "Hel"
            gate.set()
            frame = await two.receive()
            assert frame["seq"] == snapshot["seq"] + 1
            assert frame["delta"]["text"] == "lo"
            await two.end()
        await one.end()


async def test_a_reader_that_overflows_is_given_a_snapshot(user: User) -> None:
    gate, pieces = asyncio.Event(), ["x" * 1000] * 10
    async with hosted(ScriptedModel(says("a", gate, *pieces))) as host, socket_of(host, user) as socket:
        await socket.say("Hi", AGENT)
        await socket.until("block-delta")
        (one,) = host.subscribers
        one.outbox._limit = 100
        gate.set()
        snapshot = await socket.until("snapshot")
        state = ExecutionState.from_wire(snapshot["state"])
        while not state.ended:
            frame = await socket.receive()
            if frame["type"] == "snapshot":
                state = ExecutionState.from_wire(frame["state"])
            elif frame["type"] in ("execution-completed", "execution-failed"):
                break
        (revision,) = await rows(Revision)
        assert revision.context[1]["blocks"][0]["text"] == "a" + "".join(pieces)


async def test_a_run_goes_on_when_its_socket_leaves(user: User) -> None:
    """B56."""
    gate = asyncio.Event()
    async with hosted(ScriptedModel(says("Hel", gate, "lo"))) as host:
        async with socket_of(host, user) as socket:
            ack = await socket.say("Hi", AGENT)
            await socket.until("block-delta")
        gate.set()
        await settled(host)
        (revision,) = await rows(Revision, conversation=ack["conversationId"])
        assert revision.context[1]["blocks"][0]["text"] == "Hello"


async def test_an_approval_may_come_from_another_socket_and_runs_the_tool_once(user: User) -> None:
    """B50."""
    postcard = {"to": "Ada", "text": "Hi"}
    with ScriptedModel(calls(("local.send_postcard", postcard)), says("Sent")) as model:
        async with hosted(model) as host, socket_of(host, user) as one, socket_of(host, user) as two:
            ack = await one.say("Send it", AGENT)
            asked = await one.until("interrupt-requested")
            assert asked["interrupt"]["arguments"] == postcard
            await two.command(type="subscribe", conversationId=ack["conversationId"])
            snapshot = await two.until("snapshot")
            assert snapshot["state"]["interrupt"]["id"] == asked["interrupt"]["id"]
            decision = {"executionId": ack["executionId"], "interruptId": asked["interrupt"]["id"]}
            answers = await asyncio.gather(
                one.command(type="approve", **decision), two.command(type="reject", **decision)
            )
            assert sorted(answer["type"] for answer in answers) == ["ack", "error"]
            (refused,) = [answer for answer in answers if answer["type"] == "error"]
            assert refused["code"] == "INVALID_STATE"
            approved = answers[0]["type"] == "ack"
            assert refused["message"] == f"this was answered already: {'approved' if approved else 'rejected'}"
            await one.end()
            kind = "approve" if approved else "reject"
            assert (await one.command(type=kind, **decision))["type"] == "ack"  # sent again after a lost connection
            started = [frame for frame in one.frames if frame["type"] == "tool-call-started"]
            assert len(started) == (1 if approved else 0)


async def test_a_rejected_call_is_told_to_the_model(user: User) -> None:
    with ScriptedModel(calls(("local.send_postcard", {"to": "Ada", "text": "Hi"})), says("Fine")) as model:
        async with hosted(model) as host, socket_of(host, user) as socket:
            ack = await socket.say("Send it", AGENT)
            asked = await socket.until("interrupt-requested")
            await socket.command(
                type="reject", executionId=ack["executionId"], interruptId=asked["interrupt"]["id"], reason="Not now."
            )
            await socket.end()
    assert "Not now." in model.requests[1].messages[-1].blocks[0].content[0].text


async def test_stop_works_twice_and_the_conversation_goes_on(user: User) -> None:
    """B52, B53, R57."""
    gate = asyncio.Event()
    model = ScriptedModel(
        calls(("local.send_postcard", {"to": "A", "text": "b"}), text="I"), says("Go", gate), says("ok")
    )
    async with hosted(model) as host, socket_of(host, user) as socket:
        ack = await socket.say("Send it", AGENT)
        asked = await socket.until("interrupt-requested")
        run = {"executionId": ack["executionId"]}
        assert (await socket.command(type="cancel", **run))["status"] == "cancelled"
        await socket.end()
        assert (await socket.command(type="cancel", **run))["status"] == "cancelled"
        late = await socket.command(type="approve", interruptId=asked["interrupt"]["id"], **run)
        assert (late["type"], late["code"]) == ("error", "INVALID_STATE")
        (conversation,) = await rows(Conversation)
        assert (conversation.version, conversation.head_id) == (0, None)
        (execution,) = await rows(Execution)
        assert [message["role"] for message in execution.transcript] == ["user", "assistant", "tool"]
        second = await socket.say("next", AGENT, conversationId=ack["conversationId"])
        await socket.until("block-delta")
        busy = await socket.say("me too", AGENT, conversationId=ack["conversationId"])
        assert busy["code"] == "INVALID_STATE"
        await socket.command(type="cancel", executionId=second["executionId"])
        await socket.end()
        await socket.say("last", AGENT, conversationId=ack["conversationId"])
        assert (await socket.end())["type"] == "execution-completed"


async def test_a_failed_turn_is_there_after_the_end(user: User) -> None:
    async with hosted(ScriptedModel(fails("the provider is down", after="Par", retryable=True))) as host:
        async with socket_of(host, user) as socket:
            ack = await socket.say("Hi", AGENT)
            failed = await socket.end()
            assert (failed["errorCode"], failed["errorMessage"]) == ("MODEL_FAILED", "the provider is down")
        async with socket_of(host, user) as socket:
            await socket.command(type="subscribe", conversationId=ack["conversationId"])
            state = (await socket.until("snapshot"))["state"]
            assert state["status"] == "failed"
            assert state["error"] == {"code": "MODEL_FAILED", "message": "the provider is down", "retryable": True}
            assert state["seq"] == failed["seq"]
            assert [message["role"] for message in state["messages"]] == ["user"]
            assert state["current"]["blocks"][0]["text"] == "Par"  # seen is not lost, and not part of the conversation


async def test_a_finished_run_can_be_followed_by_its_id(user: User) -> None:
    async with hosted(ScriptedModel(says("Hello"))) as host, socket_of(host, user) as socket:
        ack = await socket.say("Hi", AGENT)
        ended = await socket.end()
        await settled(host)
        await socket.command(type="subscribe", executionId=ack["executionId"])
        state = (await socket.until("snapshot"))["state"]
        assert (state["status"], state["seq"]) == ("completed", ended["seq"])
        assert [message["role"] for message in state["messages"]] == ["user", "assistant"]


async def test_html_readers_get_the_whole_answer_rendered(user: User) -> None:
    async with hosted(ScriptedModel(says("# Hi\n\none\n\n", "two <script>"))) as host, socket_of(host, user) as socket:
        await socket.say("Hi", AGENT, format="html")
        await socket.end()
        html: dict[int, str] = {}
        for frame in socket.frames:
            if frame["type"] == "rendered":
                html[frame["part"]] = frame["html"]
        whole = "".join(html.values())
        assert "<p>one</p>" in whole
        assert "<p>two &lt;script&gt;</p>" in whole


async def test_a_conflicting_base_is_refused_with_the_current_revision(user: User) -> None:
    """R127, B66."""
    async with hosted(ScriptedModel(says("One"))) as host, socket_of(host, user) as socket:
        ack = await socket.say("first", AGENT)
        await socket.end()
        await settled(host)
        stale = await socket.say("second", AGENT, conversationId=ack["conversationId"], baseRevision=0)
        assert (stale["code"], stale["currentRevision"]) == ("CONVERSATION_CONFLICT", 1)


async def test_what_belongs_to_others_looks_like_nothing(user: User) -> None:
    """R125, B77: the same answers as for unknown ids."""
    stranger = await sync_to_async(UserFactory)()
    gate = asyncio.Event()
    model = ScriptedModel(calls(("local.send_postcard", {"to": "A", "text": "b"})), says("x", gate))
    async with hosted(model) as host, socket_of(host, user) as socket, socket_of(host, stranger) as other:
        ack = await socket.say("Hi", AGENT)
        asked = await socket.until("interrupt-requested")
        interrupt = asked["interrupt"]["id"]

        async def codes(conversation: str, execution: str) -> list[str]:
            answers = [
                await other.command(type="subscribe", conversationId=conversation),
                await other.command(type="subscribe", executionId=execution),
                await other.command(type="approve", executionId=execution, interruptId=interrupt),
                await other.command(type="reject", executionId=execution, interruptId=interrupt),
                await other.command(type="cancel", executionId=execution),
                await other.say("mine", AGENT, conversationId=conversation),
            ]
            assert {answer["type"] for answer in answers} == {"error"}
            return [answer["code"] for answer in answers]

        theirs = await codes(ack["conversationId"], ack["executionId"])
        assert theirs == await codes(str(uuid4()), str(uuid4()))
        assert not [frame for frame in other.frames if frame["type"] not in ("welcome", "error")]
        assert host.hub.live(ack["conversationId"]) is not None


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "{",
        "[]",
        "5",
        "null",
        pytest.param("[" * 100_000, id="deep"),
        '{"type":"start"}',
        '{"type":"nonsense","id":"1"}',
        '{"type":"ping"}',
        '{"type":"ping","id":5}',
        '{"type":"ping","id":"1","more":1}',
        '{"type":"subscribe","id":"1"}',
        '{"type":"cancel","id":"1","executionId":"x"}',
        '{"type":"cancel","id":"1","execution_id":"01a22d16-3cdb-7d92-979c-df42441cd18c"}',
        '{"type":"start","id":"1","agent":"assistant","input":[{"type":"text","text":"x"}]}',
        '{"type":"start","id":"01a22d16-3cdb-7d92-979c-df42441cd18c","agent":"assistant","input":[]}',
        '{"type":"start","id":"01a22d16-3cdb-7d92-979c-df42441cd18d","agent":"a","input":[{"type":"text","text":" "}]}',
        '{"type":"start","id":"01a22d16-3cdb-7d92-979c-df42441cd18c","agent":"assistant","input":"x"}',
    ],
)
async def test_a_bad_frame_gets_an_error_and_harms_nobody(user: User, frame: str) -> None:
    """B65, B73."""
    async with hosted(ScriptedModel()) as host, socket_of(host, user) as socket:
        await socket.communicator.send_input({"type": "websocket.receive", "text": frame})
        answer = await socket.receive()
        assert (answer["type"], answer["code"]) == ("error", "INVALID_ARGUMENT")
        assert len(answer["message"]) < 1000
        assert (await socket.command(type="ping"))["type"] == "ack"
    assert await rows(Execution) == []


async def test_a_binary_frame_gets_an_error(user: User) -> None:
    async with hosted() as host, socket_of(host, user) as socket:
        await socket.communicator.send_to(bytes_data=b"\x00\xff")
        assert (await socket.receive())["code"] == "INVALID_ARGUMENT"


async def test_too_many_commands_are_refused_for_a_moment(user: User) -> None:
    async with hosted() as host, socket_of(host, user) as socket:
        for n in range(200):
            await socket.communicator.send_to(text_data=orjson.dumps({"type": "ping", "id": str(n)}).decode())
        answers = [await socket.receive() for _ in range(200)]
        assert {frame.get("code") for frame in answers} == {None, "RATE_LIMITED"}


async def test_a_read_only_token_starts_nothing(user: User) -> None:
    async with hosted() as host, socket_of(host, user, scopes=("read",)) as socket:
        assert (await socket.say("Hi", AGENT))["code"] == "FORBIDDEN"
        assert (await socket.command(type="ping"))["type"] == "ack"


async def test_an_unknown_agent_is_an_error(user: User) -> None:
    async with hosted() as host, socket_of(host, user) as socket:
        assert (await socket.say("Hi", "nobody"))["code"] == "AGENT_NOT_FOUND"
    assert await rows(Conversation) == []


async def test_a_closed_account_can_do_nothing_more(user: User) -> None:
    """B64."""
    async with hosted() as host, socket_of(host, user) as socket:
        await sync_to_async(User.objects.filter(pk=user.pk).update)(is_active=False)
        assert (await socket.say("Hi", AGENT))["code"] == "AUTH_REQUIRED"


async def test_a_tool_that_was_switched_off_meanwhile_does_not_run(user: User) -> None:
    """B57."""
    from agent.models import ToolRecord

    with ScriptedModel(calls(("local.send_postcard", {"to": "A", "text": "b"})), says("Pity")) as model:
        async with hosted(model) as host, socket_of(host, user) as socket:
            ack = await socket.say("Send", AGENT)
            asked = await socket.until("interrupt-requested")
            await sync_to_async(ToolRecord.objects.filter(name="local.send_postcard").update)(enabled=False)
            await socket.command(type="approve", executionId=ack["executionId"], interruptId=asked["interrupt"]["id"])
            await socket.end()
            assert "tool-call-started" not in [frame["type"] for frame in socket.frames]


async def test_nul_and_surrogates_are_replaced_on_entry(user: User) -> None:
    """B69: one rule, on both databases."""
    async with hosted(ScriptedModel(says("a\x00b\ud83d"))) as host, socket_of(host, user) as socket:
        await socket.communicator.send_to(
            text_data='{"type":"start","id":"%s","agent":"assistant","input":[{"type":"text","text":"x\\u0000y"}]}'
            % uuid4()
        )
        assert (await socket.end())["type"] == "execution-completed"
        (revision,) = await rows(Revision)
        assert [m["blocks"][0]["text"] for m in revision.context] == ["x\ufffdy", "a\ufffdb\ufffd"]


async def test_without_the_host_a_socket_says_so() -> None:
    socket = Socket(None, {}, ["par.v1"])
    await socket.connect()
    assert await socket.communicator.receive_output(10) == {"type": "websocket.close", "code": 4500}


async def test_changed_arguments_are_on_record_with_what_they_did(user: User) -> None:
    """What the model is told, what is stored and what the socket says name the arguments that ran."""
    asked_for, ran = {"to": "A", "text": "old"}, {"to": "B", "text": "new"}
    with ScriptedModel(calls(("local.send_postcard", asked_for)), says("ok")) as model:
        async with hosted(model) as host, socket_of(host, user) as socket:
            ack = await socket.say("Send", AGENT)
            asked = await socket.until("interrupt-requested")
            await socket.command(
                type="approve", executionId=ack["executionId"], interruptId=asked["interrupt"]["id"], arguments=ran
            )
            resolved = await socket.until("interrupt-resolved")
            assert (resolved["decision"], resolved["arguments"]) == ("modified", ran)
            await socket.end()
    (revision,) = await rows(Revision)
    result = revision.context[2]["blocks"][0]["content"][0]["text"]
    assert result.startswith('The user changed the arguments to {"to":"B","text":"new"}.')
    assert model.requests[1].messages[-1].blocks[0].content[0].text == result


async def test_arguments_that_cannot_be_right_are_not_put_to_a_person(user: User) -> None:
    """R106, E1: nothing was executed, and nobody was asked."""
    with ScriptedModel(calls(("local.send_postcard", {"to": 5})), says("Sorry")) as model:
        async with hosted(model) as host, socket_of(host, user) as socket:
            await socket.say("Send", AGENT)
            await socket.end()
            kinds = {frame["type"] for frame in socket.frames}
    assert not kinds & {"interrupt-requested", "tool-call-started"}
    result = model.requests[1].messages[-1].blocks[0]
    assert (result.status, result.execution) == ("error", "not-executed")


async def test_a_start_is_followed_whatever_was_followed_before(user: User) -> None:
    async with hosted(ScriptedModel(says("One"), says("Two"))) as host, socket_of(host, user) as socket:
        ack = await socket.say("first", AGENT)
        await socket.end()
        await settled(host)
        await socket.command(type="subscribe", executionId=ack["executionId"])
        second = await socket.say("second", AGENT, conversationId=ack["conversationId"], format="html")
        await socket.end()
        assert socket.text(second["executionId"]) == "Two"
        assert any(frame["type"] == "rendered" for frame in socket.frames)


async def test_a_command_over_the_rate_is_answered_under_its_id(user: User) -> None:
    async with hosted() as host, socket_of(host, user) as socket:
        ids = [await socket.send(type="ping") for _ in range(120)]
        answers = [await socket.receive() for _ in ids]
        assert [answer["id"] for answer in answers] == ids
        assert "RATE_LIMITED" in {answer.get("code") for answer in answers}


async def test_nul_in_the_name_of_an_agent_is_no_fault_of_the_server(user: User) -> None:
    """B69."""
    async with hosted() as host, socket_of(host, user) as socket:
        assert (await socket.say("Hi", "a\x00b"))["code"] == "AGENT_NOT_FOUND"


async def test_a_start_is_answered_under_the_id_as_it_was_written(user: User) -> None:
    written = str(uuid4()).upper()
    async with hosted(ScriptedModel(says("x"))) as host, socket_of(host, user) as socket:
        assert (await socket.say("Hi", AGENT, id=written))["id"] == written


async def test_a_base_without_a_conversation_is_refused(user: User) -> None:
    async with hosted() as host, socket_of(host, user) as socket:
        assert (await socket.say("Hi", AGENT, baseRevision=1))["code"] == "INVALID_ARGUMENT"


async def test_cancelling_what_is_over_says_how_it_ended(user: User) -> None:
    async with hosted(ScriptedModel(says("x"))) as host, socket_of(host, user) as socket:
        ack = await socket.say("Hi", AGENT)
        await socket.end()
        assert (await socket.command(type="cancel", executionId=ack["executionId"]))["status"] == "completed"


async def test_nothing_is_left_of_a_socket_whose_command_is_cut_off(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B60: the server stops waiting for a slow command and cancels the application."""
    async with hosted(ScriptedModel(says("x"))) as host:
        opened = socket_of(host, user)
        socket = await opened.__aenter__()
        await socket.say("Hi", AGENT)
        await socket.end()
        assert len(host.subscribers) == 1

        async def stuck(*_: object) -> None:
            await asyncio.Event().wait()

        monkeypatch.setattr(host, "find_conversation", stuck)
        await socket.send(type="subscribe", conversationId=str(uuid4()))
        for _ in range(20):
            await asyncio.sleep(0)
        socket.communicator.stop()
        with contextlib.suppress(asyncio.CancelledError):
            await socket.communicator.future
        assert (len(host.subscribers), host.hub._readers) == (0, {})


async def test_an_approved_call_does_not_run_again_on_a_later_turn(user: User) -> None:
    """B48: whatever the client sends again."""
    model = ScriptedModel(calls(("local.send_postcard", {"to": "A", "text": "b"})), says("Sent"), says("Welcome"))
    async with hosted(model) as host, socket_of(host, user) as socket:
        ack = await socket.say("Send", AGENT)
        asked = await socket.until("interrupt-requested")
        decision = {"executionId": ack["executionId"], "interruptId": asked["interrupt"]["id"]}
        await socket.command(type="approve", **decision)
        await socket.end()
        await socket.say("thanks", AGENT, conversationId=ack["conversationId"])
        await socket.end()
        await socket.command(type="approve", **decision)
        assert [frame["type"] for frame in socket.frames].count("tool-call-started") == 1


async def test_a_socket_acts_for_so_many_clients_and_says_so(user: User) -> None:
    async with hosted(ScriptedModel(says("x"))) as host, socket_of(host, user) as socket:
        ack = await socket.say("Hi", AGENT, clientId="0")
        await socket.end()
        (subscriber,) = host.subscribers
        for number in range(1, 32):
            subscriber.act_for(str(number))
        follow = {"type": "subscribe", "conversationId": ack["conversationId"]}
        assert (await socket.command(**follow, clientId="0"))["type"] == "ack"
        assert (await socket.command(**follow, clientId="one more"))["code"] == "INVALID_STATE"
        assert (await socket.say("Hi", AGENT, clientId="one more"))["code"] == "INVALID_STATE"


async def test_who_does_not_read_the_answers_is_not_heard(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """B60: each command is answered once somebody takes the answers."""
    monkeypatch.setattr("conversations.hosting.outbox.ROOM", 1_000)
    count, takes, full = 40, asyncio.Event(), asyncio.Event()
    async with hosted(ScriptedModel()) as host, socket_of(host, user) as socket:
        (subscriber,) = host.subscribers
        taken, room = subscriber.outbox.next, Outbox.room

        async def watched(outbox: Outbox) -> None:
            if outbox._kept > 1_000:
                full.set()
            await room(outbox)

        async def late() -> bytes | None:
            await takes.wait()
            return await taken()

        monkeypatch.setattr(Outbox, "next", lambda _: late())
        monkeypatch.setattr(Outbox, "room", watched)
        for number in range(count):
            await socket.send(type="ping", id=str(number))
        await asyncio.wait_for(full.wait(), 10)
        for _ in range(1_000):  # it hears nothing more
            await asyncio.sleep(0)
        assert 0 < len(subscriber.outbox._waiting) < 10
        takes.set()
        assert [(await socket.receive())["id"] for _ in range(count)] == [str(number) for number in range(count)]
