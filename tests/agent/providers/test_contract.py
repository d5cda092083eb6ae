"""Every adapter makes the same neutral events of the same answer (R51)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, assert_never, get_args

import pytest

from agent.providers.config import ModelConfig, ProtocolName
from agent.providers.registry import build_model, fits
from agent.providers.state import issuer_of
from agent.providers.transport import Transport
from agent.runtime.cancellation import CancelSignal
from agent.runtime.model import BlockDelta, BlockStart, BlockStop, MessageStop, ModelEvent, StreamError
from agent.testing.http_provider import ScriptedAnswer, ScriptedProvider
from tests.agent.providers.reading import ask, tool

FIXTURE = json.loads((Path(__file__).parents[2] / "fixtures/model-provider-contract-v1.json").read_text("utf-8"))
CASES = {case["name"]: case for case in FIXTURE["cases"]}
PROTOCOLS: tuple[ProtocolName, ...] = tuple(name for name in get_args(ProtocolName) if name != "demo")
REQUEST = ask(tools=(tool("weather"), tool("clock")))


def wire(event: ModelEvent) -> dict[str, Any]:
    """An event in the exact shape of R35-R39."""
    match event:
        case BlockStart():
            block = {"type": event.block_type}
            if event.block_type == "tool-call":
                block |= {"callId": event.call_id, "name": event.name}
            return {"type": event.type, "index": event.index, "block": block}
        case BlockDelta():
            key = "argumentsDelta" if event.block_type == "tool-call" else "text"
            return {"type": event.type, "index": event.index, "delta": {"type": event.block_type, key: event.text}}
        case BlockStop():
            return {"type": event.type, "index": event.index}
        case MessageStop():
            return {
                "type": event.type,
                "stopReason": event.stop_reason,
                "usage": event.usage and event.usage.to_wire(),
                "modelState": event.model_state and event.model_state.to_wire(),
            }
        case StreamError():
            error = {"code": event.code, "message": event.message, "retryable": event.retryable}
            return {"type": event.type, "error": error}
        case _:
            assert_never(event)


def neutral(events: list[ModelEvent]) -> list[dict[str, Any]]:
    """Events with their call ids numbered in order and the fragments of tool arguments joined."""
    found: list[dict[str, Any]] = []
    for event in map(wire, events):
        last = found[-1] if found else {}
        if "argumentsDelta" in event.get("delta", ()) and "delta" in last and last["index"] == event["index"]:
            last["delta"]["argumentsDelta"] += event["delta"]["argumentsDelta"]
        else:
            found.append(event)
    text = json.dumps(found)
    issued = [event.call_id for event in events if isinstance(event, BlockStart) and event.call_id]
    assert len(set(issued)) == len(issued)
    for number, call_id in enumerate(issued, start=1):
        text = text.replace(json.dumps(call_id), f'"call-{number}"')
    return json.loads(text)


def deliveries(case: str, protocol: ProtocolName) -> dict[str, ScriptedAnswer]:
    served = CASES[case]["protocols"][protocol]
    pieces = [piece.encode() for piece in served["body"]]
    answer = ScriptedAnswer(pieces, headers={"content-type": served["contentType"]})
    return {
        "whole": ScriptedAnswer(pieces, headers=answer.headers, pace=None),
        "pieces": answer,
        "bytes": answer.bytewise(),
    }


def test_the_file_has_both_cases_for_every_protocol_that_has_a_wire() -> None:
    assert FIXTURE["schemaVersion"] == 1
    assert list(CASES) == ["text-reasoning-end-turn", "fragmented-tool-use"]
    for case in CASES.values():
        assert set(case) == {"name", "events", "protocols"}
        assert set(case["protocols"]) == set(PROTOCOLS)


@pytest.mark.parametrize("delivery", ["whole", "pieces", "bytes"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("case", CASES)
async def test_every_adapter_yields_the_neutral_events(
    transport: Transport, case: str, protocol: ProtocolName, delivery: str
) -> None:
    """R35-R38, R51."""
    *blocks, stop = CASES[case]["events"]
    state = CASES[case]["protocols"][protocol]["modelState"]
    async with ScriptedProvider(deliveries(case, protocol)[delivery]) as provider:
        config = ModelConfig(protocol, "a-model", provider.url, "a-key", allow_private=True)
        stream = build_model(config, transport).stream(REQUEST, CancelSignal())
        events = [event async for batch in stream for event in batch]
    if state is not None:
        state = {**state, "data": {"issuer": issuer_of(config), **state["data"]}}
    assert neutral(events) == [*blocks, {**stop, "modelState": state}]
    made = events[-1].model_state if isinstance(events[-1], MessageStop) else None
    assert made is None or fits(made, config), "its state is of use to it in the next run"
