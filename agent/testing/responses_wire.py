"""Prebuilt Responses streams for the scripted provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

_ENDS = {"completed": "response.completed", "incomplete": "response.incomplete", "failed": "response.failed"}


def responses_event(type: str, **members: Any) -> bytes:
    """Return one event."""
    return b"event: %b\ndata: %b\n\n" % (type.encode(), orjson.dumps({"type": type, **members}))


def responses_end(
    output: Sequence[Mapping[str, Any]] = (),
    *,
    status: str = "completed",
    usage: tuple[int, int] | None = (12, 8),
    **members: Any,
) -> bytes:
    """Return the terminal event, with the items of the answer; input and output tokens."""
    counts: dict[str, Any] | None = None
    if usage is not None:
        given, made = usage
        counts = {"input_tokens": given, "output_tokens": made, "total_tokens": given + made}
    response = {"id": "resp_1", "object": "response", "status": status, "output": list(output), "usage": counts}
    return responses_event(_ENDS[status], response={**response, **members})


def responses_text(*texts: str, place: int = 0) -> list[bytes]:
    """Return the events of a message: its deltas, then the whole item."""
    content = [{"type": "output_text", "annotations": [], "text": "".join(texts)}]
    item = {"id": f"msg_{place}", "type": "message", "role": "assistant", "status": "completed", "content": content}
    opened = {**item, "status": "in_progress", "content": []}
    about = {"item_id": item["id"], "output_index": place, "content_index": 0, "logprobs": []}
    return [
        responses_event("response.output_item.added", output_index=place, item=opened),
        *(responses_event("response.output_text.delta", **about, delta=text) for text in texts),
        responses_event("response.output_item.done", output_index=place, item=item),
    ]


def responses_stream(*texts: str, usage: tuple[int, int] | None = (12, 8)) -> list[bytes]:
    """Return the events of an answer that is one text."""
    return [responses_event("response.created", response={}), *responses_text(*texts), responses_end(usage=usage)]
