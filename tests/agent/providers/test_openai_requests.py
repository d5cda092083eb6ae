"""Requests of OpenAI's protocols for random conversations, against the rules of the APIs and the types of the SDK."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

from agent.providers.config import ModelConfig
from agent.providers.openai_chat_history import REASONING
from agent.providers.openai_chat_request import ChatRequests
from agent.providers.openai_responses_request import ResponsesRequests
from agent.runtime.messages import AgentMessage, ModelState
from agent.runtime.model import ModelRequest
from agent.runtime.tools import ToolDefinition
from tests.agent.providers.conversations import conversations, states, tool_lists
from tests.agent.providers.reading import user
from tests.agent.providers.rules_openai import check_chat, check_responses
from tests.agent.providers.sdk_types import check_type

SCHEMA = {
    "type": "object",
    "properties": {"a": {"const": 1}, "b": {"$ref": "#/$defs/b"}},
    "$defs": {"b": {"type": "null"}},
}
URLS = st.sampled_from(["", "http://127.0.0.1:8000/v1", "https://api.deepseek.com", "https://api.moonshot.ai/v1"])


@st.composite
def configs(draw: st.DrawFn, protocol: Any) -> ModelConfig:
    return ModelConfig(
        protocol,
        draw(st.sampled_from(["a-model", "glm-5", "qwen3-max", "deepseek-v4"])),
        draw(URLS),
        temperature=draw(st.sampled_from([None, 0.5])),
        max_tokens=draw(st.sampled_from([None, 100])),
        top_p=draw(st.sampled_from([None, 0.9])),
        stop_sequences=draw(st.sampled_from([(), ("END",)])),
        prompt_cache_key=draw(st.sampled_from(["", "a-key"])),
        reasoning_effort=draw(st.sampled_from(["", "low", "high"])),
        reasoning_replay=draw(st.sampled_from(["auto", "always", "never"])),
    )


@st.composite
def requests(draw: st.DrawFn, messages: tuple[AgentMessage, ...], state: ModelState | None) -> ModelRequest:
    tools: tuple[ToolDefinition, ...] = draw(tool_lists())
    names = [tool.name for tool in tools]
    return ModelRequest(
        "message-answer",
        messages,
        tools,
        state,
        tool_choice=draw(st.sampled_from([None, "auto", "required", "none", *names])),
        response_schema=draw(st.sampled_from([None, SCHEMA])),
    )


def chat_extra(message: AgentMessage) -> st.SearchStrategy[list[Any]]:
    return st.sampled_from([[], [{"reasoning_content": "Hm."}], [{"reasoning": "Hm."}]])


@st.composite
def responses_extra(draw: st.DrawFn, message: AgentMessage) -> list[Any]:
    """The order of the items of an answer, whether or not the answer still has what the marks stand for."""
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ENC"}
    marks = [reasoning, {"text": [0]}, {"text": [1, 2], "phase": "commentary"}, {"call": 0}]
    drawn = draw(st.lists(st.sampled_from(marks), max_size=6))
    calls = [entry for entry in drawn if "call" in entry]
    numbered = iter(range(len(calls)))
    return [{"call": next(numbered)} if "call" in entry else entry for entry in drawn]


@settings(max_examples=60, phases=[Phase.generate])
@given(st.data())
def test_every_chat_request_is_legal(data: st.DataObject) -> None:
    """B08, B09, B23, B35, B40, B53, B85, B87, B88, R34: for whatever a site can hold."""
    config = data.draw(configs("openai-chat"))
    builder = ChatRequests(config)
    messages = data.draw(conversations())
    for end in sorted({data.draw(st.integers(1, len(messages))), len(messages)}):
        state = data.draw(states(messages, config, chat_extra))
        prepared = builder.prepare(data.draw(requests(messages[:end], state)))
        if not prepared.empty:
            body = json.loads(prepared.body)
            check_chat(body)
            check_type(body, CompletionCreateParamsStreaming, beside=REASONING)


@settings(max_examples=60, phases=[Phase.generate])
@given(st.data())
def test_every_responses_request_is_legal(data: st.DataObject) -> None:
    """B43, B44, B46, B53, B85, B87, B88: for whatever a site can hold."""
    config = data.draw(configs("openai-responses"))
    builder = ResponsesRequests(config)
    messages = data.draw(conversations())
    for end in sorted({data.draw(st.integers(1, len(messages))), len(messages)}):
        state = data.draw(states(messages, config, responses_extra))
        request = data.draw(requests(messages[:end], state))
        prepared = builder.prepare(request)
        if not prepared.empty:
            body = json.loads(prepared.body)
            check_responses(body)
            check_type(body, ResponseCreateParamsStreaming)


def test_an_effort_is_said_in_the_words_of_each_protocol() -> None:
    request = ModelRequest("message-answer", (user("Hi"),))
    chat = ModelConfig("openai-chat", "a-model", reasoning_effort="medium")
    responses = ModelConfig("openai-responses", "a-model", reasoning_effort="medium")
    assert json.loads(ChatRequests(chat).prepare(request).body)["reasoning_effort"] == "medium"
    made = json.loads(ResponsesRequests(responses).prepare(request).body)
    assert made["reasoning"] == {"effort": "medium", "summary": "auto"}
    plain = json.loads(ResponsesRequests(ModelConfig("openai-responses", "a-model")).prepare(request).body)
    assert "reasoning" not in plain
