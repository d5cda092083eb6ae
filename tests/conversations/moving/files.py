"""Files of conversations as other programs write them, with invented content."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Mapping
from typing import Any

from conversations.models import User
from conversations.moving import Imported, import_file

LARGEST = 64 * 1024 * 1024

Tree = Mapping[str, tuple[str | None, str | None, str | dict[str, Any]]]


def as_file(value: Any) -> io.BytesIO:
    """Return a file with these bytes, or with this value as JSON."""
    return io.BytesIO(value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode())


def zipped(**members: bytes) -> bytes:
    """Return a zip archive; `conversations` becomes `conversations.json`."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.json", content)
    return written.getvalue()


def taken(user: User, value: Any, **options: Any) -> Imported:
    """Import from a real file, as an upload is one."""
    with tempfile.TemporaryFile() as file:
        file.write(as_file(value).getvalue())
        return import_file(user, file, **{"largest": LARGEST, **options})


def chatgpt(nodes: Tree, *, current: str | None = None, id: str = "c-1", **more: Any) -> dict[str, Any]:
    """Return a conversation of ChatGPT; each node is its parent, its role and its text or whole message."""
    mapping = {}
    children: dict[str | None, list[str]] = {}
    for name, (parent, *_) in nodes.items():
        children.setdefault(parent, []).append(name)
    for at, (name, (parent, role, said)) in enumerate(nodes.items()):
        message: dict[str, Any] | None = None
        if role is not None:
            message = {
                "id": name,
                "author": {"role": role, "name": None, "metadata": {}},
                "create_time": 1_700_000_000.25 + at,
                "update_time": None,
                "content": {"content_type": "text", "parts": [said]},
                "status": "finished_successfully",
                "end_turn": True,
                "weight": 1.0,
                "metadata": {},
                "recipient": "all",
                "channel": None,
            }
            if isinstance(said, dict):
                message.update(said)
        below = children.get(name, [])
        mapping[name] = {"id": name, "message": message, "parent": parent, "children": below}
    return {
        "title": "Bread",
        "create_time": 1_700_000_000.0,
        "update_time": 1_700_000_100.0,
        "mapping": mapping,
        "current_node": current or [*nodes][-1],
        "conversation_id": id,
        "id": id,
        "is_archived": False,
        "moderation_results": [],
        "safe_urls": [],
        **more,
    }


def claude(*messages: dict[str, Any], id: str = "k-1", **more: Any) -> dict[str, Any]:
    """Return a conversation of Claude."""
    return {
        "uuid": id,
        "name": "Rivers",
        "created_at": "2025-03-01T10:00:00.000000Z",
        "updated_at": "2025-03-01T10:05:00.000000Z",
        "account": {"uuid": "a-1"},
        "chat_messages": list(messages),
        **more,
    }


def spoken(id: str, sender: str, text: str, **more: Any) -> dict[str, Any]:
    """Return a message of Claude."""
    return {
        "uuid": id,
        "text": text,
        "content": [{"type": "text", "text": text, "citations": []}],
        "sender": sender,
        "created_at": "2025-03-01T10:01:00.000000Z",
        "updated_at": "2025-03-01T10:01:00.000000Z",
        "attachments": [],
        "files": [],
        **more,
    }
