"""The browser's reducer makes the same states of the same recordings as the server's."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import conversations
from agent.runtime import events as ev
from agent.runtime.messages import AgentMessage, ModelContext, TextBlock, ToolCallBlock, Usage, tool_result
from agent.runtime.model import BlockDelta, BlockStart, BlockStop
from agent.runtime.state import ExecutionState
from agent.runtime.tools import ToolDefinition
from agent.runtime.values import FrozenDict

REDUCER = Path(conversations.__file__).parent / "static" / "par" / "reducer.js"

# Applies frames one by one; prints the state after each, and the state that a snapshot of it becomes.
PLAYER = """
import { readFileSync } from "node:fs";
import { ExecutionState } from "./reducer.mjs";
const { executionId, frames } = JSON.parse(readFileSync(0, "utf8"));
let state = new ExecutionState(executionId);
const states = [];
for (const frame of frames) {
  const verdict = state.judge(frame);
  if (verdict === "apply") state.apply(frame);
  states.push({ verdict, state: JSON.parse(JSON.stringify(state.toWire())), ended: state.ended });
  state = ExecutionState.fromWire(JSON.parse(JSON.stringify(state.toWire())));
}
console.log(JSON.stringify(states));
"""

ID = "execution-1"
STATE = ModelContext(model_state=None)
ASK = AgentMessage(id="m1", role="user", blocks=(TextBlock(text="go"),))
CALL = ToolCallBlock(call_id="c1", name="pay", input={"sum": 3, "to": "Zoë\u2028"})
PAY = ToolDefinition(name="pay", description="Pays.", input_schema={"type": "object"})
USAGE = Usage(input_tokens=1, output_tokens=2, total_tokens=3)


@pytest.fixture(scope="module")
def player(node: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("reducer")
    shutil.copy(REDUCER, place / "reducer.mjs")
    (place / "player.mjs").write_text(PLAYER)
    return place / "player.mjs"


def play(player: Path, frames: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    done = subprocess.run(
        ["node", str(player)],
        input=json.dumps({"executionId": ID, "frames": frames}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    states: list[dict[str, Any]] = json.loads(done.stdout)
    return states


def numbered(events: Sequence[ev.Event]) -> list[ev.Event]:
    for seq, event in enumerate(events, 1):
        event.execution_id, event.seq = ID, seq
    return list(events)


def beginning() -> list[ev.Event]:
    return [
        ev.ExecutionStarted("conversation-1", "demo", 4, 1),
        ev.MessagesAdded((ASK,), 0, STATE),
        ev.StatusChanged("streaming"),
    ]


def answer(message_id: str, text: str, index: int = 0) -> list[ev.Event]:
    return [
        ev.ModelCallStarted(1, message_id),
        BlockStart(index, "reasoning"),
        BlockDelta(index, "reasoning", "hm"),
        BlockStop(index),
        BlockStart(index + 1, "text"),
        *(BlockDelta(index + 1, "text", letter) for letter in text),
        BlockStop(index + 1),
        ev.ModelCallCompleted(1, message_id, "end-turn", USAGE, 5, 9),
    ]


def tool_turn(*, approved: bool = True, paid: str = "paid") -> list[ev.Event]:
    asked = AgentMessage(id="m2", role="assistant", blocks=(CALL,))
    block = tool_result(
        CALL,
        paid if approved else "no",
        status="success" if approved else "error",
        execution="completed" if approved else "not-executed",
    )
    result = AgentMessage(id="m3", role="tool", blocks=(block,))
    ran: list[ev.Event] = [
        ev.StatusChanged("calling-tool"),
        ev.ToolCallStarted("c1", "pay", FrozenDict({"sum": 3, "to": "Zoë\u2028"})),
        ev.ToolProgress("c1", "half"),
        ev.ToolProgress("c1", "whole"),
        ev.ToolCallCompleted("c1", "pay", False),
    ]
    return [
        ev.ModelCallStarted(1, "m2"),
        BlockStart(0, "tool-call", "c1", "pay"),
        BlockDelta(0, "tool-call", '{"sum"'),
        BlockDelta(0, "tool-call", ":3}"),
        BlockStop(0),
        ev.ModelCallCompleted(1, "m2", "tool-use", None, None, None),
        ev.MessagesAdded((ASK, asked), 1, STATE),
        ev.StatusChanged("waiting-confirmation"),
        ev.InterruptRequested(ev.Interrupt(id="i1", tool=PAY, arguments=CALL.input, reason="money"), "c1"),
        ev.InterruptResolved("i1", approved, "approved" if approved else "rejected"),
        *(ran if approved else []),
        ev.MessagesAdded((ASK, asked, result), 2, STATE),
        *answer("m4", "Done 😀."),
    ]


RECORDINGS: dict[str, list[ev.Event]] = {
    "a plain answer": [
        *beginning(),
        *answer("m2", "Hello."),
        ev.MessagesAdded((ASK, AgentMessage(id="m2", role="assistant", blocks=(TextBlock(text="Hello."),))), 1, STATE),
        ev.RevisionSaved("r1", 1, "conversation-1", 1),
        ev.ExecutionCompleted(ev.Completed(stop_reason="end-turn"), 2),
    ],
    "a tool that was approved": [*beginning(), *tool_turn()],
    "a tool that said too much": [*beginning(), *tool_turn(paid="😀" * 20_000)],
    "a handoff and a suspension": [
        *beginning(),
        ev.ContextCompacted("automatic", 2, 1),
        ev.AgentHandoff("demo", "helper"),
        ev.InterruptRequested(ev.Interrupt(id="i1", tool=PAY, arguments=CALL.input), "c1"),
        ev.ExecutionSuspended("i1", "pay", "2026-12-01T10:00:00Z"),
        ev.InterruptResolved("i1", True, "modified", FrozenDict({"sum": 1})),
    ],
    "a tool that was rejected": [*beginning(), *tool_turn(approved=False)],
    "a run stopped in the middle of a word": [
        *beginning(),
        *answer("m2", "Hel")[:-2],
        ev.ExecutionCompleted(ev.Cancelled(reason="user"), 1),
    ],
    "a run stopped while it waited": [
        *beginning(),
        *tool_turn()[:9],
        ev.ExecutionCompleted(ev.Cancelled(reason="user"), 1),
    ],
    "an answer cut by the limit": [
        *beginning(),
        *answer("m2", "Hel"),
        ev.ExecutionCompleted(ev.MaxTokens(), 1),
    ],
    "a run that failed": [
        *beginning(),
        ev.ModelCallStarted(1, "m2"),
        ev.ExecutionFailed("MODEL_FAILED", "the provider is gone", True),
    ],
    "blocks that were begun out of order": [*beginning(), *answer("m2", "later", 4), *answer("m3", "first")],
}


def expected(events: Sequence[ev.Event]) -> list[dict[str, Any]]:
    state, states = ExecutionState(ID), []
    for event in events:
        state.apply(event)
        states.append(json.loads(json.dumps({"verdict": "apply", "state": state.to_wire(), "ended": state.ended})))
    return states


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_gives_the_same_states_as_on_the_server(player: Path, name: str) -> None:
    events = numbered(RECORDINGS[name])

    assert play(player, [json.loads(ev.encode(event)) for event in events]) == expected(events)


def test_merged_deltas_give_the_same_state(player: Path) -> None:
    events = numbered([*beginning(), *answer("m2", "one two")])
    (first, *_, last) = deltas = [event for event in events if isinstance(event, BlockDelta) and event.index == 1]
    merged = json.loads(ev.encode_delta(last, first.seq, "".join(delta.text for delta in deltas)))
    frames = [ev.to_wire(event) for event in events if event not in deltas]
    frames.insert(first.seq - 1, merged)

    assert play(player, frames)[-1] == expected(events)[-1]


def test_a_frame_that_was_seen_is_ignored_and_a_gap_is_noticed(player: Path) -> None:
    frames = [ev.to_wire(event) for event in numbered([*beginning(), *answer("m2", "x")])]
    overlapping = {**frames[5], "fromSeq": 2, "seq": 6}

    states = play(player, [frames[0], frames[1], frames[0], frames[3], overlapping, frames[2]])

    assert [state["verdict"] for state in states] == ["apply", "apply", "ignore", "gap", "gap", "apply"]
    assert states[-1]["state"]["seq"] == 3


def test_an_event_of_a_newer_server_keeps_its_place_in_the_order(player: Path) -> None:
    started = ev.to_wire(numbered(beginning())[0])
    states = play(player, [started, {"type": "from-the-future", "executionId": ID, "seq": 2}])

    assert states[-1]["state"] == {**states[0]["state"], "seq": 2}


texts = st.text(max_size=12)
turns = st.lists(
    st.one_of(
        st.builds(lambda text, index: answer("m7", text, index), texts, st.integers(0, 3)),
        st.booleans().map(lambda approved: tool_turn(approved=approved)),
        st.sampled_from([[ev.StatusChanged("streaming")], [ev.StatusChanged("calling-tool")]]),
    ),
    max_size=4,
).map(lambda parts: [event for part in parts for event in part])


@given(turns)
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_recording_gives_the_same_states(player: Path, events: list[ev.Event]) -> None:
    recording = numbered([*beginning(), *(json_copy(event) for event in events)])

    assert play(player, [json.loads(ev.encode(event)) for event in recording]) == expected(recording)


def json_copy(event: ev.Event) -> ev.Event:
    """Copy an event: a strategy may hand out one object twice, and events are numbered in place."""
    fields = {name: getattr(event, name) for name in type(event).__slots__}
    return type(event)(**fields)
