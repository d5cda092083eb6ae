"""Django's sessions in the database, whose sign-ins follow them to a new key (SESSION_ENGINE)."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.contrib.sessions.backends import db


class SessionStore(db.SessionStore):
    """A session; its name is part of the signature of what is stored."""

    def cycle_key(self) -> None:
        before = self.session_key
        super().cycle_key()
        _follow(before, self.session_key)

    async def acycle_key(self) -> None:
        before = self.session_key
        await super().acycle_key()
        await sync_to_async(_follow)(before, self.session_key)


def _follow(before: str | None, after: str | None) -> None:
    from conversations.models import SignIn  # this module is loaded before the models are

    if before and after:
        SignIn.objects.filter(session_key=before).update(session_key=after)
