"""The Responses API over real sockets: what the recorded cases do not show."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest

from agent.providers.openai_responses import OpenAIResponses
from agent.providers.openai_responses_request import ResponsesRequests
from agent.providers.state import issuer_of
from agent.providers.transport import Transport
from agent.runtime.assembly import MessageAssembler
from agent.runtime.messages import AgentMessage, ModelState, TextBlock, ToolCallBlock, Usage
from agent.runtime.model import UsageDetails
from agent.testing.http_provider import ScriptedAnswer, ScriptedProvider
from agent.testing.responses_wire import responses_end as end
from agent.testing.responses_wire import responses_event as event
from agent.testing.responses_wire import responses_stream, responses_text
from tests.agent.providers.reading import (
    ask,
    calls_of,
    config,
    kept_state,
    read,
    reasoning_of,
    result,
    text_of,
    tool,
    user,
)

Answered = Callable[..., Awaitable[MessageAssembler]]

SECRET = "gAAAA-encrypted-thoughts"


@pytest.fixture
async def answered(transport: Transport) -> Answered:
    """Serve events and read them."""

    async def serve(*events: bytes, request: Any = None, content_type: str = "text/event-stream") -> MessageAssembler:
        answer = ScriptedAnswer(events, headers={"content-type": content_type})
        async with ScriptedProvider(answer) as provider:
            endpoint = config(provider.url, protocol="openai-responses")
            return await read(OpenAIResponses(endpoint, transport, usage_wait=0.2, limit=100_000), request)

    return serve


def added(place: int, **item: Any) -> bytes:
    return event("response.output_item.added", output_index=place, item=item)


def done(place: int, **item: Any) -> bytes:
    return event("response.output_item.done", output_index=place, item=item)


def call_item(name: str = "look", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    item = {"id": f"fc_{name}", "type": "function_call", "call_id": f"call_{name}", "name": name, "status": "completed"}
    return {**item, "arguments": arguments, **more}


def thought(encrypted: str | None = SECRET, *summary: str, **more: Any) -> dict[str, Any]:
    parts = [{"type": "summary_text", "text": text} for text in summary]
    return {"id": "rs_1", "type": "reasoning", "summary": parts, "encrypted_content": encrypted, **more}


def arguments_of(answer: MessageAssembler) -> list[Any]:
    return [(call.name, json.loads(orjson.dumps(call.arguments))) for call in calls_of(answer)]


def kept(answer: MessageAssembler) -> Any:
    """What the model state keeps of the answer."""
    assert answer.stop is not None
    state = answer.stop.model_state
    return (
        [] if state is None else json.loads(state.model_dump_json())["data"].get("extras", {}).get("message-answer", [])
    )


async def test_usage_is_divided(answered: Answered) -> None:
    usage = {
        "input_tokens": 40,
        "input_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 4},
        "output_tokens": 22,
        "output_tokens_details": {"reasoning_tokens": 10},
        "total_tokens": 62,
    }
    answer = await answered(*responses_text("Hi"), event("response.completed", response={"usage": usage}))
    assert answer.stop is not None
    assert answer.stop.usage == Usage(input_tokens=40, output_tokens=22, total_tokens=62)
    assert answer.stop.details == UsageDetails(cached_tokens=30, cache_write_tokens=4, reasoning_tokens=10)


@pytest.mark.parametrize(
    "events",
    [
        [done(0, type="message", content=[{"type": "output_text", "text": "Hello"}]), end()],
        [event("response.output_text.done", output_index=0, text="Hello"), end()],
        [end([{"type": "message", "content": [{"type": "output_text", "text": "Hello"}]}])],
        [event("response.output_text.delta", delta="Hel"), event("response.output_text.delta", delta="lo"), end()],
        [event("response.output_text.delta", item_id="a", delta="Hello"), done(0, id="a", type="message"), end()],
        [*responses_text("Hel", "lo"), event("response.output_text.delta", output_index=0, delta="again"), end()],
        [*responses_text("Hel", "lo"), end([{"id": "msg_0", "type": "message", "content": [{"text": "Hello"}]}])],
        [*responses_text("Hel", "lo"), event("response.done", response={"status": "completed"})],
    ],
)
async def test_a_text_is_read_once_wherever_it_stands(events: list[bytes], answered: Answered) -> None:
    answer = await answered(*events)
    assert (text_of(answer), answer.stop and answer.stop.stop_reason) == ("Hello", "end-turn")


@pytest.mark.parametrize("end_mark", [b"", b"data: [DONE]\n\n"])
async def test_texts_of_two_messages_are_two_blocks(end_mark: bytes, answered: Answered) -> None:
    answer = await answered(*responses_text("One", place=0), *responses_text("Two", place=1), end(), end_mark)
    assert answer.blocks() == [TextBlock(text="One"), TextBlock(text="Two")]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([done(0, **call_item(arguments='{"a":1}'))], {"a": 1}),
        ([done(0, **call_item(arguments={"a": [1, "ü"]}))], {"a": [1, "ü"]}),
        ([done(0, **call_item(arguments=""))], {}),
        ([done(0, **call_item(arguments=None))], {}),
        ([done(0, **call_item(arguments="null"))], {}),
        ([event("response.function_call_arguments.done", output_index=0, name="look", arguments='{"a":2}')], {"a": 2}),
        (
            [
                added(0, **call_item(arguments="")),
                event("response.function_call_arguments.delta", output_index=0, delta='{"a"'),
                event("response.function_call_arguments.delta", output_index=0, delta=":3}"),
            ],
            {"a": 3},
        ),
        (
            [
                added(0, **call_item(arguments="")),
                event("response.function_call_arguments.delta", item_id="fc_look", delta='{"a":'),
                done(0, **call_item(arguments='{"a":4}')),
                event("response.function_call_arguments.delta", item_id="fc_look", delta="late"),
            ],
            {"a": 4},
        ),
        ([end([call_item(arguments='{"a":5}')])], {"a": 5}),
    ],
)
async def test_arguments_are_read_wherever_they_stand(events: list[bytes], expected: Any, answered: Answered) -> None:
    """The kinds of B05 and B06: pieces, the whole, an object, nothing; what is said last counts."""
    answer = await answered(*events, end())
    assert arguments_of(answer) == [("look", expected)]
    assert answer.stop is not None and answer.stop.stop_reason == "tool-use"


async def test_fragments_of_two_calls_may_alternate(answered: Answered) -> None:
    """The kind of B04."""
    pieces = [(0, '{"at":'), (1, '{"at":'), (1, "2}"), (0, "1}")]
    answer = await answered(
        added(0, **call_item("one", "")),
        added(1, **call_item("two", "")),
        *(event("response.function_call_arguments.delta", output_index=at, delta=piece) for at, piece in pieces),
        end(),
    )
    assert arguments_of(answer) == [("one", {"at": 1}), ("two", {"at": 2})]


async def test_the_token_limit_drops_what_it_cut(answered: Answered) -> None:
    """B11, B44: the call is gone, and what was thought before it with it."""
    answer = await answered(
        *responses_text("So far", place=0),
        done(1, **thought()),
        added(2, **call_item(arguments="")),
        event("response.function_call_arguments.delta", output_index=2, delta='{"text":"half'),
        end(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
    )
    assert answer.stop is not None and answer.stop.stop_reason == "max-tokens"
    assert (text_of(answer), calls_of(answer)) == ("So far", [])
    body = await next_request(answer)
    assert [item for item in body["input"] if item.get("role") != "user"] == [
        {"role": "assistant", "content": "So far"}
    ]


def failed(code: str | None) -> bytes:
    return end(status="failed", error=code and {"code": code, "message": "No"})


FILTERED = end(status="incomplete", incomplete_details={"reason": "content_filter"})


@pytest.mark.parametrize(
    ("last", "kind", "retryable"),
    [
        (FILTERED, "content-filter", False),
        (failed("bio_policy"), "content-filter", False),
        (failed("server_error"), "provider-error", True),
        (failed("rate_limit_exceeded"), "rate-limit", True),
        (failed("invalid_prompt"), "invalid-request", False),
        (failed(None), "provider-error", True),
        (event("response.completed", response={"status": "failed"}), "provider-error", True),
        (event("response.cancelled", response={"status": "cancelled"}), "provider-error", True),
        (event("error", code="insufficient_quota", message="Pay"), "quota", False),
        (event("error", code="9" * 5000, message="Long"), "provider-error", True),
        (event("error", error={"type": "invalid_request_error", "message": "No"}), "invalid-request", False),
        (event("error", error={"code": "server_is_overloaded", "message": "Busy"}), "overloaded", True),
        (b"data: [1]\n\n", "provider-error", True),
        (b"data: {broken\n\n", "provider-error", True),
        (b"data: [DONE]\n\n", "truncated-stream", True),
    ],
)
async def test_what_goes_wrong_is_an_error_of_its_kind(
    last: bytes, kind: str, retryable: bool, answered: Answered
) -> None:
    """B41: nested, flat or in the response; what was said before stays."""
    answer = await answered(*responses_text("Half"), last)
    assert text_of(answer) == "Half" and answer.error is not None
    assert (answer.error.kind, answer.error.retryable) == (kind, retryable)
    assert answer.error.code == ("MODEL_CONTENT_FILTERED" if kind == "content-filter" else "MODEL_FAILED")


async def test_a_refusal_is_told_with_what_it_cost(answered: Answered) -> None:
    """B46: also where no piece of it came before the item was done."""
    answer = await answered(done(0, type="message", content=[{"type": "refusal", "refusal": "Never."}]), end())
    assert answer.error is not None
    assert (answer.error.code, answer.error.refusal, answer.error.retryable) == ("MODEL_REFUSED", "Never.", False)
    assert answer.error.usage == Usage(input_tokens=12, output_tokens=8, total_tokens=20)


async def test_parts_of_a_summary_are_paragraphs_and_mirrored_thoughts_are_shown_once(answered: Answered) -> None:
    """B14."""
    answer = await answered(
        event("response.reasoning_summary_text.delta", output_index=0, summary_index=0, delta="One"),
        event("response.reasoning_text.delta", output_index=0, content_index=0, delta="One"),
        event("response.reasoning_summary_text.delta", output_index=0, summary_index=1, delta="Two"),
        done(0, **thought(None, "One", "Two")),
        done(1, **thought(None, content=[{"type": "reasoning_text", "text": "Three"}])),
        *responses_text("Hi", place=2),
        end(),
    )
    assert (reasoning_of(answer), kept(answer)) == ("One\n\nTwoThree", [])


async def test_what_was_thought_is_kept_as_the_finished_item_has_it(
    answered: Answered, caplog: pytest.LogCaptureFixture
) -> None:
    """B43, B47: encrypted items go back in their order, the unknown ones too; nothing of them is shown or logged."""
    with caplog.at_level(logging.DEBUG):
        answer = await answered(
            added(0, **thought("PARTIAL")),
            done(0, **thought(SECRET, "Hm.", status="completed", content=[])),
            done(1, type="message", phase="commentary", content=[{"type": "output_text", "text": "Looking."}]),
            done(2, type="web_search_call", id="ws_1", status="completed"),
            done(3, type="compaction", id="cmp_1", encrypted_content=SECRET),
            done(4, **call_item("weather")),
            end(),
        )
    reasoning = {"type": "reasoning", "id": "rs_1", "encrypted_content": SECRET}
    assert kept(answer) == [
        reasoning | {"summary": [{"type": "summary_text", "text": "Hm."}]},
        {"text": [0], "phase": "commentary"},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": SECRET},
        {"call": 0},
    ]
    assert SECRET not in caplog.text and SECRET not in repr(answer.blocks())
    items = (await next_request(answer))["input"]
    assert [item.get("type", item.get("role")) for item in items] == [
        "user", "reasoning", "assistant", "compaction", "function_call", "function_call_output",
    ]  # fmt: skip
    assert items[2] == {"role": "assistant", "content": "Looking.", "phase": "commentary"}


async def next_request(answer: MessageAssembler) -> Any:
    """What goes out after an answer that was stored and read again."""
    assert answer.stop is not None
    blocks = [
        ToolCallBlock(call_id=block.call_id, name=block.name, input=block.arguments)
        if block in calls_of(answer)
        else block
        for block in answer.blocks()
    ]
    message = AgentMessage(id="message-answer", role="assistant", blocks=tuple(blocks))
    results = [result(call, "ok") for call in message.tool_calls]
    state = answer.stop.model_state
    state = state and ModelState.model_validate_json(state.model_dump_json(by_alias=True))
    endpoint = config("http://127.0.0.1", protocol="openai-responses")  # no longer the one that answered
    state = state and kept_state(endpoint, **{**state.data, "issuer": issuer_of(endpoint)})
    made = ResponsesRequests(endpoint)
    return json.loads(made.prepare(ask(user("go"), message, *results, state=state)).body)


@pytest.mark.parametrize("status", ["completed", "incomplete"])
async def test_a_server_that_does_not_stream_is_read_too(status: str, answered: Answered) -> None:
    message = {"type": "message", "content": [{"type": "output_text", "text": "Hello"}]}
    details = {"reason": "max_output_tokens"} if status == "incomplete" else None
    body = {"object": "response", "status": status, "output": [thought(), message], "incomplete_details": details}
    answer = await answered(orjson.dumps(body), content_type="application/json")
    assert text_of(answer) == "Hello" and answer.stop is not None
    assert answer.stop.stop_reason == ("end-turn" if status == "completed" else "max-tokens")
    assert [entry.get("type") for entry in kept(answer)] == ["reasoning", None]


@pytest.mark.parametrize("body", [b'{"error":{"message":"No","code":"server_error"}}', b"[]", b"<html>", b"{"])
async def test_a_body_that_is_no_response_is_an_error(body: bytes, answered: Answered) -> None:
    answer = await answered(body, content_type="application/json")
    assert answer.error is not None and answer.error.code == "MODEL_FAILED"


async def test_a_call_without_a_name_is_an_error(answered: Answered) -> None:
    answer = await answered(done(0, **call_item("")), end())
    assert answer.error is not None and "without a name" in answer.error.message


async def test_our_tool_names_and_the_ids_of_the_provider_come_back(answered: Answered) -> None:
    request = ask(tools=(tool("local.look"),))
    answer = await answered(done(0, **call_item("local_look")), end(), request=request)
    (call,) = calls_of(answer)
    assert call.name == "local.look" and call.call_id.startswith("call_") and answer.stop is not None
    assert answer.stop.model_state is not None and answer.stop.model_state.format == "openai-responses/v1"
    assert answer.stop.model_state.data["callIds"] == {call.call_id: "call_local_look"}


@pytest.mark.parametrize(
    "flood",
    [
        [event("response.function_call_arguments.delta", output_index=0, delta="x" * 900)] * 200,
        [event("response.refusal.delta", output_index=0, delta="x" * 900)] * 200,
        [added(at, type="message") for at in range(5_000)],
        [done(at, **thought("x" * 900)) for at in range(200)],
    ],
)
async def test_what_cannot_be_kept_is_refused(flood: list[bytes], answered: Answered) -> None:
    answer = await answered(*flood, end())
    assert answer.error is not None and "more than can be kept" in answer.error.message


async def test_arguments_that_are_too_deep_are_an_error_of_the_model(answered: Answered) -> None:
    deep = b'{"a":' * 1000 + b"1" + b"}" * 1000
    answer = await answered(event("response.output_item.done", output_index=0, item=call_item()).replace(b'"{}"', deep))
    assert answer.error is not None and answer.error.code == "MODEL_FAILED"


async def test_an_emoji_that_was_cut_in_two_is_put_together(answered: Answered) -> None:
    pieces = [b'"\\ud83c"', b'"\\udf89!"']
    deltas = [
        b'data: {"type":"response.output_text.delta","output_index":0,"delta":%b}\n\n' % piece for piece in pieces
    ]
    assert text_of(await answered(*deltas, end())) == "🎉!"


async def test_a_foreign_model_state_fails_visibly_and_sends_nothing(transport: Transport) -> None:
    """R27."""
    async with ScriptedProvider(ScriptedAnswer(responses_stream("Hi"))) as provider:
        model = OpenAIResponses(config(provider.url, protocol="openai-responses"), transport)
        answer = await read(model, ask(state=ModelState(format="openai-chat/v1", data={})))
        assert provider.requests == []
    assert answer.error is not None and answer.error.kind == "invalid-request"
