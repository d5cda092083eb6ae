"""What the site's middleware has in common: it runs on the event loop and takes no thread."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse


class AsyncMiddleware(ABC):
    """Middleware that is awaited."""

    sync_capable = False
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Awaitable[HttpResponse]]) -> None:
        assert iscoroutinefunction(get_response)
        self.get_response = get_response
        markcoroutinefunction(self)

    @abstractmethod
    async def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer a request, with `get_response` or without."""
