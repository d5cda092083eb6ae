"""A long result of a tool is cut for readers, who are told so; nothing that is kept is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agent.runtime import events as ev
from agent.runtime.excerpts import MOST_SHOWN, excerpt, shown
from agent.runtime.messages import AgentMessage, ModelContext, TextBlock, ToolCallBlock, tool_result
from agent.runtime.state import ExecutionState

CALL = ToolCallBlock(call_id="c1", name="read", input={})


def answered(text: str) -> AgentMessage:
    result = tool_result(CALL, text, status="success", execution="completed")
    return AgentMessage(id="m", role="tool", blocks=(result,))


def test_a_result_up_to_the_bound_is_shown_whole() -> None:
    message = answered("x" * MOST_SHOWN)
    assert shown(message, "e") == message.to_wire()


def test_a_longer_one_is_shown_by_its_beginning_and_end_and_says_so() -> None:
    text = "a" * 12_000 + "b" * 70_000 + "c" * 4_000
    (block,) = shown(answered(text), "e1")["blocks"]
    notice = "\n\n[70,000 characters are left out here; the whole is at executions/e1/tool-results/c1]\n\n"
    assert block["content"] == [{"type": "text", "text": "a" * 12_000 + notice + "c" * 4_000}]
    assert block["omitted"] == 70_000


def test_the_parts_of_a_result_count_together() -> None:
    result = tool_result(CALL, "", status="success", execution="completed")
    parts = tuple(TextBlock(text=letter * 9_000) for letter in "ab")
    message = AgentMessage(id="m", role="tool", blocks=(result.model_copy(update={"content": parts}),))
    (block,) = shown(message, "e")["blocks"]
    assert block["omitted"] == 2_002
    assert block["content"][0]["text"].endswith("b" * 4_000)


def test_an_excerpt_is_never_taken_for_a_result() -> None:
    """Whoever writes it back into a conversation is refused."""
    with pytest.raises(ValidationError):
        AgentMessage.from_wire(shown(answered("x" * 20_000), "e"))


def test_what_others_say_is_never_cut() -> None:
    for role in ("user", "assistant"):
        message = AgentMessage(id="m", role=role, blocks=(TextBlock(text="x" * 50_000),))  # type: ignore[arg-type]
        assert shown(message, "e") == message.to_wire()


def test_events_and_state_hold_the_same_excerpt_and_the_message_stays_whole() -> None:
    message = answered("x" * 20_000)
    event = ev.MessagesAdded((message,), 0, ModelContext(model_state=None), "e", 1)
    state = ExecutionState("e")
    state.apply(event)
    assert ev.to_wire(event)["messages"] == state.to_wire()["messages"] == [shown(message, "e")]
    assert event.messages == (answered("x" * 20_000),)


@given(st.integers(MOST_SHOWN - 3, MOST_SHOWN + 50).map(lambda length: "é😀\u2028"[length % 3] * length))
def test_no_character_is_lost_uncounted(text: str) -> None:
    cut, omitted = excerpt(text, "there")
    assert cut.count(text[0]) + omitted == len(text)
    assert (cut == text) == (omitted == 0)
