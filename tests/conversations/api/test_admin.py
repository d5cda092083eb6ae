"""Administrators read conversations over HTTP, for a reason."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from agent.models import AuditRecord
from conversations.models import ApiToken, Conversation, User
from tests.damage import answer, grow, message
from tests.factories import AdministratorFactory, ConversationFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)

REASON = "ticket 4711: answers are cut off"


@pytest.fixture
def theirs() -> Conversation:
    row = ConversationFactory(title="a title")
    state = {"format": "x", "data": "opaque-zebra"}
    grow(row, None, message("q", "a question"), answer("a", "an answer"), model_state=state)
    return row


def read(user: User | None, row: Any, *scopes: str, **query: str) -> Any:
    headers = {}
    if user is not None:
        _, token = ApiToken.issue(user, "test", scopes=scopes or ("admin",))
        headers["Authorization"] = f"Bearer {token}"
    return Client().get(f"/ai/admin/conversations/{getattr(row, 'pk', row)}", query, headers=headers)


def told(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_a_conversation_is_read_and_that_is_written_down(theirs: Conversation) -> None:
    staff = AdministratorFactory()
    found = read(staff, theirs, reason=REASON)
    assert found.status_code == 200
    body = found.json()
    assert body["conversation"]["title"] == "a title"
    assert body["owner"] == {"id": theirs.owner_id, "email": theirs.owner.email}
    assert [each["blocks"][0]["text"] for each in body["messages"]] == ["a question", "an answer"]
    assert "opaque-zebra" not in found.content.decode()
    record = AuditRecord.objects.get()
    assert (record.event, record.user, record.conversation_id) == ("conversation-read", staff, theirs.pk)
    assert record.payload == {"reason": REASON, "place": "http"}


@pytest.mark.parametrize(
    "query", [{}, {"reason": ""}, {"reason": "too short"}, {"reason": " " * 20}, {"reason": "x" * 501}]
)
def test_without_a_reason_there_is_no_answer(theirs: Conversation, query: dict[str, str]) -> None:
    assert told(read(AdministratorFactory(), theirs, **query)) == (400, "INVALID_ARGUMENT")
    assert not AuditRecord.objects.exists()


def test_it_is_for_staff_with_the_scope_and_the_permission(theirs: Conversation) -> None:
    """R153."""
    assert told(read(None, theirs, reason=REASON)) == (401, "AUTH_REQUIRED")
    assert told(read(theirs.owner, theirs, "read", "write", reason=REASON)) == (403, "ADMIN_FORBIDDEN")
    assert told(read(AdministratorFactory(), theirs, "read", "write", reason=REASON)) == (403, "FORBIDDEN")
    staff = UserFactory(is_staff=True)
    assert told(read(staff, theirs, reason=REASON)) == (403, "ADMIN_FORBIDDEN")
    assert not AuditRecord.objects.exists()
    staff.user_permissions.add(Permission.objects.get(codename="view_conversation"))
    assert read(staff, theirs, reason=REASON).status_code == 200


def test_a_session_counts_as_the_person_does(theirs: Conversation) -> None:
    client = Client()
    client.force_login(theirs.owner)
    address = f"/ai/admin/conversations/{theirs.pk}"
    assert told(client.get(address, {"reason": REASON})) == (403, "ADMIN_FORBIDDEN")
    client.force_login(AdministratorFactory())
    assert client.get(address, {"reason": REASON}).status_code == 200


def test_somebody_who_is_no_longer_staff_is_refused(theirs: Conversation) -> None:
    staff = AdministratorFactory()
    _, token = ApiToken.issue(staff, "test", scopes=("admin",))
    User.objects.filter(pk=staff.pk).update(is_staff=False)
    address = f"/ai/admin/conversations/{theirs.pk}"
    answered = Client().get(address, {"reason": REASON}, headers={"Authorization": f"Bearer {token}"})
    assert told(answered) == (403, "ADMIN_FORBIDDEN")


def test_what_is_not_there_is_not_found(theirs: Conversation) -> None:
    assert told(read(AdministratorFactory(), uuid4(), reason=REASON)) == (404, "CONVERSATION_NOT_FOUND")
    assert told(read(AdministratorFactory(), "nonsense", reason=REASON)) == (400, "INVALID_ARGUMENT")


def test_damage_is_named_and_the_attempt_is_written_down(theirs: Conversation) -> None:
    """R123."""
    assert theirs.head is not None
    theirs.head.context = {}  # type: ignore[assignment]
    theirs.head.save()
    answered = read(AdministratorFactory(), theirs, reason=REASON)
    assert told(answered) == (500, "REVISION_CORRUPT")
    assert "revision 1 " in answered.json()["error"]["message"]
    assert AuditRecord.objects.count() == 1
