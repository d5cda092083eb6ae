"""Names that a thing gets on its way in: the same each time, for each person others."""

from __future__ import annotations

from uuid import UUID, uuid5

_SPACE = UUID("5b0f6a5e-2d0c-5f0a-9d53-6f1f3a7f5a11")


def revision_name(owner: int, external_id: str, source: str) -> UUID:
    """Return the public id of a revision."""
    return uuid5(_SPACE, f"revision/{owner}/{external_id}/{source}")


def turn_name(owner: int, external_id: str, source: str) -> UUID:
    """Return the id of a turn that was not saved."""
    return uuid5(_SPACE, f"turn/{owner}/{external_id}/{source}")


def message_name(scope: str, source: str) -> str:
    """Return the id of a message; `scope` names the person and the conversation."""
    return f"message-{uuid5(_SPACE, f'message/{scope}/{source}')}"
