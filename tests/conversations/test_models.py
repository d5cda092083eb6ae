from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from conversations.models import ApiToken, Conversation, Execution, OneTimeLink, Revision, User
from tests.factories import AdministratorFactory, ApiTokenFactory, ConversationFactory, ExecutionFactory, UserFactory

pytestmark = pytest.mark.django_db


def test_an_email_address_belongs_to_one_person_in_any_case() -> None:
    UserFactory(email="Joe@Example.org")
    assert User.objects.get().email == "joe@example.org"
    with pytest.raises(IntegrityError), transaction.atomic():
        UserFactory(email="JOE@example.ORG")
    with pytest.raises(IntegrityError), transaction.atomic():
        User.objects.bulk_create([User(username="x", email="JOE@example.org")])


def test_one_live_run_for_each_conversation() -> None:
    run = ExecutionFactory()
    with pytest.raises(IntegrityError), transaction.atomic():
        ExecutionFactory(conversation=run.conversation)
    Execution.objects.update(status="completed")
    ExecutionFactory(conversation=run.conversation)


def test_a_conversation_goes_with_its_whole_tree() -> None:
    conversation = ConversationFactory()
    parent = None
    for number in range(1, 4):
        parent = Revision.objects.create(conversation=conversation, number=number, parent=parent)
    Conversation.objects.filter(pk=conversation.pk).update(head=parent)
    ExecutionFactory(conversation=conversation, base=parent, revision=parent)
    Conversation.objects.get(pk=conversation.pk).delete()
    assert not Revision.objects.exists()
    assert not Execution.objects.exists()


def test_an_agent_with_conversations_is_not_deleted() -> None:
    conversation = ConversationFactory()
    with pytest.raises(ProtectedError):
        conversation.agent.delete()


def test_a_token_is_found_by_its_plain_value_only_while_it_is_valid() -> None:
    token = ApiTokenFactory()
    assert ApiToken.find(token.plain) == token
    assert token.plain not in str(ApiToken.objects.values())
    assert ApiToken.find(token.plain + "x") is None
    token.revoke()
    assert ApiToken.find(token.plain) is None


def test_a_token_of_an_inactive_person_is_worth_nothing() -> None:
    token = ApiTokenFactory()
    User.objects.update(is_active=False)
    assert ApiToken.find(token.plain) is None


def test_a_token_takes_known_scopes_only() -> None:
    with pytest.raises(ValueError, match="'root'; there are read, write, admin"):
        ApiToken.issue(UserFactory(), "x", scopes=["read", "root"])


def test_a_token_of_the_administration_is_for_staff() -> None:
    with pytest.raises(ValueError, match="'admin' is for staff"):
        ApiToken.issue(UserFactory(), "x", scopes=["admin"])
    row, _ = ApiToken.issue(AdministratorFactory(), "x", scopes=["admin"])
    assert row.scopes == ["admin"]


def test_using_a_token_is_noted() -> None:
    token = ApiTokenFactory()
    token.touch()
    token.refresh_from_db()
    first = token.last_used_at
    assert first is not None
    token.touch()
    token.refresh_from_db()
    assert token.last_used_at == first, "at most one write a minute"


def test_a_one_time_link_is_redeemed_once() -> None:
    user = UserFactory()
    token = OneTimeLink.issue(user)
    link = OneTimeLink.find(token)
    again = OneTimeLink.find(token)
    assert link is not None
    assert again is not None
    assert link.user == user
    assert link.redeem()
    assert not again.redeem()
    assert OneTimeLink.find(token) is None


def test_a_tampered_or_expired_link_is_not_found() -> None:
    token = OneTimeLink.issue(UserFactory())
    assert OneTimeLink.find(token[:-1] + ("A" if token[-1] != "A" else "B")) is None
    OneTimeLink.objects.update(expires="2020-01-01T00:00:00Z")
    assert OneTimeLink.find(token) is None
