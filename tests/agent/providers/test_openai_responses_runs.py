"""Whole runs over the Responses API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.providers.openai_chat import OpenAIChat
from agent.providers.openai_responses import OpenAIResponses
from agent.providers.transport import Transport
from agent.runtime import create_runtime
from agent.runtime.exceptions import AgentError
from agent.runtime.messages import Context, ModelContext
from agent.runtime.model import Model
from agent.runtime.tools import Tool
from agent.testing import EventRecorder, scripted_tool
from agent.testing.chat_wire import chat_stream
from agent.testing.http_provider import ScriptedAnswer, ScriptedProvider
from agent.testing.responses_wire import responses_end, responses_event, responses_stream, responses_text
from tests.agent.providers.reading import config
from tests.agent.providers.rules_openai import check_chat, check_responses

THOUGHT = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "ENC-1"}
CALL = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_weather",
    "name": "weather",
    "arguments": '{"city":"Rome"}',
}
ASKS = [
    responses_event("response.output_item.done", output_index=0, item=THOUGHT),
    *responses_text("One moment.", place=1),
    responses_event("response.output_item.done", output_index=2, item=CALL),
    responses_end(),
]
WEATHER = scripted_tool("weather", "It is sunny.")


def model_at(url: str, transport: Transport) -> Model:
    return OpenAIResponses(config(url, protocol="openai-responses"), transport)


def stored(context: Context) -> Context:
    """A context as a database without an order of keys gives it back."""
    return Context.from_wire(json.loads(json.dumps(context.to_wire(), sort_keys=True)))


async def run(model: Model, question: str, context: Context, *tools: Tool) -> Context:
    """Ask in a conversation; returns the conversation after it."""
    done = await create_runtime(model, tools or [WEATHER]).start(question, context=context, instructions="Hi.").result
    return stored(Context(messages=(*context.messages, *done.messages), model_context=done.model_context))


def kinds(request: Any) -> list[str]:
    return [item.get("type") or item["role"] for item in request["input"]]


ANSWERED = ["user", "reasoning", "assistant", "function_call", "function_call_output"]


async def test_a_conversation_goes_on_with_its_reasoning_after_a_database(transport: Transport) -> None:
    """B43, R25-R31: within the turn, and in the next one by another adapter."""
    answers = [ScriptedAnswer(each) for each in (ASKS, responses_stream("Sunny."), responses_stream("Bye."))]
    context = Context()
    async with ScriptedProvider(*answers) as provider:
        for question in ("Weather?", "Thanks."):
            context = await run(model_at(provider.url, transport), question, context)
        requests = [request.json for request in provider.requests]
    for request in requests:
        check_responses(request)
    assert kinds(requests[1]) == ANSWERED
    assert kinds(requests[2]) == [*ANSWERED, "assistant", "user"]
    assert requests[2]["input"][:5] == requests[1]["input"]
    assert requests[1]["input"][1] == THOUGHT and requests[1]["input"][3]["call_id"] == "call_weather"


async def test_a_cancelled_question_leaves_the_thought_with_its_call(transport: Transport) -> None:
    """B44: the call has a result that says that it never ran, so the thought may go back before it."""
    asking = scripted_tool("weather", require_confirmation=True)
    async with ScriptedProvider(ScriptedAnswer(ASKS), ScriptedAnswer(responses_stream("Fine."))) as provider:
        recorder = EventRecorder()
        execution = create_runtime(model_at(provider.url, transport), [asking]).start("Weather?", observer=recorder)
        await recorder.wait_for("interrupt-requested")
        execution.cancel()
        recovered = (await execution.result).recovered
        assert recovered is not None
        await run(model_at(provider.url, transport), "Never mind.", stored(recovered), asking)
        request = provider.requests[1].json
    check_responses(request)
    assert kinds(request) == [*ANSWERED, "user"]


async def test_thought_alone_at_the_limit_spoils_nothing(transport: Transport) -> None:
    """B44."""
    cut = [
        responses_event("response.output_item.done", output_index=0, item=THOUGHT),
        responses_end([THOUGHT], status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
    ]
    async with ScriptedProvider(ScriptedAnswer(cut), ScriptedAnswer(responses_stream("Yes."))) as provider:
        context = await run(model_at(provider.url, transport), "Hello?", Context())
        assert context.model_context.model_state is None
        await run(model_at(provider.url, transport), "Go on.", context)
        check_responses(provider.requests[1].json)
        assert kinds(provider.requests[1].json) == ["user"]


async def test_another_protocol_takes_over_once_the_state_is_gone(transport: Transport) -> None:
    """R27: both ways; with the state the call fails, without it the same messages are legal."""
    bodies = (ASKS, responses_stream("Sunny."), chat_stream("Hello."), responses_stream("Back."))
    async with ScriptedProvider(*map(ScriptedAnswer, bodies)) as provider:
        here, there = model_at(provider.url, transport), OpenAIChat(config(provider.url), transport)
        context = await run(here, "Weather?", Context())
        with pytest.raises(AgentError, match="'openai-responses/v1'"):
            await run(there, "And now?", context)
        for model in (there, here):
            context = context.model_copy(update={"model_context": ModelContext(model_state=None)})
            context = await run(model, "And now?", context)
        check_chat(provider.requests[2].json)
        check_responses(provider.requests[3].json)
    assert context.messages[-1].text == "Back."
