"""Who calls the HTTP API: a bearer token decides alone; without one the session counts, and then CSRF does too."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest
from ninja.errors import HttpError
from ninja.security.base import AuthBase
from ninja.utils import check_csrf

from conversations.credentials import bearer_token
from conversations.models import User


class SessionOrBearer(AuthBase):
    """Returns the person, None for 401; `scope` is what a token must hold."""

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __init__(self, scope: str) -> None:
        self.scope = scope
        super().__init__()

    async def __call__(self, request: HttpRequest) -> User | None:
        header = request.headers.get("Authorization")
        if header is not None:
            return await sync_to_async(self._token_user)(header)
        if settings.SESSION_COOKIE_NAME not in request.COOKIES:
            return None
        if check_csrf(request):
            raise HttpError(403, "CSRF check failed")
        user: Any = await request.auser()
        return user if user.is_authenticated else None

    def _token_user(self, header: str) -> User | None:
        token = bearer_token(header)
        if token is None:
            return None
        if self.scope not in token.scopes:
            raise HttpError(403, f"this token lacks the scope {self.scope!r}")
        token.touch()
        return token.user
