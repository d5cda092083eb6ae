"""A conversation as Markdown. The title is the only heading of level 1, and only turns have level 2.

What people and models wrote stays as they wrote it, but for two things: their headings move down two levels, and what
they left open (code, a comment) is closed, so that it ends with its message.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import assert_never

from markdown_it import MarkdownIt

from agent.runtime.messages import (
    AgentMessage,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from conversations.attachments import quoted_file
from conversations.models import Conversation
from conversations.moving.incoming import fenced
from conversations.moving.reading import Reading, reading_of, state_of, text_of
from conversations.rendering import MARKDOWN_LIMIT

_MARKS = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~&$:@])")
_PARSER = MarkdownIt("commonmark").enable("table")
_UNFIT = re.compile(r"[<>\s\\]")  # in an address between angle brackets
_END = "par-end-of-message"


def markdown_of(conversation: Conversation, now: datetime) -> Iterator[str]:
    """Yield the Markdown of a conversation, a message at a time; raises `CorruptRevision`."""
    reading = reading_of(conversation)
    agent = escaped(conversation.agent.name)
    yield f"# {escaped(conversation.title or 'Untitled chat')}\n\n"
    yield f"*{agent}, {conversation.created_at:%Y-%m-%d}. Exported from PAR on {now:%Y-%m-%d}.*\n"
    pictures: dict[str, str] = {}
    answering = False
    for message in reading.messages:
        parts = list(_parts(message, reading, pictures))
        if parts and not (answering and message.role == "assistant"):
            yield f"\n## {'You' if message.role == 'user' else agent}\n"
        if parts:
            answering = message.role == "assistant"
        yield from (f"\n{part}\n" for part in parts)
    if pictures:
        yield "\n"
        yield from (f"[{name}]: {address}\n" for name, address in pictures.items())


def escaped(text: str) -> str:
    """Return a text in one line that Markdown shows as it is."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def enclosed(text: str) -> str:
    """Return a Markdown text whose headings are below those of the turns, and which ends where it ends."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if len(text) > MARKDOWN_LIMIT:
        return fenced(text)
    text = _lowered(text)
    *_, last = [token for token in _PARSER.parse(f"{text}\n\n{_END}") if token.level == 0]
    if last.type == "paragraph_close":
        return text
    if last.type == "fence":
        return f"{text}\n{last.markup}"
    return fenced(text)


def _lowered(text: str) -> str:
    lines = text.split("\n")
    tokens = _PARSER.parse(text)
    for at in reversed(range(len(tokens))):
        token = tokens[at]
        if token.type == "heading_open" and token.level == 0 and token.map:
            begin, end = token.map
            title = tokens[at + 1].content
            lines[begin:end] = [f"{'#' * min(6, int(token.tag[1]) + 2)} {' '.join(title.split())}"]
    return "\n".join(lines)


def _parts(message: AgentMessage, reading: Reading, pictures: dict[str, str]) -> Iterator[str]:
    for block in message.blocks:
        match block:
            case TextBlock():
                if (file := quoted_file(block.text)) is not None:
                    yield f"[file: {escaped(file.name)}]"
                elif block.text.strip():
                    yield enclosed(block.text).strip("\n")
            case ReasoningBlock():
                if block.text.strip():
                    yield _quoted(f"**Reasoning**\n\n{enclosed(block.text)}")
            case ImageBlock():
                yield _picture(reading.address_of(block), pictures)
            case ToolCallBlock():
                yield _quoted(_call(block, reading))
            case ToolResultBlock():
                continue
            case _:
                assert_never(block)


def _picture(address: str, pictures: dict[str, str]) -> str:
    """Return a picture, whose bytes stand at the end of the file; one that lies elsewhere is a link, not fetched."""
    if not address.startswith("data:"):
        link = _UNFIT.sub("", address)
        return f"[picture](<{link}>)" if link.startswith(("https:", "http:")) else f"[picture: {escaped(address)}]"
    name = f"picture-{hashlib.sha256(address.encode()).hexdigest()[:16]}"
    pictures[name] = address
    return f"![picture][{name}]"


def _call(call: ToolCallBlock, reading: Reading) -> str:
    result = reading.results.get(call.call_id)
    arguments = fenced(json.dumps(call.input, indent=2, ensure_ascii=False), "json")
    said = text_of(result)
    shown = f"\n\n{fenced(said, 'text')}" if said else ""
    return f"**Tool {escaped(call.name)}** ({state_of(result)})\n\n{arguments}{shown}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
