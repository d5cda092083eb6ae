"""What is wrong with the files of conversations: those that are mentioned, and those that are stored."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Any
from uuid import UUID

from conversations.attachments.keeping import Use
from conversations.attachments.references import id_at, quoted_file
from conversations.attachments.storage import place_of, storage

PIECE = 256 * 1024  # bytes


class Mentions:
    """Takes in the contexts of revisions as they are stored, and keeps which attachment was mentioned first where."""

    def __init__(self) -> None:
        self._pictures: dict[UUID, dict[UUID, int]] = defaultdict(dict)
        self._files: dict[UUID, dict[UUID, int]] = defaultdict(dict)

    def take(self, conversation_id: UUID, number: int, context: Any) -> None:
        """Take in a revision; what is no message is passed over, for others tell of that."""
        for message in context if isinstance(context, list) else ():
            blocks = message.get("blocks") if isinstance(message, dict) else None
            for block in blocks if isinstance(blocks, list) else ():
                match block:
                    case {"type": "image", "source": {"type": "url", "url": str(address)}} if id := id_at(address):
                        self._pictures[conversation_id].setdefault(id, number)
                    case {"type": "text", "text": str(text)} if file := quoted_file(text):
                        self._files[conversation_id].setdefault(file.id, number)

    def damage(self, batch: Collection[UUID]) -> Iterator[tuple[UUID, int | None, str]]:
        """Yield conversation, revision and words for each fault, with one query; each stored content is read once."""
        faults: dict[tuple[str, int], str | None] = {}
        rows = list(  # a query that stays open while files are read would hold up others
            Use.objects.filter(conversation_id__in=batch)
            .order_by("conversation_id", "attachment_id")
            .values_list(
                "conversation_id", "attachment_id", "attachment__name", "attachment__file_id", "attachment__size"
            )
        )
        for owner, id, name, digest, size in rows:
            shown = self._pictures[owner].pop(id, None)
            number = self._files[owner].get(id) if shown is None else shown
            if (digest, size) not in faults:
                faults[digest, size] = fault_of(digest, size)
            if fault := faults[digest, size]:
                yield owner, number, f"its file {name!r} (attachment {id}, {place_of(digest)}) {fault}"
        for owner, missing in self._pictures.items():
            for id, number in sorted(missing.items()):
                yield owner, number, f"its picture (attachment {id}) is none that the conversation has"


def fault_of(digest: str, size: int) -> str | None:
    """Return what is wrong with a stored content, read piece by piece; None for nothing."""
    found, length = hashlib.sha256(), 0
    try:
        with storage().open(place_of(digest)) as file:
            for piece in file.chunks(PIECE):
                found.update(piece)
                length += len(piece)
    except FileNotFoundError:
        return "is not in the storage"
    except OSError:
        return "cannot be read"
    if length != size:
        return f"has {length:,} bytes instead of {size:,}"
    return None if found.hexdigest() == digest else "is not what was stored"
