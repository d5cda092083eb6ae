"""What lets somebody in: API tokens, one-time links and tickets of sockets. Only digests are stored."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Self
from uuid import UUID

from django.core import signing
from django.db import models, transaction
from django.dispatch import Signal
from django.utils import timezone

from agent.runtime.ids import uuid7
from conversations.exceptions import RateLimited
from conversations.models.people import User

SCOPES = ("read", "write", "admin")
USUAL_SCOPES = ("read", "write")
LINK_LIFETIME = timedelta(minutes=15)
TICKET_LIFETIME = timedelta(seconds=30)
TICKETS_AT_A_TIME = 20

token_revoked = Signal()  # an UPDATE, of which Django's own signals do not tell

_LINK_SALT = "conversations.one-time-link"
_BEGINNING = "par_"
_SHOWN = len(_BEGINNING) + 6


def digest(secret: str) -> str:
    """Return the SHA-256 of a secret; enough for random secrets of 32 bytes, which nobody can guess."""
    return hashlib.sha256(secret.encode()).hexdigest()


class ApiToken(models.Model):
    """A bearer token of a program that acts for a person."""

    id: models.UUIDField[UUID, UUID] = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100, help_text="What the token is for.")
    prefix = models.CharField(max_length=16, editable=False, help_text="How the token begins.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    scopes: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "API token"
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @classmethod
    def issue(
        cls,
        user: User,
        name: str,
        *,
        scopes: Iterable[str] = USUAL_SCOPES,
        expires_at: datetime | None = None,
    ) -> tuple[Self, str]:
        """Create a token; returns the row and the plain token, which cannot be shown again."""
        wanted = list(dict.fromkeys(scopes))
        if not wanted:
            raise ValueError(f"a token needs a scope; there are {', '.join(SCOPES)}")
        if unknown := sorted(set(wanted) - set(SCOPES)):
            raise ValueError(f"unknown scope {unknown[0]!r}; there are {', '.join(SCOPES)}")
        if "admin" in wanted and not user.is_staff:
            raise ValueError("the scope 'admin' is for staff")
        plain = _BEGINNING + secrets.token_urlsafe(32)
        row = cls.objects.create(
            user=user, name=name, prefix=plain[:_SHOWN], digest=digest(plain), scopes=wanted, expires_at=expires_at
        )
        return row, plain

    @classmethod
    def find(cls, plain: str) -> Self | None:
        """Return the token of this plain value with its user, if it is valid now and the user active."""
        row = cls.objects.select_related("user").filter(digest=digest(plain), user__is_active=True).first()
        return row if row is not None and row.valid else None

    @property
    def valid(self) -> bool:
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > timezone.now())

    def touch(self) -> None:
        """Note that the token was used; at most one write a minute."""
        now = timezone.now()
        stale = models.Q(last_used_at=None) | models.Q(last_used_at__lt=now - timedelta(minutes=1))
        type(self).objects.filter(stale, pk=self.pk).update(last_used_at=now)

    def revoke(self) -> None:
        """Make the token invalid from now on; a second call does nothing."""
        type(self).objects.filter(pk=self.pk, revoked_at=None).update(revoked_at=timezone.now())
        token_revoked.send(type(self))


class OneTimeLink(models.Model):
    """A link that signs its user in once, within 15 minutes."""

    id: models.UUIDField[UUID, UUID] = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="one_time_links")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField()
    used = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "one-time link"

    def __str__(self) -> str:
        return f"link of {self.user_id}, until {self.expires:%Y-%m-%d %H:%M}"

    @classmethod
    def issue(cls, user: User) -> str:
        """Create a link and return its token, the last part of `/link/<token>/`; expired links go."""
        cls.objects.filter(user=user, expires__lt=timezone.now()).delete()
        token = signing.dumps([user.pk, secrets.token_urlsafe(16)], salt=_LINK_SALT)
        cls.objects.create(user=user, digest=digest(token), expires=timezone.now() + LINK_LIFETIME)
        return token

    @classmethod
    def find(cls, token: str) -> Self | None:
        """Return the link of this token with its user, if it can still be used; burns nothing."""
        try:
            user_id, _ = signing.loads(token, salt=_LINK_SALT, max_age=LINK_LIFETIME)
        except signing.BadSignature:
            return None
        return (
            cls.objects.select_related("user")
            .filter(digest=digest(token), user_id=user_id, used=None)
            .filter(expires__gt=timezone.now(), user__is_active=True)
            .first()
        )

    def redeem(self) -> bool:
        """Use the link up; true for exactly one caller."""
        return bool(type(self).objects.filter(pk=self.pk, used=None).update(used=timezone.now()))


class SocketTicket(models.Model):
    """Opens one socket within 30 seconds, in the place of the token or session that it was made with."""

    id: models.UUIDField[UUID, UUID] = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, null=True, related_name="+")
    session_key = models.CharField(max_length=40, blank=True, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    expires = models.DateTimeField(db_index=True)
    used = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "ticket of a socket"
        verbose_name_plural = "tickets of sockets"

    def __str__(self) -> str:
        return f"ticket of {self.user_id}, until {self.expires:%Y-%m-%d %H:%M:%S}"

    @classmethod
    def issue(cls, user: User, *, token_id: UUID | None = None, session_key: str | None = None) -> tuple[Self, str]:
        """Create a ticket; returns the row and its plain value. Expired tickets go, whosever they are.

        Raises `RateLimited` while a person has too many that are not used yet.
        """
        now = timezone.now()
        cls.objects.filter(expires__lte=now).delete()
        with transaction.atomic():
            User.objects.select_for_update(no_key=True).get(pk=user.pk)  # two requests at once count one another
            if cls.objects.filter(user=user, used=None, expires__gt=now).count() >= TICKETS_AT_A_TIME:
                raise RateLimited("too many tickets wait to be used; try again in half a minute")
            plain = secrets.token_urlsafe(32)
            row = cls.objects.create(
                user=user,
                token_id=token_id,
                session_key=session_key or "",
                digest=digest(plain),
                expires=now + TICKET_LIFETIME,
            )
        return row, plain

    @classmethod
    def redeem(cls, plain: str) -> Self | None:
        """Use up the ticket of this value and return it; for exactly one caller, and only while it is valid."""
        now = timezone.now()
        mine = cls.objects.filter(digest=digest(plain))
        if not mine.filter(used=None, expires__gt=now).update(used=now):
            return None
        return mine.select_related("user", "token").first()
