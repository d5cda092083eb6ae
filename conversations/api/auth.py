"""Who calls the HTTP API: a bearer token decides alone; without one the session counts, and then CSRF does too.

The operations find the `Credential` in `request.auth`.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from ninja.errors import HttpError
from ninja.security.base import AuthBase
from ninja.utils import check_csrf

from conversations.api.serving import in_database
from conversations.api.throttling import take
from conversations.credentials import SESSION_SCOPES, Credential, bearer_token, session_users


class SessionOrBearer(AuthBase):
    """Returns the caller's credential, None for 401; `scope` is what a token must hold."""

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __init__(self, scope: str) -> None:
        self.scope = scope
        super().__init__()

    async def __call__(self, request: HttpRequest) -> Credential | None:
        header = request.headers.get("Authorization")
        if header is not None:
            return await in_database(request, self._of_token, request, header)
        key = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
        if key is None:
            return None
        if check_csrf(request):
            raise HttpError(403, "CSRF check failed")
        return await in_database(request, self._of_session, request, key)

    def _of_session(self, request: HttpRequest, key: str) -> Credential | None:
        user = session_users([key]).get(key)
        if user is None:
            return None
        take(request, user.pk)
        found = Credential(user, SESSION_SCOPES, session_key=key)
        found.demand(self.scope)
        return found

    def _of_token(self, request: HttpRequest, header: str) -> Credential | None:
        token = bearer_token(header)
        if token is None:
            return None
        take(request, token.user_id)
        found = Credential(token.user, frozenset(token.scopes), token_id=token.pk)
        found.demand(self.scope)
        token.touch()
        return found


READ = SessionOrBearer("read")
WRITE = SessionOrBearer("write")
ADMIN = SessionOrBearer("admin")


def credential(request: HttpRequest) -> Credential:
    """Return who calls an operation."""
    found: Any = request.auth  # type: ignore[attr-defined]
    assert isinstance(found, Credential)
    return found
