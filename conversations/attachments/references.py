"""How the messages of a conversation mention attachments.

A picture is an image block whose address is `attachment:` and an id. A text or PDF is a text block of its own, so that
every model reads it as it reads anything else:

    <attachment id="0192…" name="report.pdf" type="application/pdf" pages="3">
    the text
    </attachment>
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from agent.runtime.messages import AgentMessage, Block, ImageBlock, TextBlock, UrlSource
from conversations.models import Attachment

SCHEME = "attachment:"

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_ADDRESS = re.compile(rf"{SCHEME}({_UUID})")
# `quotedFile` of files.js is the same rule.
_QUOTED = re.compile(
    rf'<attachment id="({_UUID})" name="([^"<>\n]+)" type="([a-z]+/[a-z0-9.+-]+)"(?: pages="(\d+)")?>\n'
    r"(.*)\n</attachment>",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class QuotedFile:
    """A text or PDF that is quoted in a message; `pages` is None for a text."""

    id: UUID
    name: str
    media_type: str
    pages: int | None
    text: str


def address_of(id: UUID) -> str:
    """Return the address of a picture."""
    return f"{SCHEME}{id}"


def id_at(address: str) -> UUID | None:
    """Return the id in the address of a picture; None for another address."""
    found = _ADDRESS.fullmatch(address)
    return UUID(found[1]) if found else None


def block_of(attachment: Attachment) -> TextBlock | ImageBlock:
    """Return the block with which a message mentions an attachment."""
    if attachment.is_picture:
        return ImageBlock(source=UrlSource(url=address_of(attachment.pk)))
    pages = "" if attachment.pages is None else f' pages="{attachment.pages}"'
    name = html.escape(attachment.name)
    head = f'<attachment id="{attachment.pk}" name="{name}" type="{attachment.media_type}"{pages}>'
    return TextBlock(text=f"{head}\n{attachment.text}\n</attachment>")


def quoted_file(text: str) -> QuotedFile | None:
    """Return the file that a text block quotes; None for a text that somebody wrote."""
    found = _QUOTED.fullmatch(text) if text.startswith("<attachment ") else None
    if found is None:
        return None
    id, name, media_type, pages, quoted = found.groups()
    return QuotedFile(UUID(id), html.unescape(name), media_type, int(pages) if pages else None, quoted)


def quoted_files(message: AgentMessage) -> list[QuotedFile]:
    """Return the texts and PDFs that a message quotes."""
    texts = (block.text for block in message.blocks if isinstance(block, TextBlock))
    return [file for text in texts if (file := quoted_file(text))]


def said_text(message: AgentMessage) -> str:
    """Return what a message says without the files that it quotes."""
    texts = [block.text for block in message.blocks if isinstance(block, TextBlock)]
    return "".join(text for text in texts if quoted_file(text) is None)


def picture_of(block: Block) -> UUID | None:
    """Return the id of the attachment that an image block shows; None for every other block."""
    return id_at(block.source.url) if isinstance(block, ImageBlock) and isinstance(block.source, UrlSource) else None


def pictures_in(messages: Iterable[AgentMessage]) -> set[UUID]:
    """Return the ids of the pictures that these messages show."""
    return {id for message in messages for block in message.blocks if (id := picture_of(block))}


def files_in(messages: Iterable[AgentMessage]) -> set[UUID]:
    """Return the ids of the texts and PDFs that these messages quote, if that is what they are."""
    return {file.id for message in messages for file in quoted_files(message)}


def renamed(messages: Iterable[AgentMessage], ids: Mapping[UUID, UUID]) -> tuple[AgentMessage, ...]:
    """Return the messages with other ids of attachments; those without a new one stay."""

    def block(old: Block) -> Block:
        if (id := picture_of(old)) is not None and id in ids:
            return ImageBlock(source=UrlSource(url=address_of(ids[id])))
        if isinstance(old, TextBlock) and (file := quoted_file(old.text)) and file.id in ids:
            return TextBlock(text=old.text.replace(str(file.id), str(ids[file.id]), 1))
        return old

    def message(old: AgentMessage) -> AgentMessage:
        blocks = tuple([block(each) for each in old.blocks])
        return old if blocks == old.blocks else old.model_copy(update={"blocks": blocks})

    return tuple([message(each) for each in messages])
