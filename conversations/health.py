"""Whether the process is there, and whether it takes work."""

from __future__ import annotations

from typing import Any, cast

from django.http import HttpRequest, JsonResponse


async def healthz(request: HttpRequest) -> JsonResponse:
    """Answer 200 as long as the process answers at all."""
    return JsonResponse({"status": "ok"})


async def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 while new runs are taken, else 503."""
    scope: dict[str, Any] = getattr(cast(Any, request), "scope", {})
    host = scope.get("par.host")
    ready = host is not None and host.accepting
    return JsonResponse({"status": "ready" if ready else "not ready"}, status=200 if ready else 503)
