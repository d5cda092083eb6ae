"""Prebuilt streams of Anthropic's Messages API for the scripted provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

_HEAD = {"id": "msg_scripted", "type": "message", "role": "assistant", "model": "scripted", "content": []}


def messages_event(type: str, **members: Any) -> bytes:
    """Return one event."""
    return b"event: %b\ndata: %b\n\n" % (type.encode(), orjson.dumps({"type": type, **members}))


def messages_start(**usage: int) -> bytes:
    """Return the event that opens an answer."""
    return messages_event("message_start", message={**_HEAD, "usage": {"output_tokens": 1, **usage}})


def messages_block(index: int, block: Mapping[str, Any], *deltas: Mapping[str, Any], stop: bool = True) -> list[bytes]:
    """Return the events of one block."""
    events = [messages_event("content_block_start", index=index, content_block=block)]
    events += [messages_event("content_block_delta", index=index, delta=delta) for delta in deltas]
    return [*events, messages_event("content_block_stop", index=index)] if stop else events


def text_block(index: int, *texts: str) -> list[bytes]:
    """Return the events of a text."""
    deltas = [{"type": "text_delta", "text": text} for text in texts]
    return messages_block(index, {"type": "text", "text": ""}, *deltas)


def thinking_block(index: int, *texts: str, signature: str = "c2lnbmVk") -> list[bytes]:
    """Return the events of a thought with its signature."""
    deltas = [{"type": "thinking_delta", "thinking": text} for text in texts]
    signed = {"type": "signature_delta", "signature": signature}
    return messages_block(index, {"type": "thinking", "thinking": "", "signature": ""}, *deltas, signed)


def tool_use_block(
    index: int, name: str, *fragments: str, id: str = "", kind: str = "tool_use", stop: bool = True
) -> list[bytes]:
    """Return the events of a call, its input in fragments of JSON."""
    block = {"type": kind, "id": id or f"toolu_{index}", "name": name, "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": fragment} for fragment in fragments]
    return messages_block(index, block, *deltas, stop=stop)


def messages_end(reason: str = "end_turn", *, delta: Mapping[str, Any] | None = None, **usage: int) -> list[bytes]:
    """Return the events that end an answer."""
    change = {"stop_reason": reason, "stop_sequence": None, **(delta or {})}
    return [
        messages_event("message_delta", delta=change, usage={"output_tokens": 8, **usage}),
        messages_event("message_stop"),
    ]


def messages_stream(
    *texts: str,
    thinking: Sequence[str] = (),
    tool_calls: Sequence[tuple[str, Mapping[str, Any]]] = (),
    usage: tuple[int, int] = (12, 8),
) -> list[bytes]:
    """Return the events of an answer: a thought, a text, then calls as (name, input); input and output tokens."""
    events = [messages_start(input_tokens=usage[0])]
    blocks = [thinking_block(0, *thinking)] if thinking else []
    blocks += [text_block(len(blocks), *texts)] if texts else []
    for name, arguments in tool_calls:
        blocks.append(tool_use_block(len(blocks), name, orjson.dumps(arguments).decode()))
    events += [event for block in blocks for event in block]
    return [*events, *messages_end("tool_use" if tool_calls else "end_turn", output_tokens=usage[1])]
