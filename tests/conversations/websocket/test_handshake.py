"""Who may open a socket, and with which close code the others are sent away."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import orjson
import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.utils import timezone

from conversations.credentials import origin
from conversations.models import ApiToken, SocketTicket, User
from tests.factories import UserFactory
from tests.live import Socket, hosted, token_of

pytestmark = pytest.mark.django_db(transaction=True)

ORIGIN = "https://ai.example.org"


@pytest.fixture(autouse=True)
def _origins(settings: Any) -> None:
    settings.PAR = settings.PAR.model_copy(update={"origins": (ORIGIN,)})


@pytest.fixture
def user(transactional_db: None) -> User:
    return UserFactory()


def session_of(user: User) -> str:
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    assert session.session_key is not None
    return session.session_key


async def outcome(headers: dict[str, str], subprotocols: list[str] | None = None) -> Any:
    """Return the name of the person whose socket was opened, or the close code."""
    async with hosted() as host:
        socket = Socket(host, headers, ["par.v1"] if subprotocols is None else subprotocols)
        await socket.connect()
        first = await socket.communicator.receive_output(10)
        await socket.close()
    if first["type"] == "websocket.close":
        return first["code"]
    return orjson.loads(first["text"])["user"]["name"]


async def test_a_bearer_token_needs_neither_origin_nor_subprotocol(user: User) -> None:
    assert await outcome({"authorization": f"Bearer {await token_of(user)}"}, []) == user.username


async def test_nobody_is_closed_with_4401(user: User) -> None:
    assert await outcome({}) == 4401


@pytest.mark.parametrize("value", ["Bearer nonsense", "Bearer ", "Basic eDp5", "Bearer"])
async def test_a_bad_authorization_is_not_made_good_by_a_cookie(user: User, value: str) -> None:
    cookie = await sync_to_async(session_of)(user)
    headers = {"authorization": value, "cookie": f"{settings.SESSION_COOKIE_NAME}={cookie}", "origin": ORIGIN}
    assert await outcome(headers) == 4401


async def test_revoked_and_expired_tokens_are_nobody(user: User) -> None:
    revoked = await token_of(user)
    await sync_to_async(ApiToken.objects.all().update)(revoked_at=timezone.now())
    assert await outcome({"authorization": f"Bearer {revoked}"}) == 4401
    expired = await token_of(user)
    await sync_to_async(ApiToken.objects.all().update)(expires_at=timezone.now() - timedelta(seconds=1))
    assert await outcome({"authorization": f"Bearer {expired}"}) == 4401


async def test_a_closed_account_is_nobody(user: User) -> None:
    token = await token_of(user)
    await sync_to_async(User.objects.all().update)(is_active=False)
    assert await outcome({"authorization": f"Bearer {token}"}) == 4401


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (ORIGIN, "person"),
        ("https://AI.example.org", "person"),
        ("https://ai.example.org:443", "person"),
        (None, 4403),
        ("null", 4403),
        ("http://ai.example.org", 4403),
        ("https://ai.example.org:8443", 4403),
        ("https://ai.example.org.evil.example", 4403),
        ("https://evil.example", 4403),
        ("https://[", 4403),
    ],
)
async def test_a_cookie_counts_only_from_a_page_of_ours(user: User, given: str | None, expected: str | int) -> None:
    """B63."""
    cookie = await sync_to_async(session_of)(user)
    headers = {"cookie": f"{settings.SESSION_COOKIE_NAME}={cookie}"} | ({} if given is None else {"origin": given})
    assert await outcome(headers) == (user.username if expected == "person" else expected)


async def test_a_session_of_an_old_password_is_nobody(user: User) -> None:
    """B64."""
    cookie = await sync_to_async(session_of)(user)
    user.set_password("another quiet river")
    await user.asave()
    headers = {"cookie": f"{settings.SESSION_COOKIE_NAME}={cookie}", "origin": ORIGIN}
    assert await outcome(headers) == 4401


async def test_no_common_subprotocol_is_told_in_the_clients_own_words(user: User) -> None:
    async with hosted() as host:
        headers = {"authorization": f"Bearer {await token_of(user)}"}
        socket = Socket(host, headers, ["graphql-ws"])
        assert await socket.connect() == (True, "graphql-ws")
        assert (await socket.communicator.receive_output(10))["code"] == 4406
        await socket.close()


async def test_another_path_is_no_socket(user: User) -> None:
    async with hosted() as host:
        socket = Socket(host, {}, ["par.v1"])
        socket.communicator.scope["path"] = "/elsewhere"
        connected, code = await socket.connect()
        assert (connected, code) == (False, 4404)


def test_what_is_no_origin_equals_no_origin_of_a_site() -> None:
    assert origin("https://h") == origin("https://h:443") != origin("http://h")
    assert origin("https://h:notaport") == ("", None, None)


async def ticket_of(user: User, **made_with: Any) -> str:
    """Return the plain value of a new ticket."""
    return (await sync_to_async(SocketTicket.issue)(user, **made_with))[1]


async def test_a_ticket_opens_a_socket_from_any_page_once(user: User) -> None:
    """DESIGN 8."""
    key = await sync_to_async(session_of)(user)
    ticket = await ticket_of(user, session_key=key)
    headers = {"origin": "https://elsewhere.example"}
    assert await outcome(headers, ["par.v1", f"par.ticket.{ticket}"]) == user.username
    assert await outcome(headers, ["par.v1", f"par.ticket.{ticket}"]) == 4401


async def test_a_bad_ticket_is_not_made_good_by_a_cookie(user: User) -> None:
    """DESIGN 8: what decides first decides alone."""
    key = await sync_to_async(session_of)(user)
    headers = {"cookie": f"{settings.SESSION_COOKIE_NAME}={key}", "origin": ORIGIN}
    assert await outcome(headers, ["par.v1", "par.ticket.unknown"]) == 4401
    assert await outcome(headers, ["par.ticket.", "par.v1"]) == 4401


async def test_an_authorization_decides_before_a_ticket_and_leaves_it_unused(user: User) -> None:
    """DESIGN 8."""
    ticket = await ticket_of(user, session_key=await sync_to_async(session_of)(user))
    assert await outcome({"authorization": "Bearer nonsense"}, ["par.v1", f"par.ticket.{ticket}"]) == 4401
    assert await outcome({}, ["par.v1", f"par.ticket.{ticket}"]) == user.username


async def test_an_expired_ticket_opens_nothing(user: User) -> None:
    ticket = await ticket_of(user, session_key=await sync_to_async(session_of)(user))
    await sync_to_async(SocketTicket.objects.all().update)(expires=timezone.now())
    assert await outcome({}, ["par.v1", f"par.ticket.{ticket}"]) == 4401


async def test_a_ticket_is_worth_no_more_than_what_it_was_made_with(user: User) -> None:
    """It has the scopes of its token, and ends with its token or session even before it is used."""
    row, _ = await sync_to_async(ApiToken.issue)(user, "reader", scopes=["read"])
    async with hosted() as host:
        socket = Socket(host, {}, ["par.v1", f"par.ticket.{await ticket_of(user, token_id=row.pk)}"])
        await socket.connect()
        assert (await socket.receive())["type"] == "welcome"
        refused = await socket.say("Hello", "demo")
        assert refused["code"] == "FORBIDDEN"
        await socket.close()
    late = await ticket_of(user, token_id=row.pk)
    await sync_to_async(row.revoke)()
    assert await outcome({}, ["par.v1", f"par.ticket.{late}"]) == 4401
    key = await sync_to_async(session_of)(user)
    late = await ticket_of(user, session_key=key)
    await sync_to_async(SessionStore(key).delete)()
    assert await outcome({}, ["par.v1", f"par.ticket.{late}"]) == 4401


@pytest.mark.parametrize("offered", [["par.ticket.{}", "graphql-ws"], ["par.ticket.{}"]])
async def test_a_ticket_is_never_sent_back_nor_burnt_for_another_protocol(user: User, offered: list[str]) -> None:
    ticket = await ticket_of(user, session_key=await sync_to_async(session_of)(user))
    async with hosted() as host:
        socket = Socket(host, {}, [each.format(ticket) for each in offered])
        assert await socket.connect() == (True, "graphql-ws" if "graphql-ws" in offered else None)
        assert (await socket.communicator.receive_output(10))["code"] == 4406
        await socket.close()
    assert await outcome({}, ["par.v1", f"par.ticket.{ticket}"]) == user.username


def change(user: User, key: str, how: str) -> None:
    """End a sign-in in the way that another process would: without a signal."""
    match how:
        case "signed out":
            Session.objects.filter(session_key=key)._raw_delete("default")
        case "run out":
            Session.objects.update(expire_date=timezone.now())
        case "new password":
            user.set_password("another quiet river")
            User.objects.update(password=user.password)
        case "closed account":
            User.objects.update(is_active=False)


@pytest.mark.parametrize("how", ["signed out", "run out", "new password", "closed account"])
async def test_a_socket_ends_with_the_session_that_opened_it(user: User, how: str) -> None:
    """B64: the next command is refused, and a silent socket is closed too."""
    key = await sync_to_async(session_of)(user)
    headers = {"cookie": f"{settings.SESSION_COOKIE_NAME}={key}", "origin": ORIGIN}
    async with hosted() as host:
        talking, silent = Socket(host, headers, ["par.v1"]), Socket(host, headers, ["par.v1"])
        for socket in (talking, silent):
            await socket.connect()
            await socket.receive()
        await host.expire_subscribers()
        assert (await talking.command(type="ping"))["type"] == "ack"
        await sync_to_async(change)(user, key, how)
        refused = await talking.command(type="subscribe", conversationId="01890a5d-ac96-774b-bcce-b302099a8057")
        assert refused["code"] == "AUTH_REQUIRED"
        await host.expire_subscribers()
        for socket in (talking, silent):
            assert await socket.communicator.receive_output(10) == {"type": "websocket.close", "code": 4401}
            await socket.close()


@pytest.mark.parametrize("scope", ["read", "write"])
async def test_the_scopes_of_a_token_are_asked_with_each_command(user: User, scope: str) -> None:
    async with hosted() as host:
        socket = Socket(host, {"authorization": f"Bearer {await token_of(user, scope)}"}, ["par.v1"])
        await socket.connect()
        await socket.receive()
        started = await socket.say("Hello", "nobody")
        asked = await socket.command(type="subscribe", conversationId="01890a5d-ac96-774b-bcce-b302099a8057")
        await socket.close()
    assert started["code"] == ("AGENT_NOT_FOUND" if scope == "write" else "FORBIDDEN")
    assert asked["code"] == ("CONVERSATION_NOT_FOUND" if scope == "read" else "FORBIDDEN")


async def test_a_token_that_runs_out_ends_its_socket_with_the_next_command(user: User) -> None:
    """B64."""
    async with hosted() as host:
        socket = Socket(host, {"authorization": f"Bearer {await token_of(user)}"}, ["par.v1"])
        await socket.connect()
        await socket.receive()
        await sync_to_async(ApiToken.objects.all().update)(expires_at=timezone.now())
        assert (await socket.say("Hello", "demo"))["code"] == "AUTH_REQUIRED"
        assert (await socket.communicator.receive_output(10))["code"] == 4401
        await socket.close()


async def test_who_has_all_connections_open_is_closed_with_4429(user: User) -> None:
    """And may come again when one of them has gone; others are not concerned."""
    headers = {"authorization": f"Bearer {await token_of(user)}"}
    other = {"authorization": f"Bearer {await token_of(await sync_to_async(UserFactory)())}"}
    async with hosted(connections_per_person=1) as host:
        first = Socket(host, headers, ["par.v1"])
        await first.connect()
        assert (await first.receive())["type"] == "welcome"
        for who, code in ((headers, 4429), (other, None)):
            socket = Socket(host, who, ["par.v1"])
            await socket.connect()
            assert (await socket.communicator.receive_output(10)).get("code") == code
            await socket.close()
        await first.close()
        again = Socket(host, headers, ["par.v1"])
        await again.connect()
        assert (await again.receive())["type"] == "welcome"
        await again.close()
