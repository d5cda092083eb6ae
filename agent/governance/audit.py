"""Writing down what happened (R158): payloads reduced to what the settings allow, rows inserted in bulk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from agent.models import AuditRecord
from agent.runtime.values import freeze_object

REDACTED = "[REDACTED]"

# Texts below these names say what kind of thing happened, not what somebody said.
METADATA = frozenset(
    {
        "agent",
        "callId",
        "dropReason",
        "errorCode",
        "execution",
        "fromProvider",
        "id",
        "interruptId",
        "kind",
        "model",
        "name",
        "provider",
        "responseMessageId",
        "source",
        "status",
        "stopReason",
        "toProvider",
        "toolName",
        "type",
        "version",
    }
)
# Everything below these is metadata, and nothing below those.
OPEN = frozenset({"outcome", "usage"})
CLOSED = frozenset({"arguments", "inputSchema", "input", "result", "content", "blocks", "messages"})
SECRET = ("password", "passwd", "secret", "token", "apikey", "authorization", "cookie", "credential", "privatekey")


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One event on its way into the table; `payload` is JSON data with wire names."""

    event: str
    user_id: int | None = None
    execution_id: str | None = None
    conversation_id: str | None = None
    trace_id: str = ""
    tool_name: str = ""
    code: str = ""
    payload: Mapping[str, Any] | None = None
    created_at: datetime = field(default_factory=timezone.now)


def write(entries: Sequence[AuditEntry]) -> int:
    """Insert the entries, unsealed and in order; returns how many rows that made."""
    if not settings.PAR.audit_enabled:
        return 0
    rows = [AuditRecord(**_columns(entry), payload=reduced(entry.payload)) for entry in entries]
    return len(AuditRecord.objects.bulk_create(rows, batch_size=500))


def record(entry: AuditEntry) -> None:
    """Insert one entry at once and whole, whatever the settings say.

    For what those do who read other people's words: it must not be possible to switch that off for a while.
    """
    AuditRecord.objects.create(**_columns(entry), payload=freeze_object(entry.payload or {}))


def _columns(entry: AuditEntry) -> dict[str, Any]:
    return {
        "created_at": entry.created_at,
        "event": entry.event,
        "execution_id": UUID(entry.execution_id) if entry.execution_id else None,
        "conversation_id": UUID(entry.conversation_id) if entry.conversation_id else None,
        "trace_id": entry.trace_id,
        "user_id": entry.user_id,
        "tool_name": entry.tool_name,
        "code": entry.code,
    }


def reduced(payload: Mapping[str, Any] | None, mode: str = "") -> dict[str, Any] | None:
    """Return what `mode` (PAR_AUDIT_PAYLOAD_MODE) leaves of a payload; secrets are left out in every mode."""
    mode = mode or settings.PAR.audit_payload_mode
    if payload is None or mode == "none":
        return None
    clean = freeze_object(payload)
    return {name: _value(name, value, full=mode == "full") for name, value in clean.items()}


def _value(name: str, value: Any, *, full: bool) -> Any:
    if _is_secret(name) and value is not None and not isinstance(value, bool | int | float):
        return REDACTED
    if not full and name in CLOSED and value is not None:
        return REDACTED
    if isinstance(value, Mapping):
        return {key: _value(key, item, full=full or name in OPEN) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_value(name, item, full=full) for item in value]
    if isinstance(value, str):
        return _cut(value) if full or name in METADATA else REDACTED
    return value


def _is_secret(name: str) -> bool:
    plain = name.lower().replace("_", "").replace("-", "")
    return any(word in plain for word in SECRET)


def _cut(text: str) -> str:
    limit = settings.PAR.audit_summary_max_length
    return text if len(text) <= limit else text[:limit] + "…"
