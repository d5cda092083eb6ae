"""Reading what somebody else said: only for a reason, and that is written down before anything is shown."""

from __future__ import annotations

from collections.abc import MutableMapping
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from django.utils import timezone

from agent.governance.audit import AuditEntry, record
from agent.runtime.exceptions import InvalidArgument
from agent.runtime.values import clean_text
from conversations.models import User

SHORTEST_REASON = 10
LONGEST_REASON = 500
KEPT = timedelta(hours=1)
MOST_KEPT = 200
READ = "conversation-read"
SEARCH = "conversation-search"

_SESSION = "reading"
_SEARCHING = "search"


def reason_of(text: str) -> str:
    """Return a reason as it is kept; raises `InvalidArgument` for one that is too short or too long."""
    reason = " ".join(clean_text(text).split())
    if not SHORTEST_REASON <= len(reason) <= LONGEST_REASON:
        raise InvalidArgument(f"a reason has {SHORTEST_REASON} to {LONGEST_REASON} characters, this one {len(reason)}")
    return reason


def note_reading(reader: User, conversation_id: UUID, reason: str, *, place: Literal["admin", "http"]) -> None:
    """Write down who is about to read a conversation, and why."""
    payload = {"reason": reason, "place": place}
    record(AuditEntry(READ, user_id=reader.pk, conversation_id=str(conversation_id), payload=payload))


def note_search(reader: User, reason: str, query: str) -> None:
    """Write down who is about to search what everybody said, for what, and why."""
    payload = {"reason": reason, "query": clean_text(query), "place": "admin"}
    record(AuditEntry(SEARCH, user_id=reader.pk, payload=payload))


class Readings:
    """The reasons that somebody gave in this session; each of them counts for an hour."""

    def __init__(self, session: MutableMapping[str, Any]) -> None:
        self._session = session

    def keep(self, conversation_id: UUID | None, reason: str) -> None:
        """Keep the reason to read a conversation, or with None to search what everybody said."""
        kept = {**self._kept(), _key(conversation_id): [(timezone.now() + KEPT).timestamp(), reason]}
        newest = sorted(kept.items(), key=lambda item: item[1][0])[-MOST_KEPT:]
        self._session[_SESSION] = dict(newest)

    def reason(self, conversation_id: UUID | None) -> str | None:
        """Return the reason that still counts, None where there is none."""
        found = self._kept().get(_key(conversation_id))
        return None if found is None else found[1]

    def conversations(self) -> list[UUID]:
        """Return the conversations that may be read."""
        return [UUID(key) for key in self._kept() if key != _SEARCHING]

    def _kept(self) -> dict[str, list[Any]]:
        now = timezone.now().timestamp()
        return {key: value for key, value in self._session.get(_SESSION, {}).items() if value[0] > now}


def _key(conversation_id: UUID | None) -> str:
    return _SEARCHING if conversation_id is None else str(conversation_id)
