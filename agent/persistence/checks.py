"""What every store asks of its arguments, whatever it keeps them in."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import ValidationError

from agent.runtime.exceptions import ConversationNotFound, InvalidArgument
from agent.runtime.ids import uuid7
from agent.runtime.messages import Context
from agent.runtime.ports import ConversationRow, ConversationSnapshot, SaveConversation
from agent.runtime.values import clean_text


def utc_now() -> datetime:
    """Return the time of the machine, which dates what is stored."""
    return datetime.now(UTC)


def checked_owner(owner_key: str) -> str:
    """Return an owner key that can be stored as it is; cleaning it could make one owner of two."""
    if not isinstance(owner_key, str) or not owner_key.strip() or clean_text(owner_key) != owner_key:
        raise InvalidArgument(f"an owner key is a text that is not blank, got {owner_key!r}")
    return owner_key


def checked_limit(limit: int) -> int:
    """Return the length of a list, a positive integer."""
    if type(limit) is not int or not 0 < limit < 2**63:
        raise InvalidArgument(f"a list has a positive number of rows, got {limit!r}")
    return limit


def checked_command(command: SaveConversation) -> SaveConversation:
    """Return a save command, which is frozen, so that what is written later is what was said now (E8)."""
    if type(command) is not SaveConversation:
        raise InvalidArgument(f"what is saved is a SaveConversation, got {type(command).__name__}")
    return command


def new_conversation(title: str | None, now: datetime) -> ConversationSnapshot:
    """Return an empty conversation at revision 0."""
    try:
        row = ConversationRow(
            conversation_id=str(uuid7()), title=title, revision=0, status="active", created_at=now, updated_at=now
        )
    except ValidationError as error:
        raise InvalidArgument(f"the title cannot be used: {error.errors()[0]['msg']}") from error
    return ConversationSnapshot(conversation=row, context=Context())


def saved_row(row: ConversationRow, command: SaveConversation, now: datetime) -> ConversationRow:
    """Return the row as it is after the command."""
    return row.model_copy(update={"title": command.title, "revision": row.revision + 1, "updated_at": now})


def not_found(conversation_id: str) -> ConversationNotFound:
    """Return the error for what does not exist and for what is another owner's, word for word the same (R125)."""
    return ConversationNotFound(f"there is no conversation {conversation_id!r}")
