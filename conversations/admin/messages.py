"""Messages as the admin shows them: everything that is stored, as plain text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import assert_never

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from agent.runtime.messages import (
    AgentMessage,
    Base64Source,
    Block,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)


def readable_messages(messages: Iterable[AgentMessage]) -> SafeString | str:
    """Return the messages with role and blocks, in order; a dash for none."""
    rows = ((message.role, message.role, _blocks(message)) for message in messages)
    html = '<div class="par-message" data-role="{}"><div class="par-role">{}</div>{}</div>'
    return format_html_join("", html, rows) or "–"


def _blocks(message: AgentMessage) -> SafeString:
    shown = (pair for block in message.blocks for pair in _shown(block))
    html = '<div class="par-block"><div class="par-label">{}</div><pre class="par-text">{}</pre></div>'
    return format_html_join("", html, shown)


def _shown(block: Block) -> Iterator[tuple[str, str]]:
    match block:
        case TextBlock():
            yield "", block.text
        case ReasoningBlock():
            yield "reasoning", block.text
        case ImageBlock():
            source = block.source
            if isinstance(source, Base64Source):
                yield "image", f"{source.media_type}, {len(source.data) * 3 // 4} bytes"
            else:
                yield "image", source.url
        case ToolCallBlock():
            arguments = json.dumps(block.input, ensure_ascii=False, indent=2)
            yield f"calls {block.name} ({block.call_id})", arguments
        case ToolResultBlock():
            text = "".join(part.text for part in block.content)
            yield f"result of {block.name} ({block.call_id}): {block.status}, {block.execution}", text
        case _:
            assert_never(block)


def readable_wire(messages: list[dict[str, object]]) -> SafeString | str:
    """Return stored messages as `readable_messages` does; what cannot be read is shown as JSON."""
    try:
        return readable_messages([AgentMessage.from_wire(message) for message in messages])
    except ValueError:
        text = json.dumps(messages, ensure_ascii=False, indent=2)
        return format_html('<pre class="par-json">{}</pre>', text)
