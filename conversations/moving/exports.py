"""What leaves the site: one conversation or all of a person's, in one of three forms, piece by piece."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from django.utils import timezone

from conversations import store
from conversations.attachments import open_bytes
from conversations.exceptions import AttachmentMissing, ConversationNotFound
from conversations.models import Attachment, Conversation, User
from conversations.moving.archives import Archive
from conversations.moving.dump import PIECE, UNREADABLE, dump
from conversations.moving.printed import page_of
from conversations.moving.written import markdown_of

AT_A_TIME = 50
NAME_LENGTH = 80

_FIT = "()+,.'-_"  # beside letters, marks and digits, on any system


class Form(StrEnum):
    """How conversations leave: to come back, to be read, to be printed."""

    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


@dataclass(frozen=True, slots=True)
class Export:
    """A file; `pieces` reads the database between them, in short queries, and needs one thread from start to end."""

    name: str
    media_type: str
    pieces: Iterator[bytes]


_TYPES = {
    Form.JSON: "application/json",
    Form.MARKDOWN: "text/markdown; charset=utf-8",
    Form.HTML: "text/html; charset=utf-8",
}
_ENDINGS = {Form.JSON: "json", Form.MARKDOWN: "md", Form.HTML: "html"}
_TEXTS: dict[Form, Callable[[Conversation, datetime], Iterable[str]]] = {
    Form.MARKDOWN: markdown_of,
    Form.HTML: lambda conversation, now: [page_of(conversation, now)],
}


def export_one(user: User, conversation_id: UUID, form: Form) -> Export:
    """Return a conversation as a file; raises `ConversationNotFound`, and `CorruptRevision` from its pieces."""
    conversation = store.owned_conversation(user, conversation_id)
    name = f"{file_name(conversation.title)}.{_ENDINGS[form]}"
    if form is Form.JSON:
        return Export(name, _TYPES[form], _gathered(dump([conversation], strict=True)))
    texts = _TEXTS[form](conversation, timezone.now())
    return Export(name, _TYPES[form], _gathered(text.encode() for text in texts))


def export_all(user: User, form: Form) -> Export:
    """Return all conversations of a person: JSON as one file, which can be imported, the others as a zip archive."""
    if form is Form.JSON:
        return Export("conversations.json", _TYPES[form], _gathered(dump(conversations_of(user))))
    return Export("conversations.zip", "application/zip", _gathered(_archived(user, form)))


def conversations_of(user: User) -> Iterator[Conversation]:
    """Yield a person's conversations, oldest first, a few with each query."""
    rows = Conversation.objects.filter(owner=user).select_related("agent", "head").order_by("pk")
    batch = list(rows[:AT_A_TIME])
    while batch:
        yield from batch
        batch = list(rows.filter(pk__gt=batch[-1].pk)[:AT_A_TIME])


def file_name(title: str | None) -> str:
    """Return a name for the file of a conversation, without an ending, that every system takes."""
    seen = unicodedata.normalize("NFC", title or "")
    fit = "".join(each if each in _FIT or unicodedata.category(each)[0] in "LMN" else " " for each in seen)
    return " ".join(fit.split()).strip(". ")[:NAME_LENGTH].strip(". ") or "conversation"


def _archived(user: User, form: Form) -> Iterator[bytes]:
    archive, now = Archive(), timezone.now()
    for conversation in conversations_of(user):
        try:
            text = "".join(_TEXTS[form](conversation, now))
        except ConversationNotFound:
            continue
        except UNREADABLE as error:
            text = f"This conversation cannot be read: {error.message}\n"
        date, title = f"{conversation.created_at:%Y-%m-%d}", file_name(conversation.title)
        name = f"{date} {title} ({conversation.pk.hex[-8:]})"
        yield from archive.add(f"{name}.{_ENDINGS[form]}", text.encode())
        for attachment in Attachment.objects.filter(conversations=conversation).order_by("pk"):
            with suppress(AttachmentMissing):
                yield from archive.add(f"{name}/{_name_of(attachment)}", open_bytes(attachment))
    yield archive.end()


def _name_of(attachment: Attachment) -> str:
    stem, dot, ending = attachment.name.rpartition(".")
    if not dot:
        stem, ending = ending, ""
    return f"{file_name(stem)} ({attachment.pk.hex[-8:]}){dot}{file_name(ending) if ending else ''}"


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in pieces that are worth a hop between threads."""
    gathered: list[bytes] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= PIECE:
            yield b"".join(gathered)
            gathered, size = [], 0
    if gathered:
        yield b"".join(gathered)
