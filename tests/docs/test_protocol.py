"""docs/protocol.md shows what is really sent: each example has the shape of the real frame."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest

from agent.runtime import events as ev
from agent.runtime.cancellation import CancelSignal
from agent.runtime.messages import AgentMessage, ModelContext, TextBlock
from agent.runtime.model import BlockDelta, BlockStart, BlockStop
from agent.runtime.state import ExecutionState, StreamedBlock, ToolRun
from agent.runtime.tools import ToolContext, ToolDefinition, ToolInvocation
from agent.runtime.values import FrozenDict
from conversations.api.errors import STATUS
from conversations.hosting.client_tools import call_frame
from conversations.hosting.snapshot import Snapshot
from conversations.websocket import protocol
from tests.docs.codes import FAILURES, REFUSALS

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
EXAMPLES = [(kind, text) for kind, text in re.findall(r"```json ([\w-]+)\n(.*?)```", PAGE, re.DOTALL)]

TOOL = ToolDefinition(name="t", description="d", input_schema={"type": "object"})
SAMPLES: list[ev.Event] = [
    ev.ExecutionStarted("c", "a", 0, 1),
    ev.StatusChanged("streaming"),
    ev.ModelCallStarted(1, "m"),
    BlockStart(0, "text"),
    BlockStart(0, "tool-call", "call", "t"),
    BlockDelta(0, "text", "x"),
    BlockDelta(0, "tool-call", "x"),
    BlockStop(0),
    ev.ModelCallCompleted(1, "m", "end-turn", None, 1, 1),
    ev.MessagesAdded(
        (AgentMessage(id="m", role="user", blocks=(TextBlock(text="x"),)),), 0, ModelContext(model_state=None)
    ),
    ev.ToolCallStarted("call", "t", FrozenDict()),
    ev.ToolProgress("call", "x"),
    ev.ToolCallCompleted("call", "t", False),
    ev.InterruptRequested(ev.Interrupt(id="i", tool=TOOL, arguments={}), "call"),
    ev.InterruptResolved("i", True, "approved"),
    ev.ContextCompacted("manual", 2, 1),
    ev.AgentHandoff("a", "b"),
    ev.ExecutionSuspended("i", "t", "2026-12-01T10:00:00Z"),
    ev.RevisionSaved("r", 1, "c", 1),
    ev.ExecutionCompleted(ev.Completed(stop_reason="end-turn"), 1),
    ev.ExecutionCompleted(ev.MaxTokens(), 1),
    ev.ExecutionCompleted(ev.Cancelled(reason="user"), 1),
    ev.ExecutionFailed("CODE", "words"),
]


def shape(value: Any, *, open_keys: tuple[str, ...] = ("arguments", "inputSchema", "messages", "usage")) -> Any:
    """Return the keys of a JSON value, all the way down."""
    if isinstance(value, dict):
        return {key: None if key in open_keys else shape(item) for key, item in value.items() if key != "fromSeq"}
    return None


def examples(kind: str) -> list[Any]:
    return [orjson.loads(text) for found, text in EXAMPLES if found == kind]


@pytest.mark.parametrize("text", [text for kind, text in EXAMPLES if kind == "command"])
def test_each_command_of_the_page_is_understood(text: str) -> None:
    protocol.parse(text)


def test_each_command_is_on_the_page() -> None:
    union = get_args(protocol.Command)[0]
    known = {get_args(command.model_fields["type"].annotation)[0] for command in get_args(union)}
    assert {example["type"] for example in examples("command")} == known


def test_each_event_of_the_page_has_the_shape_of_the_real_one() -> None:
    real = [shape(orjson.loads(ev.encode(event))) for event in SAMPLES]
    for example in examples("event"):
        assert shape(example) in real, example


def test_each_event_is_on_the_page() -> None:
    assert {type(sample) for sample in SAMPLES} == set(get_args(ev.Event))
    assert {example["type"] for example in examples("event")} == {event.type for event in get_args(ev.Event)}


def test_the_snapshot_of_the_page_can_be_read_back() -> None:
    (example,) = examples("snapshot")
    state = ExecutionState.from_wire(example["state"])
    assert orjson.loads(b"".join(Snapshot(state).pieces())) == example
    full = ExecutionState("e", blocks={0: StreamedBlock("text")}, message_id="m", tools={"c": ToolRun("t", {})})
    assert full.to_wire().keys() == example["state"].keys()


def test_the_call_of_a_client_tool_is_what_the_server_sends() -> None:
    (example,) = examples("client-tool-call")
    context = ToolContext("e", "call", "t", None, None, CancelSignal(), lambda text: None, lambda raised: None)
    invocation = ToolInvocation("call", "t", FrozenDict(), context)
    frame = call_frame("e", invocation, datetime(2026, 12, 1, 10, tzinfo=UTC))
    assert shape(orjson.loads(frame)) == shape(example)
    assert orjson.loads(frame)["expiresAt"] == example["expiresAt"]


def test_acks_and_errors_of_the_page_are_what_the_server_makes() -> None:
    for example in examples("ack"):
        members = {key: value for key, value in example.items() if key not in ("type", "id")}
        assert orjson.loads(protocol.ack(example["id"], **members)) == example
    for example in examples("error"):
        assert example["code"] in STATUS


def test_each_code_of_a_command_is_on_the_page() -> None:
    over_http_only = {
        "NOT_FOUND",
        "METHOD_NOT_ALLOWED",
        "NOT_SERVED",
        "ATTACHMENT_UNFIT",
        "IMPORT_INVALID",
        "SHARE_NOT_FOUND",
        "PAYLOAD_TOO_LARGE",
        "UNSUPPORTED_MEDIA_TYPE",
    }
    table = table_of("code")
    for code in (REFUSALS | STATUS.keys()) - over_http_only:
        assert f"`{code}`" in table, code


def test_each_code_of_a_failed_run_is_on_the_page() -> None:
    table = table_of("`errorCode`")
    for code in FAILURES:
        assert f"`{code}`" in table, code


def table_of(head: str) -> str:
    return PAGE.split(f"| {head} | meaning |")[1].split("\n\n")[0]
