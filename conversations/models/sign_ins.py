"""Which sessions are whose: Django's own table of sessions does not say."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.db import models
from django.utils import timezone

from agent.runtime.ids import uuid7
from conversations.models.people import User

USER_AGENT_LENGTH = 300
SEEN_EVERY = timedelta(minutes=5)


class SignIn(models.Model):
    """A session of a person; over when there is no session of this key.

    One that began before sign-ins were noted has no `created_at`, browser and address.
    """

    id: models.UUIDField[UUID, UUID] = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="sign_ins")
    session_key = models.CharField(max_length=40, unique=True, editable=False)
    user_agent = models.CharField(max_length=USER_AGENT_LENGTH, blank=True)
    address = models.GenericIPAddressField(null=True)
    created_at = models.DateTimeField(null=True)
    last_seen_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "sign-in"
        ordering = ["-last_seen_at", "-id"]

    def __str__(self) -> str:
        return f"sign-in of {self.user_id}"

    @classmethod
    def touch(cls, session_key: str) -> None:
        """Note that a session is in use; at most one write in five minutes."""
        now = timezone.now()
        stale = models.Q(last_seen_at=None) | models.Q(last_seen_at__lt=now - SEEN_EVERY)
        cls.objects.filter(stale, session_key=session_key).update(last_seen_at=now)
