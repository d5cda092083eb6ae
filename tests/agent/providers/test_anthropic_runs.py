"""Whole runs over the Messages API, and answers that no server should send."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.providers.anthropic import AnthropicMessages
from agent.providers.anthropic_decode import MessagesDecoder
from agent.providers.config import ModelConfig
from agent.providers.failures import Scrubber
from agent.providers.names import ToolNames
from agent.providers.openai_chat import OpenAIChat
from agent.providers.prepared import PreparedRequest
from agent.providers.state import ProviderState
from agent.providers.transport import Transport
from agent.runtime import create_runtime
from agent.runtime.assembly import MessageAssembler
from agent.runtime.exceptions import AgentError
from agent.runtime.messages import Context, ModelContext
from agent.runtime.model import Model
from agent.testing import scripted_tool
from agent.testing.chat_wire import chat_stream
from agent.testing.http_provider import ScriptedAnswer, ScriptedProvider
from agent.testing.messages_wire import messages_end, messages_start, messages_stream, text_block, thinking_block
from tests.agent.providers.reading import config
from tests.agent.providers.rules_anthropic import check
from tests.agent.providers.rules_openai import check_chat

ASKS = messages_stream("One moment.", thinking=["Hm.", " Weather."], tool_calls=[("get_weather", {"city": "Rome"})])


def endpoint(url: str) -> ModelConfig:
    return ModelConfig("anthropic-messages", "a-model", url, "a-key", allow_private=True, cache_ttl="five_min")


def stored(context: Context) -> Context:
    """A context as a database without an order of keys gives it back."""
    return Context.from_wire(json.loads(json.dumps(context.to_wire(), sort_keys=True)))


async def run(model: Model, question: str, context: Context) -> tuple[str, Context]:
    """Ask in a conversation; returns how the run ended and the conversation after it."""
    runtime = create_runtime(model, [scripted_tool("get_weather", "It is sunny.")])
    done = await runtime.start(question, context=context, instructions="Be nice.").result
    after = Context(messages=(*context.messages, *done.messages), model_context=done.model_context)
    return done.outcome.type, stored(after)


async def test_a_conversation_goes_on_with_its_reasoning_after_a_database(transport: Transport) -> None:
    """B30, R25-R31: within the turn, and in the next one by another adapter."""
    answers = [ScriptedAnswer(each) for each in (ASKS, messages_stream("Sunny."), messages_stream("Bye."))]
    context = Context()
    async with ScriptedProvider(*answers) as provider:
        for question in ("Weather?", "Thanks."):
            _, context = await run(AnthropicMessages(endpoint(provider.url), transport), question, context)
    requests = [request.json for request in provider.requests]
    for request in requests:
        check(request)
    first = requests[1]["messages"][1]["content"]
    assert first == [
        {"type": "thinking", "thinking": "Hm. Weather.", "signature": "c2lnbmVk"},
        {"type": "text", "text": "One moment."},
        {"type": "tool_use", "id": "toolu_2", "name": "get_weather", "input": {"city": "Rome"}},
    ]
    assert requests[2]["messages"][1]["content"] == first
    assert [message["role"] for message in requests[2]["messages"]] == ["user", "assistant"] * 2 + ["user"]


async def test_another_provider_takes_over_once_the_state_is_gone(transport: Transport) -> None:
    """R27: both ways; with the state the call fails, without it the same messages are legal."""
    bodies = (ASKS, messages_stream("Sunny."), chat_stream("Hello."), messages_stream("Back."))
    async with ScriptedProvider(*map(ScriptedAnswer, bodies)) as provider:
        here, there = AnthropicMessages(endpoint(provider.url), transport), OpenAIChat(config(provider.url), transport)
        _, context = await run(here, "Weather?", Context())
        with pytest.raises(AgentError, match="'anthropic-messages/v1'"):
            await run(there, "And now?", context)
        for model in (there, here):
            context = context.model_copy(update={"model_context": ModelContext(model_state=None)})
            _, context = await run(model, "And now?", context)
        check_chat(provider.requests[2].json)
        check(provider.requests[3].json)
    assert context.messages[-1].text == "Back."


async def test_reasoning_alone_at_the_limit_spoils_nothing(transport: Transport) -> None:
    """B37: the next request has no reasoning that leads nowhere."""
    thought, end = thinking_block(0, "Hm."), messages_end("max_tokens")
    for said in ([], text_block(1, "So")):
        cut = ScriptedAnswer([messages_start(), *thought, *said, *end])
        async with ScriptedProvider(cut, ScriptedAnswer(messages_stream("Yes."))) as provider:
            model = AnthropicMessages(endpoint(provider.url), transport)
            outcome, context = await run(model, "Hello?", Context())
            _, context = await run(model, "Go on.", context)
            check(provider.requests[1].json)
        assert (outcome, context.messages[-1].text) == ("max-tokens", "Yes.")


KINDS = ["text", "thinking", "tool_use", "server_tool_use", "redacted_thinking", "new", None]
BLOCKS = st.fixed_dictionaries(
    {"type": st.sampled_from(KINDS)},
    optional={
        "text": st.sampled_from(["", "a", None]),
        "id": st.sampled_from(["x", "", 1]),
        "name": st.sampled_from(["look", "", None]),
        "input": st.sampled_from([{}, {"a": 1}, None, "x"]),
        "data": st.just("ZGF0YQ=="),
    },
)
DELTAS = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("text_delta"), "text": st.sampled_from(["", "b", "\x00", "\ud83d", "\ude00"])}
    ),
    st.fixed_dictionaries({"type": st.just("thinking_delta"), "thinking": st.sampled_from(["", "c", 5])}),
    st.fixed_dictionaries({"type": st.just("signature_delta"), "signature": st.sampled_from(["", "s"])}),
    st.fixed_dictionaries(
        {"type": st.just("input_json_delta"), "partial_json": st.sampled_from(["", "{}", '{"a', "]"])}
    ),
    st.sampled_from(
        [None, {}, {"stop_reason": "end_turn"}, {"stop_reason": "pause_turn"}, {"stop_reason": "max_tokens"}]
    ),
)
INDICES = st.sampled_from([0, 0, 0, 1, 2, -1, None])
EVENTS = st.one_of(
    st.builds(lambda i, b: {"type": "content_block_start", "index": i, "content_block": b}, INDICES, BLOCKS),
    st.builds(lambda i, d: {"type": "content_block_delta", "index": i, "delta": d}, INDICES, DELTAS),
    st.builds(lambda i: {"type": "content_block_stop", "index": i}, INDICES),
    st.builds(lambda d: {"type": "message_delta", "delta": d, "usage": {"output_tokens": 3}}, DELTAS),
    st.sampled_from([{"type": "message_stop"}, {"type": "error", "error": {}}, {"type": "ping"}, [], {}]),
)


@given(st.lists(EVENTS, max_size=25), st.integers(1, 5))
def test_whatever_comes_the_engine_gets_a_legal_stream(events: list[Any], size: int) -> None:
    """DESIGN 2, R40-R44: no order of events makes the adapter raise or break the contract."""
    prepared = PreparedRequest(b'{"messages":[{}]}', ToolNames(["look"]), ProviderState(), "message-answer", False)
    decoder = MessagesDecoder(prepared, Scrubber(()))
    assembler = MessageAssembler(10_000)
    payloads = [json.dumps(event).encode() for event in events]
    rounds = 0
    while True:
        for at in range(0, len(payloads), size):
            if not decoder.ended:
                assembler.feed(decoder.decode(payloads[at : at + size]))
        if not decoder.ended:
            assembler.feed(decoder.close())
        body = decoder.continuation()
        if body is None:
            break
        json.loads(body)
        rounds += 1
    assert rounds <= 8
    assert assembler.stop is not None or assembler.error is not None, assembler.failure
    if assembler.stop is not None and assembler.stop.model_state is not None:
        assert json.loads(assembler.stop.model_state.model_dump_json())
    assembler.blocks()
