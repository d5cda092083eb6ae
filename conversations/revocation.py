"""How a process hears at once that a sign-in may be over.

Signals tell of what this process does itself: a session ends, an account changes, a token is revoked or deleted. They
come from any thread and from inside transactions, so the news is passed on after the commit. What another process does
(a management command, say) is not heard here: whoever waits looks again after a while.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models.signals import post_delete, post_save
from django.dispatch import Signal

from conversations.models import ApiToken, User
from conversations.models.credentials import token_revoked

SOURCES: tuple[tuple[Signal, type], ...] = (
    (post_delete, Session),
    (post_save, User),
    (post_delete, User),
    (post_save, ApiToken),
    (post_delete, ApiToken),
    (token_revoked, ApiToken),
)
DECISIVE = frozenset({"is_active", "password", "expires_at", "revoked_at"})


class RevocationNews:
    """Wakes one task of an event loop; between `connect` and `disconnect`."""

    def __init__(self) -> None:
        self._news = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def connect(self) -> None:
        """Listen, on behalf of the running loop."""
        self._loop = asyncio.get_running_loop()
        for signal, sender in SOURCES:
            signal.connect(self._heard, sender=sender)

    def disconnect(self) -> None:
        for signal, sender in SOURCES:
            signal.disconnect(self._heard, sender=sender)

    async def wait(self, seconds: float) -> None:
        """Return when there is news, and after this time without."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        self._news.clear()

    def _heard(self, sender: type, **told: Any) -> None:
        fields = told.get("update_fields")
        if told.get("created") or (fields is not None and DECISIVE.isdisjoint(fields)):
            return  # a sign-in notes its time, for instance
        transaction.on_commit(self._pass_on, using=told.get("using"))

    def _pass_on(self) -> None:
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            self._loop.call_soon_threadsafe(self._news.set)
