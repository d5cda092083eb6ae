"""Whether the process is there, and whether it takes work.

Answered before anything looks at the request: whoever balances the load asks by address, with no host name of the site.
"""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse

from conversations.api.serving import find_host
from conversations.middleware import AsyncMiddleware


class HealthMiddleware(AsyncMiddleware):
    """Answers `/healthz` (200 as long as the process answers at all) and `/readyz` (200 while new runs are taken)."""

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        answers = {"/healthz": self._health, "/readyz": self._readiness}
        answer = answers.get(request.path_info)
        if answer is None:
            return await self.get_response(request)
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        return answer(request)

    def _health(self, request: HttpRequest) -> HttpResponse:
        return JsonResponse({"status": "ok", "version": settings.VERSION})

    def _readiness(self, request: HttpRequest) -> HttpResponse:
        host = find_host(request)
        ready = host is not None and host.accepting
        return JsonResponse({"status": "ready" if ready else "not ready"}, status=200 if ready else 503)
