"""Requests to chat completions servers."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.providers.config import ModelConfig
from agent.providers.history import NO_OUTPUT, NO_RESULT, History
from agent.providers.images import NO_IMAGE
from agent.providers.names import ToolNames
from agent.providers.openai_chat_history import ChatEncoder
from agent.providers.openai_chat_request import ChatRequests
from agent.providers.prepared import PreparedRequest
from agent.providers.state import ProviderState
from agent.runtime.messages import (
    AgentMessage,
    Base64Source,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    UrlSource,
)
from agent.runtime.model import ModelRequest
from tests.agent.providers.pictures import SVG, WEBP, png
from tests.agent.providers.reading import ask, assistant, call, kept_state, result, tool, user
from tests.agent.providers.rules_openai import check_turns

BARE = ModelConfig("openai-chat", "a-model", "http://127.0.0.1/v1")


def prepare(request: ModelRequest, config: ModelConfig = BARE) -> PreparedRequest:
    return ChatRequests(config).prepare(request)


def body(request: ModelRequest, config: ModelConfig = BARE) -> Any:
    return json.loads(prepare(request, config).body)


def sent(*messages: AgentMessage, ids: dict[str, str] | None = None) -> Any:
    state = kept_state(BARE, callIds=ids) if ids else None
    return body(ask(*messages, state=state))["messages"]


def test_a_request_says_what_was_asked_for_and_nothing_else() -> None:
    """P36."""
    assert body(ask(user("Hello"))) == {
        "model": "a-model",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": "Hello"}],
    }


def test_settings_of_the_request_beat_those_of_the_model() -> None:
    config = ModelConfig("openai-chat", "m", "http://127.0.0.1/v1", temperature=0.5, max_tokens=100)
    plain = body(ask(user("Hello")), config)
    assert (plain["temperature"], plain["max_tokens"]) == (0.5, 100)
    asked = body(ModelRequest("id", (user("Hello"),), max_tokens=7, temperature=0.0), config)
    assert (asked["temperature"], asked["max_tokens"]) == (0.0, 7)


def test_all_that_is_configured_is_said() -> None:
    """P30, P31."""
    config = ModelConfig(
        "openai-chat", "m", "http://127.0.0.1/v1", top_p=0.9, stop_sequences=("END", "\n\n"), prompt_cache_key="par"
    )
    made = body(ask(), config)
    assert (made["top_p"], made["stop"], made["prompt_cache_key"]) == (0.9, ["END", "\n\n"], "par")


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, None),
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ("local.look", {"type": "function", "function": {"name": "local_look"}}),
    ],
)
def test_a_tool_can_be_asked_for(choice: str | None, expected: Any) -> None:
    request = ModelRequest("id", (user("Hello"),), (tool("local.look"),), tool_choice=choice)
    assert body(request).get("tool_choice") == expected
    assert "tool_choice" not in body(replace(request, tools=())), "servers refuse it where there are no tools"


def test_the_form_of_the_answer_can_be_asked_for() -> None:
    """P53."""
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    made = body(ModelRequest("id", (user("Hello"),), response_schema=schema))
    expected = {"name": "structured_output", "schema": schema, "strict": True}
    assert made["response_format"] == {"type": "json_schema", "json_schema": expected}


@pytest.mark.parametrize(("url", "expected"), [("", True), ("http://127.0.0.1/v1", None)])
def test_only_openai_itself_is_told_that_a_tool_is_strict(url: str, expected: bool | None) -> None:
    """B88: and only where that does not change the schema."""
    closed = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    made = body(ask(tools=(tool("closed", closed), tool("open"))), ModelConfig("openai-chat", "m", url))
    found = [each["function"].get("strict") for each in made["tools"]]
    assert found == [expected, None]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://api.openai.com/v1",
        "https://eu.api.openai.com/v1",
        "https://x.openai.azure.com/openai/v1",
        "https://X.cognitiveservices.azure.com/openai/v1/",
        "https://x.services.ai.azure.com/openai/v1",
    ],
)
def test_openai_itself_gets_the_newer_name_of_the_token_limit(url: str) -> None:
    made = body(ask(), ModelConfig("openai-chat", "m", url, max_tokens=100))
    assert made["max_completion_tokens"] == 100 and "max_tokens" not in made


def test_tools_are_sent_with_legal_names_and_plain_schemas(caplog: pytest.LogCaptureFixture) -> None:
    """B85, B87: one tool that cannot be sent does not harm the others, and is noticed."""
    with caplog.at_level(logging.WARNING):
        made = body(ask(user("Hello"), tools=(tool("local.look"), tool("bad", {"type": "array"}))))
    (only,) = made["tools"]
    assert only == {
        "type": "function",
        "function": {
            "name": "local_look",
            "description": "The tool local.look.",
            "parameters": {"type": "object", "properties": {}},
        },
    }
    assert "'bad'" in caplog.text


def test_neighbours_of_one_role_are_joined_and_the_stored_messages_stay() -> None:
    """B40."""
    messages = (user("a"), user("b"), assistant(TextBlock(text="c")), assistant(TextBlock(text="d"), call("ours")))
    assert [(each["role"], each["content"]) for each in sent(*messages)] == [
        ("user", "a\n\nb"),
        ("assistant", "c\n\nd"),
        ("tool", NO_RESULT),
    ]
    assert [message.text for message in messages] == ["a", "b", "c", "d"]


def test_neighbours_around_an_empty_answer_are_joined() -> None:
    """B40, B35: stopped before the first token, or with nothing but reasoning or blanks."""
    for nothing in ((), (ReasoningBlock(text="Hm."),), (TextBlock(text=""),), (TextBlock(text=" \n"),)):
        assert sent(user("a"), assistant(*nothing), user("b")) == [{"role": "user", "content": "a\n\nb"}]


def test_reasoning_is_not_sent_back_as_text() -> None:
    messages = sent(user("a"), assistant(ReasoningBlock(text="secret thought"), TextBlock(text="b")))
    assert "secret thought" not in json.dumps(messages)


def test_results_follow_their_calls_in_call_order() -> None:
    """B34: whatever the order in which they were stored, and whatever was said meanwhile."""
    one, two = call("one", at=1), call("two", at=2)
    messages = sent(user("go"), assistant(one, two), user("hurry"), result(two, "second"), result(one, ""), user("so?"))
    assert [(each["role"], each.get("tool_call_id"), each["content"]) for each in messages] == [
        ("user", None, "go"),
        ("assistant", None, None),
        ("tool", "one", NO_OUTPUT),
        ("tool", "two", "second"),
        ("user", None, "hurry\n\nso?"),
    ]
    assert [json.loads(each["function"]["arguments"]) for each in messages[1]["tool_calls"]] == [{"at": 1}, {"at": 2}]


def test_calls_without_a_result_and_results_without_a_call_are_repaired() -> None:
    """B53."""
    one, two, stranger = call("one"), call("two"), call("stranger")
    messages = sent(user("go"), assistant(one, two), result(one, "first"), result(one, "again"), result(stranger, "?"))
    assert [each["content"] for each in messages if each["role"] == "tool"] == ["first", NO_RESULT]


def test_the_provider_sees_its_own_ids_where_they_are_unique() -> None:
    """B08, B09."""
    calls = [call("ours-1"), call("ours-2"), call("ours-3"), call("ours-4")]
    known = {"ours-1": "theirs", "ours-2": "search:0", "ours-3": "search:0", "elsewhere": "theirs-too"}
    messages = sent(user("go"), assistant(*calls), *(result(each, "ok") for each in calls), ids=known)
    expected = ["theirs", "ours-2", "ours-3", "ours-4"]
    assert [each["id"] for each in messages[1]["tool_calls"]] == expected
    assert [each["tool_call_id"] for each in messages[2:]] == expected


def test_ids_of_calls_that_are_gone_are_forgotten() -> None:
    state = kept_state(BARE, callIds={"kept": "a", "gone": "b"})
    assert prepare(ask(user("go"), assistant(call("kept")), state=state)).state.call_ids == {"kept": "a"}


def test_an_id_that_no_provider_takes_is_replaced_on_both_sides() -> None:
    odd = call("an imported id / with blanks " + "x" * 100)
    messages = sent(user("go"), assistant(odd), result(odd, "ok"))
    made = messages[1]["tool_calls"][0]["id"]
    assert len(made) <= 40 and made.replace("_", "").isalnum() and messages[2]["tool_call_id"] == made


def test_pictures_go_out_by_value() -> None:
    picture = ImageBlock(source=Base64Source(media_type="image/PNG", data=WEBP))
    message = AgentMessage(id="picture", role="user", blocks=(TextBlock(text="Look"), picture))
    (wire,) = sent(message, user("and tell"))
    assert wire["content"] == [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": f"data:image/webp;base64,{WEBP}"}},
        {"type": "text", "text": "and tell"},
    ]


def test_a_picture_that_cannot_be_shown_is_told_of() -> None:
    """Another type, too large, or not of a user."""
    sources = [
        Base64Source(media_type="image/svg+xml", data=SVG),
        Base64Source(media_type="image/png", data=png(60_000, 1)),
    ]
    pictures = [ImageBlock(source=source) for source in sources]
    reasons = ["no PNG, JPEG, GIF or WebP picture", "wider or higher than 8,000 pixels"]
    of_user = AgentMessage(id="picture", role="user", blocks=(*pictures, TextBlock(text="Look")))
    of_model = assistant(ImageBlock(source=UrlSource(url="https://example.com/a.png")))
    assert [each["content"] for each in sent(of_user, of_model, user("and?"))] == [
        "\n\n".join([f"{NO_IMAGE[:-1]}: it is {why})" for why in reasons] + ["Look"]),
        NO_IMAGE,
        "and?",
    ]


def test_arguments_are_the_same_bytes_after_a_database_that_keeps_no_order() -> None:
    """Stable prefixes are what a provider's cache knows."""
    bodies = {
        prepare(ask(user("go"), assistant(call("one", **arguments)), user("on"))).body
        for arguments in ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1})
    }
    assert len(bodies) == 1


def test_a_history_with_nothing_to_say_is_known_to_be_empty() -> None:
    assert prepare(ask(user(" "))).empty and not prepare(ask(user("a"))).empty


def test_a_message_is_encoded_once() -> None:
    message = user("Hello")
    requests = ChatRequests(BARE)
    requests.prepare(ask(message))
    (kept,) = message.encoded.values()
    ChatRequests(BARE).prepare(ask(message))
    (still_kept,) = message.encoded.values()
    assert still_kept is kept


def turns(count: int) -> list[AgentMessage]:
    """Whole turns with one call each."""
    messages: list[AgentMessage] = []
    for at in range(count):
        asked = call(f"call-{at}")
        messages += [user(f"question {at}", id=f"user-{at}"), assistant(asked, id=f"asks-{at}"), result(asked, "ok")]
        messages.append(assistant(TextBlock(text=f"answer {at}"), id=f"answers-{at}"))
    return messages


def test_only_the_turn_in_progress_is_walked_again() -> None:
    past, history, names = turns(3), History(ChatEncoder()), ToolNames([])
    first = list(history.encode((*past, user("next")), names, ProviderState({})))
    for message in past:
        message.encoded.clear()
    again = history.encode((*past, user("next"), assistant(TextBlock(text="yes"))), names, ProviderState({}))
    assert again[: len(past)] == first[: len(past)]
    assert not any(message.encoded for message in past[:-4])


def wire_ids_of(pieces: list[bytes]) -> list[str]:
    messages = [json.loads(piece) for piece in pieces]
    called = [each["id"] for message in messages for each in message.get("tool_calls", ())]
    assert called == [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    return called


def test_an_id_that_comes_a_second_time_is_replaced_in_the_first_place_too() -> None:
    """B09, with a history that was encoded before."""
    names = ToolNames([])
    for later, expected in (("a", ["call-0", "b", "call-2"]), ("c", ["a", "b", "c"]), ("b", ["a", "call-1", "call-2"])):
        history = History(ChatEncoder())
        assert wire_ids_of(history.encode(tuple(turns(2)), names, ProviderState({"call-0": "a", "call-1": "b"}))) == [
            "a",
            "b",
        ]
        messages = tuple(turns(3))
        ids = {"call-0": "a", "call-1": "b", "call-2": later}
        history.encode(messages[:8], names, ProviderState(ids))
        assert wire_ids_of(history.encode(messages, names, ProviderState(ids))) == expected


def test_ids_that_are_no_longer_known_are_no_longer_used() -> None:
    history, names, messages = History(ChatEncoder()), ToolNames([]), tuple(turns(3))
    assert wire_ids_of(history.encode(messages, names, ProviderState({"call-0": "a"}))) == ["a", "call-1", "call-2"]
    assert wire_ids_of(history.encode(messages, names, ProviderState({}))) == ["call-0", "call-1", "call-2"]


@st.composite
def histories(draw: st.DrawFn) -> list[AgentMessage]:
    """A history as no engine would store it: calls without results, empty answers, neighbours."""
    messages: list[AgentMessage] = []
    for at in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["user", "user", "assistant", "empty", "calls", "system"]))
        if kind == "calls":
            calls = [call(f"call-{at}-{n}") for n in range(draw(st.integers(1, 3)))]
            messages.append(assistant(*calls, id=f"message-{at}"))
            messages += [result(each, f"of {each.call_id}") for each in calls if draw(st.integers(0, 4))]
        elif kind == "system":
            messages.append(AgentMessage(id=f"message-{at}", role="system", blocks=(TextBlock(text="Be nice."),)))
        else:
            text = TextBlock(text="" if kind == "empty" else f"text {at}")
            role: Any = "user" if kind == "user" else "assistant"
            messages.append(AgentMessage(id=f"message-{at}", role=role, blocks=(text,)))
    return messages


@given(histories(), st.data())
def test_a_remembered_history_gives_what_a_fresh_one_gives(messages: list[AgentMessage], data: st.DataObject) -> None:
    """Requests that grow, shrink, branch and learn new ids, as those of one adapter do."""
    calls = [block.call_id for message in messages for block in message.tool_calls]
    names, history = ToolNames([]), History(ChatEncoder())
    for _ in range(4):
        start = data.draw(st.integers(0, 1))
        part = tuple(messages[start : data.draw(st.integers(0, len(messages)))])
        ids = data.draw(st.dictionaries(st.sampled_from(calls or [""]), st.sampled_from(["a", "b", "c"])))
        found = [json.loads(piece) for piece in history.encode(part, names, ProviderState(ids))]
        assert found == [json.loads(piece) for piece in History(ChatEncoder()).encode(part, names, ProviderState(ids))]
        check_turns(found)
