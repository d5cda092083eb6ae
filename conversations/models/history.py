"""Conversations and their revisions. `conversations.store` is the only code that writes them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import models
from django.utils import timezone

from agent.models import AgentProfile
from agent.runtime.ids import uuid7
from conversations.models.stored import StoredJSON

TITLE_LENGTH = 256
LABEL_LENGTH = 100
REVISION_BODIES = ("context", "model_state", "model_context", "usage", "outcome")  # which may be large


class Conversation(models.Model):
    """A tree of revisions with a head.

    `version` is what the wire calls revision: it rises by one with every change and never falls. `head_version` is the
    version that the last move of the head gave: who knows any version since then has seen the head.
    """

    id: models.UUIDField[UUID, UUID] = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="conversations")
    agent = models.ForeignKey(AgentProfile, on_delete=models.PROTECT, related_name="conversations")
    title = models.CharField(max_length=TITLE_LENGTH, null=True, blank=True)
    title_by_person = models.BooleanField(default=False, help_text="Whether a person chose the title.")
    head = models.ForeignKey("Revision", on_delete=models.RESTRICT, null=True, blank=True, related_name="+")
    version = models.PositiveBigIntegerField(default=0)
    head_version = models.PositiveBigIntegerField(default=0)
    pinned = models.BooleanField(default=False)
    archived = models.BooleanField(default=False)
    tags: StoredJSON[list[str], list[str]] = StoredJSON(default=list, blank=True)
    temporary = models.BooleanField(default=False, help_text="Whether it goes by itself after a while.")
    external_id = models.CharField(
        max_length=200, null=True, blank=True, help_text="What it was called where it was imported from."
    )
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-updated_at", "-id"]
        indexes = [models.Index(fields=["owner", "archived", "-updated_at", "-id"], name="conversation_owner_newest")]
        constraints = [
            models.UniqueConstraint(fields=["owner", "external_id"], name="conversation_external_once"),
        ]

    def __str__(self) -> str:
        """Never the title, which says what was spoken of: this stands in lists, links and logs."""
        return f"Conversation …{self.pk.hex[-8:]}"


class RevisionKind(models.TextChoices):
    TURN = "turn", "turn"
    EDIT = "edit", "edit"
    REGENERATE = "regenerate", "regenerate"
    COMPACTION = "compaction", "compaction"
    RECOVERED = "recovered", "recovered"
    PUT = "put", "put"
    IMPORT = "import", "import"
    RESET = "reset", "reset of the model state"


class Revision(models.Model):
    """A state of a conversation; nothing in it ever changes but its `label`, the name of a branch.

    `context` holds the messages that it adds to its parent's, or all of them for a keyframe. A `model_state` that has
    grown is a change to the parent's, see `store/chains.py`: read it with `load_context`. `model_state` and
    `model_context` (the rest: checkpoint, usage) hold for the whole path up to here.
    """

    public_id: models.UUIDField[UUID, UUID] = models.UUIDField(default=uuid7, unique=True, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveBigIntegerField()
    # RESTRICT, not PROTECT: revisions that go together with their conversation do not hold each other back.
    parent = models.ForeignKey("self", on_delete=models.RESTRICT, null=True, blank=True, related_name="children")
    kind = models.CharField(max_length=16, choices=RevisionKind, default=RevisionKind.TURN)
    label = models.CharField(max_length=LABEL_LENGTH, blank=True)
    keyframe = models.BooleanField(default=False)
    context: StoredJSON[list[dict[str, Any]], list[dict[str, Any]]] = StoredJSON(default=list)
    model_state: StoredJSON[dict[str, Any] | None, dict[str, Any] | None] = StoredJSON(null=True)
    model_context: StoredJSON[dict[str, Any], dict[str, Any]] = StoredJSON(default=dict)
    usage: StoredJSON[dict[str, Any] | None, dict[str, Any] | None] = StoredJSON(null=True)
    outcome: StoredJSON[dict[str, Any] | None, dict[str, Any] | None] = StoredJSON(null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["conversation", "-number"]
        permissions = [("view_model_state", "Can view what a model keeps for itself")]
        constraints = [
            models.UniqueConstraint(fields=["conversation", "number"], name="revision_number_once"),
        ]

    def __str__(self) -> str:
        return f"revision {self.number}"
