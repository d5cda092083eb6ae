"""What readers of a link see: the shared messages at its revision, in pages that begin with a turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.core.cache import cache

from agent.runtime.messages import AgentMessage
from conversations.attachments import pictures_in
from conversations.models import Attachment, ShareLink
from conversations.sharing.redaction import shared_messages
from conversations.sources import Sources
from conversations.store import load_context
from conversations.transcript import Entry, history

REMEMBERED = 300  # seconds
PAGE = 60  # messages that a page has before the next turn begins another


@dataclass(frozen=True, slots=True)
class SnapshotPage:
    """One of the pages, counted from 1."""

    entries: tuple[Entry, ...]
    number: int
    count: int

    @property
    def previous(self) -> int | None:
        return self.number - 1 if self.number > 1 else None

    @property
    def next(self) -> int | None:
        return self.number + 1 if self.number < self.count else None


def snapshot_page(share: ShareLink, wanted: str, base: str) -> SnapshotPage:
    """Return the page that an address asks for, the first for nonsense; with two queries. Raises `CorruptRevision`.

    The pictures are below `base`.
    """
    pages = split(shared_messages(load_context(share.conversation, share.revision).messages))
    number = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 7 else 1
    number = max(1, min(number, len(pages)))
    messages = pages[number - 1]
    shown = history(messages, share.conversation.agent.name, limit=len(messages), sources=Sources(base))
    return SnapshotPage(shown.entries, number, len(pages))


def shared_picture(share: ShareLink, id: UUID) -> Attachment | None:
    """Return an attachment that is a picture of the snapshot, with three queries, soon again with one; else None."""
    if str(id) not in _pictures(share):
        return None
    found = Attachment.objects.filter(pk=id, owner_id=share.owner_id).first()
    return found if found is not None and found.is_picture else None


def _pictures(share: ShareLink) -> list[str]:
    """Return the ids of all pictures of a snapshot; a page of many is not read once for each of them."""
    key = f"par-shared-pictures:{share.revision_id}"
    found: list[str] | None = cache.get(key)
    if found is None:
        messages = shared_messages(load_context(share.conversation, share.revision).messages)
        found = [str(id) for id in pictures_in(messages)]
        cache.set(key, found, REMEMBERED)
    return found


def turns(messages: Sequence[AgentMessage]) -> list[tuple[AgentMessage, ...]]:
    """Return the messages turn by turn; each begins with what a person said."""
    found: list[list[AgentMessage]] = []
    for message in messages:
        if not found or (message.role == "user" and found[-1][-1].role != "user"):
            found.append([])
        found[-1].append(message)
    return [tuple(turn) for turn in found]


def split(messages: Sequence[AgentMessage]) -> list[tuple[AgentMessage, ...]]:
    """Return the messages page by page; there is always one."""
    pages: list[tuple[AgentMessage, ...]] = [()]
    for turn in turns(messages):
        if len(pages[-1]) >= PAGE:
            pages.append(())
        pages[-1] += turn
    return pages
