"""The client's core against random interleavings of frames, losses and reconnects."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.runtime import events as ev
from agent.runtime.model import BlockDelta
from conversations.client import events as told
from conversations.client.effects import Abandoned, Called, Found, Later, Send, Settled, Told, Unfollowed
from conversations.client.exceptions import ParError, ProtocolViolation
from conversations.client.session import Session
from tests.conversations.client.wire import CONVERSATION, Client, Server, record

RECORDED = record()
EVENTS = RECORDED.events
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 12)),
        st.tuples(st.just("to client"), st.integers(1, 12)),
        st.tuples(st.just("to server"), st.integers(1, 3)),
        st.tuples(st.just("drop"), st.just(1)),
    ),
    max_size=60,
)


class Network:
    """Carries frames between a client and a server, as long as the connection holds."""

    def __init__(self, server: Server, client: Client) -> None:
        self.server, self.client = server, client

    def step(self, what: str, times: int) -> None:
        for _ in range(times):
            if what == "publish":
                self.server.publish()
            elif what == "drop":
                self.drop()
            else:
                self.connect()
                self.carry(what)

    def carry(self, way: str) -> bool:
        """Carry one frame; false if there is none."""
        if way == "to server":
            if self.client.to_server:
                self.server.receive(self.client.to_server.popleft())
                return True
        elif (frame := self.server.next()) is not None:
            self.client.perform(self.client.session.receive(frame))
            return True
        return False

    def connect(self) -> None:
        if not self.client.session.connected:
            self.server.accept()
            self.client.perform(self.client.session.welcomed())

    def drop(self) -> None:
        if self.client.session.connected:
            self.client.perform(self.client.session.disconnected())
        self.client.to_server.clear()

    def settle(self) -> None:
        """Let everything arrive, and the run go to its end."""
        self.connect()
        while self.carry("to server") or self.carry("to client") or self.server.live:
            if self.server.live:
                self.server.publish()


def said(events: list[told.Event], kind: type[told.TextDelta | told.ReasoningDelta]) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


def deltas(kind: str, events: list[ev.Event] = EVENTS) -> str:
    return "".join(event.text for event in events if isinstance(event, BlockDelta) and event.block_type == kind)


@given(STEPS, st.sampled_from([2, 6, 1000]), st.booleans())
def test_whatever_breaks_the_caller_is_told_everything_once(
    steps: list[tuple[str, int]], limit: int, forgetful: bool
) -> None:
    server, client = Server(EVENTS, limit, forgetful), Client()
    network = Network(server, client)
    for what, times in steps:
        network.step(what, times)
    network.settle()

    run = client.run
    assert run is not None
    assert said(client.told, told.TextDelta) == run.text == deltas("text")
    assert said(client.told, told.ReasoningDelta) == deltas("reasoning")
    assert not [event for event in client.told if isinstance(event, told.TextLost)]
    wires = [message.to_wire() for message in RECORDED.messages()]
    expected = [
        told.Message(wire["id"], wire["role"], tuple(wire["blocks"])) for wire in orjson.loads(orjson.dumps(wires))
    ]
    assert [event.message for event in client.told if isinstance(event, told.MessageAdded)] == expected
    assert run.messages == expected
    assert [event.call_id for event in client.told if isinstance(event, told.ToolStarted)] == [
        event.call_id for event in EVENTS if isinstance(event, ev.ToolCallStarted)
    ]
    assert [event.text for event in client.told if isinstance(event, told.ToolEnded)] == ["snow", "fog", "sent"]
    if not forgetful:
        progress = [event.text for event in client.told if isinstance(event, told.ToolProgress)]
        assert progress == ["opening the window", "looking"] * 2
    ends = [event for event in client.told if isinstance(event, told.RunEnded | told.RunFailed)]
    assert ends == [client.told[-1]]
    assert ends == [told.RunEnded(told.Outcome("completed", "end-turn"), told.Revision("revision-1", 1, 1))]
    assert client.settled[client.start_id]["executionId"] == run.execution_id


@given(STEPS, st.integers(0, len(EVENTS)), st.integers(0, len(EVENTS)))
def test_after_a_crash_what_is_gone_is_told_as_lost(steps: list[tuple[str, int]], at: int, kept: int) -> None:
    """DESIGN 5, crash: a server that came back may know less than was seen."""
    server, client = Server(EVENTS), Client()
    network = Network(server, client)
    network.connect()
    network.carry("to server")
    network.step("publish", at)
    for what, times in steps:
        network.step(what, times)
    server.crash(min(kept, server.published))
    network.drop()
    network.settle()

    run = client.run
    assert run is not None
    if server.lost is None:
        assert run.failure is None
        return
    assert run.failure is not None and run.failure.code == "EXECUTION_LOST"
    assert [message.id for message in run.messages] == [message["id"] for message in server.lost.messages]
    assert run.text == "".join(message.text for message in run.messages if message.role == "assistant")
    pieces: dict[str, str] = {}
    for event in client.told:
        match event:
            case told.TextDelta():
                pieces[event.message_id] = pieces.get(event.message_id, "") + event.text
            case told.TextLost(kind="text"):
                assert pieces[event.message_id].endswith(event.text)
                pieces[event.message_id] = pieces[event.message_id].removesuffix(event.text)
    assert "".join(pieces.values()) == run.text


def following() -> tuple[Session, str, str]:
    """A connected session that has just started a run."""
    session = Session("client-1")
    session.welcomed()
    id, _ = session.command("start", agent="demo", input=[], clientTools=[{}])
    session.receive(
        orjson.dumps({"type": "ack", "id": id, "executionId": "e", "conversationId": CONVERSATION, "created": True})
    )
    return session, "e", id


def sent(effects: list[Any]) -> list[dict[str, Any]]:
    return [orjson.loads(effect.text) for effect in effects if isinstance(effect, Send)]


CALL = {"type": "client-tool-call", "executionId": "e", "callId": "c", "name": "look", "arguments": {"at": 1}}


def test_a_call_that_comes_twice_is_handed_out_once_and_its_result_is_sent_again() -> None:
    session, _, _ = following()
    called = session.receive(orjson.dumps(CALL))
    assert called == [Called("e", "c", "look", {"at": 1})]
    assert session.receive(orjson.dumps(CALL)) == []
    (first,) = sent(session.tool_result(called[0], None, False))
    assert (first["callId"], first["result"], first["isError"]) == ("c", None, False)
    assert session.receive(orjson.dumps(CALL)) == [], "its result is on the way"
    session.receive(orjson.dumps({"type": "ack", "id": first["id"]}))
    (again,) = sent(session.receive(orjson.dumps(CALL)))
    assert again | {"id": ""} == first | {"id": ""}


def test_a_result_without_an_answer_goes_over_the_next_connection() -> None:
    session, _, _ = following()
    (called,) = session.receive(orjson.dumps(CALL))
    assert isinstance(called, Called)
    session.disconnected()
    assert session.tool_result(called, "x", False) == []
    subscribed, result = sent(session.welcomed())
    assert (subscribed["executionId"], subscribed["clientId"]) == ("e", "client-1")
    assert (result["type"], result["result"]) == ("tool-result", "x")


def test_a_call_for_a_run_without_tools_of_this_client_is_ignored() -> None:
    session, _, _ = following()
    assert session.receive(orjson.dumps(CALL | {"executionId": "other"})) == []


def test_a_result_that_is_too_large_becomes_an_error_instead_of_a_loop() -> None:
    session, _, _ = following()
    (called,) = session.receive(orjson.dumps(CALL))
    assert isinstance(called, Called)
    session.tool_result(called, "x" * 9000, False)
    assert session.disconnected(too_large=True) == []
    result = sent(session.welcomed())[-1]
    assert result["isError"] is True
    assert len(result["result"]) < 100


def test_of_what_waits_the_largest_frame_is_the_one_that_was_too_large() -> None:
    session = Session("client-1")
    session.welcomed()
    small, _ = session.command("start", agent="demo", input=[])
    large, _ = session.command("start", agent="demo", input=["x" * 100])
    (settled,) = session.disconnected(too_large=True)
    assert isinstance(settled, Settled) and isinstance(settled.answer, ParError)
    assert (settled.id, settled.answer.code) == (large, "FRAME_TOO_LARGE")
    assert [frame["id"] for frame in sent(session.welcomed())] == [small]


def test_a_command_that_came_too_fast_is_sent_again_and_one_while_draining_waits_for_the_next_connection() -> None:
    session = Session("client-1")
    session.welcomed()
    id, effects = session.command("cancel", executionId="e")
    slow = session.receive(orjson.dumps({"type": "error", "id": id, "code": "RATE_LIMITED", "message": "slow down"}))
    assert isinstance(slow[0], Later)
    assert session.again(id) == effects
    assert session.receive(orjson.dumps({"type": "error", "id": id, "code": "DRAINING", "message": "x"})) == []
    session.disconnected()
    assert session.again(id) == []
    assert session.welcomed() == effects
    session.forget(id)
    assert session.again(id) == []


def test_a_gap_asks_for_a_snapshot_once() -> None:
    session, _, _ = following()
    gap = {"type": "status", "executionId": "e", "seq": 7, "status": "streaming"}
    (asked,) = sent(session.receive(orjson.dumps(gap)))
    assert (asked["type"], asked["executionId"]) == ("subscribe", "e")
    assert session.receive(orjson.dumps(gap)) == []


def test_a_run_that_cannot_be_followed_any_more_is_abandoned_with_the_reason() -> None:
    session, _, _ = following()
    session.disconnected()
    (asked,) = sent(session.welcomed())
    refused = {"type": "error", "id": asked["id"], "code": "EXECUTION_NOT_FOUND", "message": "none"}
    (abandoned,) = session.receive(orjson.dumps(refused))
    assert isinstance(abandoned, Abandoned)
    assert abandoned.error.code == "EXECUTION_NOT_FOUND"


def refuse(session: Session, id: str, code: str) -> list[Any]:
    return session.receive(orjson.dumps({"type": "error", "id": id, "code": code, "message": "no"}))


@pytest.mark.parametrize("code", ["INTERNAL_ERROR", "RATE_LIMITED"])
def test_a_subscription_of_the_session_that_failed_is_tried_again_until_it_holds(code: str) -> None:
    """The server fails for a moment: the run is not given up for that, and the pauses grow."""
    session, _, _ = following()
    session.disconnected()
    (asked,) = sent(session.welcomed())
    pauses = []
    for _ in range(7):
        (later,) = refuse(session, asked["id"], code)
        pauses.append(later.seconds)
        assert sent(session.again(asked["id"])) == [asked]
    assert pauses == [1, 2, 4, 8, 16, 20, 20]
    ack = {"type": "ack", "id": asked["id"], "executionId": "e", "conversationId": CONVERSATION, "version": 0}
    assert session.receive(orjson.dumps(ack)) == []
    assert session.again(asked["id"]) == []
    told_of = session.receive(ev.encode(ev.ExecutionFailed("MODEL_FAILED", "no", False, "e", 1)))
    assert isinstance(told_of[0], Told), "the run is followed still"


@pytest.mark.parametrize("code", ["CONVERSATION_NOT_FOUND", "FORBIDDEN", "AUTH_REQUIRED"])
def test_who_follows_a_conversation_hears_that_it_cannot_be_followed_any_more(code: str) -> None:
    session = Session("client-1")
    session.welcomed()
    id, _ = session.command("subscribe", conversationId=CONVERSATION)
    session.receive(orjson.dumps({"type": "ack", "id": id, "conversationId": CONVERSATION, "executionId": None}))
    session.disconnected()
    (asked,) = sent(session.welcomed())
    (left,) = refuse(session, asked["id"], code)
    assert isinstance(left, Unfollowed)
    assert (left.conversation_id, left.error.code) == (CONVERSATION, code)
    session.disconnected()
    assert session.welcomed() == []


def test_a_failed_goodbye_costs_nothing_and_is_not_repeated() -> None:
    session, _, _ = following()
    (_, goodbye) = session.receive(ev.encode(ev.ExecutionFailed("MODEL_FAILED", "no", False, "e", 1)))
    (left,) = sent([goodbye])
    assert left["type"] == "unsubscribe"
    id, _ = session.command("start", agent="demo", input=[])
    ids = {"executionId": "f", "conversationId": CONVERSATION}
    session.receive(orjson.dumps({"type": "ack", "id": id, **ids, "created": True}))
    assert refuse(session, left["id"], "INTERNAL_ERROR") == []
    assert session.again(left["id"]) == []


def test_what_a_caller_waits_for_fails_at_once() -> None:
    session = Session("client-1")
    session.welcomed()
    id, _ = session.command("subscribe", conversationId=CONVERSATION)
    (settled,) = refuse(session, id, "INTERNAL_ERROR")
    assert isinstance(settled, Settled) and isinstance(settled.answer, ParError)


def test_a_second_interest_in_a_conversation_does_not_end_the_first() -> None:
    """The server has one subscription for each conversation."""
    session, _, _ = following()
    id, _ = session.command("subscribe", executionId="old")
    ack = {"type": "ack", "id": id, "executionId": "old", "conversationId": CONVERSATION, "version": 1}
    *_, widened = sent(session.receive(orjson.dumps(ack)))
    assert (widened["type"], widened["conversationId"]) == ("subscribe", CONVERSATION)
    session.disconnected()
    asked = [frame.get("executionId") or frame["conversationId"] for frame in sent(session.welcomed())]
    assert asked == ["e", "old", CONVERSATION]


def test_a_run_that_ends_while_the_subscription_is_changed_is_asked_for_again() -> None:
    session, _, _ = following()
    session.disconnected()
    id, _ = session.command("subscribe", conversationId=CONVERSATION)
    resumed, asked = sent(session.welcomed())
    assert (resumed["executionId"], asked["id"]) == ("e", id)
    both = {"executionId": "e", "conversationId": CONVERSATION, "version": 1}
    assert session.receive(orjson.dumps({"type": "ack", "id": resumed["id"], **both})) == []
    ack = {"type": "ack", "id": id, "conversationId": CONVERSATION, "executionId": None, "version": 2}
    run, conversation = sent(session.receive(orjson.dumps(ack)))
    assert (run["executionId"], conversation["conversationId"]) == ("e", CONVERSATION)
    ack |= {"id": conversation["id"], "executionId": "e"}
    assert sent(session.receive(orjson.dumps(ack))) == []


def test_a_followed_conversation_gives_each_run_of_others_once_and_lets_go_in_the_end() -> None:
    session = Session("client-1")
    session.welcomed()
    id, _ = session.command("subscribe", conversationId=CONVERSATION)
    session.receive(orjson.dumps({"type": "ack", "id": id, "conversationId": CONVERSATION, "executionId": None}))
    begun = session.receive(ev.encode(ev.ExecutionStarted(CONVERSATION, "demo", 0, 1, "f", 1)))
    assert isinstance(begun[0], Found) and begun[0].run.execution_id == "f"
    failed = session.receive(ev.encode(ev.ExecutionFailed("MODEL_FAILED", "no", False, "f", 2)))
    assert isinstance(failed[0], Told)
    snapshot = {"executionId": "f", "conversationId": CONVERSATION, "seq": 2, "status": "failed"}
    assert session.receive(orjson.dumps({"type": "snapshot", "state": snapshot})) == []
    (left,) = sent(session.unfollow(CONVERSATION))
    assert (left["type"], left["conversationId"]) == ("unsubscribe", CONVERSATION)
    foreign = session.receive(ev.encode(ev.ExecutionStarted(CONVERSATION, "demo", 0, 1, "g", 1)))
    assert foreign == []


def test_frames_and_events_of_a_newer_server_are_ignored() -> None:
    session, _, _ = following()
    for frame in ({"type": "news"}, {"type": "rendered", "executionId": "e"}, {"type": "draining"}):
        assert session.receive(orjson.dumps(frame)) == []
    assert session.receive(orjson.dumps({"type": "mood", "executionId": "e", "seq": 1, "mood": "good"})) == []
    failed = session.receive(ev.encode(ev.ExecutionFailed("MODEL_FAILED", "no", False, "e", 2)))
    assert [type(effect) for effect in failed] == [Told, Send]


@pytest.mark.parametrize(
    "data", ["", "[]", "{}", '{"type":"snapshot"}', '{"type":"block-delta","executionId":"e","seq":1}', "\ud800"]
)
def test_a_frame_that_cannot_be_understood_is_told_as_such(data: str) -> None:
    session, _, _ = following()
    with pytest.raises(ProtocolViolation):
        session.receive(data)


@pytest.mark.parametrize("value", [{1, 2}, "\ud800", {1: 2}, object()])
def test_what_is_no_json_is_refused_before_it_is_sent(value: Any) -> None:
    session = Session("client-1")
    with pytest.raises(ParError) as caught:
        session.command("start", input=value)
    assert caught.value.code == "INVALID_ARGUMENT"
    assert session.welcomed() == []
