"""The one rule for what enters, and values that cannot be changed."""

from __future__ import annotations

import copy
import math
import pickle
from enum import StrEnum
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agent.runtime import AgentMessage, Context, ModelContext, ModelState, TextBlock, ToolCallBlock, Usage
from agent.runtime.values import MAX_DEPTH, MAX_PARTS, FrozenDict, clean_text, freeze, freeze_object, read_json

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters())
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner))


@given(JSON)
def test_what_was_frozen_can_be_stored_and_read_back_as_it_is(value: Any) -> None:
    """B69, B71: no NUL, no surrogate, no NaN, no integer that JSON readers would round."""
    frozen = freeze(value)
    text = orjson.dumps(frozen)
    assert b"\\u0000" not in text
    assert freeze(orjson.loads(text)) == frozen
    assert freeze(frozen) == frozen


def test_the_replacement_rule() -> None:
    assert freeze({"a\x00": "b\ud83dc"}) == {"a\ufffd": "b\ufffdc"}
    assert freeze([math.nan, math.inf, -math.inf, 1.5]) == (None, None, None, 1.5)
    assert freeze([2**64 - 1, 2**64, -(2**63) - 1]) == (2**64 - 1, str(2**64), str(-(2**63) - 1))
    assert clean_text("back\\u0000slash 🙂") == "back\\u0000slash 🙂"


def test_an_enum_of_strings_is_its_value() -> None:
    class Colour(StrEnum):
        RED = "red"

    class Old(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "not me"

    assert freeze([Colour.RED, Old("me")]) == ("red", "me")


@pytest.mark.parametrize("value", [b"x", {1}, object(), {1: 2}, 1j])
def test_what_is_no_json_is_refused(value: Any) -> None:
    """R22."""
    with pytest.raises(ValueError):
        freeze(value)


def test_deep_nesting_is_refused_and_not_a_recursion_error() -> None:
    """B73."""
    deep: Any = 1
    for _ in range(MAX_DEPTH):
        deep = [deep]
    freeze(deep)
    with pytest.raises(ValueError, match="nested deeper"):
        freeze([deep])
    for _ in range(5_000):
        deep = {"x": deep}
    with pytest.raises(ValueError, match="nested deeper"):
        freeze_object(deep)


def test_frozen_values_are_independent_and_cannot_be_changed() -> None:
    source = {"list": [1, {"deep": 2}]}
    frozen = freeze_object(source)
    source["list"].append(3)  # type: ignore[attr-defined]
    assert frozen == {"list": (1, {"deep": 2})}
    for change in (
        lambda: frozen.__setitem__("a", 1),
        lambda: frozen.update(a=1),
        lambda: frozen.pop("list"),
        lambda: frozen["list"][1].clear(),
        lambda: frozen.setdefault("a", 1),
    ):
        with pytest.raises(TypeError):
            change()
    assert copy.deepcopy(frozen) is frozen
    assert pickle.loads(pickle.dumps(frozen)) == frozen
    assert {frozen: 1}[FrozenDict(frozen)] == 1


MESSAGE = {
    "id": "m1",
    "role": "assistant",
    "blocks": [
        {"type": "text", "text": "a"},
        {"type": "reasoning", "text": "b"},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "tool-call", "callId": "c1", "name": "t", "input": {"x": [1]}},
    ],
}


def test_messages_have_exactly_the_wire_shape() -> None:
    """R13-R20, R5."""
    message = AgentMessage.from_wire(MESSAGE)
    assert orjson.loads(orjson.dumps(message.to_wire())) == MESSAGE


@pytest.mark.parametrize(
    "change",
    [
        {"more": 1},
        {"role": "developer"},
        {"id": " "},
        {"blocks": [{"type": "file"}]},
        {"blocks": [{"type": "text"}]},
        {"blocks": [{"type": "text", "text": "a", "more": 1}]},
        {"blocks": [{"type": "tool-call", "callId": "c", "name": "t", "input": [1]}]},
        {"blocks": [{"type": "tool-call", "call_id": "c", "name": "t", "input": {}}]},
        {"blocks": [{"type": "image", "source": {"type": "base64", "mediaType": "image/png", "data": "data:x"}}]},
        {
            "blocks": [
                {"type": "tool-result", "callId": "c", "name": "t", "status": "success", "content": []}  # no execution
            ]
        },
    ],
)
def test_unknown_missing_and_misnamed_members_are_refused(change: dict[str, Any]) -> None:
    """R5, E1."""
    with pytest.raises(ValidationError):
        AgentMessage.from_wire({**MESSAGE, **change})


def test_model_state_is_handed_on_unchanged_and_its_key_must_be_there() -> None:
    """R25, R26, R121, R194."""
    state = {"format": "x/v1", "data": {"any": [1, None, {"deep": True}]}}
    assert orjson.loads(orjson.dumps(ModelState.from_wire(state).to_wire())) == state
    with pytest.raises(ValidationError):
        ModelContext.from_wire({"checkpoint": None, "usage": None})
    assert ModelContext.from_wire({"modelState": None}).model_state is None
    with pytest.raises(ValidationError):
        ModelState.from_wire({"format": "", "data": None})
    assert Context.from_wire({"messages": [], "modelContext": {"modelState": None}}) == Context()


@pytest.mark.parametrize("tokens", [-1, 1.0, True, 2**53, "1", None])
def test_usage_holds_integers_from_zero_to_two_to_the_53(tokens: Any) -> None:
    """R43."""
    with pytest.raises(ValidationError):
        Usage.from_wire({"inputTokens": tokens, "outputTokens": 0, "totalTokens": 0})


def test_a_changed_copy_of_a_message_forgets_what_was_derived_from_the_old_one() -> None:
    call = ToolCallBlock(call_id="c", name="t", input={})
    message = AgentMessage(id="m", role="assistant", blocks=(call,))
    message.encoded["x"] = b"old"
    assert message.tool_calls == (call,)
    changed = message.model_copy(update={"blocks": (TextBlock(text="new"),)})
    assert changed.encoded == {}
    assert changed.tool_calls == ()


TEXTS = st.text(st.sampled_from('a,[{"\\\u00e9\n'), max_size=8)
TEXTUAL = st.recursive(TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner))


def parts(value: Any) -> int:
    if isinstance(value, str):
        return 0
    inside = value.values() if isinstance(value, dict) else value
    return 1 + max(len(value) - 1, 0) + sum(map(parts, inside))


@given(TEXTUAL)
def test_parts_are_counted_outside_of_texts_only(value: Any) -> None:
    few = parts(value)
    for data in (orjson.dumps(value), orjson.dumps(value).decode()):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("agent.runtime.values.MAX_PARTS", few)
            assert read_json(data) == value
            patch.setattr("agent.runtime.values.MAX_PARTS", few - 1)
            if few > 0:
                with pytest.raises(ValueError, match="parts"):
                    read_json(data)


@pytest.mark.parametrize("part", ["[]", '{"a":1}', "1", '""', '{"":{}}'])
def test_json_of_too_many_parts_is_refused_before_it_is_built(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """B73: a megabyte of brackets would hold up the process for seconds."""
    monkeypatch.setattr(orjson, "loads", None)
    with pytest.raises(ValueError, match="JSON of more than 20000 parts"):
        read_json("[" + f"{part}," * MAX_PARTS + "1]")


def test_a_long_text_is_no_part_whatever_is_in_it() -> None:
    text = '[{",\\' * (2 * MAX_PARTS)
    assert read_json(orjson.dumps({"text": text})) == {"text": text}
    for wrong in ('"', '"' + '\\"' * MAX_PARTS + "," * MAX_PARTS, '"\\,' * MAX_PARTS):
        with pytest.raises(ValueError):
            read_json(wrong)
