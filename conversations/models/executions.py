"""Runs of agents and the processes they live in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import models

from agent.models import AgentProfile
from agent.runtime.ids import uuid7
from conversations.models.history import Conversation, Revision, RevisionKind
from conversations.models.stored import StoredJSON

NO_REQUEST = ""  # digest of a run that was no run of this site: it came with an import


class ExecutionStatus(models.TextChoices):
    """The life of an execution (P20)."""

    PENDING = "pending", "pending"
    SCHEDULED = "scheduled", "scheduled"
    RUNNING = "running", "running"
    WAITING_INPUT = "waiting_input", "waiting for a person"
    SUSPENDED = "suspended", "suspended"
    COMPLETED = "completed", "completed"
    FAILED = "failed", "failed"
    CANCELLED = "cancelled", "cancelled"


# A conversation has at most one of these at a time.
LIVE = (
    ExecutionStatus.PENDING,
    ExecutionStatus.SCHEDULED,
    ExecutionStatus.RUNNING,
    ExecutionStatus.WAITING_INPUT,
)

# What such a run said is no part of its conversation, unless somebody continues from it.
UNSAVED = (ExecutionStatus.FAILED, ExecutionStatus.CANCELLED)

# P20: the 18 legal moves; what ends an execution ends it for good.
MOVES: Mapping[ExecutionStatus, frozenset[ExecutionStatus]] = {
    ExecutionStatus.PENDING: frozenset({ExecutionStatus.SCHEDULED, ExecutionStatus.CANCELLED}),
    ExecutionStatus.SCHEDULED: frozenset({ExecutionStatus.RUNNING, ExecutionStatus.CANCELLED}),
    ExecutionStatus.RUNNING: frozenset(
        {
            ExecutionStatus.WAITING_INPUT,
            ExecutionStatus.SUSPENDED,
            ExecutionStatus.COMPLETED,
            ExecutionStatus.FAILED,
            ExecutionStatus.CANCELLED,
        }
    ),
    ExecutionStatus.WAITING_INPUT: frozenset(
        {
            ExecutionStatus.RUNNING,
            ExecutionStatus.COMPLETED,
            ExecutionStatus.FAILED,
            ExecutionStatus.CANCELLED,
        }
    ),
    ExecutionStatus.SUSPENDED: frozenset(
        {
            ExecutionStatus.SCHEDULED,
            ExecutionStatus.RUNNING,
            ExecutionStatus.COMPLETED,
            ExecutionStatus.FAILED,
            ExecutionStatus.CANCELLED,
        }
    ),
    ExecutionStatus.COMPLETED: frozenset(),
    ExecutionStatus.FAILED: frozenset(),
    ExecutionStatus.CANCELLED: frozenset(),
}


def may_become(status: ExecutionStatus) -> list[ExecutionStatus]:
    """Return the states from which an execution may move to `status`."""
    return [before for before, after in MOVES.items() if status in after]


class HostProcess(models.Model):
    """A serving process; the executions it runs point to it."""

    id: models.UUIDField[UUID, UUID] = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.CharField(max_length=255)
    started_at = models.DateTimeField(auto_now_add=True)
    heartbeat_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "host process"
        verbose_name_plural = "host processes"
        ordering = ["-started_at"]

    def __str__(self) -> str:
        return self.channel


class ExecutionSet(models.QuerySet["Execution"]):
    def made_here(self) -> ExecutionSet:
        """Leave out what came with an import."""
        return self.exclude(request_digest=NO_REQUEST)

    def unsaved(self) -> ExecutionSet:
        """Leave those that were stopped or failed and that nobody continued from."""
        return self.filter(revision=None, status__in=UNSAVED)


class Execution(models.Model):
    """One run of an agent on a conversation.

    Its revision will be of `kind`, a child of `base`; an edited or regenerated turn stands `beside` the revision that
    it is another version of, whose first `kept` messages stay.
    `input` is the user message in wire form; `transcript` the stable messages added so far, input included, until a
    revision holds them; `calls` says of each dispatched tool call how far it came; `partial` is the message that was
    being written when the run ended, to be read and not to be replayed. `request_id` is the client's id of
    the start command, `request_digest` what it asked for. `model_state_reset` tells that the agent's model had no use
    for the model state of `base`. A run that could not be set up has no `started_at`.
    """

    id: models.UUIDField[UUID, UUID] = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="executions")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="executions")
    agent = models.ForeignKey(AgentProfile, on_delete=models.PROTECT, related_name="executions")
    request_id = models.UUIDField()
    request_digest = models.CharField(max_length=64)
    client_id = models.CharField(max_length=128, blank=True)
    trace_id = models.CharField(max_length=64, blank=True)
    base = models.ForeignKey(Revision, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    base_version = models.PositiveBigIntegerField(default=0)
    kind = models.CharField(
        max_length=16, choices=RevisionKind, default=RevisionKind.TURN, db_default=RevisionKind.TURN
    )
    beside = models.ForeignKey(Revision, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    kept = models.PositiveIntegerField(default=0, db_default=0)
    input: StoredJSON[dict[str, Any], dict[str, Any]] = StoredJSON(default=dict)
    model_state_reset = models.BooleanField(default=False, db_default=False)
    status = models.CharField(max_length=16, choices=ExecutionStatus, default=ExecutionStatus.PENDING)
    outcome: StoredJSON[dict[str, Any] | None, dict[str, Any] | None] = StoredJSON(null=True)
    error_code = models.CharField(max_length=64, blank=True)
    error_message = models.TextField(blank=True)
    retryable = models.BooleanField(default=False)
    transcript: StoredJSON[list[dict[str, Any]], list[dict[str, Any]]] = StoredJSON(default=list)
    calls: StoredJSON[dict[str, str], dict[str, str]] = StoredJSON(default=dict)
    partial: StoredJSON[dict[str, Any] | None, dict[str, Any] | None] = StoredJSON(null=True)
    model_context: StoredJSON[dict[str, Any] | None, dict[str, Any] | None] = StoredJSON(null=True)
    interrupt: StoredJSON[dict[str, Any] | None, dict[str, Any] | None] = StoredJSON(null=True)
    limits: StoredJSON[dict[str, Any], dict[str, Any]] = StoredJSON(default=dict)
    usage: StoredJSON[dict[str, Any] | None, dict[str, Any] | None] = StoredJSON(null=True)
    last_seq = models.PositiveBigIntegerField(default=0)
    revision = models.ForeignKey(Revision, on_delete=models.SET_NULL, null=True, blank=True, related_name="executions")
    host = models.ForeignKey(HostProcess, on_delete=models.SET_NULL, null=True, blank=True, related_name="executions")
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = ExecutionSet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["user", "request_id"], name="execution_request_once"),
            models.UniqueConstraint(
                fields=["conversation"], condition=models.Q(status__in=LIVE), name="execution_one_live"
            ),
        ]
        indexes = [
            models.Index(fields=["host"], condition=models.Q(status__in=LIVE), name="execution_host_live"),
            models.Index(fields=["conversation", "-created_at"], name="execution_newest"),
            models.Index(fields=["-created_at", "-id"], name="execution_all_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.pk} ({self.status})"

    @property
    def live(self) -> bool:
        return self.status in LIVE
