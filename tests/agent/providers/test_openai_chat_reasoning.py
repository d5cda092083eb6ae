"""Reasoning that goes back to chat completions servers (R34)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.providers.config import ModelConfig, ReasoningReplay
from agent.providers.openai_chat import OpenAIChat
from agent.providers.openai_chat_reasoning import ReasoningRule, reasoning_rule
from agent.providers.openai_chat_request import ChatRequests
from agent.providers.transport import Transport
from agent.runtime.messages import AgentMessage, ModelState, ReasoningBlock, TextBlock
from agent.testing.chat_wire import DONE, chat_chunk, chat_stream
from agent.testing.http_provider import ScriptedAnswer, ScriptedProvider
from tests.agent.providers.reading import ask, assistant, call, config, kept_state, read, result, user

LOCAL = "http://127.0.0.1:8000/v1"


@pytest.mark.parametrize(
    ("model", "url", "rule"),
    [
        ("deepseek-v4-pro", "https://api.deepseek.com/v1", ReasoningRule("tool-turns", demanded=True)),
        ("my-alias", "https://api.deepseek.com/v1", ReasoningRule("tool-turns", demanded=True)),
        ("deepseek-ai/DeepSeek-V3.2", LOCAL, ReasoningRule("tool-turns")),
        ("kimi-k2-thinking", "https://api.moonshot.cn/v1", ReasoningRule("all", demanded=True)),
        ("glm-5", "https://api.z.ai/api/paas/v4", ReasoningRule("all")),
        ("glm-5", "https://open.bigmodel.cn/api/paas/v4", ReasoningRule("all")),
        ("qwen3-max", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", ReasoningRule("loop")),
        ("kimi-k2.5", "https://dashscope.aliyuncs.com/compatible-mode/v1", ReasoningRule("all")),
        ("mimo-v2-flash", "https://api.xiaomimimo.com/v1", ReasoningRule("tool-turns", demanded=True)),
        ("gpt-5.2", "", None),
        ("llama-4", LOCAL, None),
        ("deepseek-v4", "https://deepseek.com.example.org/v1", ReasoningRule("tool-turns")),
    ],
)
def test_vendors_are_known_by_model_or_host(model: str, url: str, rule: ReasoningRule | None) -> None:
    assert reasoning_rule(ModelConfig("openai-chat", model, url)) == rule


@pytest.mark.parametrize(("replay", "rule"), [("never", None), ("always", ReasoningRule("all"))])
def test_an_endpoint_can_decide_for_itself(replay: ReasoningReplay, rule: ReasoningRule | None) -> None:
    for model in ("deepseek-v4", "llama-4"):
        assert reasoning_rule(ModelConfig("openai-chat", model, LOCAL, reasoning_replay=replay)) == rule


def thinks(*blocks: Any, id: str) -> AgentMessage:
    return assistant(ReasoningBlock(text="shown, never sent"), *blocks, id=id)


LOOK, AGAIN = call("look"), call("again")
HISTORY = (
    user("one", id="u1"),
    thinks(TextBlock(text="plain"), id="a1"),
    user("two", id="u2"),
    thinks(LOOK, id="a2"),
    result(LOOK, "ok"),
    thinks(TextBlock(text="seen"), id="a3"),
    user("three", id="u3"),
    thinks(AGAIN, id="a4"),
    result(AGAIN, "ok"),
)
EXTRAS = {f"a{at}": [{"reasoning_content": f"thought {at}"}] for at in range(1, 5)}


def sent(endpoint: ModelConfig, extras: dict[str, Any] = EXTRAS) -> list[str | None]:
    """The reasoning of each answer as it goes out; all of it is kept, whether it is due or not."""
    state = kept_state(endpoint, extras=extras)
    prepared = ChatRequests(endpoint).prepare(ask(*HISTORY, state=state))
    body = json.loads(prepared.body)
    assert "never sent" not in json.dumps(body), "shown reasoning is not the vendor's (R34)"
    answers = [message for message in body["messages"] if message["role"] == "assistant"]
    assert prepared.state.extras == (state.data.get("extras") or {})
    return [message.get("reasoning_content") for message in answers]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("kimi-k2.5", ["thought 1", "thought 2", "thought 3", "thought 4"]),
        ("deepseek-v4", [None, "thought 2", "thought 3", "thought 4"]),
        ("qwen3-max", [None, None, None, "thought 4"]),
        ("llama-4", [None, None, None, None]),
    ],
)
def test_each_vendor_gets_what_it_wants(model: str, expected: list[str | None]) -> None:
    """R28, R34: all, that of turns with tools, or that since the user's last word; the rest waits."""
    assert sent(ModelConfig("openai-chat", model, LOCAL)) == expected


def test_a_call_of_another_model_has_no_reasoning_and_is_sent_all_the_same() -> None:
    """R34: for servers that refuse a call without; elsewhere nothing is made up."""
    strict = ModelConfig("openai-chat", "deepseek-v4", "https://api.deepseek.com/v1")
    assert sent(strict, {}) == [None, " ", None, " "]
    assert sent(ModelConfig("openai-chat", "deepseek-v4", LOCAL), {}) == [None] * 4


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_reasoning_goes_back_under_the_name_by_which_it_came(name: str, transport: Transport) -> None:
    """R34, through the wire and the database's form of the state; what mirrors it is not kept (B14)."""
    pieces = [chat_chunk({name: "Let me "}), chat_chunk({name: "see.", "reasoning_details": [{"text": "see."}]})]
    look = chat_stream(tool_calls=[("look", {})])
    async with ScriptedProvider(ScriptedAnswer([*pieces, *look]), ScriptedAnswer(chat_stream("Done."))) as provider:
        model = OpenAIChat(config(provider.url, model="glm-5"), transport)
        first = await read(model, ask(user("go")))
        assert first.stop is not None and first.stop.model_state is not None
        state = ModelState.from_wire(json.loads(json.dumps(first.stop.model_state.to_wire(), sort_keys=True)))
        answer = assistant(LOOK, id="message-answer")
        await read(model, ask(user("go"), answer, result(LOOK, "ok"), state=state))
        wire = provider.requests[1].json["messages"][1]
    assert wire[name] == "Let me see."
    assert sum(key.startswith("reasoning") for key in wire) == 1


async def test_reasoning_of_other_servers_is_not_kept(transport: Transport) -> None:
    events = [chat_chunk({"reasoning_content": "Hm."}), chat_chunk({"content": "Hi"}, finish="stop"), DONE]
    async with ScriptedProvider(ScriptedAnswer(events)) as provider:
        answer = await read(OpenAIChat(config(provider.url), transport))
    assert answer.stop is not None and answer.stop.model_state is None
