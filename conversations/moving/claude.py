"""Conversations as Claude exports them: `conversations.json`, in which each has a list `chat_messages`.

Where the messages say what is above them they are a tree, otherwise one branch. What a person read as text is kept:
texts, thoughts, documents that the assistant wrote (artifacts), and of a file its name or the text that was taken out
of it. Calls of tools and what they answered are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.utils import timezone

from agent.runtime.messages import AgentMessage, Block, ReasoningBlock, Role, TextBlock
from conversations.exceptions import ImportInvalid
from conversations.moving.faults import member
from conversations.moving.incoming import Incoming, Reader, Said, fenced, in_order, title_of, turns
from conversations.moving.names import message_name

_ROLES: dict[str, Role] = {"human": "user", "user": "user", "assistant": "assistant"}
_ARTIFACTS = "artifacts"


def is_claude(value: Any) -> bool:
    return "chat_messages" in value


def read_claude(value: Any, place: str, owner: int) -> Incoming:
    """Return a conversation of Claude; raises `ImportInvalid`."""
    data = Reader(value, place)
    external_id = f"claude:{data.id('uuid')}"
    created = data.moment("created_at") or data.moment("updated_at") or timezone.now()
    messages = list(_said(data, created, f"{owner}/{external_id}"))
    last = messages[-1].id if messages else None
    nodes, head, trunk = turns(
        in_order(messages, member(place, "chat_messages")), data.text("current_leaf_message_uuid") or last, place
    )
    return Incoming(
        external_id=external_id,
        title=title_of(data.value.get("name")),
        created_at=created,
        updated_at=data.moment("updated_at") or created,
        nodes=nodes,
        head=head,
        trunk=trunk,
        pinned=data.value.get("is_starred") is True,
    )


def _said(data: Reader, created: datetime, scope: str) -> Iterator[Said]:
    rows = list(data.objects("chat_messages"))
    tree = any("parent_message_uuid" in row.value for row in rows)
    known: set[str] = set()
    before: str | None = None
    for row in rows:
        id = row.id("uuid")
        if id in known:
            raise ImportInvalid(member(row.place, "uuid"), f"there are two messages {id!r}")
        known.add(id)
        sender = row.text("sender")
        if sender not in _ROLES:
            raise ImportInvalid(member(row.place, "sender"), f"{sender[:64]!r} is neither 'human' nor 'assistant'")
        blocks = tuple(_blocks(row))
        parent = (row.text("parent_message_uuid") or None) if tree else before
        kept = AgentMessage(id=message_name(scope, id), role=_ROLES[sender], blocks=blocks) if blocks else None
        yield Said(id, parent, kept, row.moment("created_at") or created)
        before = id


def _blocks(row: Reader) -> Iterator[Block]:
    """Yield what is kept of a message: its blocks, or its `text` where there are none."""
    found = list(_written(row))
    if not any(isinstance(block, TextBlock) for block in found) and row.text("text").strip():
        found.append(TextBlock(text=row.text("text")))
    yield from found
    for name, text in _files(row):
        yield TextBlock(text=f"[file: {name}]\n\n{fenced(text)}" if text.strip() else f"[file: {name}]")


def _written(row: Reader) -> Iterator[Block]:
    for block in row.objects("content"):
        match block.text("type"):
            case "text" if block.text("text").strip():
                yield TextBlock(text=block.text("text"))
            case "thinking" if block.text("thinking").strip():
                yield ReasoningBlock(text=block.text("thinking"))
            case "image":
                yield TextBlock(text="[image]")
            case "tool_use" if block.text("name") == _ARTIFACTS:
                yield from _artifact(block.object("input"))
            case _:
                continue


def _artifact(made: Reader) -> Iterator[TextBlock]:
    """Yield a document that the assistant wrote; changes to one are shown in its next whole version only."""
    body, title = made.text("content"), " ".join(made.text("title").split())
    if body.strip():
        written = body if made.text("type") == "text/markdown" else fenced(body, made.text("language"))
        yield TextBlock(text=f"**{title}**\n\n{written}" if title else written)


def _files(row: Reader) -> Iterator[tuple[str, str]]:
    """Yield name and text of the files of a message; a file that is in both lists once."""
    named: set[str] = set()
    for each in row.objects("attachments"):
        name = " ".join(each.text("file_name").split())
        named.add(name)
        yield name or "text", each.text("extracted_content")
    for list_name in ("files", "files_v2"):
        for each in row.objects(list_name):
            name = " ".join(each.text("file_name").split())
            if name and name not in named:
                named.add(name)
                yield name, ""
