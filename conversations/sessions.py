"""What no database should see: session cookies that cannot be ours, and NUL in an address."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse

from conversations.api.errors import problem
from conversations.credentials import SESSION_KEY_FORM
from conversations.middleware import AsyncMiddleware


class CleanRequestMiddleware(AsyncMiddleware):
    """Takes a session cookie of another form out of the request, and refuses NUL, which PostgreSQL does not take."""

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        key = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
        if key is not None and not SESSION_KEY_FORM.fullmatch(key):
            del request.COOKIES[settings.SESSION_COOKIE_NAME]
        if "%00" in request.META.get("QUERY_STRING", "") or "\x00" in request.path:
            if request.path_info.startswith(settings.PAR.base_path + "/"):
                return problem(400, "INVALID_ARGUMENT", "an address holds no NUL")
            raise BadRequest("an address holds no NUL")
        return await self.get_response(request)
