"""What messages say, for OpenAI's protocols: texts with pictures between them."""

from __future__ import annotations

from typing import NamedTuple

from agent.providers.images import NO_IMAGE, shown
from agent.runtime.messages import AgentMessage, ImageBlock, TextBlock


class Picture(NamedTuple):
    """A picture; `url` is a data address."""

    url: str


def said(message: AgentMessage) -> list[str | Picture]:
    """Return what a message says, without what is blank; only a user's pictures can be shown."""
    if not any(isinstance(block, ImageBlock) for block in message.blocks) and message.role != "user":
        return [text] if (text := message.text).strip() else []
    parts: list[str | Picture] = []
    for block in message.blocks:
        if isinstance(block, TextBlock) and block.text.strip():
            parts.append(block.text)
        elif isinstance(block, ImageBlock):
            parts.append(_picture(block) if message.role == "user" else NO_IMAGE)
    return parts


def _picture(block: ImageBlock) -> str | Picture:
    source = shown(block)
    return source if isinstance(source, str) else Picture(f"data:{source.media_type};base64,{source.data}")
