"""However much a server sends, no more of it is kept than may be."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from agent.providers.anthropic_decode import MessagesDecoder
from agent.providers.decoder import AnswerDecoder
from agent.providers.failures import Scrubber
from agent.providers.names import ToolNames
from agent.providers.ollama_decode import OllamaDecoder
from agent.providers.openai_chat_decode import ChatDecoder
from agent.providers.openai_responses_decode import ResponsesDecoder
from agent.providers.prepared import PreparedRequest
from agent.providers.state import ProviderState
from agent.runtime.model import BlockStart, MessageStop, ModelEvent, StreamError

PREPARED = PreparedRequest(b"", ToolNames(["look"]), ProviderState(), "m", empty=False)
SCRUB = Scrubber([])
MB = 1_000_000
LIMIT = 1_000
MAKE: dict[str, Any] = {
    "chat": lambda: ChatDecoder(PREPARED, SCRUB, limit=LIMIT),
    "responses": lambda: ResponsesDecoder(PREPARED, SCRUB, limit=LIMIT),
    "messages": lambda: MessagesDecoder(PREPARED, SCRUB, limit=LIMIT),
    "ollama": lambda: OllamaDecoder(PREPARED, SCRUB, limit=LIMIT),
}


def chat(at: int, id: str, name: str) -> list[Any]:
    call = {"index": at, "id": id, "function": {"name": name, "arguments": "{}"}}
    return [{"choices": [{"delta": {"tool_calls": [call]}}]}]


def responses(at: int, **item: Any) -> list[Any]:
    return [{"type": "response.output_item.done", "output_index": at, "item": {"type": "function_call", **item}}]


def messages(at: int, id: str, name: str) -> list[Any]:
    block = {"type": "tool_use", "id": id, "name": name, "input": {}}
    return [
        {"type": "content_block_start", "index": at, "content_block": block},
        {"type": "content_block_delta", "index": at, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_stop", "index": at},
    ]


ENDS: dict[str, list[Any]] = {
    "chat": [{"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}],
    "responses": [{"type": "response.completed", "response": {}}],
    "messages": [{"type": "message_stop"}],
    "ollama": [{"done": True}],
}


def answered(api: str, events: list[Any]) -> list[ModelEvent]:
    decoder: AnswerDecoder = MAKE[api]()
    found = decoder.decode([orjson.dumps(event) for event in (*events, *ENDS[api])])
    return found if decoder.ended else found + decoder.close()


@pytest.mark.parametrize(
    ("api", "events"),
    [("chat", chat(0, "a" * 257, "look")), ("responses", responses(0, name="look", call_id="a" * 257, arguments="{}"))],
)
def test_an_id_that_is_too_long_is_replaced_by_ours(api: str, events: list[Any]) -> None:
    made = answered(api, events)
    assert isinstance(made[-1], MessageStop) and made[-1].model_state is None
    assert any(isinstance(event, BlockStart) and event.name == "look" for event in made)


def test_ids_of_a_megabyte_go_into_no_state() -> None:
    made = answered("chat", [event for at in range(20) for event in chat(at, f"{at}" + "a" * MB, "look")])
    assert isinstance(made[-1], MessageStop) and made[-1].model_state is None


FLOODS: list[tuple[str, list[Any]]] = [
    ("chat", [event for at in range(20) for event in chat(at, f"{at}" + "a" * 200, "look")]),
    ("chat", [event for at in range(20) for event in chat(at, f"{at}", "n" * MB)]),
    ("responses", responses(0, type="more", encrypted_content="x", junk="j" * MB)),
    ("responses", [event for at in range(20) for event in responses(at, name="n" * MB, arguments="{}")]),
    ("responses", [event for at in range(20) for event in responses(at, call_id=f"{at}" + "a" * 200)]),
    ("responses", [event for at in range(20) for event in responses(at, type="message", phase="p" * MB)]),
    ("responses", [event for at in range(20) for event in responses(at, type="t" * MB)]),
    ("responses", responses(0, type="message", content=[{"type": "refusal", "refusal": "r" * MB}])),
    ("messages", messages(0, "a" * MB, "look")),
    ("messages", messages(0, "a", "n" * MB)),
    ("ollama", [{"message": {"tool_calls": [{"function": {"name": "n" * MB, "arguments": {}}}]}}]),
    ("ollama", [{"message": {"tool_calls": [{"function": {"name": "n", "arguments": {"a": "a" * MB}}}]}}]),
]


@pytest.mark.parametrize(("api", "events"), FLOODS, ids=[f"{at}-{api}" for at, (api, _) in enumerate(FLOODS)])
def test_all_that_is_kept_of_an_answer_is_counted(api: str, events: list[Any]) -> None:
    """DESIGN 2: ids, names, items and arguments alike; what passes the limit fails the answer."""
    failure = answered(api, events)[-1]
    assert isinstance(failure, StreamError) and "than can be kept" in failure.message
