"""What is left of somebody who has gone: ids, times, tokens and costs; nothing that they said or were called."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from asgiref.sync import sync_to_async
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test import Client
from pytest_django import Settings

from agent.governance import audit
from agent.governance.audit import AuditEntry
from agent.models import AuditRecord, UsageRecord
from agent.runtime.ids import uuid7
from agent.testing import Gate, ScriptedModel, says
from conversations.exceptions import ExecutionNotFound
from conversations.hosting.leaving import stop_runs
from conversations.models import (
    ApiToken,
    Conversation,
    Execution,
    IdempotentRequest,
    OneTimeLink,
    Revision,
    SignIn,
    SocketTicket,
    User,
)
from conversations.rights.deletion import close_account, delete_conversations
from tests.conversations.api.program import AGENT, HostedClient, Program
from tests.conversations.rights.test_sign_ins import browser, proven
from tests.factories import AgentProfileFactory, ApiTokenFactory, ConversationFactory, ExecutionFactory, UserFactory
from tests.live import hosted, settled, token_of

pytestmark = pytest.mark.django_db(transaction=True)

NAME = "zaphod"
WORDS = "the heart of gold"


def everything() -> Iterator[tuple[str, str]]:
    """Each row of each table as text."""
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            for row in cursor.fetchall():
                yield table, repr(row)


def mentions(*words: str) -> set[str]:
    """Return the tables in which one of these words is."""
    return {table for table, row in everything() if any(word.lower() in row.lower() for word in words)}


@pytest.fixture
def user() -> User:
    """Somebody of whom there is something in every table."""
    made: User = UserFactory.create(username=NAME, first_name=NAME)
    browser(made)
    conversation = ConversationFactory.create(owner=made, title=WORDS)
    base: Revision | None = None
    for number in (1, 2):
        base = Revision.objects.create(
            conversation=conversation, number=number, parent=base, context=[{"text": WORDS}], label=WORDS
        )
    Conversation.objects.filter(pk=conversation.pk).update(head=base)
    run = ExecutionFactory.create(
        conversation=conversation, base=base, revision=base, beside=base, status="completed", input={"text": WORDS}
    )
    ExecutionFactory.create(conversation=conversation, base=base, status="failed", error_message=WORDS)
    UsageRecord.objects.create(
        user=made, agent=run.agent, model="m", execution_id=run.pk, call_index=0, cost=Decimal("0.5")
    )
    token = ApiTokenFactory.create(user=made, name=WORDS)
    OneTimeLink.issue(made)
    SocketTicket.issue(made, token_id=token.pk)
    IdempotentRequest.objects.create(user=made, key=uuid7(), digest="0").keep(200, WORDS.encode())
    Authenticator.objects.create(user=made, type="totp", data={"secret": WORDS})
    audit.write([AuditEntry("tool-call-started", made.pk, str(run.pk), payload={"arguments": {"text": WORDS}})])
    return made


@pytest.fixture
def full_audit(settings: Settings) -> None:
    settings.PAR = settings.PAR.model_copy(update={"audit_payload_mode": "full"})


@pytest.fixture
def told_of_in_the_admin(full_audit: None, user: User) -> User:
    """An administrator, whose history names the person and what is theirs."""
    administrator: User = UserFactory.create(is_superuser=True)
    for row in (user, EmailAddress.objects.get(user=user), ApiToken.objects.get(), Authenticator.objects.get()):
        LogEntry.objects.create(
            user=administrator,
            content_type=ContentType.objects.get_for_model(row),
            object_id=str(row.pk),
            object_repr=f"{row} {NAME}",
            action_flag=CHANGE,
            change_message=WORDS,
        )
    return administrator


def test_nothing_readable_is_left_of_a_closed_account(told_of_in_the_admin: User, user: User) -> None:
    pk, run = user.pk, Execution.objects.filter(status="completed").get().pk
    assert mentions(NAME, WORDS) >= {
        "account_emailaddress",
        "agent_auditrecord",
        "conversations_apitoken",
        "conversations_conversation",
        "conversations_execution",
        "conversations_revision",
        "conversations_user",
        "django_admin_log",
        "mfa_authenticator",
    }
    close_account(user)
    assert mentions(NAME, WORDS) == set()
    for model in (Conversation, Revision, Execution, ApiToken, OneTimeLink, SocketTicket, IdempotentRequest, SignIn):
        assert not model.objects.exists(), model
    assert User.objects.get() == told_of_in_the_admin
    record = AuditRecord.objects.get(event="tool-call-started")
    assert (record.user_id, record.execution_id, record.payload) == (pk, run, None)
    usage = UsageRecord.objects.get()
    assert (usage.user_id, usage.execution_id, usage.cost) == (None, run, Decimal("0.5"))
    assert LogEntry.objects.filter(object_repr="(deleted)", user=told_of_in_the_admin).count() == 4


def test_closing_an_account_is_written_down(user: User) -> None:
    pk = user.pk
    close_account(user)
    assert AuditRecord.objects.get(event="account-closed").user_id == pk


def test_the_records_of_a_closed_account_can_be_read_in_the_admin(client: Client, user: User) -> None:
    client.force_login(UserFactory.create(is_staff=True, is_superuser=True))
    close_account(user)
    record = AuditRecord.objects.get(event="tool-call-started")
    for path in ("auditrecord/", f"auditrecord/{record.pk}/change/", "usagerecord/"):
        assert client.get(f"/admin/agent/{path}").status_code == 200, path


def test_closing_touches_nobody_else(user: User) -> None:
    other = UserFactory.create()
    client = browser(other)
    token = ApiTokenFactory.create(user=other)
    conversation = ConversationFactory.create(owner=other)
    audit.write([AuditEntry("x", other.pk, payload={"count": 1})])
    close_account(user)
    assert client.get("/").status_code == 200
    assert Conversation.objects.get() == conversation
    assert ApiToken.find(token.plain) == token
    assert AuditRecord.objects.get(event="x").payload == {"count": 1}


def test_an_account_that_is_half_closed_can_be_closed(user: User) -> None:
    delete_conversations(user)
    close_account(user)
    close_account(User(pk=user.pk, username=NAME))
    assert not User.objects.exists()


def test_deleting_conversations_leaves_the_account(full_audit: None, user: User) -> None:
    assert delete_conversations(user) == 1
    assert not Conversation.objects.exists()
    assert not Execution.objects.exists()
    assert ApiToken.objects.exists()
    record = AuditRecord.objects.get(event="conversations-deleted")
    assert (record.user_id, record.payload) == (user.pk, {"count": 1})
    assert UsageRecord.objects.get().user_id == user.pk
    assert delete_conversations(user) == 0
    assert AuditRecord.objects.filter(event="conversations-deleted").count() == 1


def sign_in(client: HostedClient, user: User) -> None:
    client.cookies = proven(browser(user)).cookies


@pytest.mark.parametrize(
    ("path", "form"),
    [("/account/data/conversations/delete/", {"sure": "on"}), ("/account/close/", {"email": f"{NAME}@example.org"})],
)
async def test_runs_are_stopped_first(full_audit: None, path: str, form: dict[str, Any]) -> None:
    """Nobody waits for an answer that nobody will read, and nothing of it is written afterwards."""
    user = await sync_to_async(UserFactory.create)(username=NAME)
    await sync_to_async(AgentProfileFactory)(slug=AGENT)
    gate, others = Gate(), Gate()
    async with hosted(ScriptedModel(says(WORDS, gate), says("theirs", others, "."))) as host:
        mine = await Program(host, await token_of(user)).start(WORDS)
        await gate.reached()
        stranger = await sync_to_async(UserFactory.create)()
        theirs = Program(host, await token_of(stranger))
        run = await theirs.start("Hi")
        await others.reached()
        client = HostedClient(host)
        await sync_to_async(sign_in)(client, user)
        answer = await client.post(path, form)
        assert answer.status_code in (200, 302)
        assert host.running(mine["executionId"]) is None
        assert host.running(run["executionId"]) is not None
        with pytest.raises(ExecutionNotFound):
            await host.find_execution(user, mine["executionId"])
        others.open()
        assert (await theirs.read(run["executionId"], "?waitMs=10000"))["status"] == "completed"
        await settled(host)
    words = (WORDS,) if "data" in path else (WORDS, NAME)
    assert await sync_to_async(mentions)(*words) <= ({"agent_auditrecord"} if "data" in path else set())


async def test_stopping_waits_for_what_happened_to_be_written_down(full_audit: None) -> None:
    user = await sync_to_async(UserFactory.create)()
    await sync_to_async(AgentProfileFactory)(slug=AGENT)
    gate = Gate()
    async with hosted(ScriptedModel(says("a", gate))) as host:
        await Program(host, await token_of(user)).start()
        await gate.reached()
        await stop_runs(host, user.pk)
        assert not host.trail._waiting
        assert await AuditRecord.objects.filter(event="execution-completed", user_id=user.pk).aexists()
        await stop_runs(host, user.pk)
