"""The Messages API over real sockets: what the recorded cases do not show."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from agent.providers.anthropic import AnthropicMessages
from agent.providers.anthropic_decode import MAX_BLOCKS, MAX_CONTINUATIONS
from agent.providers.anthropic_request import STATE_FORMAT
from agent.providers.config import ModelConfig
from agent.providers.transport import Transport
from agent.runtime.assembly import MessageAssembler
from agent.runtime.cancellation import CancelSignal
from agent.runtime.messages import Usage
from agent.runtime.model import BlockDelta, BlockStart, BlockStop, MessageStop, UsageDetails
from agent.testing.http_provider import ScriptedAnswer, ScriptedProvider
from agent.testing.messages_wire import (
    messages_block,
    messages_end,
    messages_event,
    messages_start,
    messages_stream,
    text_block,
    thinking_block,
    tool_use_block,
)
from tests.agent.providers.reading import ask, calls_of, config, kept_state, read, reasoning_of, text_of, tool, user

Answered = Callable[..., Awaitable[MessageAssembler]]

SEARCH = tool_use_block(1, "web_search", '{"query": ', '"tide"}', kind="server_tool_use", id="srvtoolu_1")
FOUND_BLOCK = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"encrypted_content": "x"}]}
SEARCH_BLOCK = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tide"}}
PAUSED = [messages_start(input_tokens=10), *text_block(0, "Searching."), *SEARCH, *messages_end("pause_turn")]


def endpoint(url: str) -> ModelConfig:
    return replace(config(url), protocol="anthropic-messages")


@pytest.fixture
async def answered(transport: Transport) -> Answered:
    """Serve events and read them."""

    async def serve(
        *events: bytes, request: Any = None, limit: int = 1_000_000, state: Any = None, **fields: Any
    ) -> MessageAssembler:
        async with ScriptedProvider(ScriptedAnswer(events, **fields)) as provider:
            if state is not None:
                request = replace(request, model_state=kept_state(endpoint(provider.url), **state))
            model = AnthropicMessages(endpoint(provider.url), transport, usage_wait=0.2, limit=limit)
            return await read(model, request)

    return serve


def extras_of(answer: MessageAssembler) -> Any:
    """What the model state keeps of the answer, as a database gives it back."""
    assert answer.stop is not None
    if answer.stop.model_state is None:
        return []
    assert answer.stop.model_state.format == STATE_FORMAT
    return json.loads(answer.stop.model_state.model_dump_json())["data"].get("extras", {}).get("message-answer", [])


async def test_the_call_goes_where_the_api_is(transport: Transport) -> None:
    """P32."""
    async with ScriptedProvider(ScriptedAnswer(messages_stream("Hi"))) as provider:
        assert text_of(await read(AnthropicMessages(endpoint(provider.url), transport))) == "Hi"
        (request,) = provider.requests
    assert (request.method, request.path) == ("POST", "/v1/messages")
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert request.headers["x-api-key"] == config("").api_key and "authorization" not in request.headers


async def test_the_events_have_the_neutral_shape(transport: Transport) -> None:
    """R35-R38, R47: blocks in order of appearance, a call as soon as it is whole."""
    events = [
        messages_start(input_tokens=5),
        *thinking_block(0, "Hm."),
        *text_block(1, "One", " two"),
        *tool_use_block(2, "look", '{"at"', ": 1}"),
        *text_block(3, "Three"),
        *messages_end("tool_use"),
    ]
    async with ScriptedProvider(ScriptedAnswer(events, pace=None)) as provider:
        model = AnthropicMessages(endpoint(provider.url), transport)
        found = [event async for batch in model.stream(ask(), CancelSignal()) for event in batch]
    ours = next(event.call_id for event in found if isinstance(event, BlockStart) and event.call_id)
    stop = found.pop()
    assert found == [
        BlockStart(0, "reasoning"),
        BlockDelta(0, "reasoning", "Hm."),
        BlockStop(0),
        BlockStart(1, "text"),
        BlockDelta(1, "text", "One"),
        BlockDelta(1, "text", " two"),
        BlockStop(1),
        BlockStart(2, "tool-call", ours, "look"),
        BlockDelta(2, "tool-call", '{"at": 1}'),
        BlockStop(2),
        BlockStart(3, "text"),
        BlockDelta(3, "text", "Three"),
        BlockStop(3),
    ]
    assert isinstance(stop, MessageStop) and stop.stop_reason == "tool-use"
    assert ours.startswith("call_") and stop.model_state is not None
    assert stop.model_state.data["callIds"] == {ours: "toolu_2"}


@pytest.mark.parametrize(
    ("reason", "stop_reason"),
    [
        ("end_turn", "end-turn"),
        ("max_tokens", "max-tokens"),
        ("model_context_window_exceeded", "max-tokens"),
        ("stop_sequence", "stop-sequence"),
        ("something_new", "other"),
    ],
)
async def test_stop_reasons_are_translated(reason: str, stop_reason: str, answered: Answered) -> None:
    """R42."""
    answer = await answered(messages_start(), *text_block(0, "Hi"), *messages_end(reason))
    assert answer.stop is not None and answer.stop.stop_reason == stop_reason


async def test_complete_calls_count_whatever_the_label_says(answered: Answered) -> None:
    """B10."""
    answer = await answered(messages_start(), *tool_use_block(0, "look", "{}"), *messages_end("end_turn"))
    assert answer.stop is not None and answer.stop.stop_reason == "tool-use"


@pytest.mark.parametrize(
    ("kind", "expected", "retryable"),
    [
        ("overloaded_error", "overloaded", True),
        ("rate_limit_error", "rate-limit", True),
        ("api_error", "provider-error", True),
        ("timeout_error", "timeout", True),
        ("invalid_request_error", "invalid-request", False),
        ("authentication_error", "authentication", False),
        ("permission_error", "permission", False),
        ("billing_error", "quota", False),
        ("not_found_error", "not-found", False),
        ("request_too_large", "invalid-request", False),
    ],
)
async def test_an_error_in_the_stream_has_the_kind_of_its_type(
    kind: str, expected: str, retryable: bool, answered: Answered
) -> None:
    """B27: and what was spent counts all the same, and no secret is told."""
    error = {"type": kind, "message": f"No: {config('').api_key}"}
    half = messages_block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Half"}, stop=False)
    answer = await answered(messages_start(input_tokens=5), *half, messages_event("error", error=error))
    assert text_of(answer) == "Half" and answer.error is not None
    assert (answer.error.kind, answer.error.retryable) == (expected, retryable)
    assert answer.error.message == "No: [secret]"
    assert answer.error.usage == Usage(input_tokens=5, output_tokens=1, total_tokens=6)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (tool_use_block(0, "write", '{"path": "a.t'), []),
        (tool_use_block(0, "write", '{"path": "a.t', stop=False), []),
        (tool_use_block(0, "write", '{"path": "a.txt"}', stop=False), []),
        (tool_use_block(0, "write"), []),
        (tool_use_block(0, "write", ""), []),
        (tool_use_block(0, "write", '{"path": "a.txt"}'), [{"path": "a.txt"}]),
    ],
)
async def test_a_call_that_the_limit_cut_is_dropped(block: list[bytes], expected: Any, answered: Answered) -> None:
    """B37, DESIGN 2: the engine's error is for complete calls."""
    answer = await answered(messages_start(), *block, *messages_end("max_tokens"))
    assert answer.stop is not None and answer.stop.stop_reason == "max-tokens"
    assert [call.arguments for call in calls_of(answer)] == expected


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (tool_use_block(0, "look"), {}),
        (tool_use_block(0, "look", "", ""), {}),
        (tool_use_block(0, "look", "null"), {}),
        (tool_use_block(0, "look", '{"a": 1}', stop=False), {"a": 1}),
        (messages_block(0, {"type": "tool_use", "id": "t", "name": "look", "input": {"a": [1]}}), {"a": (1,)}),
        (tool_use_block(0, "look", "[1]"), None),
        (tool_use_block(0, "look", '{"a": '), None),
    ],
)
async def test_inputs_are_joined_and_parsed_once(block: list[bytes], expected: Any, answered: Answered) -> None:
    """B28, R46: what is no object goes to the engine as it is."""
    answer = await answered(messages_start(), *block, *messages_end("tool_use"))
    assert answer.stop is not None and answer.stop.stop_reason == "tool-use"
    assert [call.arguments for call in calls_of(answer)] == [expected]


async def test_calls_stay_in_order_when_their_blocks_overlap(answered: Answered) -> None:
    """B04: an index decides."""
    one, two, three = (tool_use_block(at, f"tool-{at}", f'{{"at": {at}}}') for at in range(3))
    events = [one[0], two[0], two[1], one[1], one[2], two[2], *three]
    answer = await answered(messages_start(), *events, *messages_end("tool_use"))
    assert [(call.name, call.arguments) for call in calls_of(answer)] == [(f"tool-{n}", {"at": n}) for n in range(3)]


async def test_names_of_tools_come_back_as_ours(answered: Answered) -> None:
    """B85, E37."""
    events = [messages_start(), *tool_use_block(0, "local_look", "{}"), *messages_end("tool_use")]
    answer = await answered(*events, request=ask(tools=(tool("local.look"),)))
    assert [call.name for call in calls_of(answer)] == ["local.look"]
    answer = await answered(messages_start(), *tool_use_block(0, "", "{}"), *messages_end("tool_use"))
    assert answer.error is not None and "without a name" in answer.error.message


async def test_a_refusal_is_shown_as_one(answered: Answered) -> None:
    """DESIGN 2: with the provider's words where there are some."""
    details = {"stop_details": {"type": "refusal", "category": "bio", "explanation": "Too dangerous."}}
    for delta, refusal in ((details, "Too dangerous."), ({}, ""), ({"stop_details": None}, "")):
        answer = await answered(messages_start(), *text_block(0, "I"), *messages_end("refusal", delta=delta))
        assert answer.error is not None and text_of(answer) == "I"
        assert (answer.error.code, answer.error.kind, answer.error.retryable) == ("MODEL_REFUSED", "refusal", False)
        assert answer.error.refusal == refusal
        assert answer.error.usage is not None and answer.error.usage.output_tokens == 8


async def test_reasoning_is_kept_exactly_and_in_its_place(answered: Answered) -> None:
    """B30, B30b, R28: text, signature and hidden blocks; the state is complete, with what it held before."""
    hidden = {"type": "redacted_thinking", "data": "b3BhcXVl"}
    events = [
        *(messages_start(), *thinking_block(0, " Hm", " ☀.\n"), *messages_block(1, hidden)),
        *(*text_block(2), *text_block(3, "One"), *thinking_block(4, signature="c2Vjb25k")),
        *(*tool_use_block(5, "look", "{}"), *thinking_block(6, "And"), *messages_end("tool_use")),
    ]
    before = {"extras": {"old": [[0, hidden]], "gone": [[0, hidden]]}}
    messages = (user("a"), user("Old", id="old").model_copy(update={"role": "assistant"}), user("b"))
    answer = await answered(*events, request=ask(*messages), state=before)
    assert reasoning_of(answer) == " Hm ☀.\nAnd"
    assert extras_of(answer) == [
        [0, {"type": "thinking", "thinking": " Hm ☀.\n", "signature": "c2lnbmVk"}],
        [0, hidden],
        [1, {"type": "thinking", "thinking": "", "signature": "c2Vjb25k"}],
        [2, {"type": "thinking", "thinking": "And", "signature": "c2lnbmVk"}],
    ]
    assert answer.stop is not None and answer.stop.model_state is not None
    assert set(answer.stop.model_state.data["extras"]) == {"old", "message-answer"}


async def test_what_the_providers_tools_did_is_kept_once_it_is_whole(answered: Answered) -> None:
    """B32: no call of ours, and never one half of it."""
    found = messages_block(2, FOUND_BLOCK)
    answer = await answered(
        messages_start(), *text_block(0, "a"), *SEARCH, *found, *text_block(3, "b"), *messages_end()
    )
    assert calls_of(answer) == [] and text_of(answer) == "ab"
    assert extras_of(answer) == [[1, SEARCH_BLOCK], [1, FOUND_BLOCK]]
    for half in (SEARCH, found):
        assert extras_of(await answered(messages_start(), *text_block(0, "a"), *half, *messages_end())) == []


async def test_a_paused_answer_goes_on_by_itself(transport: Transport) -> None:
    """B32: the content goes back unchanged, the answer is one, and both calls are paid for."""
    rest = [
        messages_start(input_tokens=30, cache_read_input_tokens=5),
        *(*messages_block(0, FOUND_BLOCK), *text_block(1, "High at six."), *messages_end()),
    ]
    async with ScriptedProvider(ScriptedAnswer(PAUSED), ScriptedAnswer(rest)) as provider:
        answer = await read(AnthropicMessages(endpoint(provider.url), transport))
        first, second = (request.json for request in provider.requests)
    assert text_of(answer) == "Searching.High at six."
    assert answer.stop is not None and answer.stop.stop_reason == "end-turn"
    assert answer.stop.usage == Usage(input_tokens=45, output_tokens=16, total_tokens=61)
    assert answer.stop.details == UsageDetails(cached_tokens=5)
    assert extras_of(answer) == [[1, SEARCH_BLOCK], [1, FOUND_BLOCK]]
    paused = {"role": "assistant", "content": [{"type": "text", "text": "Searching."}, SEARCH_BLOCK]}
    assert second == {**first, "messages": [*first["messages"], paused]}


async def test_pauses_have_an_end(transport: Transport) -> None:
    """B32: what was said so far is kept, as an answer that was cut."""
    async with ScriptedProvider(ScriptedAnswer(PAUSED, pace=None), repeat=True) as provider:
        answer = await read(AnthropicMessages(endpoint(provider.url), transport))
        assert len(provider.requests) == MAX_CONTINUATIONS + 1
        blocks = provider.requests[-1].json["messages"][-1]["content"]
        assert len(blocks) == 2 * MAX_CONTINUATIONS
    assert answer.stop is not None and answer.stop.stop_reason == "max-tokens"


async def test_a_pause_without_content_is_an_end(answered: Answered) -> None:
    answer = await answered(messages_start(), *messages_end("pause_turn"))
    assert answer.stop is not None and answer.stop.stop_reason == "max-tokens"


async def test_a_pause_that_cannot_go_on_is_the_error_of_what_failed(transport: Transport) -> None:
    refused = ScriptedAnswer(b'{"error":{"type":"overloaded_error","message":"Busy"}}', 529, {"retry-after": "3"})
    async with ScriptedProvider(ScriptedAnswer(PAUSED), refused) as provider:
        answer = await read(AnthropicMessages(endpoint(provider.url), transport))
    assert answer.error is not None and (answer.error.kind, answer.error.retry_after) == ("overloaded", 3)
    assert text_of(answer) == "Searching."
    assert answer.error.usage == Usage(input_tokens=10, output_tokens=8, total_tokens=18)


async def test_a_connection_that_breaks_after_a_pause_does_not_matter(transport: Transport) -> None:
    answers = ScriptedAnswer(PAUSED[:-1], end="reset"), ScriptedAnswer(messages_stream("Found."))
    async with ScriptedProvider(*answers) as provider:
        answer = await read(AnthropicMessages(endpoint(provider.url), transport))
    assert answer.stop is not None and text_of(answer) == "Searching.Found."


async def test_a_run_that_is_cancelled_stops_going_on(transport: Transport) -> None:
    """B32: the connection of the second call closes at once."""
    half = [messages_start(), *text_block(0, "More")]
    async with ScriptedProvider(ScriptedAnswer(PAUSED), ScriptedAnswer(half, end="hang")) as provider:
        stream = AnthropicMessages(endpoint(provider.url), transport).stream(ask(), CancelSignal())
        async for batch in stream:
            if any(isinstance(event, BlockDelta) and event.text == "More" for event in batch):
                break
        await stream.aclose()
        await provider.wait_for_closed()
        assert len(provider.requests) == 2


async def test_usage_is_counted_in_our_terms(answered: Answered) -> None:
    """B38: all input counts as input, and later values replace earlier ones."""
    hour: Any = {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 6}
    start = messages_start(
        input_tokens=100, cache_creation_input_tokens=10, cache_read_input_tokens=40, cache_creation=hour
    )
    thought = {"output_tokens_details": {"thinking_tokens": 20}}
    answer = await answered(start, *text_block(0, "Ok"), *messages_end(output_tokens=30, input_tokens=90, **thought))
    assert answer.stop is not None
    assert answer.stop.usage == Usage(input_tokens=140, output_tokens=30, total_tokens=170)
    assert answer.stop.details == UsageDetails(
        cached_tokens=40, cache_write_tokens=10, reasoning_tokens=20, cache_write_hour_tokens=6
    )


async def test_a_server_that_does_not_stream_is_read_too(answered: Answered) -> None:
    content = [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"},
        {"type": "text", "text": "Yes."},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"a": 1}},
    ]
    usage = {"input_tokens": 3, "output_tokens": 4}
    whole = {"type": "message", "content": content, "stop_reason": "tool_use", "usage": usage}
    headers = {"content-type": "application/json"}
    answer = await answered(json.dumps(whole).encode(), headers=headers)
    assert (reasoning_of(answer), text_of(answer)) == ("Hm.", "Yes.")
    assert [call.arguments for call in calls_of(answer)] == [{"a": 1}]
    assert answer.stop is not None and answer.stop.usage == Usage(input_tokens=3, output_tokens=4, total_tokens=7)
    assert extras_of(answer) == [[0, content[0]]]
    for wrong, kind in (
        ({"type": "error", "error": {"type": "overloaded_error", "message": "No"}}, "overloaded"),
        ({**whole, "stop_reason": None}, "truncated-stream"),
        ({}, "truncated-stream"),
        ([], "provider-error"),
    ):
        answer = await answered(json.dumps(wrong).encode(), headers=headers)
        assert answer.error is not None and answer.error.kind == kind
    assert (await answered(b"<html>", headers={"content-type": "text/html"})).error is not None
    many = {**whole, "content": content[1:2] * (MAX_BLOCKS + 1)}
    answer = await answered(json.dumps(many).encode(), headers=headers)
    assert answer.error is not None and "more than can be kept" in answer.error.message and answer.stop is None


@pytest.mark.parametrize("end", ["complete", "cut", "reset"])
async def test_a_stream_without_its_end_is_no_answer(end: Any, answered: Answered) -> None:
    """B37b: although a call in it looks whole."""
    answer = await answered(messages_start(input_tokens=5), *tool_use_block(0, "look", "{}"), end=end)
    assert answer.error is not None
    assert answer.error.usage == Usage(input_tokens=5, output_tokens=1, total_tokens=6)
    assert answer.error.kind == ("truncated-stream" if end == "complete" else "connection-lost")


async def test_an_end_without_a_stop_reason_is_one(answered: Answered) -> None:
    answer = await answered(messages_start(), *text_block(0, "Hi"), messages_event("message_stop"))
    assert answer.stop is not None and answer.stop.stop_reason == "end-turn"


@pytest.mark.parametrize(
    "event",
    [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": None}},
        {"type": "content_block_delta", "index": 0, "delta": None},
        {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_delta", "index": None, "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_delta", "index": [0], "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_stop", "index": 7},
        {"type": "content_block_start", "index": 1, "content_block": None},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "new_kind", "text": "x"}},
        {"type": "message_delta", "delta": None, "usage": "much"},
        {"type": "message_start", "message": None},
        {"type": "ping"},
        {"type": "brand_new"},
        {"type": ["x"]},
        {},
    ],
)
async def test_unknown_and_odd_events_are_passed_over(event: dict[str, Any], answered: Answered) -> None:
    """B47."""
    half = messages_block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Fi"}, stop=False)
    rest = messages_event("content_block_delta", index=0, delta={"type": "text_delta", "text": "ne."})
    odd = b"data: %b\n\n" % json.dumps(event).encode()
    answer = await answered(
        messages_start(), *half, odd, b": keep-alive\n\n", b"data: [DONE]\n\n", rest, *messages_end()
    )
    assert answer.stop is not None and text_of(answer) == "Fine."


@pytest.mark.parametrize(
    "garbage",
    [
        b"data: nonsense\n\n",
        b"data: [1]\n\n",
        b"data: " + b"[" * 90_000 + b"\n\n",
        messages_event("content_block_start", index=1, content_block=json.loads('{"input":' * 150 + "1" + "}" * 150)),
    ],
)
async def test_an_event_that_cannot_be_read_is_an_error(garbage: bytes, answered: Answered) -> None:
    answer = await answered(messages_start(), *text_block(0, "Half"), garbage, *messages_end())
    assert answer.error is not None and answer.error.kind == "provider-error"


async def test_a_cut_character_is_made_whole(answered: Answered) -> None:
    parts = [b'{"type":"text_delta","text":"a\\ud83d"}', b'{"type":"text_delta","text":"\\ude00b"}']
    deltas = [b'data: {"type":"content_block_delta","index":0,"delta":%b}\n\n' % part for part in parts]
    start = messages_block(0, {"type": "text", "text": ""}, stop=False)
    answer = await answered(messages_start(), *start, *deltas, *messages_end())
    assert text_of(answer) == "a😀b"


@pytest.mark.parametrize(
    "events",
    [
        tool_use_block(0, "look", *['"' + "x" * 9_000] * 20),
        thinking_block(0, *["x" * 9_000] * 20),
        [messages_event("content_block_start", index=at, content_block={"type": "x"}) for at in range(MAX_BLOCKS + 1)],
        [event for at in range(257) for event in tool_use_block(at, "look", "{}")],
    ],
)
async def test_what_is_kept_is_bounded(events: list[bytes], answered: Answered) -> None:
    """B73."""
    whole = b"".join([messages_start(), *events, *messages_end("tool_use")])
    answer = await answered(whole, limit=1_000_000 if len(events) > 100 else 100_000)
    assert answer.error is not None and "more than can be kept" in answer.error.message
