"""Tools as administrators govern them."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group
from django.db import models


class ToolPermission(models.TextChoices):
    ALLOW = "allow", "allow"
    CONFIRM = "confirm", "ask first"
    DENY = "deny", "deny"


class ToolRecord(models.Model):
    """An installed tool, kept in step with the code by `agent.governance.tools`."""

    name = models.CharField(max_length=128, unique=True, editable=False)
    app = models.CharField(max_length=100, editable=False)
    description = models.TextField(editable=False)
    definition: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict, editable=False)
    enabled = models.BooleanField(default=True)
    permission = models.CharField(
        max_length=16,
        choices=ToolPermission,
        blank=True,
        help_text="Empty: as the tool declares. The stricter one holds.",
    )
    groups = models.ManyToManyField(
        Group, blank=True, related_name="+", help_text="Who may use the tool; empty: everybody who is signed in."
    )
    present = models.BooleanField(default=True, editable=False, help_text="Whether the code still has this tool.")
    last_seen = models.DateTimeField(editable=False)

    class Meta:
        verbose_name = "tool"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
