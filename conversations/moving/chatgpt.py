"""Conversations as ChatGPT exports them: `conversations.json`, in which each conversation is a tree of messages.

One rule says what is kept: what a person read as text. Messages of the person and the assistant are kept unless they
are marked as hidden, and of what the assistant sent to a tool only code and documents that it wrote. A picture, a file
and a recording become a word in their place. System messages, instructions and what tools answered are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import orjson
from django.utils import timezone

from agent.runtime.messages import AgentMessage, Block, ReasoningBlock, Role, TextBlock
from agent.runtime.values import clean_text
from conversations.exceptions import ImportInvalid
from conversations.moving.incoming import MOST_ID, Incoming, Reader, Said, fenced, in_order, title_of, turns
from conversations.moving.names import message_name

LEFT_OUT = frozenset(
    {"user_editable_context", "model_editable_context", "reasoning_recap", "tether_quote", "system_error"}
)

MOST_SHOWN = 4_000  # characters that stand in the place of one mark; more is no link

_CITATION = re.compile("\ue200[^\ue200\ue201]{0,1000}+\ue201")  # none in another: no character is looked at twice
_PROGRAM = "python"
_DOCUMENT = "canmore.create_textdoc"


def is_chatgpt(value: Any) -> bool:
    return "mapping" in value


def read_chatgpt(value: Any, place: str, owner: int) -> Incoming:
    """Return a conversation of ChatGPT; raises `ImportInvalid`."""
    data = Reader(value, place)
    id = data.id("conversation_id" if data.value.get("conversation_id") else "id")
    external_id = f"chatgpt:{id}"
    created = data.moment("create_time") or data.moment("update_time") or timezone.now()
    said = in_order(list(_said(data.object("mapping"), created, f"{owner}/{external_id}")), f"{data.place}.mapping")
    nodes, head, trunk = turns(said, data.text("current_node") or None, place)
    return Incoming(
        external_id=external_id,
        title=title_of(data.value.get("title")),
        created_at=created,
        updated_at=data.moment("update_time") or created,
        nodes=nodes,
        head=head,
        trunk=trunk,
        archived=data.value.get("is_archived") is True,
        pinned=data.value.get("is_starred") is True,
    )


def _said(mapping: Reader, created: datetime, scope: str) -> Iterator[Said]:
    for key in mapping.value:
        name = clean_text(key)
        if not name.strip() or len(name) > MOST_ID:
            raise ImportInvalid(mapping.place, f"the name of a node has 1 to {MOST_ID} characters")
        node = mapping.object(key)
        message = node.object("message")
        blocks = tuple(_blocks(message)) if message.value else ()
        kept = None
        if blocks:
            role: Role = "user" if message.object("author").text("role") == "user" else "assistant"
            kept = AgentMessage(id=message_name(scope, name), role=role, blocks=blocks)
        yield Said(name, node.text("parent") or None, kept, message.moment("create_time") or created)


def _blocks(message: Reader) -> Iterator[Block]:
    """Yield what is kept of a message."""
    role, content = message.object("author").text("role"), message.object("content")
    kind, recipient = content.text("content_type"), message.text("recipient") or "all"
    hidden = message.object("metadata").value.get("is_visually_hidden_from_conversation") is True
    if hidden or message.value.get("weight") == 0 or kind in LEFT_OUT or role not in ("user", "assistant", "tool"):
        return
    if role == "tool":  # pictures that the assistant had painted
        text = "\n".join(_placeholders(content))
    elif role == "assistant" and recipient != "all":
        text = _sent(content, recipient)
    elif kind == "thoughts":
        thoughts = [f"{each.text('summary')}\n\n{each.text('content')}".strip() for each in content.objects("thoughts")]
        if thought := "\n\n".join(filter(None, thoughts)):
            yield ReasoningBlock(text=thought)
        return
    elif kind == "code":
        text = fenced(content.text("text"), _language(content)) if content.text("text").strip() else ""
    else:
        text = _cited(_spoken(content, message), message)
    if text.strip():
        yield TextBlock(text=text)


def _spoken(content: Reader, message: Reader) -> str:
    """Return the text of a message's parts, with words for what is no text, and the names of its files."""
    files = {each.text("id"): each.text("name") for each in message.object("metadata").objects("attachments")}
    lines = []
    for part in content.list("parts"):
        if isinstance(part, str):
            lines.append(clean_text(part))
        elif isinstance(part, dict):
            lines.extend(_placeholder(Reader(part, content), files))
    if not lines and content.text("text"):
        lines.append(content.text("text"))
    lines.extend(f"[file: {_one_line(name)}]" for name in files.values() if name)
    return "\n\n".join(line for line in lines if line.strip())


def _placeholders(content: Reader) -> Iterator[str]:
    for part in content.list("parts"):
        if isinstance(part, dict):
            yield from _placeholder(Reader(part, content), {})


def _placeholder(part: Reader, files: dict[str, str]) -> Iterator[str]:
    """Yield what stands for a part that is no text; a picture's file is named once, here."""
    match part.text("content_type"):
        case "image_asset_pointer":
            name = files.pop(part.text("asset_pointer").rpartition("//")[2], "")
            yield f"[image: {_one_line(name)}]" if name else "[image]"
        case "audio_transcription":
            yield part.text("text")
        case "video_container_asset_pointer":
            yield "[video]"
        case _:
            return


def _sent(content: Reader, recipient: str) -> str:
    """Return what the assistant wrote for a tool, where that is something to read: a program or a document."""
    text = content.text("text") or "\n".join(part for part in content.list("parts") if isinstance(part, str))
    if not text.strip():
        return ""
    if recipient == _PROGRAM:
        return fenced(text, _PROGRAM)
    if recipient != _DOCUMENT:
        return ""
    try:
        document = Reader(orjson.loads(text), content)
        name, body, kind = document.text("name"), document.text("content"), document.text("type")
    except (orjson.JSONDecodeError, ImportInvalid):
        return fenced(text, "json")
    written = fenced(body, kind.partition("/")[2]) if kind.startswith("code/") else body
    return f"**{_one_line(name)}**\n\n{written}" if name else written


def _language(content: Reader) -> str:
    language = content.text("language")
    return "" if language == "unknown" else language


def _cited(text: str, message: Reader) -> str:
    """Return a text in which marks that only ChatGPT can read are links, or gone.

    What was put in is not looked at again, and all of it is no longer than the text and the links that came.
    """
    if "\ue200" not in text:
        return text
    links: dict[str, str] = {}
    room = len(text)
    for reference in message.object("metadata").objects("content_references"):
        mark, shown = reference.text("matched_text"), reference.value.get("alt")
        if _CITATION.fullmatch(mark):
            link = clean_text(shown) if isinstance(shown, str) and len(shown) <= MOST_SHOWN else ""
            links.setdefault(mark, link)
            room += len(link)

    def linked(found: re.Match[str]) -> str:
        nonlocal room
        link = links.get(found[0], "")
        if len(link) > room:
            return ""
        room -= len(link)
        return link

    return _CITATION.sub(linked, text)


def _one_line(name: str) -> str:
    return " ".join(name.split())[:200]
