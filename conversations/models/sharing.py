"""Links under which anybody may read a conversation as it was at one revision. Only digests are stored."""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Literal, TypeAlias
from uuid import UUID

from django.conf import settings
from django.db import models
from django.utils import timezone

from agent.runtime.ids import uuid7
from conversations.models.credentials import digest
from conversations.models.history import TITLE_LENGTH, Conversation, Revision

ShareState: TypeAlias = Literal["live", "expired", "revoked"]

_SHOWN = 6
_HEAVY = ("revision__context", "revision__model_state", "revision__model_context")


class ShareQuerySet(models.QuerySet["ShareLink"]):
    def live(self) -> ShareQuerySet:
        """Return the links that neither were revoked nor have expired."""
        return self.filter(models.Q(expires_at=None) | models.Q(expires_at__gt=timezone.now()), revoked_at=None)

    def light(self) -> ShareQuerySet:
        """Return the links with conversation and revision, but without what was said in them."""
        return self.select_related("conversation", "revision").defer(*_HEAVY)


class ShareLink(models.Model):
    """A link to a conversation at `revision`; what was said later is not shown until it is published again.

    `title` is that of the conversation when it was published.
    """

    id: models.UUIDField[UUID, UUID] = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="share_links")
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="share_links")
    # A link never holds up the deletion of what it shows.
    revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="share_links")
    prefix = models.CharField(max_length=16, editable=False, help_text="How the secret part of the link begins.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    title = models.CharField(max_length=TITLE_LENGTH, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    published_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = ShareQuerySet.as_manager()

    class Meta:
        verbose_name = "share link"
        ordering = ["-id"]
        indexes = [models.Index(fields=["owner", "-id"], name="share_link_of_owner")]

    def __str__(self) -> str:
        return f"Link {self.prefix}…"

    @classmethod
    def publish(
        cls, conversation: Conversation, revision: Revision, title: str, *, expires_at: datetime | None = None
    ) -> tuple[ShareLink, str]:
        """Make a link; returns the row and the secret part of the link, which cannot be shown again."""
        token = secrets.token_urlsafe(32)
        row = cls.objects.create(
            owner_id=conversation.owner_id,
            conversation=conversation,
            revision=revision,
            prefix=token[:_SHOWN],
            digest=digest(token),
            title=title,
            expires_at=expires_at,
        )
        return row, token

    @classmethod
    def find(cls, token: str) -> ShareLink | None:
        """Return what the link with this secret part leads to, unless it is over or its owner's account closed."""
        rows = cls.objects.live().light().select_related("conversation__agent", "owner")
        return rows.filter(digest=digest(token), owner__is_active=True).first()

    @property
    def state(self) -> ShareState:
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= timezone.now() else "live"

    @property
    def up_to_date(self) -> bool:
        """Whether the link shows all that the conversation says by now."""
        return self.revision_id == self.conversation.head_id
