"""Conversations in the memory of this process, gone with it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from agent.persistence.checks import (
    checked_command,
    checked_limit,
    checked_owner,
    new_conversation,
    not_found,
    saved_row,
    utc_now,
)
from agent.runtime.exceptions import ConversationConflict
from agent.runtime.ports import LIST_LIMIT, ConversationRow, ConversationSnapshot, SaveConversation


class MemoryConversationStore:
    """A `ConversationStore` for one event loop; nothing in it waits, so each method is one step."""

    def __init__(self, *, now: Callable[[], datetime] = utc_now) -> None:
        self._now = now
        self._kept: dict[tuple[str, str], ConversationSnapshot] = {}

    async def create(self, owner_key: str, title: str | None = None) -> ConversationSnapshot:
        snapshot = new_conversation(title, self._now())
        self._kept[checked_owner(owner_key), snapshot.conversation.conversation_id] = snapshot
        return snapshot

    async def load(self, owner_key: str, conversation_id: str) -> ConversationSnapshot:
        return self._find(owner_key, conversation_id)

    async def save(self, owner_key: str, conversation_id: str, command: SaveConversation) -> ConversationSnapshot:
        command = checked_command(command)
        row = self._find(owner_key, conversation_id).conversation
        if row.revision != command.revision:
            raise ConversationConflict(row.revision)
        saved = ConversationSnapshot(conversation=saved_row(row, command, self._now()), context=command.context)
        self._kept[owner_key, conversation_id] = saved
        return saved

    async def list(self, owner_key: str, *, limit: int = LIST_LIMIT) -> tuple[ConversationRow, ...]:
        owner, limit = checked_owner(owner_key), checked_limit(limit)
        rows = [snapshot.conversation for (key, _), snapshot in self._kept.items() if key == owner]
        rows.sort(key=lambda row: (row.updated_at, row.conversation_id), reverse=True)
        return tuple(rows[:limit])

    async def delete(self, owner_key: str, conversation_id: str) -> bool:
        return self._kept.pop((checked_owner(owner_key), conversation_id), None) is not None

    def _find(self, owner_key: str, conversation_id: str) -> ConversationSnapshot:
        snapshot = self._kept.get((checked_owner(owner_key), conversation_id))
        if snapshot is None:
            raise not_found(conversation_id)
        return snapshot
