"""Messages as a chat completions server reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import orjson

from agent.providers.history import Result, WireCall, kept_result
from agent.runtime.messages import AgentMessage, ImageBlock, TextBlock, ToolCallBlock, UrlSource

REASONING = "reasoning_content"


class ChatEncoder:
    """Writes chat messages; an extra of an answer is its reasoning text, for servers that want it back (R34)."""

    protocol: ClassVar[str] = "openai-chat"
    results_open_user_message: ClassVar[bool] = False

    def message(
        self, neighbours: Sequence[AgentMessage], calls: Sequence[WireCall], extras: Sequence[Sequence[Any]]
    ) -> bytes:
        role = neighbours[0].role
        parts = [part for message in neighbours for part in _parts(message)]
        texts = [part for part in parts if isinstance(part, str)]
        content: Any = None
        if len(texts) < len(parts):
            content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
        elif texts:
            content = "\n\n".join(texts)
        blocks = [block for block in neighbours[-1].blocks if isinstance(block, ToolCallBlock)] if calls else []
        if content is None and not blocks:
            return b""
        wire: dict[str, Any] = {"role": role, "content": content}
        if reasoning := [text for extra in extras for text in extra]:
            wire[REASONING] = "\n\n".join(reasoning)
        if blocks:
            wire["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": orjson.dumps(block.input).decode()},
                }
                for block, call in zip(blocks, calls, strict=True)
            ]
        return orjson.dumps(wire)

    def results(self, results: Sequence[Result], following: Sequence[AgentMessage]) -> list[bytes]:
        return [kept_result(self.protocol, result, _result) for result in results]


def _parts(message: AgentMessage) -> list[str | dict[str, Any]]:
    """Return what a message says: its text, in pieces where pictures stand between."""
    if message.role != "user":
        return [text] if (text := message.text).strip() else []
    parts: list[str | dict[str, Any]] = []
    for block in message.blocks:
        match block:
            case TextBlock() if block.text.strip():
                parts.append(block.text)
            case ImageBlock():
                source = block.source
                url = source.url if isinstance(source, UrlSource) else f"data:{source.media_type};base64,{source.data}"
                parts.append({"type": "image_url", "image_url": {"url": url}})
            case _:
                pass
    return parts


def _result(result: Result) -> bytes:
    return orjson.dumps({"role": "tool", "tool_call_id": result.call.id, "content": result.text})
