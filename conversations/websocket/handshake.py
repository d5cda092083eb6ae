"""Who may open a socket: decided before the consumer exists.

A refusal is accepted and closed, since a browser cannot read the status of a refused upgrade:
4401 not signed in, 4403 a cookie from a page that is not ours, 4406 no common subprotocol, 4500 not run by `serve`.

Django's own `get_user` is not used here: it may rotate the session key, and a socket cannot set a cookie.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from http.cookies import CookieError, SimpleCookie
from importlib import import_module
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, load_backend
from django.utils.crypto import constant_time_compare

from conversations.hosting.host import ExecutionHost
from conversations.models import ApiToken, User
from conversations.websocket.protocol import PROTOCOL

logger = logging.getLogger("conversations.websocket")

Receive: TypeAlias = Callable[[], Awaitable[dict[str, Any]]]
Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]
Origin: TypeAlias = tuple[str, str | None, int | None]

UNAUTHENTICATED = 4401
WRONG_ORIGIN = 4403
NO_SUBPROTOCOL = 4406
NOT_SERVED = 4500


class Refused(Exception):
    """Raised when a socket may not be opened; `code` is its close code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Handshake:
    """ASGI middleware that puts `user`, `scopes` and `subprotocol` into the scope, or closes the socket."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        offered: list[str] = scope["subprotocols"]
        chosen = PROTOCOL if PROTOCOL in offered else None
        try:
            host: ExecutionHost | None = scope.get("par.host")
            if host is None:
                raise Refused(NOT_SERVED)
            if offered and chosen is None:
                raise Refused(NO_SUBPROTOCOL)
            user, scopes = await host.executor.run(identify, dict(scope["headers"]))
        except Refused as refused:
            logger.info("a socket from %s was refused with %d", scope.get("client"), refused.code)
            await receive()  # websocket.connect
            # A browser that offered subprotocols fails with 1006 unless one of them is chosen.
            await send({"type": "websocket.accept", "subprotocol": chosen or (offered[0] if offered else None)})
            await send({"type": "websocket.close", "code": refused.code})
            while (await receive())["type"] != "websocket.disconnect":
                pass
        else:
            scope = {**scope, "user": user, "scopes": scopes, "subprotocol": chosen}
            await self.application(scope, receive, send)


def identify(headers: dict[bytes, bytes]) -> tuple[User, frozenset[str]]:
    """Return who opens a socket and what they may do; with an `Authorization` header, only that counts.

    Raises `Refused`.
    """
    authorization = headers.get(b"authorization")
    if authorization is not None:
        scheme, _, value = authorization.decode("latin1").partition(" ")
        token = ApiToken.find(value.strip()) if scheme.lower() == "bearer" else None
        if token is None:
            raise Refused(UNAUTHENTICATED)
        token.touch()
        return token.user, frozenset(token.scopes)
    user = session_user(headers)
    if user is None or not user.is_active:
        raise Refused(UNAUTHENTICATED)
    return user, frozenset({"read", "write"})


def session_user(headers: dict[bytes, bytes]) -> User | None:
    """Return the person of the session cookie; it counts only when the page is one of ours."""
    cookies: SimpleCookie = SimpleCookie()
    try:
        cookies.load(headers.get(b"cookie", b"").decode("latin1"))
    except CookieError:
        return None
    cookie = cookies.get(settings.SESSION_COOKIE_NAME)
    if cookie is None:
        return None
    if origin(headers.get(b"origin", b"").decode("latin1")) not in {origin(known) for known in settings.PAR.origins}:
        raise Refused(WRONG_ORIGIN)
    session = import_module(settings.SESSION_ENGINE).SessionStore(cookie.value)
    path = session.get(BACKEND_SESSION_KEY)
    if path not in settings.AUTHENTICATION_BACKENDS:
        return None
    user = load_backend(path).get_user(session[SESSION_KEY])
    if not isinstance(user, User):
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
