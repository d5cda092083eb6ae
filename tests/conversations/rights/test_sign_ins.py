"""Sessions: whose they are, how they are listed and how they end."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import aget_user
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.test import Client
from django.utils import timezone

from conversations.credentials import identify
from conversations.models import SignIn, User
from conversations.models.sign_ins import SEEN_EVERY
from conversations.rights.sign_ins import browser_name, end_sessions, forget_sessions, open_sessions
from conversations.session_store import SessionStore
from tests.factories import PASSWORD, UserFactory
from tests.live import hosted
from tests.pages import body

pytestmark = pytest.mark.django_db(transaction=True)

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


@pytest.fixture
def user() -> User:
    return UserFactory.create()


def browser(user: User, **meta: str) -> Client:
    """A browser in which somebody has signed in."""
    client = Client(**meta)  # type: ignore[arg-type]
    answer = client.post("/accounts/login/", {"login": user.email, "password": PASSWORD})
    assert answer.status_code == 302
    return client


def proven(client: Client) -> Client:
    """Type the password once more, as dangerous things ask for."""
    assert client.post("/accounts/reauthenticate/", {"password": PASSWORD}).status_code == 302
    return client


def key(client: Client) -> str:
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def test_a_sign_in_is_listed_with_browser_and_address(user: User) -> None:
    client = browser(user, HTTP_USER_AGENT=FIREFOX, REMOTE_ADDR="192.0.2.7")
    browser(UserFactory(), HTTP_USER_AGENT="theirs")
    (session,) = open_sessions(user, key(client))
    assert (session.browser, session.address, session.is_this) == ("Firefox on Linux", "192.0.2.7", True)
    page = body(client, "/account/data/")
    assert "Firefox on Linux" in page
    assert "this one" in page
    assert key(client) not in page


def test_a_hostile_browser_is_listed_as_well(user: User) -> None:
    client = browser(user, HTTP_USER_AGENT="<script>\x00\ud800" + "x" * 10_000)
    (row,) = SignIn.objects.all()
    assert len(row.user_agent) == 300
    assert "<script>\ufffd" not in body(client, "/account/data/")


def test_a_sign_in_follows_its_session_to_a_new_key(user: User) -> None:
    """Changing the password gives the session another key, and ends the others."""
    client, other = browser(user), browser(user)
    before = key(client)
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    answer = client.post(
        "/accounts/password/change/",
        {"oldpassword": PASSWORD, "password1": "another river 43", "password2": "another river 43"},
    )
    assert answer.status_code == 302
    assert client.get("/account/data/").status_code == 200
    assert other.get("/account/data/").status_code == 302
    assert key(client) != before
    assert open_sessions(user, key(client))[0].is_this


async def test_a_sign_in_follows_its_session_in_asynchronous_code(user: User) -> None:
    client = await sync_to_async(browser)(user)
    store = SessionStore(key(client))
    await store.acycle_key()
    await store.asave()
    request = HttpRequest()
    request.session = store
    assert await aget_user(request) == user
    (session,) = await sync_to_async(open_sessions)(user, store.session_key)
    assert session.is_this


def test_somebody_else_in_the_same_browser_has_a_sign_in_of_their_own(user: User) -> None:
    client, other = browser(user), UserFactory.create()
    client.force_login(other)
    assert open_sessions(user, None) == []
    (session,) = open_sessions(other, key(client))
    assert (session.is_this, session.address) == (True, None)


def test_one_session_is_ended_and_the_others_go_on(user: User) -> None:
    here, there, elsewhere = browser(user), browser(user), browser(user)
    row = SignIn.objects.get(session_key=key(there))
    assert here.post(f"/account/data/sessions/{row.pk}/end/").status_code == 302
    assert there.get("/").status_code == 302
    assert here.get("/").status_code == elsewhere.get("/").status_code == 200
    assert not SignIn.objects.filter(pk=row.pk).exists()


def test_all_other_sessions_are_ended(user: User) -> None:
    here, there, theirs = browser(user), browser(user), browser(UserFactory.create())
    assert here.post("/account/data/sessions/end/").status_code == 302
    assert there.get("/").status_code == 302
    assert here.get("/").status_code == theirs.get("/").status_code == 200


def test_ending_this_session_leads_to_the_sign_in(user: User) -> None:
    here = browser(user)
    answer = here.post(f"/account/data/sessions/{SignIn.objects.get().pk}/end/")
    assert (answer.status_code, answer["Location"]) == (302, "/accounts/login/")
    assert here.get("/account/data/").status_code == 302


def test_somebody_elses_session_looks_like_none(user: User) -> None:
    """R125."""
    here, theirs = browser(user), browser(UserFactory.create())
    foreign = SignIn.objects.get(session_key=key(theirs))
    unknown = "01890a5d-ac96-774b-bcce-b302099a8000"
    answers = [here.post(f"/account/data/sessions/{pk}/end/") for pk in (foreign.pk, unknown)]
    assert {answer.status_code for answer in answers} == {404}
    assert answers[0].content == answers[1].content
    assert theirs.get("/").status_code == 200


def test_sessions_that_are_over_are_not_listed(user: User) -> None:
    gone, late = browser(user), browser(user)
    gone.post("/accounts/logout/")
    Session.objects.filter(session_key=key(late)).update(expire_date=timezone.now())
    assert open_sessions(user, None) == []


def test_sessions_from_before_sign_ins_were_noted_are_found(user: User) -> None:
    """What the migration does for the sessions of the release before."""
    client, stranger = browser(user), Client()
    store = SessionStore()
    store["nobody"] = "here"
    store.create()
    SignIn.objects.all().delete()
    migration = import_module("conversations.migrations.0006_sign_ins")
    migration.note_sessions(_CurrentApps, None)
    (session,) = open_sessions(user, key(client))
    assert (session.browser, session.began, session.is_this) == ("An unknown browser", None, True)
    assert "Since before browsers were noted here" in body(client, "/account/data/")
    assert stranger.get("/").status_code == 302


class _CurrentApps:
    @staticmethod
    def get_model(app: str, name: str) -> Any:
        return {"Session": Session, "SignIn": SignIn, "User": User}[name]


def test_every_session_of_a_closed_account_is_found(user: User) -> None:
    client, theirs = browser(user), browser(UserFactory.create())
    SignIn.objects.all().delete()
    assert end_sessions(user) == 0
    forget_sessions(user.pk)
    assert not Session.objects.filter(session_key=key(client)).exists()
    assert theirs.get("/").status_code == 200


async def test_a_socket_notes_that_its_session_is_in_use(user: User) -> None:
    """At most once in five minutes."""
    client = await sync_to_async(browser)(user)
    headers = {
        b"cookie": f"{settings.SESSION_COOKIE_NAME}={key(client)}".encode(),
        b"origin": settings.PAR.origins[0].encode(),
    }
    long_ago = timezone.now() - 2 * SEEN_EVERY
    await SignIn.objects.aupdate(last_seen_at=long_ago)
    await sync_to_async(identify)(headers)
    seen = (await SignIn.objects.aget()).last_seen_at
    assert seen is not None
    assert seen > long_ago
    await sync_to_async(identify)(headers)
    assert (await SignIn.objects.aget()).last_seen_at == seen


async def test_an_ended_session_is_news_to_the_sockets(user: User) -> None:
    client = await sync_to_async(browser)(user)
    async with hosted() as host:
        host.revocations._news.clear()
        await sync_to_async(end_sessions)(user)
        await host.revocations.wait(10)
    assert not await Session.objects.filter(session_key=key(client)).aexists()


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (FIREFOX, "Firefox on Linux"),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0",
            "Edge on Windows",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1 Version/18.0 Safari/604.1",
            "Safari on iPhone",
        ),
        ("Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36", "Chrome on Android"),
        ("curl/8.0", "An unknown browser"),
        ("", "An unknown browser"),
    ],
)
def test_browsers_are_named_in_words(user_agent: str, name: str) -> None:
    assert browser_name(user_agent) == name
