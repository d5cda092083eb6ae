"""How many requests a person, or an address, may send: counted for each minute, told in every answer of the API.

The headers are those of the IETF's RateLimit fields: `RateLimit-Limit`, `-Remaining`, `-Reset` (seconds), `-Policy`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse

from conversations.addresses import client_network
from conversations.exceptions import RateLimited
from conversations.middleware import AsyncMiddleware

WINDOW = 60  # seconds


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left of somebody's minute; less than nothing where they sent too much."""

    limit: int
    remaining: int
    reset: int

    def headers(self) -> dict[str, str]:
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(max(0, self.remaining)),
            "RateLimit-Reset": str(self.reset),
            "RateLimit-Policy": f"{self.limit};w={WINDOW}",
        }


def take(request: HttpRequest, user_id: int) -> None:
    """Count a request of this person; raises `RateLimited`. Talks to the cache, so not on the event loop."""
    request.par_allowance = allowance = _counted(str(user_id))  # type: ignore[attr-defined]
    _check(allowance)


def take_unknown(request: HttpRequest) -> None:
    """Count a request of somebody who need not say who they are, by where it comes from; otherwise like `take`."""
    _check(_counted(client_network(request)))


def _counted(who: str) -> Allowance:
    limit = settings.PAR.requests_per_minute
    now = time.time()
    window, passed = divmod(now, WINDOW)
    key = f"par-rate:{who}:{int(window)}"
    cache.add(key, 0, 2 * WINDOW)
    try:
        used = cache.incr(key)
    except ValueError:  # the cache dropped it between the two
        used = 1
    return Allowance(limit, limit - used, WINDOW - int(passed))


def _check(allowance: Allowance) -> None:
    if allowance.remaining < 0:
        raise RateLimited(f"more than {allowance.limit} requests in a minute", retry_after=allowance.reset)


class RateLimitMiddleware(AsyncMiddleware):
    """Tells in each answer of the API what is left."""

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        response = await self.get_response(request)
        allowance: Allowance | None = getattr(request, "par_allowance", None)
        if allowance is not None:
            for name, value in allowance.headers().items():
                response[name] = value
        return response
