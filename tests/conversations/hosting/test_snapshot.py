"""A snapshot: what the run was when it was made, without a copy of it."""

from __future__ import annotations

import gc
from itertools import pairwise
from typing import Any

import orjson

from agent.runtime import BlockDelta, BlockStart
from agent.runtime import events as ev
from agent.runtime.messages import AgentMessage, ModelContext, TextBlock
from agent.runtime.state import PART, ExecutionState
from conversations.hosting.pieces import PIECE
from conversations.hosting.snapshot import PastSnapshots, Snapshot, pieces_of


def running() -> ExecutionState:
    state = ExecutionState("e", "c")
    for event in (ev.ModelCallStarted(1, "m"), BlockStart(0, "text")):
        say(state, event)
    return state


def say(state: ExecutionState, event: ev.Event) -> None:
    event.execution_id, event.seq = "e", state.seq + 1
    state.apply(event)


def read(snapshot: Snapshot) -> dict[str, Any]:
    frame: dict[str, Any] = orjson.loads(b"".join(pieces_of(snapshot)))
    return frame


def test_nothing_that_happens_later_changes_it() -> None:
    """Also in the middle of its sending."""
    state = running()
    say(state, BlockDelta(0, "text", "x" * 3 * PIECE))
    say(state, ev.ToolCallStarted("1", "t", {}))
    say(state, ev.ToolProgress("1", "t", "half"))
    before = orjson.dumps(
        {"type": "snapshot", "executionId": "e", "conversationId": "c", "seq": 5, "state": state.to_wire()}
    )
    snapshot = Snapshot(state)
    sending = snapshot.pieces()
    sent = next(sending)
    say(state, BlockDelta(0, "text", "more"))
    say(state, ev.ToolProgress("1", "t", "done"))
    message = AgentMessage(id="m", role="assistant", blocks=(TextBlock(text=state.blocks[0].text),))
    say(state, ev.MessagesAdded((message,), 0, ModelContext(model_state=None)))
    say(state, ev.ExecutionFailed("CODE", "message"))
    assert sent + b"".join(sending) == before
    assert read(Snapshot(state))["state"]["status"] == "failed"


def test_all_of_one_run_share_its_text() -> None:
    """However much is said between one and the next."""
    state, made = running(), []
    for _ in range(50):
        say(state, BlockDelta(0, "text", "y" * (PART // 2)))
        made.append(state.to_wire(in_parts=True)["current"]["blocks"][0]["text"].parts)
    assert [len("".join(parts)) for parts in made] == [PART // 2 * n for n in range(1, 51)]
    different = {id(part): part for parts in made for part in parts}
    assert sum(map(len, different.values())) < 2 * 50 * PART
    for mine, later in pairwise(made):
        assert all(part is its for part, its in zip(mine[:-1], later, strict=False))


def test_readers_of_a_run_that_is_over_share_one_and_nobody_keeps_it() -> None:
    past, states = PastSnapshots(), [ExecutionState("e", "c", seq=9, status="completed") for _ in range(3)]
    one = past.of(states[0])
    assert past.of(states[1]) is one
    assert past.of(ExecutionState("e", "c", seq=9, status="failed")) is not one
    del one
    gc.collect()
    assert not past._read


def test_a_run_of_another_process_is_looked_at_anew() -> None:
    past, state = PastSnapshots(), ExecutionState("e", "c", seq=9)
    assert past.of(state) is not past.of(state)
