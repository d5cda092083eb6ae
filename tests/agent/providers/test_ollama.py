"""Ollama's own protocol: requests for every history, and answers as real servers write them (B25, B26)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.providers.config import ModelConfig
from agent.providers.ollama import OllamaChat
from agent.providers.ollama_request import OllamaRequests
from agent.providers.transport import Transport
from agent.runtime.messages import AgentMessage, Base64Source, ImageBlock, ModelState, TextBlock, UrlSource
from agent.runtime.model import ModelRequest
from agent.runtime.tools import ToolDefinition
from agent.testing.http_provider import ScriptedAnswer, ScriptedProvider
from tests.agent.providers import rules_ollama
from tests.agent.providers.conversations import conversations, tool_lists
from tests.agent.providers.pictures import PNG, SVG
from tests.agent.providers.reading import (
    ask,
    assistant,
    call,
    calls_of,
    read,
    reasoning_of,
    result,
    text_of,
    tool,
    user,
)

BARE = ModelConfig("ollama-chat", "local-1")


def body(request: ModelRequest, config: ModelConfig = BARE) -> Any:
    return json.loads(OllamaRequests(config).prepare(request).body)


def lines(*data: Any, **options: Any) -> ScriptedAnswer:
    text = "".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in data)
    return ScriptedAnswer(text.encode(), headers={"content-type": "application/x-ndjson"}, **options)


def line(content: str = "", **members: Any) -> dict[str, Any]:
    return {"model": "local-1", "message": {"role": "assistant", "content": content, **members}, "done": False}


def last(reason: str = "stop", **members: Any) -> dict[str, Any]:
    counts = {"prompt_eval_count": 21, "eval_count": 17}
    return {
        "model": "local-1",
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": reason,
    } | (counts | members)


async def answered(transport: Transport, answer: ScriptedAnswer, request: ModelRequest | None = None) -> Any:
    async with ScriptedProvider(answer) as provider:
        config = ModelConfig("ollama-chat", "local-1", provider.url, allow_private=True)
        return await read(OllamaChat(config, transport), request)


def test_a_request_says_what_was_asked_for_and_nothing_else() -> None:
    assert body(ask(user("Hello"))) == {
        "model": "local-1",
        "stream": True,
        "messages": [{"role": "user", "content": "Hello"}],
    }


def test_settings_go_out_under_ollamas_names() -> None:
    config = ModelConfig("ollama-chat", "m", temperature=0.5, max_tokens=7, top_p=0.9, stop_sequences=("END",))
    sent = body(ask(user("Hi")), config)
    assert sent["options"] == {"temperature": 0.5, "num_predict": 7, "top_p": 0.9, "stop": ["END"]}
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert body(ModelRequest("id", (user("Hi"),), response_schema=schema))["format"] == schema


def test_calls_and_results_go_back_by_name_and_in_order() -> None:
    """B25: there are no ids."""
    one, two = call("call-1", "local.look", city="Kyiv"), call("call-2", "local.look", city="Cork")
    history = (user("Where?"), assistant(one, two), result(two, "rain"), result(one, "sun"))
    sent = body(ask(*history, tools=(tool("local.look"),)))
    assert sent["messages"][1:] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"function": {"name": "local_look", "arguments": {"city": "Kyiv"}}},
                {"function": {"name": "local_look", "arguments": {"city": "Cork"}}},
            ],
        },
        {"role": "tool", "tool_name": "local_look", "content": "sun"},
        {"role": "tool", "tool_name": "local_look", "content": "rain"},
    ]


def test_pictures_go_out_by_value_only() -> None:
    seen = AgentMessage(
        id="m",
        role="user",
        blocks=(
            TextBlock(text="Look:"),
            ImageBlock(source=Base64Source(media_type="image/jpeg", data=PNG)),
            ImageBlock(source=Base64Source(media_type="image/png", data=SVG)),
            ImageBlock(source=UrlSource(url="https://example.com/a.png")),
        ),
    )
    (message,) = body(ask(seen))["messages"]
    assert message["images"] == [PNG] and message["content"].count("cannot be shown") == 2
    assert "example.com" not in message["content"]


def test_without_tools_to_choose_none_are_offered() -> None:
    request = ModelRequest("id", (user("Hi"),), (tool("look"),), tool_choice="none")
    assert "tools" not in body(request)


@given(messages=conversations(), tools=tool_lists())
def test_every_history_makes_a_request_that_the_server_accepts(
    messages: tuple[AgentMessage, ...], tools: tuple[ToolDefinition, ...]
) -> None:
    prepared = OllamaRequests(BARE).prepare(ask(*messages, tools=tools))
    if not prepared.empty:
        rules_ollama.check(json.loads(prepared.body))


async def test_text_thinking_and_calls_of_a_stream(transport: Transport) -> None:
    wanted = {"function": {"name": "look", "arguments": {"city": "Kyiv"}}}
    again = {"function": {"name": "look", "arguments": {"city": "Cork"}}}
    answer = await answered(
        transport, lines(line(thinking="Hm."), line("Let "), line("me"), line(tool_calls=[wanted, again]), last())
    )
    assert (reasoning_of(answer), text_of(answer)) == ("Hm.", "Let me")
    assert [(each.name, dict(each.arguments or {})) for each in calls_of(answer)] == [
        ("look", {"city": "Kyiv"}),
        ("look", {"city": "Cork"}),
    ]
    assert answer.stop is not None
    assert answer.stop.stop_reason == "tool-use"
    assert answer.stop.usage is not None and answer.stop.usage.input_tokens == 21


@pytest.mark.parametrize(
    ("given_arguments", "read_as"),
    [({"a": 1}, {"a": 1}), ('{"a": 1}', {"a": 1}), (None, {}), ("", {}), ("null", {}), ({}, {})],
)
async def test_arguments_in_any_form(transport: Transport, given_arguments: Any, read_as: Any) -> None:
    """B05, B06."""
    wanted = {"function": {"name": "look", "arguments": given_arguments}}
    answer = await answered(transport, lines(line(tool_calls=[wanted]), last()))
    assert [dict(each.arguments or {}) for each in calls_of(answer)] == [read_as]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [("stop", "end-turn"), ("length", "max-tokens"), ("load", "other"), (None, "end-turn"), (5, "other")],
)
async def test_why_an_answer_ended(transport: Transport, reason: Any, expected: str) -> None:
    answer = await answered(transport, lines(line("Hi"), last(reason)))
    assert answer.stop is not None and answer.stop.stop_reason == expected


async def test_an_error_line_in_the_middle_is_an_error(transport: Transport) -> None:
    """B26."""
    answer = await answered(transport, lines(line("I"), line(" can"), {"error": "it broke"}))
    assert answer.error is not None
    assert (answer.error.kind, answer.error.message) == ("provider-error", "it broke")
    assert answer.visible_text() == "I can"


@pytest.mark.parametrize("end", ["close", "cut", "reset"])
async def test_an_answer_without_its_last_line_is_no_answer(transport: Transport, end: Any) -> None:
    answer = await answered(transport, lines(line("Half"), end=end))
    assert answer.error is not None
    assert answer.error.kind in ("truncated-stream", "connection-lost")
    assert calls_of(answer) == []


@pytest.mark.parametrize(
    "odd",
    [
        [],
        {"message": None, "done": False},
        {"message": {"content": None, "thinking": None, "tool_calls": None}, "done": False},
        {"message": {"content": 5}, "done": False},
        {"done": False},
        {"message": {"role": "assistant", "content": "", "tool_calls": [None, {}, {"function": None}]}, "done": False},
    ],
)
async def test_lines_with_odd_members(transport: Transport, odd: Any) -> None:
    """B07: null, missing and empty mean the same; what is no object at all is an error, never a crash."""
    answer = await answered(transport, lines(line("Hi"), odd, last()))
    assert answer.visible_text() == "Hi"
    assert (answer.stop is not None) is isinstance(odd, dict)


async def test_a_last_line_without_its_line_end_counts(transport: Transport) -> None:
    text = json.dumps(line("Hi")) + "\n" + json.dumps(last())
    answer = await answered(transport, ScriptedAnswer(text.encode(), headers={"content-type": "application/x-ndjson"}))
    assert answer.stop is not None and text_of(answer) == "Hi"


async def test_a_page_of_a_proxy_is_an_error_in_words(transport: Transport) -> None:
    answer = await answered(transport, ScriptedAnswer(b"<html>busy</html>", headers={"content-type": "text/html"}))
    assert answer.error is not None and "no JSON" in answer.error.message


async def test_a_model_that_is_not_there_is_said_to_be_one(transport: Transport) -> None:
    missing = ScriptedAnswer(b'{"error":"model \'local-1\' not found"}', 404, {"content-type": "application/json"})
    answer = await answered(transport, missing)
    assert answer.error is not None
    assert (answer.error.kind, answer.error.retryable) == ("not-found", False)
    assert "not found" in answer.error.message


async def test_a_foreign_model_state_fails_visibly(transport: Transport) -> None:
    """R27."""
    state = ModelState(format="openai-chat/v1", data={"callIds": {}})
    answer = await read(OllamaChat(BARE, transport), ask(user("Hi"), state=state))
    assert answer.error is not None and answer.error.kind == "invalid-request"


@given(pieces=st.lists(st.text(min_size=1), min_size=1, max_size=8), data=st.data())
def test_any_text_in_any_pieces_is_read_whole(pieces: list[str], data: st.DataObject) -> None:
    from agent.providers.failures import Scrubber
    from agent.providers.framing import NDJSONSplitter
    from agent.providers.ollama_decode import OllamaDecoder
    from agent.runtime.assembly import MessageAssembler
    from agent.runtime.values import clean_text

    stream = "".join(json.dumps(each) + "\n" for each in [*map(line, pieces), last()]).encode()
    decoder = OllamaDecoder(OllamaRequests(BARE).prepare(ask()), Scrubber([]))
    splitter, assembler = NDJSONSplitter(), MessageAssembler(100_000)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        assembler.feed(decoder.decode(splitter.feed(stream[start:end])))
    assert assembler.stop is not None
    assert assembler.visible_text() == clean_text("".join(pieces))


def test_the_server_is_told_how_much_to_think_and_the_context_window() -> None:
    """Without `num_ctx` a server cuts long conversations without a word."""
    set_up = ModelConfig("ollama-chat", "local-1", reasoning_effort="high", context_window=32_000)
    made = body(ask(user("Hi")), set_up)
    rules_ollama.check(made)
    assert (made["think"], made["options"]) == ("high", {"num_ctx": 32_000})
    assert body(ask(user("Hi"))).keys().isdisjoint({"think", "options"})
