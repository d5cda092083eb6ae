"""Requests to the Responses API."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

import pytest

from agent.providers.config import ModelConfig
from agent.providers.openai_responses_request import ResponsesRequests
from agent.runtime.messages import AgentMessage, Base64Source, ImageBlock, ReasoningBlock, TextBlock
from agent.runtime.model import ModelRequest
from tests.agent.providers.pictures import GIF
from tests.agent.providers.reading import ask, assistant, call, kept_state, result, tool, user

BARE = ModelConfig("openai-responses", "a-model", "http://127.0.0.1/v1")
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ENC"}
CLOSED = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
ONE, TWO = call("one"), call("two")


def body(request: ModelRequest, config: ModelConfig = BARE) -> Any:
    return json.loads(ResponsesRequests(config).prepare(request).body)


def items(*messages: AgentMessage, **extras: list[Any]) -> list[Any]:
    """What goes out of some messages; `extras` are what the state holds of the answers `a1`, `a2`, …."""
    state = kept_state(BARE, extras=extras) if extras else None
    made: list[Any] = body(ask(*messages, state=state))["input"]
    return made


def kinds(made: list[Any]) -> list[str]:
    return [item.get("type") or f"{item['role']}: {item['content']}" for item in made]


def test_a_request_keeps_nothing_on_the_server() -> None:
    """B43."""
    assert body(ask(user("Hello"))) == {
        "model": "a-model",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "input": [{"role": "user", "content": "Hello"}],
    }


@pytest.mark.parametrize("url", ["", "https://x.openai.azure.com/openai/v1", "http://127.0.0.1/v1"])
@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("gpt-4.1-mini", False),
        ("gpt-4o", False),
        ("openai/gpt-4o", False),
        ("gpt-5-chat-latest", False),
        ("gpt-5.2", True),
        ("o4", True),
        ("openai/gpt-5", True),
    ],
)
def test_a_model_of_openai_that_does_not_reason_is_not_asked_for_it(model: str, url: str, *, asked: bool) -> None:
    """“Encrypted content is not supported with this model” ends every call, wherever the model is served."""
    assert ("include" in body(ask(), ModelConfig("openai-responses", model, url))) is asked


def test_the_setting_for_reasoning_decides_before_the_name_of_the_model() -> None:
    """R34: never asks for none and sends none of an earlier time, but forgets nothing."""
    never = replace(BARE, reasoning_replay="never")
    answer = assistant(TextBlock(text="Sun."), id="a1")
    state = kept_state(BARE, extras={"a1": [THOUGHT, {"text": [0], "phase": "final_answer"}]})
    prepared = ResponsesRequests(never).prepare(ask(user("a"), answer, user("b"), state=state))
    made = json.loads(prepared.body)
    assert "include" not in made and b"ENC" not in prepared.body
    assert made["input"][1] == {"role": "assistant", "content": "Sun.", "phase": "final_answer"}
    assert dict(prepared.state.extras) == {"a1": state.data["extras"]["a1"]}
    assert "include" in body(ask(), ModelConfig("openai-responses", "gpt-4o", reasoning_replay="always"))


def test_all_that_is_configured_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """P30, P31, P53: with a word about what the API does not know."""
    config = ModelConfig(
        "openai-responses",
        "m",
        max_tokens=9,
        temperature=0.5,
        top_p=0.9,
        prompt_cache_key="par",
        stop_sequences=("END",),
    )
    with caplog.at_level(logging.WARNING):
        made = body(ModelRequest("id", (user("Hello"),), response_schema=CLOSED), config)
    assert (made["max_output_tokens"], made["temperature"], made["top_p"]) == (9, 0.5, 0.9)
    assert made["prompt_cache_key"] == "par" and "stop" not in made and "stop sequences" in caplog.text
    output = {"type": "json_schema", "name": "structured_output", "schema": CLOSED, "strict": True}
    assert made["text"] == {"format": output}


def test_instructions_stand_apart_and_later_ones_in_their_place() -> None:
    def system(text: str) -> AgentMessage:
        return AgentMessage(id="system", role="system", blocks=(TextBlock(text=text),))

    made = body(ask(system("Be nice."), user("Hi"), system("Be brief."), user("So?")))
    assert made["instructions"] == "Be nice."
    assert kinds(made["input"]) == ["user: Hi", "system: Be brief.", "user: So?"]
    assert "instructions" not in body(ask(system(" "), user("Hi")))


def test_tools_are_flat_and_strict_only_where_that_changes_nothing() -> None:
    """B85, B87, B88."""
    request = ask(tools=(tool("local.look"), tool("closed", CLOSED), tool("bad", {"type": "array"})))
    assert body(request)["tools"] == [
        {
            "type": "function",
            "name": "local_look",
            "description": "The tool local.look.",
            "parameters": {"type": "object", "properties": {}},
            "strict": False,
        },
        {
            "type": "function",
            "name": "closed",
            "description": "The tool closed.",
            "parameters": CLOSED,
            "strict": True,
        },
    ]


@pytest.mark.parametrize(
    ("choice", "expected"), [("required", "required"), ("local.look", {"type": "function", "name": "local_look"})]
)
def test_a_tool_can_be_asked_for(choice: str, expected: Any) -> None:
    request = ModelRequest("id", (user("Hello"),), (tool("local.look"),), tool_choice=choice)
    assert body(request)["tool_choice"] == expected
    bad = replace(request, tools=(*request.tools, tool("bad", {"type": "array"})), tool_choice="bad")
    assert "tool_choice" not in body(bad), "a tool that is left out cannot be asked for"


def test_pictures_are_input_of_the_user() -> None:
    picture = ImageBlock(source=Base64Source(media_type="image/png", data=GIF))
    message = AgentMessage(id="picture", role="user", blocks=(TextBlock(text="Look"), picture))
    assert items(message)[0]["content"] == [
        {"type": "input_text", "text": "Look"},
        {"type": "input_image", "image_url": f"data:image/gif;base64,{GIF}", "detail": "auto"},
    ]


def test_calls_come_before_their_outputs_and_the_user_after_them() -> None:
    """B34, B40, B53."""
    made = items(user("a"), user("b"), assistant(ONE, TWO), user("hurry"), result(TWO, "second"), user("so?"))
    assert kinds(made) == [
        "user: a\n\nb",
        *["function_call"] * 2,
        *["function_call_output"] * 2,
        "user: hurry\n\nso?",
    ]
    assert [item["call_id"] for item in made[1:5]] == ["one", "two", "one", "two"]
    assert "id" not in made[1] and made[4]["output"] == "second"


def test_what_was_thought_stands_before_what_it_led_to() -> None:
    """B43: in the order of the answer, whatever of it is visible."""
    answer = assistant(ReasoningBlock(text="shown"), TextBlock(text="Looking."), ONE, TWO, id="a1")
    order = [THOUGHT, {"text": [0], "phase": "commentary"}, THOUGHT, {"call": 0}, {"call": 1}]
    made = items(user("go"), answer, result(ONE, "ok"), result(TWO, "ok"), a1=order)
    assert kinds(made)[1:6] == ["reasoning", "assistant: Looking.", "reasoning", "function_call", "function_call"]
    assert (made[1], made[2]["phase"]) == (THOUGHT, "commentary")
    assert "shown" not in json.dumps(made)


@pytest.mark.parametrize(
    ("blocks", "order", "expected"),
    [
        ((), [THOUGHT], []),
        ((TextBlock(text=" "),), [THOUGHT, {"text": [0]}], []),
        ((TextBlock(text="edited"),), [THOUGHT, {"call": 0}], ["assistant: edited"]),
        ((TextBlock(text="kept"),), [THOUGHT, {"text": [0]}, THOUGHT, {"call": 0}], ["reasoning", "assistant: kept"]),
        ((TextBlock(text="kept"),), [{"text": [0]}, THOUGHT], ["assistant: kept"]),
        (
            (TextBlock(text="a"), TextBlock(text="b")),
            [THOUGHT, {"text": [1]}],
            ["reasoning", "assistant: b", "assistant: a"],
        ),
    ],
)
def test_what_was_thought_goes_with_what_it_led_to(blocks: Any, order: list[Any], expected: list[str]) -> None:
    """B44: after a cut, a cancel or an edit it never stands alone."""
    assert kinds(items(user("go"), assistant(*blocks, id="a1"), user("on"), a1=order))[1:-1] == expected


def test_an_item_of_another_kind_needs_no_follower() -> None:
    """B47."""
    other = {"type": "compaction", "encrypted_content": "ENC"}
    assert kinds(items(user("go"), assistant(TextBlock(text="hi"), id="a1"), a1=[{"text": [0]}, other]))[1:] == [
        "assistant: hi",
        "compaction",
    ]


def test_answers_that_meet_become_one_text_unless_they_have_a_phase() -> None:
    """B40."""
    answers = [assistant(TextBlock(text=text), id=f"a{at}") for at, text in enumerate("xyz")]
    phase = {"text": [0], "phase": "final_answer"}
    assert kinds(items(user("go"), *answers))[1:] == ["assistant: x\n\ny\n\nz"]
    assert kinds(items(user("go"), *answers, a2=[phase]))[1:] == ["assistant: x\n\ny", "assistant: z"]


def test_what_the_conversation_lost_is_forgotten() -> None:
    """R28: the state holds what belongs to the messages of the request."""
    state = kept_state(BARE, callIds={"one": "x", "gone": "y"}, extras={"a9": [THOUGHT]})
    kept = ResponsesRequests(BARE).prepare(ask(user("go"), assistant(ONE), state=state)).state
    assert (dict(kept.call_ids), dict(kept.extras)) == ({"one": "x"}, {})
