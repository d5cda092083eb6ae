"""Staff read what somebody else said only for a reason, which is in the audit log before anything is shown."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from agent.models import AuditRecord
from conversations import reading
from conversations.models import Conversation, Execution, ShareLink, User
from conversations.search import index_revisions
from tests.damage import answer, grow, message
from tests.factories import AdministratorFactory, ConversationFactory, ExecutionFactory, UserFactory

pytestmark = pytest.mark.django_db

SECRET = "zebra-secret"
REASON = "ticket 4711: answers are cut off"


@pytest.fixture
def staff() -> User:
    return AdministratorFactory()


@pytest.fixture
def admin(client: Client, staff: User) -> Client:
    client.force_login(staff)
    return client


@pytest.fixture
def theirs() -> Conversation:
    """A conversation of somebody else, with the same word in everything that holds content."""
    row = ConversationFactory(title=f"{SECRET} title", tags=[SECRET], external_id=SECRET)
    grow(row, None, message("q", SECRET), answer("a", SECRET), label=SECRET, outcome={"type": SECRET})
    ExecutionFactory(
        conversation=row, base=row.head, status="failed", transcript=[message("t", SECRET)], error_message=SECRET
    )
    return row


def addresses(row: Conversation) -> dict[str, str]:
    assert row.head is not None
    return {
        "conversation": f"/admin/conversations/conversation/{row.pk}/",
        "revision": f"/admin/conversations/revision/{row.head.pk}/",
        "execution": f"/admin/conversations/execution/{Execution.objects.get().pk}/",
    }


def ask(row: Conversation) -> str:
    return f"/admin/conversations/conversation/{row.pk}/reason/"


def test_each_page_asks_first_and_shows_afterwards(admin: Client, staff: User, theirs: Conversation) -> None:
    for address in addresses(theirs).values():
        for page in (f"{address}change/", f"{address}history/"):
            asked = admin.get(page)
            assert asked.status_code == 302
            assert asked["Location"].startswith(ask(theirs))
            followed = admin.get(asked["Location"])
            assert SECRET not in followed.content.decode()
    assert not AuditRecord.objects.exists()

    change = f"{addresses(theirs)['revision']}change/"
    answered = admin.post(ask(theirs), {"reason": REASON, "next": change})
    assert answered["Location"] == change
    record = AuditRecord.objects.get()
    assert (record.event, record.user, record.conversation_id) == ("conversation-read", staff, theirs.pk)
    assert record.payload == {"reason": REASON, "place": "admin"}
    for address in addresses(theirs).values():
        assert SECRET in admin.get(f"{address}change/").content.decode()
    assert AuditRecord.objects.count() == 1


def test_the_reason_is_written_even_where_the_log_is_switched_off(
    admin: Client, theirs: Conversation, settings: Settings
) -> None:
    settings.PAR = settings.PAR.model_copy(update={"audit_enabled": False, "audit_payload_mode": "none"})
    admin.post(ask(theirs), {"reason": REASON})
    assert AuditRecord.objects.get().payload == {"reason": REASON, "place": "admin"}


def test_nothing_is_shown_where_the_reason_cannot_be_written(
    admin: Client, theirs: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: Any, **kwargs: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(AuditRecord.objects, "create", fails)
    with pytest.raises(OSError, match="full"):
        admin.post(ask(theirs), {"reason": REASON})
    assert admin.get(f"{addresses(theirs)['conversation']}change/").status_code == 302


@pytest.mark.parametrize("reason", ["", "short", "          ", "x \n \t  y  \x00", "a" * 501])
def test_a_reason_says_something(admin: Client, theirs: Conversation, reason: str) -> None:
    assert admin.post(ask(theirs), {"reason": reason}).status_code == 200
    assert not AuditRecord.objects.exists()
    assert admin.get(f"{addresses(theirs)['conversation']}change/").status_code == 302


def test_a_reason_counts_for_one_conversation_and_one_session_and_one_hour(
    admin: Client, staff: User, theirs: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.post(ask(theirs), {"reason": REASON})
    change = f"{addresses(theirs)['conversation']}change/"
    assert admin.get(change).status_code == 200

    other = ConversationFactory()
    assert admin.get(f"/admin/conversations/conversation/{other.pk}/change/").status_code == 302
    elsewhere = Client()
    elsewhere.force_login(staff)
    assert elsewhere.get(change).status_code == 302

    later = timezone.now() + timedelta(minutes=61)
    monkeypatch.setattr(reading.timezone, "now", lambda: later)
    assert admin.get(change).status_code == 302


def test_one_s_own_conversation_needs_none(admin: Client, staff: User) -> None:
    own = ConversationFactory(owner=staff, title="mine alone")
    assert "mine alone" in admin.get(f"/admin/conversations/conversation/{own.pk}/change/").content.decode()
    assert not AuditRecord.objects.exists()


LISTS = [
    "conversation/",
    "conversation/?q=title",
    "conversation/?o=1",
    "revision/",
    "revision/?q=zebra",
    "execution/",
    "execution/?q=zebra",
]


@pytest.mark.parametrize("path", LISTS)
def test_lists_show_no_content(admin: Client, theirs: Conversation, path: str) -> None:
    answered = admin.get(f"/admin/conversations/{path}")
    assert answered.status_code == 200
    assert SECRET not in answered.content.decode()


@pytest.mark.parametrize(
    "query",
    [
        "conversation/?title__startswith=zebra",
        "conversation/?tags__icontains=zebra",
        "conversation/?external_id=zebra-secret",
        "conversation/?head__context__icontains=zebra",
        "revision/?context__icontains=zebra",
        "revision/?label=zebra-secret",
        "revision/?outcome__type=zebra-secret",
        "revision/?conversation__title__startswith=zebra",
        "execution/?transcript__icontains=zebra",
        "execution/?input__icontains=zebra",
        "execution/?error_message__icontains=zebra",
        "execution/?base__context__icontains=zebra",
    ],
)
def test_no_list_is_filtered_by_content(admin: Client, theirs: Conversation, query: str) -> None:
    """Whoever may ask whether a title begins with “a” can read it letter by letter."""
    assert admin.get(f"/admin/conversations/{query}").status_code == 400


def test_lists_are_still_filtered_by_what_is_open(admin: Client, theirs: Conversation) -> None:
    for query in (
        f"execution/?conversation={theirs.pk}",
        f"conversation/?owner__id__exact={theirs.owner_id}",
        f"conversation/?agent__id__exact={theirs.agent_id}&archived__exact=0",
        "revision/?kind__exact=turn",
        "execution/?status__exact=failed",
    ):
        answered = admin.get(f"/admin/conversations/{query}")
        assert answered.status_code == 200, query
        assert 'id="result_list"' in answered.content.decode(), query


def found(admin: Client, query: str, row: Conversation) -> bool:
    answered = admin.get("/admin/conversations/conversation/", {"q": query})
    return f"/{row.pk}/change/" in answered.content.decode()


def test_people_and_ids_are_searched_titles_only_of_what_may_be_read(
    admin: Client, staff: User, theirs: Conversation
) -> None:
    own = ConversationFactory(owner=staff, title="zebra of mine")
    assert found(admin, theirs.owner.email, theirs)
    assert found(admin, str(theirs.pk), theirs)
    assert not found(admin, "zebra", theirs)
    assert found(admin, "zebra", own)
    admin.post(ask(theirs), {"reason": REASON})
    assert found(admin, "zebra", theirs)


def test_all_titles_are_searched_for_a_reason_and_each_search_is_written_down(
    admin: Client, staff: User, theirs: Conversation
) -> None:
    shown = admin.get("/admin/conversations/conversation/?q=zebra").content.decode()
    assert "/admin/conversations/conversation/reason/?next=" in shown
    admin.post("/admin/conversations/conversation/reason/", {"reason": REASON})
    assert not AuditRecord.objects.exists()
    assert found(admin, "zebra", theirs)
    record = AuditRecord.objects.get()
    assert (record.event, record.user) == ("conversation-search", staff)
    assert record.payload == {"reason": REASON, "query": "zebra", "place": "admin"}
    assert SECRET not in admin.get("/admin/conversations/conversation/?q=title").content.decode()
    assert admin.get(f"{addresses(theirs)['conversation']}change/").status_code == 302


def test_messages_are_searched_under_the_same_rule(admin: Client, staff: User, theirs: Conversation) -> None:
    own = ConversationFactory(owner=staff)
    for row, text in ((theirs, "Where is the 図書館?"), (own, "The giraffe of mine")):
        index_revisions(row, [grow(row, row.head, message("more", text))])
    assert not found(admin, "図書館", theirs)
    assert found(admin, "giraffe", own)
    assert not found(admin, "giraffe", theirs)
    admin.post(ask(theirs), {"reason": REASON})
    assert found(admin, "書館", theirs)
    admin.session.flush()
    admin.force_login(staff)
    assert not found(admin, "図書館", theirs)
    admin.post("/admin/conversations/conversation/reason/", {"reason": REASON})
    assert found(admin, "図書館", theirs)
    assert found(admin, "giraf", own)
    assert not found(admin, '"?"', theirs)


def test_no_other_way_leads_to_content(admin: Client, theirs: Conversation) -> None:
    pages = [
        "/admin/",
        "/admin/search/?s=zebra",
        "/admin/search/?s=zebra&extended=1",
        f"/admin/conversations/user/{theirs.owner_id}/change/",
        f"/admin/conversations/user/{theirs.owner_id}/delete/",
        f"/admin/agent/agentprofile/{theirs.agent_id}/delete/",
        "/admin/autocomplete/?term=zebra&app_label=conversations&model_name=execution&field_name=conversation",
    ]
    for page in pages:
        assert SECRET not in admin.get(page).content.decode(), page
    for address in addresses(theirs).values():
        assert admin.get(f"{address}delete/").status_code == 403
        assert admin.post(f"{address}change/").status_code == 403
        asked = admin.get(f"{address}change/?_to_field=id&_popup=1")
        assert asked.status_code == 302
        assert admin.get(f"{address}change/?_to_field=title").status_code == 400
        assert SECRET not in admin.get(f"{address[:-1]}/").content.decode()


def test_share_links_say_nothing_either(admin: Client, theirs: Conversation) -> None:
    assert theirs.head is not None
    row = ShareLink.objects.create(
        conversation=theirs, owner=theirs.owner, revision=theirs.head, title=SECRET, prefix="abc", digest="d"
    )
    assert SECRET not in str(row)
    for query in ("", "?q=zebra"):
        assert SECRET not in admin.get(f"/admin/conversations/sharelink/{query}").content.decode()
    assert admin.get("/admin/conversations/sharelink/?title__startswith=z").status_code == 400
    address = f"/admin/conversations/sharelink/{row.pk}/change/"
    assert admin.get(address)["Location"].startswith(ask(theirs))
    admin.post(ask(theirs), {"reason": REASON})
    assert SECRET in admin.get(address).content.decode()


def test_the_name_of_a_conversation_says_nothing(theirs: Conversation) -> None:
    assert str(theirs) == f"Conversation …{theirs.pk.hex[-8:]}"


@pytest.mark.parametrize("then", ["https://evil.example/", "//evil.example", "/accounts/logout/", "javascript:1", ""])
def test_after_the_reason_one_stays_in_the_admin(admin: Client, theirs: Conversation, then: str) -> None:
    assert admin.post(ask(theirs), {"reason": REASON, "next": then})["Location"] == "/admin/"


def staff_with(*names: str) -> User:
    user: User = UserFactory(is_staff=True)
    group = Group.objects.create(name=f"readers {user.pk}")
    group.permissions.set(Permission.objects.filter(codename__in=names))
    user.groups.add(group)
    return user


def test_the_permissions_of_the_admin_still_count(client: Client, theirs: Conversation) -> None:
    client.force_login(staff_with())
    assert client.get(ask(theirs)).status_code == 403
    assert client.post(ask(theirs), {"reason": REASON}).status_code == 403
    for address in addresses(theirs).values():
        assert client.get(f"{address}change/").status_code == 403
    client.force_login(staff_with("view_execution"))
    client.post(ask(theirs), {"reason": REASON})
    codes = {name: client.get(f"{address}change/").status_code for name, address in addresses(theirs).items()}
    assert codes == {"conversation": 403, "revision": 403, "execution": 200}
    assert client.post("/admin/conversations/conversation/reason/", {"reason": REASON}).status_code == 403
    client.force_login(UserFactory())
    assert client.get(ask(theirs)).status_code == 302  # to the sign-in
    assert AuditRecord.objects.count() == 1


def test_reasons_are_read_in_the_audit_log(admin: Client, theirs: Conversation) -> None:
    admin.post(ask(theirs), {"reason": REASON})
    record = AuditRecord.objects.get()
    assert REASON in admin.get(f"/admin/agent/auditrecord/{record.pk}/change/").content.decode()
    for term in (theirs.pk, "conversation-read"):
        listed = admin.get("/admin/agent/auditrecord/", {"q": str(term)}).content.decode()
        assert f"/admin/agent/auditrecord/{record.pk}/change/" in listed


def test_an_audit_log_of_everything_is_no_way_round(admin: Client, theirs: Conversation) -> None:
    """PAR_AUDIT_PAYLOAD_MODE=full keeps what was said."""
    record = AuditRecord.objects.create(
        created_at=timezone.now(),
        event="tool-call-started",
        conversation_id=theirs.pk,
        payload={"toolName": "look", "arguments": {"for": SECRET}},
    )
    address = f"/admin/agent/auditrecord/{record.pk}/change/"
    shown = admin.get(address).content.decode()
    assert "look" in shown
    assert SECRET not in shown
    assert ask(theirs) in shown
    assert admin.get("/admin/agent/auditrecord/?payload__icontains=zebra").status_code == 400
    admin.post(ask(theirs), {"reason": REASON})
    assert SECRET in admin.get(address).content.decode()


def test_a_session_keeps_so_many_reasons_and_no_more() -> None:
    session: dict[str, Any] = {}
    rows = [ConversationFactory.build() for _ in range(reading.MOST_KEPT + 5)]
    for row in rows:
        reading.Readings(session).keep(row.pk, REASON)
    kept = reading.Readings(session)
    assert len(kept.conversations()) == reading.MOST_KEPT
    assert kept.reason(rows[-1].pk) == REASON
    assert kept.reason(rows[0].pk) is None
