"""Conversations as the Responses API reads them: a list of items.

The server keeps nothing (`store` is false), so no item goes by its id alone. Of an answer with hidden reasoning the
model state holds the order of its items, as extras: the opaque ones as they came, and marks for those that are
visible, `{"text": [0]}` for its text blocks and `{"call": 0}` for a call. A reasoning item is only accepted before what
it led to, so it is kept or dropped together with that (B43, B44).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import orjson

from agent.providers.history import Result, WireCall, kept_result
from agent.providers.openai_chat_history import arguments
from agent.providers.openai_content import Picture, said
from agent.runtime.messages import AgentMessage, TextBlock, ToolCallBlock


def is_extra(extra: Any) -> bool:
    """Return whether this is an opaque item or a mark."""
    match extra:
        case {"type": str(), **_rest}:
            return True
        case {"call": int(), **rest}:
            return not rest
        case {"text": [*places], **rest}:
            return all(type(place) is int for place in places) and all(
                name == "phase" and isinstance(value, str) for name, value in rest.items()
            )
    return False


class ResponsesEncoder:
    """Writes input items."""

    protocol: ClassVar[str] = "openai-responses"
    results_open_user_message: ClassVar[bool] = False

    def message(
        self, neighbours: Sequence[AgentMessage], calls: Sequence[WireCall], extras: Sequence[Sequence[Any]]
    ) -> bytes:
        role = neighbours[0].role
        if role != "assistant":
            items = _message(role, [part for message in neighbours for part in said(message)])
        else:
            items = []
            for message, extra in zip(neighbours, extras, strict=True):
                _extend(items, _Answer(message, calls if message is neighbours[-1] else ()).items(extra))
        return b",".join(map(orjson.dumps, items))

    def results(self, results: Sequence[Result], following: Sequence[AgentMessage]) -> list[bytes]:
        return [kept_result(self.protocol, result, _result) for result in results]


class _Answer:
    """The visible parts of an answer; each goes out once."""

    def __init__(self, message: AgentMessage, calls: Sequence[WireCall]) -> None:
        texts = [block.text for block in message.blocks if isinstance(block, TextBlock)]
        self._message = message
        self._texts = dict(enumerate(texts))
        self._calls = dict(enumerate(zip(message.tool_calls if calls else (), calls, strict=True)))

    def items(self, extra: Sequence[Any]) -> list[dict[str, Any]]:
        if not extra:
            return [*_message("assistant", said(self._message)), *map(_call, self._calls.values())]
        items: list[dict[str, Any]] = []
        opaque: list[dict[str, Any]] = []  # what waits for the item that it led to
        for entry in extra:
            visible = self._visible(entry)
            if visible is None:
                opaque.append(dict(entry))
            elif visible:
                items += (*opaque, *visible)
                opaque = []
        items += (entry for entry in opaque if entry.get("type") != "reasoning")
        rest = "".join(self._texts.values())
        return [*items, *(_message("assistant", [rest]) if rest.strip() else ()), *map(_call, self._calls.values())]

    def _visible(self, entry: Mapping[str, Any]) -> list[dict[str, Any]] | None:
        """Return what a mark stands for, nothing where that is gone; None for an opaque item."""
        if "type" in entry:
            return None
        if "call" in entry:
            call = self._calls.pop(entry["call"], None)
            return [] if call is None else [_call(call)]
        text = "".join(self._texts.pop(at, "") for at in entry["text"])
        if not text.strip():
            return []
        (item,) = _message("assistant", [text])
        return [item | ({"phase": entry["phase"]} if "phase" in entry else {})]


def _extend(items: list[dict[str, Any]], more: Sequence[dict[str, Any]]) -> None:
    """Add the items of the next answer; plain texts that meet become one."""
    if items and more and items[-1].keys() == more[0].keys() == {"role", "content"}:
        items[-1] = {**items[-1], "content": f"{items[-1]['content']}\n\n{more[0]['content']}"}
        more = more[1:]
    items += more


def _message(role: str, parts: Sequence[str | Picture]) -> list[dict[str, Any]]:
    if not parts:
        return []
    content: Any = "\n\n".join(map(str, parts))
    if any(isinstance(part, Picture) for part in parts):
        content = [_part(part) for part in parts]
    return [{"role": role, "content": content}]


def _part(part: str | Picture) -> dict[str, Any]:
    if isinstance(part, Picture):
        return {"type": "input_image", "image_url": part.url, "detail": "auto"}
    return {"type": "input_text", "text": part}


def _call(of: tuple[ToolCallBlock, WireCall]) -> dict[str, Any]:
    block, call = of
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments(block.input)}


def _result(result: Result) -> bytes:
    return orjson.dumps({"type": "function_call_output", "call_id": result.call.id, "output": result.text})
