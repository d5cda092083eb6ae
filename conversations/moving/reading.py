"""What a page of a conversation is made of: the messages up to its head, and the pictures in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agent.runtime.messages import AgentMessage, Base64Source, ImageBlock, ToolResultBlock
from conversations.models import Conversation
from conversations.store import load_context

ToolState: TypeAlias = Literal["done", "error", "not run", "outcome unknown", "result too large to keep", "no result"]

_STATES: Mapping[str, ToolState] = {
    "not-executed": "not run",
    "unknown": "outcome unknown",
    "result-omitted": "result too large to keep",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """A conversation to be read; `results` are those of its tools, by call."""

    messages: tuple[AgentMessage, ...]
    results: Mapping[str, ToolResultBlock]


def reading_of(conversation: Conversation) -> Reading:
    """Return what is said in a conversation; raises `CorruptRevision`."""
    messages = load_context(conversation, conversation.head).messages
    blocks = (block for message in messages for block in message.blocks)
    return Reading(messages, {block.call_id: block for block in blocks if isinstance(block, ToolResultBlock)})


def picture_address(block: ImageBlock) -> str:
    """Return the address of a picture: its bytes as `data:`, or where it lies."""
    source = block.source
    if isinstance(source, Base64Source):
        return f"data:{source.media_type};base64,{source.data}"
    return source.url


def state_of(result: ToolResultBlock | None) -> ToolState:
    """Return how a call ended, in words."""
    if result is None:
        return "no result"
    return _STATES.get(result.execution) or ("error" if result.status == "error" else "done")


def text_of(result: ToolResultBlock | None) -> str:
    return "\n\n".join(block.text for block in result.content) if result is not None else ""
