"""Files that people give to conversations. `conversations.attachments` is the only code that writes them."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.db import models

from agent.runtime.ids import uuid7
from conversations.models.history import Conversation

NAME_LENGTH = 200


class StoredFile(models.Model):
    """The one copy of a content in the storage. Whoever adds or removes a reference to it locks this row first."""

    digest = models.CharField(max_length=64, primary_key=True, help_text="SHA-256 of the content, in hexadecimal.")
    size = models.PositiveBigIntegerField(help_text="Bytes.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "stored file"

    def __str__(self) -> str:
        return self.digest


class Attachment(models.Model):
    """A file of a person, and the conversations that mention it; nothing in it ever changes.

    `width` and `height` are those of a picture, `pages` those of a PDF; `text` is what a model reads of a text or PDF.
    """

    id: models.UUIDField[UUID, UUID] = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="attachments")
    file = models.ForeignKey(StoredFile, on_delete=models.PROTECT, related_name="attachments", db_column="digest")
    media_type = models.CharField(max_length=64)
    name = models.CharField(max_length=NAME_LENGTH)
    size = models.PositiveBigIntegerField(help_text="Bytes.")
    width = models.PositiveIntegerField(null=True, blank=True)
    height = models.PositiveIntegerField(null=True, blank=True)
    pages = models.PositiveIntegerField(null=True, blank=True)
    text = models.TextField(blank=True)
    conversations: models.ManyToManyField[Conversation, models.Model] = models.ManyToManyField(
        Conversation, related_name="attachments"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [models.Index(fields=["owner", "created_at"], name="attachment_of_owner")]

    def __str__(self) -> str:
        return self.name

    @property
    def digest(self) -> str:
        return self.file_id

    @property
    def is_picture(self) -> bool:
        return self.media_type.startswith("image/")
