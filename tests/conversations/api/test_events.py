"""Frames as server-sent events."""

from __future__ import annotations

import orjson
import pytest

from agent.runtime import events as ev
from agent.runtime.state import ExecutionState
from conversations.api.events import event_of
from conversations.hosting.hub import snapshot_frame
from tests.docs.test_protocol import EXAMPLES, SAMPLES


def fields(event: bytes) -> dict[str, str]:
    assert event.endswith(b"\n\n")
    return dict(line.split(": ", 1) for line in event.decode().splitlines() if line)  # type: ignore[misc]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: str(sample.type))
def test_an_event_has_its_number_its_type_and_the_very_frame(sample: ev.Event) -> None:
    sample.execution_id, sample.seq = "e", 17
    frame = ev.encode(sample)
    event, over = event_of(frame)
    assert fields(event) == {"id": "17", "event": sample.type, "data": frame.decode()}
    assert over == isinstance(sample, ev.TERMINAL)


def test_merged_deltas_have_the_number_of_the_last() -> None:
    frame = ev.encode_delta(ev.BlockDelta(0, "text", "b", "e", 9), 6, "ab")
    assert fields(event_of(frame)[0])["id"] == "9"


@pytest.mark.parametrize("status", ["running", "waiting_input", "suspended", "completed", "failed", "cancelled"])
def test_the_snapshot_of_a_run_that_has_ended_is_the_last_event(status: str) -> None:
    state = ExecutionState("e", "c", agent="a-b", seq=5, status=status)  # type: ignore[arg-type]
    event, over = event_of(snapshot_frame(state))
    assert fields(event)["id"] == "5"
    assert over == state.ended


def test_frames_without_a_number_leave_the_last_one_as_it_is() -> None:
    (call,) = (orjson.dumps(orjson.loads(text)) for kind, text in EXAMPLES if kind == "client-tool-call")
    for frame in (call, b'{"type":"draining"}'):
        event, over = event_of(frame)
        assert "id" not in fields(event)
        assert not over
