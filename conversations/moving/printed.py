"""A conversation as one page to print or keep: no script, no foreign address, styles and pictures inside of it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import assert_never

from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

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
from conversations.moving.reading import Reading, reading_of, state_of, text_of
from conversations.rendering import render

_STYLES = Path(__file__).resolve().parents[1] / "static" / "par"


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a message: `kind` names what the template makes of it."""

    kind: str
    text: str = ""
    html: SafeString = SafeString("")  # noqa: RUF009  a constant
    name: str = ""
    state: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """What one side says, until the other does."""

    role: str
    name: str
    parts: tuple[Part, ...]


def page_of(conversation: Conversation, now: datetime) -> str:
    """Return the page of a conversation; raises `CorruptRevision`."""
    reading = reading_of(conversation)
    return render_to_string(
        "printed/page.html",
        {
            "conversation": conversation,
            "entries": list(_entries(conversation, reading)),
            "now": now,
            "style": mark_safe(style()),  # noqa: S308  files of ours
            "policy": policy(),
        },
    )


@cache
def style() -> str:
    """Return the styles of the page: those of the chat in the light scheme, and what paper needs."""
    light = (_STYLES / "tokens.css").read_text().partition("@media")[0]
    return "\n".join([light, *((_STYLES / name).read_text() for name in ("prose.css", "printed.css"))])


@cache
def policy() -> str:
    """Return the content security policy of the page: its own styles and pictures by value, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"


def _entries(conversation: Conversation, reading: Reading) -> Iterator[Entry]:
    answer: list[Part] = []
    for message in reading.messages:
        parts = list(_parts(message, reading))
        if message.role == "assistant":
            answer += parts
        elif message.role == "user":
            if answer:
                yield Entry("assistant", conversation.agent.name, tuple(answer))
            answer = []
            yield Entry("user", "You", tuple(parts))
    if answer:
        yield Entry("assistant", conversation.agent.name, tuple(answer))


def _parts(message: AgentMessage, reading: Reading) -> Iterator[Part]:
    for block in message.blocks:
        match block:
            case TextBlock() if message.role == "user":
                file = quoted_file(block.text)
                yield Part("said", text=block.text) if file is None else Part("file", text=file.name)
            case TextBlock() | ReasoningBlock():
                if block.text.strip():
                    yield Part("reasoning" if isinstance(block, ReasoningBlock) else "answer", html=render(block.text))
            case ImageBlock():
                address = reading.address_of(block)
                yield Part("picture" if address.startswith("data:") else "address", text=address)
            case ToolCallBlock():
                result = reading.results.get(block.call_id)
                arguments = json.dumps(block.input, indent=2, ensure_ascii=False) if block.input else ""
                yield Part("tool", text_of(result), name=block.name, state=state_of(result), arguments=arguments)
            case ToolResultBlock():
                continue
            case _:
                assert_never(block)
