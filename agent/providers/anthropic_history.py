"""Messages as the Messages API reads them: every message is a list of blocks.

A piece is `{"role":…,"content":[…]}` and ends with its last block, so that a cache mark can be put into it without
encoding it again. JSON is written with sorted keys: a conversation gives the same bytes before and after a database
that keeps no order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import orjson

from agent.providers.history import Result, WireCall, kept_result
from agent.providers.images import shown
from agent.runtime.messages import AgentMessage, ImageBlock, TextBlock, ToolCallBlock

USER = b'{"role":"user","content":['
ASSISTANT = b'{"role":"assistant","content":['
END = b"]}"

_LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
THINKING = ("thinking", "redacted_thinking")


def dumps(block: Mapping[str, Any]) -> bytes:
    """Return a block as it goes out."""
    return orjson.dumps(block, option=orjson.OPT_SORT_KEYS)


def is_opaque(kind: Any) -> bool:
    """Return whether such blocks go back unchanged: reasoning, and what tools of the provider did (R34, B32)."""
    return kind in THINKING or (isinstance(kind, str) and kind.endswith(("_tool_use", "_tool_result")))


def is_extra(extra: Any) -> bool:
    """Return whether this is a block with its place."""
    match extra:
        case [int(), Mapping() as block]:
            return is_opaque(block.get("type"))
    return False


def is_legal_id(call_id: str) -> bool:
    """Return whether a call may have this id; the API refuses those that other vendors give."""
    return bool(_LEGAL_ID.fullmatch(call_id))


class MessagesEncoder:
    """Writes messages; an extra of an answer is `[place, block]`: a block that stood before its own block `place`."""

    protocol: ClassVar[str] = "anthropic-messages"
    results_open_user_message: ClassVar[bool] = True

    def message(
        self, neighbours: Sequence[AgentMessage], calls: Sequence[WireCall], extras: Sequence[Sequence[Any]]
    ) -> bytes:
        if neighbours[0].role == "user":
            return _wrapped(USER, (block for message in neighbours for block in _said(message)))
        blocks: list[bytes] = []
        for message, extra in zip(neighbours, extras, strict=True):
            blocks += _answered(message, calls if message is neighbours[-1] else (), extra)
        return _wrapped(ASSISTANT, blocks)

    def results(self, results: Sequence[Result], following: Sequence[AgentMessage]) -> list[bytes]:
        blocks = [kept_result(self.protocol, result, _result) for result in results]
        return [_wrapped(USER, [*blocks, *(block for message in following for block in _said(message))])]


def _wrapped(opening: bytes, blocks: Iterable[bytes]) -> bytes:
    content = b",".join(blocks)
    return opening + content + END if content else b""


def _said(message: AgentMessage) -> Iterable[bytes]:
    """Yield what a user said."""
    for block in message.blocks:
        match block:
            case TextBlock() if block.text.strip():
                yield _text(block.text)
            case ImageBlock():
                yield _image(block)
            case _:
                pass


def _answered(message: AgentMessage, calls: Sequence[WireCall], extras: Sequence[Any]) -> list[bytes]:
    """Return the blocks of an answer, with the extras in their places; reasoning that leads nowhere is left out."""
    waiting = list(extras)
    wire_calls = iter(calls)
    blocks: list[bytes] = []
    last = place = 0  # `last` counts the blocks up to one that may be the end of a message
    for block in message.blocks:
        if not isinstance(block, TextBlock | ToolCallBlock):
            continue
        while waiting and waiting[0][0] <= place:
            blocks.append(dumps(waiting.pop(0)[1]))
        place += 1
        if isinstance(block, ToolCallBlock):
            call = next(wire_calls)
            blocks.append(dumps({"type": "tool_use", "id": call.id, "name": call.name, "input": block.input}))
            last = len(blocks)
        elif block.text.strip():
            blocks.append(_text(block.text))
            last = len(blocks)
    for _, extra in waiting:
        blocks.append(dumps(extra))
        if extra["type"] not in THINKING:
            last = len(blocks)
    return blocks[:last]


def _text(text: str) -> bytes:
    return dumps({"type": "text", "text": text})


def _image(block: ImageBlock) -> bytes:
    """Return a picture, or words where it cannot be shown."""
    source = shown(block)
    if isinstance(source, str):
        return _text(source)
    wire = {"type": "base64", "media_type": source.media_type, "data": source.data}
    return dumps({"type": "image", "source": wire})


def _result(result: Result) -> bytes:
    wire: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": result.call.id,
        "content": [{"type": "text", "text": result.text}],
    }
    if result.block is None or result.block.status == "error":
        wire["is_error"] = True
    return dumps(wire)
