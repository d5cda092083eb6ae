"""What each adapter demands of the model state that it is given (R27)."""

from __future__ import annotations

from typing import Any, get_args

import orjson
import pytest

from agent.providers.config import ModelConfig, ProtocolName
from agent.providers.registry import build_model, state_format
from agent.providers.transport import Transport
from agent.testing.http_provider import ScriptedAnswer, ScriptedProvider
from tests.agent.providers.reading import ask, assistant, call, config, kept_state, read, result, user

PROTOCOLS = [name for name in get_args(ProtocolName) if name != "demo"]
ODD: list[Any] = [
    5,
    None,
    "text",
    [],
    {"x": 1},
    {"reasoning": 5},
    {"type": 5},
    {"call": "0"},
    {"call": 0, "x": 1},
    {"text": 0},
    {"text": ["0"]},
    {"text": [0], "phase": 5},
    [0],
    [0, {"type": "text"}],
    ["0", {"type": "thinking"}],
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("extra", ODD)
@pytest.mark.parametrize("id", ["message-assistant", "message-that-is-gone"])
async def test_a_state_of_another_form_is_a_mismatch_and_nothing_is_sent(
    transport: Transport, protocol: ProtocolName, extra: Any, id: str
) -> None:
    """R27: an error of the request, never one of Python."""
    async with ScriptedProvider() as provider:
        endpoint = config(provider.url, protocol=protocol, model="kimi-k2")
        state = kept_state(endpoint, extras={id: [extra]})
        answer = await read(
            build_model(endpoint, transport), ask(user("a"), assistant(call("c")), user("b"), state=state)
        )
        assert provider.requests == []
    assert answer.error is not None and answer.error.kind == "invalid-request"
    assert answer.error.message == "the model state holds what goes back with no answer"


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(b"data: %b\n\n" % orjson.dumps(event) for event in events)


FUNCTION = {"name": "look", "arguments": "{}"}
ANSWERS = {
    "openai-chat": sse(
        {"choices": [{"delta": {"tool_calls": [{"id": "theirs", "function": FUNCTION}]}, "finish_reason": "stop"}]}
    ),
    "openai-responses": sse(
        {"type": "response.output_item.done", "item": {"type": "function_call", "call_id": "theirs", **FUNCTION}},
        {"type": "response.completed", "response": {}},
    ),
    "anthropic-messages": sse(
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "theirs", "name": "look", "input": {}},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    ),
}


@pytest.mark.parametrize("protocol", ANSWERS)
async def test_what_an_adapter_keeps_has_the_format_that_the_registry_names_and_goes_back(
    transport: Transport, protocol: ProtocolName
) -> None:
    """R25: one name in two places would reset every state, or none."""
    async with ScriptedProvider(ScriptedAnswer(ANSWERS[protocol]), repeat=True) as provider:
        model = build_model(config(provider.url, protocol=protocol), transport)
        state = (await read(model)).stop.model_state  # type: ignore[union-attr]
        assert state is not None and state.format == state_format(protocol)
        ours = call(next(iter(state.data["callIds"])))
        await read(model, ask(user("a"), assistant(ours), result(ours, "ok"), state=state))
        assert provider.requests[1].body.count(b'"theirs"') == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_each_adapter_takes_the_format_that_the_registry_names(
    transport: Transport, protocol: ProtocolName
) -> None:
    async with ScriptedProvider(ScriptedAnswer()) as provider:
        endpoint = config(provider.url, protocol=protocol)
        await read(build_model(endpoint, transport), ask(state=kept_state(endpoint)))
        assert len(provider.requests) == 1


async def test_an_id_that_the_messages_api_refuses_is_not_sent_to_it(transport: Transport) -> None:
    ours = call("c1")
    async with ScriptedProvider(ScriptedAnswer()) as provider:
        endpoint: ModelConfig = config(provider.url, protocol="anthropic-messages")
        state = kept_state(endpoint, callIds={"c1": "functions.look:0"})
        await read(build_model(endpoint, transport), ask(user("a"), assistant(ours), result(ours, "r"), state=state))
        body = provider.requests[0].body
    assert b"functions" not in body and body.count(b'"c1"') == 2
