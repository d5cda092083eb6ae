"""Whatever a server sends is read or is a failure of the model, never an exception."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.management.replay import load_cases
from agent.providers.anthropic_decode import MessagesDecoder
from agent.providers.decoder import AnswerDecoder
from agent.providers.failures import Scrubber, from_answer
from agent.providers.framing import NDJSONSplitter, SSESplitter
from agent.providers.names import ToolNames
from agent.providers.ollama_decode import OllamaDecoder
from agent.providers.openai_chat_decode import ChatDecoder
from agent.providers.openai_responses_decode import ResponsesDecoder
from agent.providers.prepared import PreparedRequest
from agent.providers.state import ProviderState
from agent.runtime.assembly import AssembledCall, MessageAssembler
from agent.runtime.exceptions import ModelFailed
from agent.runtime.model import StreamError

CASES = Path(__file__).parents[2] / "cases"
PREPARED = PreparedRequest(b'{"messages":[1]}', ToolNames([]), ProviderState(), "message-answer", empty=False)
MAKE: dict[str, Callable[[], AnswerDecoder]] = {
    "chat": lambda: ChatDecoder(PREPARED, Scrubber([]), keep_reasoning=True),
    "responses": lambda: ResponsesDecoder(PREPARED, Scrubber([])),
    "messages": lambda: MessagesDecoder(PREPARED, Scrubber([])),
    "ollama": lambda: OllamaDecoder(PREPARED, Scrubber([])),
}
EVENTS: dict[str, list[Any]] = {api: [] for api in MAKE}
for case in load_cases(CASES):
    if case.api in MAKE and case.status == 200:
        splitter = NDJSONSplitter(10**6) if case.api == "ollama" else SSESplitter(10**6)
        for payload in splitter.feed(case.body):
            try:
                EVENTS[case.api].append(json.loads(payload))
            except ValueError:
                continue


def nested(levels: int, kind: type = dict) -> Any:
    """A value of many levels."""
    value: Any = 1
    for _ in range(levels):
        value = {"a": value} if kind is dict else [value]
    return value


ODD = st.sampled_from(
    [
        None,
        True,
        -1,
        2**70,
        1.5,
        float("nan"),
        "",
        " ",
        "x",
        "\x00",
        "\ud83d",
        "9" * 5_000,
        [],
        [None],
        [[]],
        {},
        {"a": 1},
        {"a": "\ud83d", "\ud83d": 10**30},
        nested(120),
        nested(300),
        nested(700, list),
    ]
)


@st.composite
def spoiled(draw: st.DrawFn, api: str) -> bytes:
    """A recorded event with one member anywhere in it replaced by something odd, or gone."""
    event: Any = json.loads(json.dumps(draw(st.sampled_from(EVENTS[api]))))
    at = event
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            break
        key = draw(st.sampled_from(keys))
        if isinstance(at[key], dict | list) and at[key] and draw(st.integers(0, 3)):
            at = at[key]
        elif draw(st.booleans()):
            at[key] = draw(ODD)
            break
        else:
            del at[key]
            break
    return json.dumps(event).encode()


@pytest.mark.parametrize("api", list(MAKE))
@given(st.data())
@settings(max_examples=200)
def test_spoiled_events_never_raise(api: str, data: st.DataObject) -> None:
    """DESIGN 2: the stream that the engine gets keeps the contract, or ends with an error (R40-R44)."""
    decoder, assembler = MAKE[api](), MessageAssembler(10**6)
    for payload in data.draw(st.lists(spoiled(api), min_size=1, max_size=8)):
        if not decoder.ended:
            assembler.feed(decoder.decode([payload]))
    if not decoder.ended:
        assembler.feed(decoder.close())
    decoder.continuation()
    assembler.close()
    assert assembler.failure is None or isinstance(assembler.failure, ModelFailed)
    if assembler.stop is not None and assembler.stop.model_state is not None:
        assembler.stop.model_state.model_dump_json()


@pytest.mark.parametrize("api", list(MAKE))
@given(st.data())
def test_a_spoiled_body_never_raises(api: str, data: st.DataObject) -> None:
    decoder, assembler = MAKE[api](), MessageAssembler(10**6)
    assembler.feed([*decoder.decode_whole(data.draw(spoiled(api))), *decoder.close()])
    assert assembler.ended


@given(st.sampled_from(list(EVENTS)).flatmap(spoiled) | st.binary(max_size=64), st.sampled_from([200, 302, 400, 429]))
def test_a_spoiled_error_body_never_raises(body: bytes, status: int) -> None:
    assert from_answer(status, {"retry-after": "soon"}, body, Scrubber(["secret"])).message


@pytest.mark.parametrize("place", ["code", "type", "message", "error"])
def test_an_error_that_is_nested_a_thousand_times_is_an_error_all_the_same(place: str) -> None:
    body = orjson.dumps({"error": {"message": "no", place: "?"}}).replace(b'"?"', b"[" * 1_000 + b"]" * 1_000)
    assert from_answer(400, {}, body, Scrubber([])).kind == "invalid-request"


ARGUMENTS = '{"message":{"content":"","tool_calls":[{"function":{"name":"look","arguments":%s}}]},"done":true}'


def test_arguments_with_half_an_emoji_are_cleaned() -> None:
    decoder, assembler = MAKE["ollama"](), MessageAssembler(10**6)
    assembler.feed(decoder.decode([(ARGUMENTS % r'{"q":"\ud83d","n":%d}' % 10**30).encode()]))
    (call,) = assembler.blocks()
    assert isinstance(call, AssembledCall) and call.arguments == {"q": "\ufffd", "n": str(10**30)}


def test_arguments_that_are_nested_too_deeply_fail_the_answer() -> None:
    (error,) = MAKE["ollama"]().decode([(ARGUMENTS % ('{"a":' * 255 + "1" + "}" * 255)).encode()])
    assert error == StreamError("the provider sent a line that cannot be read")


def test_an_input_that_is_nested_too_deeply_fails_the_answer_that_pauses() -> None:
    deep = '{"a":' * 300 + "1" + "}" * 300
    block = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": deep}
    events = [
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "message_delta", "delta": {"stop_reason": "pause_turn"}},
    ]
    decoder = MAKE["messages"]()
    (error,) = decoder.decode([orjson.dumps(event) for event in events])
    assert error == StreamError("the provider sent an event that cannot be read") and decoder.continuation() is None
