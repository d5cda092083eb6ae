"""What goes by itself: conversations whose time is over, and what nobody can use any more.

`manage.py prune` and, once an hour, `serve` do it in short transactions, so that nobody has to wait for long.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import models, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from agent.governance import audit
from agent.governance.audit import AuditEntry
from conversations.attachments import prune_attachments
from conversations.models import (
    LIVE,
    Attachment,
    Conversation,
    Execution,
    ExecutionStatus,
    IdempotentRequest,
    OneTimeLink,
    SignIn,
    SocketTicket,
)
from conversations.store import delete_conversation

logger = logging.getLogger("conversations.retention")

TEMPORARY, RETENTION, UPLOADS = "temporary", "retention", "unused uploads"
ANSWERS_KEPT = timedelta(days=1)  # how long an Idempotency-Key is remembered
UPLOADS_KEPT = timedelta(days=1)  # how long a file may wait for the message that it belongs to
UNDER_WAY = (*LIVE, ExecutionStatus.SUSPENDED)
_BATCH = 200


class Pruning:
    """What is due at one moment; `steps` deletes it piece by piece and counts it in `counts`."""

    def __init__(self, now: datetime | None = None) -> None:
        self.now = now or timezone.now()
        self.counts: Counter[str] = Counter()
        self.failed: set[UUID] = set()

    def due(self) -> dict[str, int]:
        """Return how much of each kind is due; deletes nothing."""
        found = {reason: self._conversations(reason).count() for reason in (TEMPORARY, RETENTION)}
        found |= {name: rows.count() for name, rows in self._expired().items()}
        waiting = Attachment.objects.filter(conversations=None, created_at__lt=self.now - UPLOADS_KEPT)
        return found | {UPLOADS: waiting.count()}

    def steps(self) -> Iterator[None]:
        """Delete what is due; each step is one short transaction. What cannot be deleted is logged and left."""
        for reason in (TEMPORARY, RETENTION):
            due = self._conversations(reason).order_by("updated_at", "pk").values_list("pk", flat=True)
            while pks := list(due.exclude(pk__in=self.failed)[:_BATCH]):
                for pk in pks:
                    self._prune(pk, reason)
                    yield
        for name, rows in self._expired().items():
            while expired := list(rows.order_by("pk").values_list("pk", flat=True)[:_BATCH]):
                rows.model._default_manager.filter(pk__in=expired).delete()
                self.counts[name] += len(expired)
                yield
        if uploads := prune_attachments(self.now - UPLOADS_KEPT):
            self.counts[UPLOADS] += uploads
        yield

    def _conversations(self, reason: str) -> QuerySet[Conversation]:
        """Return the conversations that are to go for this reason, and not for one before it."""
        rows = Conversation.objects.exclude(
            pk__in=Execution.objects.filter(status__in=UNDER_WAY).values("conversation_id")
        )
        temporary = Q(temporary=True, updated_at__lt=self.now - timedelta(hours=settings.PAR.temporary_hours))
        if reason == TEMPORARY:
            return rows.filter(temporary)
        days: int = settings.PAR.retention_days
        if not days:
            return rows.none()
        return rows.filter(updated_at__lt=self.now - timedelta(days=days)).exclude(temporary)

    def _prune(self, pk: UUID, reason: str) -> None:
        try:
            with transaction.atomic():
                # The lock first: a start writes to the conversation before its run exists, so one of the two waits.
                if not Conversation.objects.select_for_update(of=("self",)).filter(pk=pk).values_list("pk"):
                    return
                row = self._conversations(reason).filter(pk=pk).select_related("owner").first()
                if row is not None and delete_conversation(row.owner, pk):
                    entry = AuditEntry(
                        "conversation-pruned", row.owner_id, conversation_id=str(pk), code=reason, created_at=self.now
                    )
                    audit.write([entry])
                    self.counts[reason] += 1
        except Exception:
            self.failed.add(pk)
            logger.exception("conversation %s could not be pruned", pk)

    def _expired(self) -> Mapping[str, QuerySet[Any, Any]]:
        """Return what nobody can use any more, by what it is called."""
        expired: dict[str, models.QuerySet[Any, Any]] = {
            "one-time links": OneTimeLink.objects.filter(expires__lte=self.now),
            "socket tickets": SocketTicket.objects.filter(expires__lte=self.now),
            "idempotency keys": IdempotentRequest.objects.filter(created_at__lte=self.now - ANSWERS_KEPT),
            "sessions": Session.objects.filter(expire_date__lte=self.now),
            "sign-ins": SignIn.objects.exclude(session_key__in=Session.objects.values("session_key")),
        }
        return expired
