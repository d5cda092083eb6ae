"""The scripts of all protocols, by the end of the path where each is asked for."""

from __future__ import annotations

from collections.abc import Sequence

from tests.benchmarks import responses
from tests.benchmarks.script import (
    MODEL,
    TURN_ARGUMENTS,
    TURN_TOOL,
    Event,
    Script,
    chunk,
    data_event,
    line,
    named_event,
)


def chat_delta(delta: Event, finish: str | None = None) -> Event:
    return _chat_chunk([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}])


def _chat_chunk(choices: list[Event], usage: Event | None = None) -> Event:
    return {
        "id": "chatcmpl-5f1c2d3e4a5b6c7d8e9f0a1b2c3d4e5f",
        "object": "chat.completion.chunk",
        "created": 1_760_000_000,
        "model": MODEL,
        "service_tier": "default",
        "system_fingerprint": "fp_0123456789",
        "choices": choices,
        "usage": usage,
        "obfuscation": "0123456789",
    }


CHAT_OPENING = chat_delta({"role": "assistant", "content": "", "refusal": None})
CHAT_USAGE = _chat_chunk([], {"prompt_tokens": 1_200, "completion_tokens": 40, "total_tokens": 1_240})


def chat_end(reason: str) -> list[Event]:
    return [chat_delta({}, reason), CHAT_USAGE]


def _chat_text(pieces: Sequence[str]) -> list[Event]:
    return [CHAT_OPENING, *(chat_delta({"content": piece}) for piece in pieces), *chat_end("stop")]


def _chat_call() -> list[Event]:
    opened = {"id": "call_of_the_provider", "type": "function", "function": {"name": TURN_TOOL, "arguments": ""}}
    parts: list[Event] = [opened, *({"function": {"arguments": piece}} for piece in TURN_ARGUMENTS)]
    deltas = [chat_delta({"tool_calls": [{"index": 0, **part}]}) for part in parts]
    return [CHAT_OPENING, *deltas, *chat_end("tool_calls")]


def _messages(block: Event, deltas: Sequence[Event], reason: str) -> list[Event]:
    usage = {"input_tokens": 1_200, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message = {
        "id": "msg_01AbCdEfGhIjKlMnOpQrStUv",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1, "service_tier": "standard"},
    }
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {**usage, "output_tokens": 40},
        },
        {"type": "message_stop"},
    ]


def _messages_text(pieces: Sequence[str]) -> list[Event]:
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return _messages({"type": "text", "text": ""}, deltas, "end_turn")


def _messages_call() -> list[Event]:
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *TURN_ARGUMENTS)]
    block = {"type": "tool_use", "id": "toolu_01AbCdEfGhIjKlMnOpQrStUv", "name": TURN_TOOL, "input": {}}
    return _messages(block, deltas, "tool_use")


def _ollama_line(message: Event, **more: object) -> Event:
    message = {"role": "assistant", "content": "", **message}
    return {"model": MODEL, "created_at": "2025-10-09T08:53:20.123456789Z", "message": message, "done": False, **more}


_OLLAMA_END = _ollama_line(
    {},
    done=True,
    done_reason="stop",
    total_duration=4_883_583_458,
    load_duration=1_334_875,
    prompt_eval_count=1_200,
    prompt_eval_duration=342_546_000,
    eval_count=40,
    eval_duration=4_535_599_000,
)


def _ollama_text(pieces: Sequence[str]) -> list[Event]:
    return [*(_ollama_line({"content": piece}) for piece in pieces), _OLLAMA_END]


def _ollama_call() -> list[Event]:
    function = {"index": 0, "name": TURN_TOOL, "arguments": {"city": "Tromso"}}
    return [_ollama_line({"tool_calls": [{"id": "call_ab12cd34", "function": function}]}), _OLLAMA_END]


def _ends_with_tool_message(request: Event) -> bool:
    return bool(request["messages"][-1]["role"] == "tool")


def _ends_with_tool_result(request: Event) -> bool:
    content = request["messages"][-1]["content"]
    return not isinstance(content, str) and content[-1]["type"] == "tool_result"


CHAT = Script(_chat_text, _chat_call, _ends_with_tool_message, data_event, last=chunk(b"data: [DONE]\n\n"))
SCRIPTS = {
    "chat/completions": CHAT,
    "v1/responses": Script(responses.text, responses.call, responses.has_result, named_event),
    "v1/messages": Script(_messages_text, _messages_call, _ends_with_tool_result, named_event),
    "api/chat": Script(_ollama_text, _ollama_call, _ends_with_tool_message, line, content_type=b"application/x-ndjson"),
}
