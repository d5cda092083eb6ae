from __future__ import annotations

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries, Settings

from agent.governance.audit import AuditEntry, reduced, write
from agent.models import AuditRecord
from agent.runtime.ids import uuid7
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db

PAYLOAD: dict[str, Any] = {
    "callId": "call_1",
    "toolName": "send",
    "arguments": {"to": "Mary", "api_key": "sk-1"},
    "errorMessage": "Mary is out",
    "isError": False,
    "usage": {"inputTokens": 3},
    "outcome": {"type": "cancelled", "reason": "user"},
    "interrupt": {"id": "i", "tool": {"name": "send", "inputSchema": {"type": "object"}}, "reason": "Mary asked"},
}


def mode(settings: Settings, **changed: Any) -> None:
    settings.PAR = settings.PAR.model_copy(update=changed)


def test_by_default_metadata_only_is_kept(settings: Settings) -> None:
    """R158."""
    assert settings.PAR.audit_payload_mode == "metadata-only"
    assert reduced(PAYLOAD) == {
        "callId": "call_1",
        "toolName": "send",
        "arguments": "[REDACTED]",
        "errorMessage": "[REDACTED]",
        "isError": False,
        "usage": {"inputTokens": 3},
        "outcome": {"type": "cancelled", "reason": "user"},
        "interrupt": {"id": "i", "tool": {"name": "send", "inputSchema": "[REDACTED]"}, "reason": "[REDACTED]"},
    }


def test_in_full_mode_only_secrets_are_left_out(settings: Settings) -> None:
    """R158."""
    mode(settings, audit_payload_mode="full")
    kept = reduced(PAYLOAD)
    assert kept is not None
    assert kept["arguments"] == {"to": "Mary", "api_key": "[REDACTED]"}
    assert kept["errorMessage"] == "Mary is out"


def test_in_none_mode_no_payload_is_kept(settings: Settings) -> None:
    """R158."""
    mode(settings, audit_payload_mode="none")
    assert reduced(PAYLOAD) is None


def test_long_texts_are_cut(settings: Settings) -> None:
    """R158."""
    mode(settings, audit_payload_mode="full", audit_summary_max_length=5)
    assert reduced({"text": "123456", "list": ["123456"]}) == {"text": "12345…", "list": ["12345…"]}


def test_entries_become_rows_in_one_statement(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    user, run = UserFactory(), uuid7()
    entries = [
        AuditEntry(event="execution-started", user_id=user.pk, execution_id=str(run), trace_id="trace-1", payload={}),
        AuditEntry(event="execution-failed", execution_id=str(run), code="MODEL_FAILED", payload={"a": "\x00"}),
        AuditEntry(event="admin-login"),
    ]
    with django_assert_num_queries(1):
        assert write(entries) == 3
    rows = AuditRecord.objects.order_by("pk")
    assert [row.event for row in rows] == ["execution-started", "execution-failed", "admin-login"]
    assert (rows[0].user, rows[0].execution_id, rows[0].seal, rows[0].sequence) == (user, run, None, None)
    assert rows[1].code == "MODEL_FAILED"
    assert rows[2].payload is None


def test_nothing_is_written_when_the_audit_is_off(settings: Settings) -> None:
    """R158."""
    mode(settings, audit_enabled=False)
    assert write([AuditEntry(event="x")]) == 0
    assert not AuditRecord.objects.exists()


def test_what_happened_outlives_the_person() -> None:
    user = UserFactory()
    write([AuditEntry(event="x", user_id=user.pk)])
    pk = user.pk
    user.delete()
    assert AuditRecord.objects.get().user_id == pk
