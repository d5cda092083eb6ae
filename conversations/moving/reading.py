"""What a page of a conversation is made of: the messages up to its head, and the pictures in them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias
from uuid import UUID

from agent.runtime.messages import AgentMessage, Base64Source, ImageBlock, ToolResultBlock
from conversations.attachments import open_bytes, picture_of
from conversations.exceptions import AttachmentMissing
from conversations.models import Attachment, Conversation
from conversations.store import load_context

ToolState: TypeAlias = Literal["done", "error", "not run", "outcome unknown", "result too large to keep", "no result"]

_STATES: Mapping[str, ToolState] = {
    "not-executed": "not run",
    "unknown": "outcome unknown",
    "result-omitted": "result too large to keep",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """A conversation to be read: what is said up to its head, the results of its tools by call, and its files by id."""

    messages: tuple[AgentMessage, ...]
    results: Mapping[str, ToolResultBlock]
    attachments: Mapping[UUID, Attachment]

    def address_of(self, block: ImageBlock) -> str:
        """Return the bytes of a picture as a `data:` address; of one that is not here, its name."""
        source = block.source
        if isinstance(source, Base64Source):
            return f"data:{source.media_type};base64,{source.data}"
        id = picture_of(block)
        if id is None:
            return source.url
        attachment = self.attachments.get(id)
        try:
            if attachment is not None and attachment.is_picture:
                return f"data:{attachment.media_type};base64,{b64encode(open_bytes(attachment)).decode()}"
        except AttachmentMissing:
            pass
        return attachment.name if attachment is not None else "not there any more"


def reading_of(conversation: Conversation) -> Reading:
    """Return what is said in a conversation; raises `CorruptRevision`."""
    messages = load_context(conversation, conversation.head).messages
    blocks = (block for message in messages for block in message.blocks)
    results = {block.call_id: block for block in blocks if isinstance(block, ToolResultBlock)}
    return Reading(messages, results, Attachment.objects.filter(conversations=conversation).in_bulk())


def state_of(result: ToolResultBlock | None) -> ToolState:
    """Return how a call ended, in words."""
    if result is None:
        return "no result"
    return _STATES.get(result.execution) or ("error" if result.status == "error" else "done")


def text_of(result: ToolResultBlock | None) -> str:
    return "\n\n".join(block.text for block in result.content) if result is not None else ""
