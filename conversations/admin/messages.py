"""Messages as the admin shows them: everything that is stored, as plain text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, assert_never

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
    return _rows(pair for block in message.blocks for pair in _shown(block))


def _rows(shown: Iterable[tuple[str, str]]) -> SafeString:
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


def readable_partial(partial: Mapping[str, Any] | None) -> SafeString | str:
    """Return the blocks of a message that was being written when its run ended; a dash for none."""
    if partial is None:
        return "–"
    return _rows((_half_label(block), block["text"]) for block in partial["blocks"]) or "–"


def _half_label(block: Mapping[str, Any]) -> str:
    match block["type"]:
        case "tool-call":
            return f"was about to call {block['name']} ({block['callId']})"
        case "text":
            return ""
        case other:
            return str(other)


def readable_wire(messages: list[dict[str, object]]) -> SafeString | str:
    """Return stored messages as `readable_messages` does; what cannot be read is shown as JSON."""
    try:
        return readable_messages([AgentMessage.from_wire(message) for message in messages])
    except (TypeError, ValueError):
        text = json.dumps(messages, ensure_ascii=False, indent=2)
        return format_html('<pre class="par-json">{}</pre>', text)


def readable_state(state: Any) -> str:
    """Return format and size of a model state, and nothing of what is in it."""
    if state is None:
        return "–"
    size = len(json.dumps(state, ensure_ascii=False).encode("utf-8", "replace"))
    kind = state.get("format") if isinstance(state, Mapping) else None
    return f"{kind or 'without a format'}, {size:,} bytes"


def without_state(model_context: Any) -> Any:
    """Return a stored model context with format and size in the place of the model state."""
    if not isinstance(model_context, Mapping):
        return None if model_context is None else "not shown"
    return {**model_context, "modelState": readable_state(model_context.get("modelState"))}
