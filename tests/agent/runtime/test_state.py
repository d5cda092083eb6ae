"""The reducer: a snapshot and what follows make the same state as all events from the start."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.runtime import AgentError, Event, ExecutionState, create_runtime
from agent.runtime import events as ev
from agent.runtime.model import BlockDelta, BlockStart
from agent.testing import EventRecorder, ScriptedModel, calls, fails, says, scripted_tool


def recorded(kind: str) -> list[Event]:
    """Return the events of a run of some kind."""

    async def play() -> list[Event]:
        recorder = EventRecorder()

        async def work(invocation: Any) -> str:
            invocation.context.progress("half")
            return "x"

        tools = [scripted_tool("free", work), scripted_tool("asked", "y", require_confirmation=True)]
        ends = {"ok": says("Do", "ne"), "fails": fails("broken", after="Half"), "cancelled": says("never")}
        model = ScriptedModel(calls(("free", {"a": 1}), ("asked", {}), text="Hm"), ends[kind])
        execution = create_runtime(model, tools).start("Hi", observer=recorder, conversation_id="c", agent="a")
        event = await recorder.wait_for("interrupt-requested")
        if kind == "cancelled":
            execution.cancel()
        else:
            execution.respond(event.interrupt.id, True)
        with contextlib.suppress(AgentError):
            await execution.result
        return recorder.events

    return asyncio.run(play())


RUNS = {kind: recorded(kind) for kind in ("ok", "fails", "cancelled")}


def after(events: list[Event], state: ExecutionState | None = None) -> ExecutionState:
    state = state or ExecutionState(events[0].execution_id)
    for event in events:
        state.apply(event)
    return state


@given(st.sampled_from(sorted(RUNS)), st.data())
def test_any_prefix_as_snapshot_and_the_rest_make_the_whole(kind: str, data: st.DataObject) -> None:
    events = RUNS[kind]
    cut = data.draw(st.integers(0, len(events)))
    snapshot = orjson.loads(orjson.dumps(after(events[:cut], ExecutionState(events[0].execution_id)).to_wire()))
    resumed = after(events[cut:], ExecutionState.from_wire(snapshot))
    assert orjson.dumps(resumed.to_wire()) == orjson.dumps(after(events).to_wire())


@pytest.mark.parametrize(("kind", "status"), [("ok", "completed"), ("fails", "failed"), ("cancelled", "cancelled")])
def test_a_run_ends_in_its_status_with_nothing_pending(kind: str, status: str) -> None:
    state = after(RUNS[kind])
    assert state.ended
    assert (state.status, state.interrupt, state.phase) == (status, None, None)


def test_what_was_half_streamed_stays_readable_after_a_failure() -> None:
    assert after(RUNS["fails"]).blocks[0].text == "Half"


def test_a_gap_and_a_repetition_are_refused() -> None:
    state = after(RUNS["ok"][:3])
    for event in (RUNS["ok"][2], RUNS["ok"][4]):
        with pytest.raises(ValueError, match="cannot follow"):
            state.apply(event)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(["text", "reasoning", "tool-call"]))
def test_the_short_path_of_deltas_writes_the_same_json(text: str, block_type: Any) -> None:
    delta = BlockDelta(3, block_type, text, "execution", 9)
    assert orjson.loads(ev.encode(delta)) == ev.to_wire(delta)
    merged = orjson.loads(ev.encode_delta(delta, 4, text))
    assert merged == {**ev.to_wire(delta), "fromSeq": 4}


def test_every_type_of_event_has_a_wire_form_with_its_number() -> None:
    for event in RUNS["ok"]:
        wire = orjson.loads(ev.encode(event))
        assert (wire["type"], wire["seq"]) == (event.type, event.seq)
    assert isinstance(RUNS["ok"][4], BlockStart)
