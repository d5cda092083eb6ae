"""What lets somebody use a socket, and whether it still does.

A bearer token decides alone; without one the session of a page of ours counts. Both may end while the socket is open:
by signing out, a new password, a closed account, a revoked or expired token.

Django's own `get_user` is not used here: it may rotate the session key, and a socket cannot set a cookie.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from importlib import import_module
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, load_backend
from django.utils.crypto import constant_time_compare

from conversations.exceptions import Unauthorized, WrongOrigin
from conversations.models import ApiToken, User

Origin = tuple[str, str | None, int | None]

SESSION_KEY_FORM = re.compile("[a-z0-9]{8,64}")
SESSION_SCOPES = frozenset({"read", "write"})


@dataclass(frozen=True, slots=True)
class Credential:
    """A person, what they may do, and the token or session that says so."""

    user: User
    scopes: frozenset[str]
    token_id: UUID | None = None
    session_key: str | None = None

    def holds(self) -> bool:
        """Return whether the token or session is still good; reads the database."""
        if self.token_id is not None:
            token = ApiToken.objects.select_related("user").filter(pk=self.token_id, user__is_active=True).first()
            return token is not None and token.valid
        user = session_user(self.session_key or "")
        return user is not None and user.pk == self.user.pk


def identify(headers: dict[bytes, bytes]) -> Credential:
    """Return who opens a socket; with an `Authorization` header, only that counts.

    Raises `Unauthorized`, and `WrongOrigin` for a cookie from a page that is not ours.
    """
    authorization = headers.get(b"authorization")
    if authorization is not None:
        token = bearer_token(authorization.decode("latin1"))
        if token is None:
            raise Unauthorized("the token is not valid")
        token.touch()
        return Credential(token.user, frozenset(token.scopes), token_id=token.pk)
    key = _session_cookie(headers)
    if key is None:
        raise Unauthorized("sign in first")
    if origin(headers.get(b"origin", b"").decode("latin1")) not in {origin(known) for known in settings.PAR.origins}:
        raise WrongOrigin("this page is not one of the site's")
    user = session_user(key)
    if user is None:
        raise Unauthorized("sign in again")
    return Credential(user, SESSION_SCOPES, session_key=key)


def bearer_token(authorization: str) -> ApiToken | None:
    """Return the valid token of an `Authorization` header, None for anything else."""
    scheme, _, value = authorization.partition(" ")
    return ApiToken.find(value.strip()) if scheme.lower() == "bearer" else None


def session_user(key: str) -> User | None:
    """Return the active person whose session this is, as long as their password is the one it began with."""
    if not SESSION_KEY_FORM.fullmatch(key):
        return None
    session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    path = session.get(BACKEND_SESSION_KEY)
    if path not in settings.AUTHENTICATION_BACKENDS:
        return None
    user = load_backend(path).get_user(session[SESSION_KEY])
    if not isinstance(user, User) or not user.is_active:
        return None
    stored = session.get(HASH_SESSION_KEY, "")
    known_hashes = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    return user if any(constant_time_compare(stored, known) for known in known_hashes) else None


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
