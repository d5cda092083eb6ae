"""The blocks of an answer of the Messages API while they grow, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from agent.providers.anthropic_history import THINKING, is_opaque
from agent.providers.calls import is_object, settled_arguments
from agent.providers.decoding import joined_halves
from agent.runtime.values import clean_text, freeze


@dataclass(slots=True, eq=False)
class Part:
    """One block as it comes: `block` is its start, `pieces` are its text or the JSON of its input.

    `place` is how many text blocks and calls were shown before it.
    """

    index: int
    block: Mapping[str, Any]
    place: int
    pieces: list[str] = field(default_factory=list)
    signature: str = ""
    stopped: bool = False

    @property
    def kind(self) -> Any:
        return self.block.get("type")

    @property
    def text(self) -> str:
        """The text, or the JSON of an input: joined from its fragments, or what the start brought (B28)."""
        text = clean_text(joined_halves("".join(self.pieces)))
        given = self.block.get("input")
        return orjson.dumps(given).decode() if given and not text.strip() else text

    @property
    def arguments(self) -> str:
        """The input for a call; nothing means {}."""
        return settled_arguments(self.text)

    @property
    def whole(self) -> bool:
        """Whether the input has come and is an object."""
        return is_object(self.text)

    def wire(self) -> Mapping[str, Any] | None:
        """Return the block as it goes back, None where it does not; raises `ValueError` for what is too deep."""
        if self.kind == "text":
            return {"type": "text", "text": self.text} if self.text.strip() else None
        if self.kind == "thinking":
            return {"type": "thinking", "thinking": self.text, "signature": self.signature}
        if not is_opaque(self.kind):
            return None
        if "input" in self.block:
            if not is_object(self.arguments):
                return None
            return {**self.block, "input": freeze(orjson.loads(self.arguments))}
        return self.block


def kept(parts: Sequence[Part]) -> list[list[Any]]:
    """Return what goes back with later requests: `[place, block]`, of the provider's tools only what has a result."""
    blocks = [(part.place, block) for part in parts if is_opaque(part.kind) and (block := part.wire()) is not None]
    answered = {block.get("tool_use_id") for _, block in blocks}
    asked = {block.get("id") for _, block in blocks if "input" in block}
    return [
        [place, block]
        for place, block in blocks
        if block["type"] in THINKING
        or (block.get("id") in answered if "input" in block else block.get("tool_use_id") in asked)
    ]


def streamed(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events that bring a whole message."""
    content = message.get("content")
    yield {"type": "message_start", "message": message}
    for index, block in enumerate(content if isinstance(content, list) else ()):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": message}
