"""Messages as a chat completions server reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import orjson

from agent.providers.history import Result, WireCall, kept_result
from agent.providers.openai_content import Picture, said
from agent.runtime.messages import AgentMessage

# The names under which a server gives its reasoning as plain text, and gets it back.
REASONING = ("reasoning_content", "reasoning")


def is_extra(extra: Any) -> bool:
    """Return whether this is reasoning under the name by which it came."""
    return isinstance(extra, Mapping) and all(name in REASONING and type(extra[name]) is str for name in extra)


class ChatEncoder:
    """Writes chat messages; an extra of an answer is its reasoning under the name by which it came (R34)."""

    protocol: ClassVar[str] = "openai-chat"
    results_open_user_message: ClassVar[bool] = False
    # What an answer with calls has where its reasoning is not known.
    missing_reasoning: ClassVar[dict[str, str]] = {}

    def message(
        self, neighbours: Sequence[AgentMessage], calls: Sequence[WireCall], extras: Sequence[Sequence[Any]]
    ) -> bytes:
        parts = [part for message in neighbours for part in said(message)]
        content: Any = None
        if any(isinstance(part, Picture) for part in parts):
            content = [_part(part) for part in parts]
        elif parts:
            content = "\n\n".join(map(str, parts))
        if content is None and not calls:
            return b""
        wire: dict[str, Any] = {"role": neighbours[0].role, "content": content}
        reasoning: dict[str, str] = {}
        for name, text in (item for extra in extras for each in extra for item in each.items()):
            reasoning[name] = f"{reasoning[name]}\n\n{text}" if name in reasoning else text
        wire |= reasoning
        if calls:
            wire |= {} if reasoning else self.missing_reasoning
            wire["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": arguments(block.input)},
                }
                for block, call in zip(neighbours[-1].tool_calls, calls, strict=True)
            ]
        return orjson.dumps(wire)

    def results(self, results: Sequence[Result], following: Sequence[AgentMessage]) -> list[bytes]:
        return [kept_result(self.protocol, result, _result) for result in results]


class StrictReasoningEncoder(ChatEncoder):
    """Writes messages for servers that refuse a call without reasoning, such as one that another model made."""

    protocol: ClassVar[str] = "openai-chat/strict-reasoning"
    missing_reasoning: ClassVar[dict[str, str]] = {"reasoning_content": " "}


def arguments(input: Any) -> str:
    """Return the input of a call as JSON text, the same before and after a database that keeps no order."""
    return orjson.dumps(input, option=orjson.OPT_SORT_KEYS).decode()


def _part(part: str | Picture) -> dict[str, Any]:
    if isinstance(part, Picture):
        return {"type": "image_url", "image_url": {"url": part.url}}
    return {"type": "text", "text": part}


def _result(result: Result) -> bytes:
    return orjson.dumps({"role": "tool", "tool_call_id": result.call.id, "content": result.text})
