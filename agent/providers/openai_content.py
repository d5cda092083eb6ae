"""What messages say, for OpenAI's protocols: texts with pictures between them."""

from __future__ import annotations

from typing import NamedTuple

from agent.runtime.messages import AgentMessage, ImageBlock, TextBlock, UrlSource

MAX_IMAGE = 20 * 1024 * 1024  # bytes
# What stands in place of a picture that the protocol does not take, or not there.
NO_IMAGE = "(a picture that this model cannot be shown)"

_IMAGE_TYPES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))


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
            parts.append((_picture(block) if message.role == "user" else None) or NO_IMAGE)
    return parts


def _picture(block: ImageBlock) -> Picture | None:
    """Return a picture as it goes out, None where it cannot be sent."""
    source = block.source
    if isinstance(source, UrlSource):
        return None  # nobody has looked at what lies there: hosts fetch pictures before they are sent
    media_type = source.media_type.lower()
    if media_type not in _IMAGE_TYPES or len(source.data) * 3 // 4 > MAX_IMAGE:
        return None
    return Picture(f"data:{media_type};base64,{source.data}")
