"""What happened, for those who must be able to read it afterwards."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models


class AuditRecord(models.Model):
    """One event of a run; `sequence` and `seal` belong to the sealer and are null until it has been here.

    Ids of people, executions and conversations are plain values: the record outlives what it speaks of, unchanged.
    """

    created_at = models.DateTimeField()
    event = models.CharField(max_length=64)
    execution_id = models.UUIDField(null=True, db_index=True)
    conversation_id = models.UUIDField(null=True, db_index=True)
    trace_id = models.CharField(max_length=64, blank=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.DO_NOTHING, db_constraint=False, null=True, related_name="+"
    )
    tool_name = models.CharField(max_length=128, blank=True)
    code = models.CharField(max_length=64, blank=True)
    payload: models.JSONField[dict[str, Any] | None, dict[str, Any] | None] = models.JSONField(null=True)
    sequence = models.PositiveBigIntegerField(null=True, unique=True)
    seal = models.CharField(max_length=64, null=True)

    class Meta:
        verbose_name = "audit record"
        ordering = ["-created_at", "-id"]
        indexes = [models.Index(fields=["-created_at", "-id"], name="audit_newest")]

    def __str__(self) -> str:
        return f"{self.event} {self.created_at:%Y-%m-%d %H:%M:%S}"
