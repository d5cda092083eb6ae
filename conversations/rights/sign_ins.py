"""Open sessions of a person: noted at sign-in, listed, ended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils import timezone

from agent.runtime.values import clean_text
from conversations.addresses import client_address
from conversations.models import SignIn, User
from conversations.models.sign_ins import USER_AGENT_LENGTH

# The first that matches counts: most browsers claim to be others, too.
_BROWSERS = (
    ("Edge", re.compile(r"\bEdgA?/")),
    ("Opera", re.compile(r"\bOPR/")),
    ("Samsung Internet", re.compile(r"\bSamsungBrowser/")),
    ("Firefox", re.compile(r"\b(Firefox|FxiOS)/")),
    ("Chrome", re.compile(r"\b(Chrome|CriOS|Chromium|HeadlessChrome)/")),
    ("Safari", re.compile(r"\bSafari/")),
)
_SYSTEMS = (
    ("iPhone", re.compile(r"\biPhone\b")),
    ("iPad", re.compile(r"\biPad\b")),
    ("Android", re.compile(r"\bAndroid\b")),
    ("Windows", re.compile(r"\bWindows\b")),
    ("macOS", re.compile(r"\bMac OS X\b")),
    ("ChromeOS", re.compile(r"\bCrOS\b")),
    ("Linux", re.compile(r"\bLinux\b")),
)


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session as its person sees it; `began` is null where nobody noted it."""

    id: UUID
    browser: str
    address: str | None
    began: datetime | None
    seen: datetime | None
    is_this: bool


def note_sign_in(request: HttpRequest | None, user: User, **told: Any) -> None:
    """Remember whose session this is (a receiver of `user_logged_in`)."""
    session = getattr(request, "session", None)
    if request is None or session is None:
        return
    if session.session_key is None:  # another person was signed in here, whose session is gone with its key
        session.create()
    now = timezone.now()
    values = {
        "user": user,
        "user_agent": clean_text(request.META.get("HTTP_USER_AGENT", ""))[:USER_AGENT_LENGTH],
        "address": client_address(request),
        "created_at": now,
        "last_seen_at": now,
    }
    SignIn.objects.update_or_create(session_key=session.session_key, defaults=values)


def open_sessions(user: User, session_key: str | None) -> Sequence[OpenSession]:
    """Return the sessions in which a person is signed in, the one of `session_key` first."""
    found = [
        OpenSession(
            id=row.pk,
            browser=browser_name(row.user_agent),
            address=row.address,
            began=row.created_at,
            seen=row.last_seen_at,
            is_this=row.session_key == session_key,
        )
        for row in user.sign_ins.filter(session_key__in=_current_keys())
    ]
    return sorted(found, key=lambda each: not each.is_this)


def end_session(user: User, pk: UUID) -> bool:
    """End one of a person's sessions, wherever it is used; false if there is none, or it is somebody else's."""
    row = user.sign_ins.filter(pk=pk).first()
    if row is None:
        return False
    ended, _ = Session.objects.filter(session_key=row.session_key).delete()
    row.delete()
    return bool(ended)


def end_sessions(user: User, *, but: str | None = None) -> int:
    """End all sessions of a person, except the one with the key `but`; returns how many that were."""
    mine = user.sign_ins.exclude(session_key=but or "")
    ended, _ = Session.objects.filter(session_key__in=mine.values("session_key")).delete()
    mine.delete()
    return ended


def forget_sessions(user_id: int) -> None:
    """End every session of a person, also one that no sign-in tells of: reads all sessions of the site."""
    keys = [row.session_key for row in _sessions_of(user_id)]
    Session.objects.filter(session_key__in=keys).delete()


def _sessions_of(user_id: int) -> Iterator[Session]:
    for row in Session.objects.iterator(chunk_size=500):
        if row.get_decoded().get(SESSION_KEY) == str(user_id):
            yield row


def _current_keys() -> Any:
    return Session.objects.filter(expire_date__gt=timezone.now()).values("session_key")


def browser_name(user_agent: str) -> str:
    """Return a browser and its system in words, as in “Firefox on Linux”."""
    browser = next((name for name, form in _BROWSERS if form.search(user_agent)), "")
    system = next((name for name, form in _SYSTEMS if form.search(user_agent)), "")
    if browser and system:
        return f"{browser} on {system}"
    return browser or system or "An unknown browser"
