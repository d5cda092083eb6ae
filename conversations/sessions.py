"""Session cookies that cannot be ours are dropped before anything looks them up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from conversations.credentials import SESSION_KEY_FORM


class SessionKeyMiddleware:
    """Takes a session cookie of another form out of the request: PostgreSQL refuses NUL with an error, for instance."""

    sync_capable = False
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Awaitable[HttpResponse]]) -> None:
        assert iscoroutinefunction(get_response)
        self.get_response = get_response
        markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        key = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
        if key is not None and not SESSION_KEY_FORM.fullmatch(key):
            del request.COOKIES[settings.SESSION_COOKIE_NAME]
        return await self.get_response(request)
