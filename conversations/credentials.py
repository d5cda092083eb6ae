"""What lets somebody use a socket, and whether it still does.

A bearer token decides alone; without one a ticket does, and without that the session of a page of ours. Token and
session may end while the socket is open: by signing out, a new password, a closed account, a revoked or expired token.

Django's own `get_user` is not used here: it may rotate the session key, and a socket cannot set a cookie.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from conversations.exceptions import AdminForbidden, Forbidden, Unauthorized, WrongOrigin
from conversations.models import ApiToken, SignIn, SocketTicket, User

Origin = tuple[str, str | None, int | None]

SESSION_KEY_FORM = re.compile("[a-z0-9]{8,64}")
SESSION_SCOPES = frozenset({"read", "write", "admin"})
TICKET = "par.ticket."


@dataclass(frozen=True, slots=True)
class Credential:
    """A person, what they may do, and the token or session that says so."""

    user: User
    scopes: frozenset[str]
    token_id: UUID | None = None
    session_key: str | None = None

    def demand(self, scope: str) -> None:
        """Raise `Forbidden` without this scope, `AdminForbidden` for `admin` unless somebody is staff (R153)."""
        if scope == "admin" and not self.user.is_staff:
            raise AdminForbidden("this is for staff")
        if scope not in self.scopes:
            raise Forbidden(f"this token lacks the scope {scope!r}")

    def holds(self) -> bool:
        """Return whether the token or session is still good; reads the database."""
        return bool(holding([self]))


def holding(credentials: Collection[Credential]) -> set[Credential]:
    """Return those whose token or session is still good, with three queries however many there are."""
    tokens = [each.token_id for each in credentials if each.token_id is not None]
    valid: set[UUID] = set()
    if tokens:
        found = ApiToken.objects.filter(pk__in=tokens, user__is_active=True).select_related("user")
        valid = {token.pk for token in found if token.valid}
    people = session_users([each.session_key for each in credentials if each.session_key is not None])
    return {
        each
        for each in credentials
        if each.token_id in valid or (each.session_key is not None and people.get(each.session_key) == each.user)
    }


def identify(headers: dict[bytes, bytes], offered: Sequence[str] = ()) -> Credential:
    """Return who opens a socket: with an `Authorization` header only that counts, with a ticket only the ticket.

    `offered` are the subprotocols, among which a ticket may be. Raises `Unauthorized`, and `WrongOrigin` for a cookie
    from a page that is not ours.
    """
    authorization = headers.get(b"authorization")
    if authorization is not None:
        return _of_token(authorization.decode("latin1"))
    ticket = next((each for each in offered if each.startswith(TICKET)), None)
    return _of_session(headers) if ticket is None else _of_ticket(ticket.removeprefix(TICKET))


def _of_token(authorization: str) -> Credential:
    token = bearer_token(authorization)
    if token is None:
        raise Unauthorized("the token is not valid")
    token.touch()
    return Credential(token.user, frozenset(token.scopes), token_id=token.pk)


def _of_ticket(value: str) -> Credential:
    ticket = SocketTicket.redeem(value)
    if ticket is None:
        raise Unauthorized("the ticket is not valid")
    if ticket.token is not None:
        credential = Credential(ticket.user, frozenset(ticket.token.scopes), token_id=ticket.token.pk)
    else:
        credential = Credential(ticket.user, SESSION_SCOPES, session_key=ticket.session_key)
    if not credential.holds():
        raise Unauthorized("what the ticket was made with has ended")
    return credential


def _of_session(headers: dict[bytes, bytes]) -> Credential:
    key = _session_cookie(headers)
    if key is None:
        raise Unauthorized("sign in first")
    if origin(headers.get(b"origin", b"").decode("latin1")) not in {origin(known) for known in settings.PAR.origins}:
        raise WrongOrigin("this page is not one of the site's")
    user = session_users([key]).get(key)
    if user is None:
        raise Unauthorized("sign in again")
    SignIn.touch(key)
    return Credential(user, SESSION_SCOPES, session_key=key)


def bearer_token(authorization: str) -> ApiToken | None:
    """Return the valid token of an `Authorization` header, None for anything else."""
    scheme, _, value = authorization.partition(" ")
    return ApiToken.find(value.strip()) if scheme.lower() == "bearer" else None


def session_users(keys: Collection[str]) -> dict[str, User]:
    """Return the active people of these sessions, as long as their password is the one with which a session began."""
    wanted = {key for key in keys if SESSION_KEY_FORM.fullmatch(key)}
    if not wanted:
        return {}
    rows = Session.objects.filter(session_key__in=wanted, expire_date__gt=timezone.now())
    sessions = {row.session_key: row.get_decoded() for row in rows}
    people = User.objects.filter(is_active=True).in_bulk(
        {data[SESSION_KEY] for data in sessions.values() if SESSION_KEY in data}
    )
    known = {str(pk): user for pk, user in people.items()}
    return {
        key: user
        for key, data in sessions.items()
        if (user := known.get(data.get(SESSION_KEY, ""))) and _began(data, user)
    }


def _began(session: dict[str, Any], user: User) -> bool:
    """Return whether a session is one of this person's with the password of now."""
    if session.get(BACKEND_SESSION_KEY) not in settings.AUTHENTICATION_BACKENDS:
        return False
    stored = session.get(HASH_SESSION_KEY, "")
    return any(
        constant_time_compare(stored, known)
        for known in (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    )


def origin(value: str) -> Origin:
    """Return scheme, host and port of an origin; what is no origin equals none of ours."""
    try:
        parts = urlsplit(value)
        return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return "", None, None


def _session_cookie(headers: dict[bytes, bytes]) -> str | None:
    cookies: SimpleCookie = SimpleCookie()
    try:
        cookies.load(headers.get(b"cookie", b"").decode("latin1"))
    except CookieError:
        return None
    cookie = cookies.get(settings.SESSION_COOKIE_NAME)
    return cookie.value if cookie is not None else None
