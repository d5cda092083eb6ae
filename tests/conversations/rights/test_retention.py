"""What goes by itself, and what never does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from agent.models import AuditRecord
from agent.runtime.ids import uuid7
from conversations.attachments import keep, read_file
from conversations.hosting.pruning import prune_once
from conversations.models import (
    Attachment,
    Conversation,
    ExecutionStatus,
    IdempotentRequest,
    OneTimeLink,
    SignIn,
    SocketTicket,
    User,
)
from conversations.rights import retention
from conversations.rights.retention import Pruning
from tests.conversations.rights.test_sign_ins import browser
from tests.factories import ConversationFactory, ExecutionFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)

NOW = timezone.now()


def kept(**values: Any) -> Conversation:
    """A conversation that was last changed `age` ago."""
    made: Conversation = ConversationFactory.create()
    age: timedelta = values.pop("age")
    Conversation.objects.filter(pk=made.pk).update(updated_at=NOW - age, **values)
    return made


def prune() -> Pruning:
    done = Pruning(NOW)
    for _ in done.steps():
        pass
    return done


def command(*options: str) -> str:
    out = StringIO()
    call_command("prune", *options, stdout=out)
    return out.getvalue()


@pytest.fixture
def retained(settings: Settings) -> None:
    settings.PAR = settings.PAR.model_copy(update={"retention_days": 30})


def test_temporary_conversations_go_after_their_hours(settings: Settings) -> None:
    settings.PAR = settings.PAR.model_copy(update={"temporary_hours": 2})
    old = kept(age=timedelta(hours=3), temporary=True)
    young, usual = kept(age=timedelta(hours=1), temporary=True), kept(age=timedelta(days=3000))
    assert prune().counts == {"temporary": 1}
    assert set(Conversation.objects.all()) == {young, usual}
    (record,) = AuditRecord.objects.filter(event="conversation-pruned")
    assert (record.conversation_id, record.user_id, record.code) == (old.pk, old.owner_id, "temporary")
    assert record.payload is None


def test_all_conversations_go_where_the_site_says_so(retained: None) -> None:
    kept(age=timedelta(days=31), pinned=True)
    kept(age=timedelta(days=31), archived=True)
    young = kept(age=timedelta(days=29))
    kept(age=timedelta(days=31), temporary=True)
    assert prune().counts == {"retention": 2, "temporary": 1}
    assert list(Conversation.objects.all()) == [young]
    assert AuditRecord.objects.filter(code="retention").count() == 2


@pytest.mark.parametrize("status", [*retention.UNDER_WAY])
def test_a_conversation_in_which_something_runs_stays(retained: None, status: ExecutionStatus) -> None:
    conversation = kept(age=timedelta(days=60), temporary=True)
    run = ExecutionFactory.create(conversation=conversation, status=status)
    assert prune().counts == {}
    type(run).objects.update(status="completed")
    assert prune().counts == {"temporary": 1}


def test_a_conversation_that_goes_on_meanwhile_stays(retained: None) -> None:
    """It was due when the list was made, and is not when its turn comes."""
    first, second = kept(age=timedelta(days=60)), kept(age=timedelta(days=50))
    done = Pruning(NOW)
    steps = done.steps()
    next(steps)
    Conversation.objects.filter(pk=second.pk).update(updated_at=NOW)
    list(steps)
    assert done.counts == {"retention": 1}
    assert list(Conversation.objects.all()) == [second]
    assert not Conversation.objects.filter(pk=first.pk).exists()


def test_one_that_cannot_be_deleted_holds_up_no_other(retained: None, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck, _ = kept(age=timedelta(days=60)), kept(age=timedelta(days=50))
    really = retention.delete_conversation

    def delete(user: User, pk: Any) -> bool:
        if pk == stuck.pk:
            raise RuntimeError("no")
        return really(user, pk)

    monkeypatch.setattr(retention, "delete_conversation", delete)
    done = prune()
    assert (done.counts, done.failed) == ({"retention": 1}, {stuck.pk})
    assert list(Conversation.objects.all()) == [stuck]
    with pytest.raises(CommandError, match="1 conversations could not be deleted"):
        command()


def old_link(user: User) -> None:
    OneTimeLink.issue(user)
    OneTimeLink.objects.update(expires=NOW)


def old_ticket(user: User) -> None:
    SocketTicket.issue(user)
    SocketTicket.objects.update(expires=NOW)


def old_answer(user: User) -> None:
    IdempotentRequest.objects.create(user=user, key=uuid7(), digest="0")
    IdempotentRequest.objects.update(created_at=NOW - retention.ANSWERS_KEPT)


def old_session(user: User) -> None:
    browser(user)
    Session.objects.update(expire_date=NOW)


@pytest.mark.parametrize(
    ("make", "counts"),
    [
        (old_link, {"one-time links": 1}),
        (old_ticket, {"socket tickets": 1}),
        (old_answer, {"idempotency keys": 1}),
        (old_session, {"sessions": 1, "sign-ins": 1}),
    ],
)
def test_what_has_expired_goes(make: Callable[[User], None], counts: dict[str, int]) -> None:
    make(UserFactory.create())
    assert prune().counts == counts
    assert prune().counts == {}


def test_an_upload_that_nobody_sent_goes_after_a_day() -> None:
    user = UserFactory.create()
    for name, age in (("old", timedelta(days=2)), ("young", timedelta(hours=1))):
        kept_file = keep(user, read_file(name.encode(), f"{name}.txt"))
        Attachment.objects.filter(pk=kept_file.pk).update(created_at=NOW - age)
    assert Pruning(NOW).due()["unused uploads"] == 1
    assert prune().counts == {"unused uploads": 1}
    assert Attachment.objects.get().name == "young.txt"


def test_what_is_in_use_stays() -> None:
    user = UserFactory.create()
    client: Client = browser(user)
    OneTimeLink.issue(user)
    SocketTicket.issue(user)
    IdempotentRequest.objects.create(user=user, key=uuid7(), digest="0")
    assert prune().counts == {}
    assert client.get("/").status_code == 200
    assert SignIn.objects.count() == 1


def test_the_command_says_what_is_due_and_what_it_deleted(retained: None) -> None:
    assert command("--dry-run") == "Due: nothing.\n"
    kept(age=timedelta(days=60), temporary=True)
    kept(age=timedelta(days=60))
    due = "1 temporary conversations, 1 conversations past their time"
    assert command("--dry-run") == f"Due: {due}.\n"
    assert Conversation.objects.count() == 2
    assert not AuditRecord.objects.exists()
    assert command() == f"Deleted: {due}.\n"
    assert command() == "Deleted: nothing.\n"


async def test_the_server_prunes_piece_by_piece(retained: None) -> None:
    for _ in range(3):
        await sync_to_async(kept)(age=timedelta(days=60))
    young = await sync_to_async(kept)(age=timedelta(days=1))
    assert await prune_once() == {"retention": 3}
    assert [row async for row in Conversation.objects.all()] == [young]
