"""The page “Your data”: tokens, and the way to deleting all of it."""

from __future__ import annotations

import re
import time
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from conversations.models import ApiToken, Conversation, User
from conversations.rights.forms import MOST_TOKENS
from tests.conversations.rights.test_sign_ins import browser, proven
from tests.factories import PASSWORD, ApiTokenFactory, ConversationFactory, UserFactory
from tests.pages import body

pytestmark = pytest.mark.django_db

TOKEN = {"name": "a script", "scopes": "read,write", "days": "30"}


@pytest.fixture
def user() -> User:
    return UserFactory.create()


@pytest.fixture
def here(user: User) -> Client:
    """A browser whose person has just typed their password."""
    return proven(browser(user))


def unproven(client: Client) -> None:
    """Let it be long ago that the person typed their password."""
    session = client.session
    for record in session["account_authentication_methods"]:
        record["at"] = time.time() - 3600
    session.save()


@pytest.mark.parametrize("path", ["/account/data/", "/account/close/"])
def test_strangers_are_asked_to_sign_in(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/accounts/login/")


def test_the_page_is_reached_from_the_chat_and_the_account(here: Client) -> None:
    for path in ("/", "/accounts/email/"):
        assert 'href="/account/data/"' in body(here, path)


def test_the_page_leads_to_the_export(here: Client) -> None:
    assert 'href="/ai/export"' in body(here, "/account/data/")


def test_a_token_is_shown_once_and_works(here: Client, user: User) -> None:
    answer = here.post("/account/data/tokens/", TOKEN)
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    found = re.search(r">(par_[^<]+)</textarea>", answer.content.decode())
    assert found is not None
    row = ApiToken.find(found[1])
    assert row is not None
    assert (row.user, row.name, row.scopes) == (user, "a script", ["read", "write"])
    assert row.expires_at is not None
    assert 29 <= (row.expires_at - timezone.now()).days <= 30
    page = body(here, "/account/data/")
    assert found[1] not in page
    assert f"{row.prefix}…" in page
    assert "Never used" in page


def test_a_token_without_an_end(here: Client) -> None:
    here.post("/account/data/tokens/", TOKEN | {"days": ""})
    assert ApiToken.objects.get().expires_at is None


def test_a_new_token_takes_a_password_that_was_typed_just_now(here: Client) -> None:
    unproven(here)
    answer = here.post("/account/data/tokens/", TOKEN)
    assert answer["Location"].startswith("/accounts/reauthenticate/")
    assert not ApiToken.objects.exists()
    answer = here.post(answer["Location"], {"password": PASSWORD})
    assert "not shown again" in answer.content.decode()
    assert ApiToken.objects.count() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "x" * 101},
        {"name": "a\x00b"},
        {"scopes": "admin"},
        {"scopes": "read,write,admin"},
        {"scopes": ""},
        {"days": "-1"},
        {"days": "99999999999"},
    ],
)
def test_a_wrong_token_form_is_shown_again(here: Client, wrong: dict[str, str]) -> None:
    answer = here.post("/account/data/tokens/", TOKEN | wrong)
    assert answer.status_code == 422
    assert 'class="problem"' in answer.content.decode()
    assert not ApiToken.objects.exists()


def test_staff_may_have_tokens_that_administer(user: User, here: Client) -> None:
    User.objects.update(is_staff=True)
    here.post("/account/data/tokens/", TOKEN | {"scopes": "read,write,admin"})
    assert ApiToken.objects.get().scopes == ["read", "write", "admin"]


def test_the_number_of_tokens_is_bounded(here: Client, user: User) -> None:
    many = [ApiToken(user=user, name="t", prefix="par_", digest=str(n), scopes=["read"]) for n in range(MOST_TOKENS)]
    ApiToken.objects.bulk_create(many)
    answer = here.post("/account/data/tokens/", TOKEN)
    assert answer.status_code == 422
    assert "Revoke one" in answer.content.decode()


def test_a_token_is_revoked_and_leaves_the_list(here: Client, user: User) -> None:
    row = ApiTokenFactory.create(user=user, name="<b>old</b>")
    assert "&lt;b&gt;old" in body(here, "/account/data/")
    assert here.post(f"/account/data/tokens/{row.pk}/revoke/").status_code == 302
    row.refresh_from_db()
    assert not row.valid
    assert row.prefix not in body(here, "/account/data/")


def test_somebody_elses_token_looks_like_none(here: Client) -> None:
    """R125."""
    foreign = ApiTokenFactory.create()
    assert foreign.prefix not in body(here, "/account/data/")
    answers = [here.post(f"/account/data/tokens/{pk}/revoke/") for pk in (foreign.pk, uuid4())]
    assert {answer.status_code for answer in answers} == {404}
    assert answers[0].content == answers[1].content
    foreign.refresh_from_db()
    assert foreign.valid


def test_all_conversations_are_deleted_by_who_says_so(here: Client, user: User) -> None:
    ConversationFactory.create_batch(2, owner=user)
    theirs = ConversationFactory.create()
    assert "You have 2 conversations" in body(here, "/account/data/")
    assert here.post("/account/data/conversations/delete/").status_code == 422
    assert Conversation.objects.count() == 3
    answer = here.post("/account/data/conversations/delete/", {"sure": "on"}, follow=True)
    assert "2 conversations are deleted." in answer.content.decode()
    assert list(Conversation.objects.all()) == [theirs]


def test_the_page_says_what_goes_by_itself_and_what_stays(here: Client, settings: Settings) -> None:
    page = body(here, "/account/data/")
    assert "after 24 hours." in page
    assert "writes down" not in page
    settings.PAR = settings.PAR.model_copy(update={"retention_days": 90, "audit_payload_mode": "full"})
    page = body(here, "/account/data/")
    assert "all others 90 days after" in page
    assert "writes down" in page


def test_an_account_is_closed_by_who_types_password_and_address(user: User, here: Client) -> None:
    unproven(here)
    answer = here.get("/account/close/")
    assert answer["Location"].startswith("/accounts/reauthenticate/")
    answer = here.post(answer["Location"], {"password": PASSWORD})
    assert answer["Location"] == "/account/close/"
    for wrong in ({}, {"email": ""}, {"email": "somebody@example.org"}, {"email": user.email + "\x00"}):
        assert here.post("/account/close/", wrong).status_code == 422
    assert User.objects.filter(pk=user.pk).exists()
    answer = here.post("/account/close/", {"email": user.email.upper()})
    assert "Your account is closed" in answer.content.decode()
    assert not User.objects.filter(pk=user.pk).exists()
    assert here.get("/").status_code == 302


def test_a_form_that_waits_for_the_password_closes_the_account_then(user: User, here: Client) -> None:
    unproven(here)
    answer = here.post("/account/close/", {"email": user.email})
    assert User.objects.filter(pk=user.pk).exists()
    answer = here.post(answer["Location"], {"password": PASSWORD})
    assert "Your account is closed" in answer.content.decode()
    assert not User.objects.filter(pk=user.pk).exists()


def test_the_only_administrator_stays(user: User, here: Client) -> None:
    User.objects.filter(pk=user.pk).update(is_superuser=True)
    answer = here.post("/account/close/", {"email": user.email})
    assert answer.status_code == 422
    assert "only administrator" in answer.content.decode()
    UserFactory.create(is_superuser=True)
    assert here.post("/account/close/", {"email": user.email}).status_code == 200
    assert not User.objects.filter(pk=user.pk).exists()


@pytest.mark.parametrize(
    "path",
    ["/account/data/tokens/", "/account/data/sessions/end/", "/account/data/conversations/delete/", "/account/close/"],
)
def test_another_site_can_send_none_of_the_forms(user: User, path: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    assert client.post(path, {"sure": "on", "email": user.email}).status_code == 403
