from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.runtime.history import History
from agent.runtime.messages import AgentMessage, ImageBlock, ReasoningBlock, TextBlock, ToolResultBlock, UrlSource
from conversations.sharing import said_messages, shared_messages
from conversations.store import check_messages
from tests.conversations.sharing.talk import SECRET, answered, called, message, said

HIDDEN = st.sampled_from(
    [
        (message("system", TextBlock(text=SECRET)),),
        (message("assistant", ReasoningBlock(text=SECRET)),),
        (message("user", ImageBlock(source=UrlSource(url=f"https://u:{SECRET}@example.org/"))),),
        called(),
        called(status="error"),
        called(status="error", execution="not-executed"),
        called(execution="result-omitted"),
    ]
)
PLAIN = st.sampled_from([(said("Hello"),), (answered("Good day"),)])


def wire(messages: tuple[AgentMessage, ...]) -> list[dict[str, Any]]:
    return [each.to_wire() for each in messages]


@given(st.lists(HIDDEN | PLAIN, max_size=12))
def test_nothing_hidden_passes_and_what_passes_is_a_context(parts: list[tuple[AgentMessage, ...]]) -> None:
    given_messages = tuple(each for part in parts for each in part)
    shared = shared_messages(given_messages)

    assert SECRET not in str(wire(shared))
    assert len({each.id for each in shared}) == len(shared)
    assert all(each.blocks for each in shared)
    assert [each.text for each in shared if each.text == "Hello"] == [
        each.text for each in given_messages if each.text == "Hello"
    ]
    said_only = said_messages(shared)
    assert not any(block.type in ("tool-call", "tool-result") for each in said_only for block in each.blocks)
    check_messages(said_only)


def test_a_call_keeps_its_name_and_how_it_ended() -> None:
    shared = shared_messages((said("Look"), *called("look_up", status="error", execution="unknown")))

    assert History.of(shared).answered
    (call,) = shared[1].tool_calls
    (result,) = shared[2].blocks
    assert isinstance(result, ToolResultBlock)
    assert (call.name, dict(call.input), result.content) == ("look_up", {}, ())
    assert (result.status, result.execution, result.call_id) == ("error", "unknown", call.call_id)
    assert shared[1].text == "Let me look."


@pytest.mark.parametrize("messages", [(), (message("system", TextBlock(text="x")),)])
def test_nothing_shared_is_nothing(messages: tuple[AgentMessage, ...]) -> None:
    assert shared_messages(messages) == ()


def test_a_result_without_its_call_is_left_out() -> None:
    _, result = called()
    assert shared_messages((result,)) == ()


@pytest.mark.parametrize("around", [" {}", "{}\n", "\n{} and more"])
def test_what_only_looks_like_a_file_is_not_shown_either(around: str) -> None:
    text = (
        '<attachment id="01890a5d-d000-7000-8000-000000000003" name="a.txt" type="text/plain">\nsecret\n</attachment>'
    )
    (shared,) = shared_messages((said(around.format(text)),))
    assert shared.text == "[file]"


def test_redacting_twice_changes_nothing() -> None:
    shared = shared_messages((said("Look"), *called(), answered("Done")))
    assert shared_messages(shared) == shared
