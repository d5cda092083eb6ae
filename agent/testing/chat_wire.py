"""Prebuilt chat completions streams for the scripted provider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

DONE = b"data: [DONE]\n\n"

_HEAD = {"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1_760_000_000, "model": "scripted"}


def chat_chunk(
    delta: Mapping[str, Any] | None = None, *, finish: str | None = None, usage: Mapping[str, int] | None = None
) -> bytes:
    """Return one event; without a `delta` it has no choices."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
    chunk = {**_HEAD, "choices": choices, **({"usage": usage} if usage else {})}
    return b"data: %b\n\n" % orjson.dumps(chunk)


def chat_stream(
    *texts: str,
    reasoning: Iterable[str] = (),
    tool_calls: Sequence[tuple[str, Mapping[str, Any]]] = (),
    finish: str | None = None,
    usage: tuple[int, int] | None = (12, 8),
) -> list[bytes]:
    """Return the events of an answer: reasoning, text deltas, then calls as (name, arguments); input and output tokens.

    The finish reason fits what is in it unless another one is given.
    """
    events = [chat_chunk({"role": "assistant", "content": ""})]
    events += [chat_chunk({"reasoning_content": text}) for text in reasoning]
    events += [chat_chunk({"content": text}) for text in texts]
    for index, (name, arguments) in enumerate(tool_calls):
        function = {"name": name, "arguments": orjson.dumps(arguments).decode()}
        call = {"index": index, "id": f"provider_{index}", "type": "function", "function": function}
        events.append(chat_chunk({"tool_calls": [call]}))
    events.append(chat_chunk({}, finish=finish or ("tool_calls" if tool_calls else "stop")))
    if usage is not None:
        given, made = usage
        events.append(
            chat_chunk(usage={"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made})
        )
    return [*events, DONE]
