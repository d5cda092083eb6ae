"""Requests to the Messages API, against its rules and the types of the official SDK."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

import pytest
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from hypothesis import given
from hypothesis import strategies as st

from agent.providers.anthropic_request import GOING_ON, OPENING, MessagesRequests
from agent.providers.config import CacheTtl, ModelConfig
from agent.providers.history import NO_OUTPUT, NO_RESULT
from agent.providers.state import StateMismatch
from agent.runtime.messages import (
    AgentMessage,
    Base64Source,
    ImageBlock,
    ModelState,
    ReasoningBlock,
    TextBlock,
    UrlSource,
)
from agent.runtime.model import ModelRequest
from tests.agent.providers.conversations import conversations, states, tool_lists
from tests.agent.providers.pictures import JPEG, PNG, png
from tests.agent.providers.reading import ask, assistant, call, kept_state, result, tool, user
from tests.agent.providers.rules_anthropic import check
from tests.agent.providers.sdk_types import check_type

BARE = ModelConfig("anthropic-messages", "a-model")
SAMPLING = ("temperature", "top_p")  # the SDK has forgotten them: the newest models refuse them
CACHED = replace(BARE, cache_ttl="five_min")
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}
HIDDEN = {"type": "redacted_thinking", "data": "b3BhcXVl"}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tide"}}
FOUND: dict[str, Any] = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


def body(request: ModelRequest, config: ModelConfig = BARE) -> Any:
    made = json.loads(MessagesRequests(config).prepare(request).body)
    check(made)
    check_type(made, MessageCreateParamsStreaming, beside=SAMPLING)
    return made


def state(extras: dict[str, Any] | None = None, ids: dict[str, str] | None = None) -> ModelState:
    return kept_state(BARE, extras=extras or {}, callIds=ids or {})


def sent(*messages: AgentMessage, extras: dict[str, Any] | None = None, ids: dict[str, str] | None = None) -> Any:
    return body(ask(*messages, state=state(extras, ids)))["messages"]


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def system(text: str, *, id: str = "message-system") -> AgentMessage:
    return AgentMessage(id=id, role="system", blocks=(TextBlock(text=text),))


def test_a_request_says_what_was_asked_for_and_nothing_else() -> None:
    """P32: 4096 tokens unless something else is wanted."""
    assert body(ask(user("Hello"))) == {
        "model": "a-model",
        "stream": True,
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": [said("Hello")]}],
    }


def test_settings_go_out_as_the_api_takes_them() -> None:
    config = replace(BARE, temperature=1.5, max_tokens=100, top_p=0.9, stop_sequences=("END", " "))
    made = body(ask(), config)
    assert (made["temperature"], made["max_tokens"], made["top_p"], made["stop_sequences"]) == (1, 100, 0.9, ["END"])
    asked = body(ModelRequest("id", (user("Hello"),), max_tokens=7, temperature=0.0), config)
    assert (asked["temperature"], asked["max_tokens"]) == (0.0, 7)


def test_instructions_at_the_beginning_stand_apart_and_others_are_said_by_the_user() -> None:
    made = body(
        ask(system("Be nice."), system(" "), user("a"), assistant(TextBlock(text="b")), system("Now!"), user("c"))
    )
    assert made["system"] == [said("Be nice.")]
    assert made["messages"][-1]["content"] == [said("Now!"), said("c")]


def test_tools_are_sent_with_legal_names_and_schemas(caplog: pytest.LogCaptureFixture) -> None:
    """B85, B87, E37: what cannot be sent is left out and noticed, and harms nothing else."""
    odd = tool("odd", {"type": "object", "properties": {"a b": {"type": "string"}}})
    with caplog.at_level(logging.WARNING):
        made = body(
            ask(user("Hello"), tools=(tool("local.look"), tool("bad", {"type": "array"}), odd, tool("n" * 100)))
        )
    assert made["tools"][0]["name"] == "local_look" and len(made["tools"]) == 2
    assert made["tools"][0]["input_schema"] == {"type": "object", "properties": {}}
    assert "'bad'" in caplog.text and "'odd'" in caplog.text


@pytest.mark.parametrize(
    ("choice", "wire"),
    [
        ("auto", {"type": "auto"}),
        ("required", {"type": "any"}),
        ("none", {"type": "none"}),
        ("local.look", {"type": "tool", "name": "local_look"}),
        ("unknown", None),
        (None, None),
    ],
)
def test_the_choice_of_a_tool_is_sent(choice: str | None, wire: Any) -> None:
    made = body(ModelRequest("id", (user("Hello"),), (tool("local.look"),), tool_choice=choice))
    assert made.get("tool_choice") == wire
    assert "tool_choice" not in body(ModelRequest("id", (user("Hello"),), tool_choice=choice))


def test_a_history_with_calls_is_sent_although_there_are_no_tools_now() -> None:
    made = body(ask(user("go"), assistant(call("one")), result(call("one"), "ok")))
    assert made["tool_choice"] == {"type": "none"} and len(made["tools"]) == 1


def test_the_form_of_the_answer_is_sent_as_the_api_compiles_it() -> None:
    """P53."""
    schema = {
        "type": "object",
        "properties": {
            "age": {"type": "integer", "minimum": 0, "description": "In years."},
            "tags": {"type": "array", "items": {"oneOf": [{"type": "string", "format": "email"}, {"type": "null"}]}},
        },
        "required": ["age"],
    }
    made = body(ModelRequest("id", (user("Hello"),), response_schema=schema))
    assert made["output_config"] == {
        "format": {
            "type": "json_schema",
            "schema": {
                "type": "object",
                "properties": {
                    "age": {"type": "integer", "description": 'In years.\n\n{"minimum":0}'},
                    "tags": {
                        "type": "array",
                        "items": {"anyOf": [{"type": "string", "format": "email"}, {"type": "null"}]},
                    },
                },
                "required": ["age"],
                "additionalProperties": False,
            },
        }
    }


def test_results_open_the_users_next_message_in_call_order() -> None:
    """B34: whatever the order in which they were stored, and whatever was said meanwhile."""
    one, two = call("one", at=1), call("two", at=2)
    messages = sent(
        user("go"), assistant(one, two), user("hurry"), result(two, "no", failed=True), result(one, ""), user("so?")
    )
    assert messages[1]["content"] == [
        {"type": "tool_use", "id": "one", "name": "look", "input": {"at": 1}},
        {"type": "tool_use", "id": "two", "name": "look", "input": {"at": 2}},
    ]
    assert messages[2] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "one", "content": [said(NO_OUTPUT)]},
            {"type": "tool_result", "tool_use_id": "two", "content": [said("no")], "is_error": True},
            said("hurry"),
            said("so?"),
        ],
    }


def test_calls_without_a_result_get_one_that_says_so() -> None:
    """B53."""
    messages = sent(user("go"), assistant(call("one"), call("two")), result(call("one"), "first"), user("hi"))
    assert messages[2]["content"][1] == {
        "type": "tool_result",
        "tool_use_id": "two",
        "content": [said(NO_RESULT)],
        "is_error": True,
    }


def test_nothing_empty_is_sent_and_neighbours_are_joined() -> None:
    """B35, B40."""
    for nothing in ((), (ReasoningBlock(text="Hm."),), (TextBlock(text=" \n"),)):
        assert sent(user("a"), assistant(*nothing), user(" "), user("b")) == [
            {"role": "user", "content": [said("a"), said("b")]}
        ]
    assert MessagesRequests(BARE).prepare(ask(user(" "))).empty


def test_the_user_has_the_first_and_the_last_word() -> None:
    messages = sent(assistant(TextBlock(text="Imported.")))
    assert [json.dumps(messages[0], separators=(",", ":")), messages[1]["role"]] == [OPENING.decode(), "assistant"]
    assert json.dumps(messages[2], separators=(",", ":")) == GOING_ON.decode()


def test_pictures_go_out_where_the_api_takes_them() -> None:
    sources = (
        UrlSource(url="https://example.com/a.png"),
        Base64Source(media_type="image/PNG", data=PNG),
        Base64Source(media_type="image/tiff", data=JPEG),
        Base64Source(media_type="image/png", data=PNG[1:]),
        Base64Source(media_type="image/png", data=png(60_000, 60_000)),
    )
    picture = AgentMessage(id="p", role="user", blocks=tuple(ImageBlock(source=source) for source in sources))
    (message,) = sent(picture)
    assert [block["type"] for block in message["content"]] == ["text", "image", "image", "text", "text"]
    assert [block["source"] for block in message["content"] if block["type"] == "image"] == [
        {"type": "base64", "media_type": "image/png", "data": PNG},
        {"type": "base64", "media_type": "image/jpeg", "data": JPEG},
    ]


def test_what_goes_back_unchanged_stands_where_it_stood() -> None:
    """B30, B30b, B32, R34: also between blocks, also without a text, and only in the answer that it belongs to."""
    answer = assistant(ReasoningBlock(text="Hm."), TextBlock(text="One."), call("one"), id="answer")
    silent = {**THOUGHT, "thinking": ""}
    extras = {"answer": [[0, HIDDEN], [0, silent], [1, SEARCH], [1, FOUND], [1, THOUGHT]], "gone": [[0, THOUGHT]]}
    messages = sent(user("go"), answer, result(call("one"), "ok"), extras=extras, ids={"one": "toolu_1"})
    use = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    assert messages[1]["content"] == [HIDDEN, silent, said("One."), SEARCH, FOUND, THOUGHT, use]


def test_reasoning_that_led_to_nothing_is_not_sent() -> None:
    """B37: cut while it thought, or before its call was whole."""
    answer, only = assistant(TextBlock(text="One."), id="answer"), assistant(ReasoningBlock(text="Hm."), id="only")
    extras = {"answer": [[0, THOUGHT], [1, THOUGHT]], "only": [[0, THOUGHT]]}
    messages = sent(user("a"), answer, user("b"), only, user("c"), extras=extras)
    assert [message["content"] for message in messages] == [
        [said("a")],
        [THOUGHT, said("One.")],
        [said("b"), said("c")],
    ]


@pytest.mark.parametrize("extra", ["x", [0], [0, {"type": "image"}], [0, {"type": "tool_result"}], ["0", THOUGHT]])
def test_a_model_state_with_anything_else_is_refused(extra: Any) -> None:
    """R27: a state is no way to put blocks into a request."""
    with pytest.raises(StateMismatch):
        sent(user("a"), assistant(TextBlock(text="b"), id="answer"), user("c"), extras={"answer": [extra]})
    with pytest.raises(StateMismatch):
        body(ask(user("a"), state=ModelState(format="openai-chat/v1", data={})))


def marks(made: dict[str, Any]) -> list[str]:
    """Where the cache marks of a request are."""
    return [
        *(f"tool {tool['name']}" for tool in made.get("tools", ()) if "cache_control" in tool),
        *(f"system {block['text']}" for block in made.get("system", ()) if "cache_control" in block),
        *(
            f"message {at}.{number}"
            for at, message in enumerate(made["messages"])
            for number, block in enumerate(message["content"])
            if "cache_control" in block
        ),
    ]


@pytest.mark.parametrize(("ttl", "wire"), [("five_min", "5m"), ("one_hour", "1h")])
def test_at_most_four_marks_stand_where_prefixes_end(ttl: CacheTtl, wire: str) -> None:
    """P170, B36: three parts of instructions, two tools and six turns."""
    turns = [each for at in range(6) for each in (user(f"u{at}"), assistant(TextBlock(text="a"), id=f"a{at}"))]
    three = [system(text, id=text) for text in ("one", "two", "three")]
    config = replace(BARE, cache_ttl=ttl)
    made = body(ask(*three, *turns, user("last"), tools=(tool("first"), tool("second"))), config)
    assert marks(made) == ["tool second", "system three", "message 10.0", "message 12.0"]
    assert made["messages"][12]["content"][0]["cache_control"] == {"type": "ephemeral", "ttl": wire}
    assert marks(body(ask(*three, *turns, user("last"), tools=(tool("first"),)))) == []


def test_a_prompt_that_changes_with_each_run_is_not_marked() -> None:
    """P170."""
    request = replace(ask(system("It is noon."), user("Hi"), tools=(tool("look"),)), volatile_prompt=True)
    assert marks(body(request, CACHED)) == ["tool look", "message 0.0"]


def unmarked(request: bytes) -> bytes:
    return request.replace(b',"cache_control":{"type":"ephemeral","ttl":"5m"}', b"")


def test_the_next_request_begins_with_what_was_sent() -> None:
    """P170: the same bytes, but for the marks, whether the adapter remembers the history or comes new to it."""
    one, two = call("one", z=1, a=2), call("two")
    history = (
        *(system("Be nice."), user("go"), assistant(TextBlock(text="Hm."), one, id="a1"), result(one, "1")),
        *(assistant(two, id="a2"), result(two, "2"), assistant(TextBlock(text="Done."), id="a3"), user("more")),
    )
    builder, extras = MessagesRequests(CACHED), {"a1": [[0, THOUGHT]]}
    before = b""
    for end in (2, 4, 6, 8):
        request = ask(*history[:end], tools=(tool("look"),), state=state(extras))
        made = builder.prepare(request).body
        stored = tuple(
            AgentMessage.from_wire(json.loads(json.dumps(m.to_wire(), sort_keys=True))) for m in history[:end]
        )
        assert MessagesRequests(CACHED).prepare(replace(request, messages=stored)).body == made
        assert unmarked(made).startswith(before.removesuffix(b"]}"))
        before = unmarked(made)


def extra(message: AgentMessage) -> st.SearchStrategy[list[Any]]:
    """What an answer may have had beside its own blocks."""
    groups = st.sampled_from([[THOUGHT], [HIDDEN], [{**THOUGHT, "thinking": ""}], [THOUGHT, HIDDEN]])
    places = st.lists(st.integers(0, len(message.blocks) + 1), max_size=3).map(sorted)
    return st.tuples(places, groups).map(lambda drawn: [[place, block] for place in drawn[0] for block in drawn[1]])


SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}}


@given(st.data())
def test_every_request_is_legal(data: st.DataObject) -> None:
    """B08, B09, B30, B34, B35, B36, B40, B53, B85, P170: for whatever a site can hold, asked several times."""
    config = replace(
        BARE,
        cache_ttl=data.draw(st.sampled_from(["", "five_min", "one_hour"])),
        temperature=data.draw(st.sampled_from([None, 0.0, 2.0])),
        top_p=data.draw(st.sampled_from([None, 0.5, 0.97])),
        max_tokens=data.draw(st.sampled_from([None, 100, 30_000])),
        reasoning_effort=data.draw(st.sampled_from(["", "low", "high"])),
    )
    builder = MessagesRequests(config)
    messages, tools = data.draw(conversations()), data.draw(tool_lists())
    for end in sorted({data.draw(st.integers(1, len(messages))), len(messages)}):
        request = ModelRequest(
            "message-answer",
            messages[:end],
            tools,
            data.draw(states(messages[:end], BARE, extra)),
            tool_choice=data.draw(st.sampled_from([None, "auto", "required", "none", *(tool.name for tool in tools)])),
            response_schema=data.draw(st.sampled_from([None, SCHEMA])),
        )
        prepared = builder.prepare(request)
        assert prepared.body == MessagesRequests(config).prepare(request).body, "what is remembered changes nothing"
        if not prepared.empty:
            made = json.loads(prepared.body)
            check(made)
            check_type(made, MessageCreateParamsStreaming, beside=SAMPLING)


@pytest.mark.parametrize(("effort", "budget"), [("low", 2_048), ("medium", 8_192), ("high", 24_576)])
def test_an_effort_is_a_budget_for_thinking_beside_the_answer(effort: Any, budget: int) -> None:
    """The API demands more tokens than the budget, and no temperature; forced tools exclude thinking."""
    thoughtful = replace(BARE, reasoning_effort=effort, temperature=0.5, top_p=0.5)
    made = body(ask(user("Hi"), tools=(tool("look"),)), thoughtful)
    assert made["thinking"] == {"type": "enabled", "budget_tokens": budget}
    assert made["max_tokens"] == budget + 4_096
    assert made.keys().isdisjoint({"temperature", "top_p"})
    assert body(ask(user("Hi")), replace(thoughtful, max_tokens=40_000))["max_tokens"] == 40_000
    forced = body(replace(ask(user("Hi"), tools=(tool("look"),)), tool_choice="look"), thoughtful)
    assert "thinking" not in forced and forced["temperature"] == 0.5


def test_a_turn_that_began_without_thinking_goes_on_without() -> None:
    """The API refuses a change in the midst of a turn, as after another model took over."""
    thoughtful, look = replace(BARE, reasoning_effort="low"), call("one")
    messages = (user("Hi"), assistant(look, id="a1"), result(look, "ok"))
    tools = (tool("look"),)
    assert "thinking" not in body(ask(*messages, tools=tools), thoughtful)
    kept = state(extras={"a1": [[0, THOUGHT]]})
    assert "thinking" in body(ask(*messages, tools=tools, state=kept), thoughtful)
    assert "thinking" in body(ask(*messages, user("And?", id="u2"), tools=tools), thoughtful)


def test_no_effort_sends_nothing() -> None:
    assert "thinking" not in body(ask(user("Hi")))
