"""Requests that were carried out under an `Idempotency-Key`."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.db import models

from agent import crypto
from agent.runtime.ids import uuid7


class IdempotentRequest(models.Model):
    """A request that changes nothing when it comes again; the start of a run is one, under the id that it came with.

    `answer` is the sealed body of the first answer, for it may hold a secret that is shown once; empty for requests
    that are carried out again, because doing so gives the same answer, and for starts, whose answer is their run.
    `about` is the id of the conversation that the answer is about: when that is deleted the answer goes, and the row
    stays to tell that its key was used.
    """

    id: models.UUIDField[UUID, UUID] = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.UUIDField()
    digest = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(default=0)
    answer = models.TextField(blank=True)
    about = models.UUIDField(null=True, blank=True, db_index=True)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        verbose_name = "idempotent request"
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="idempotent_request_once"),
        ]

    def __str__(self) -> str:
        return str(self.key)

    def keep(self, status: int, body: bytes, about: UUID | None = None) -> None:
        """Store the answer."""
        self.status, self.answer, self.about = status, self.sealed(body), about
        self.save(update_fields=["status", "answer", "about"])

    @property
    def orphaned(self) -> bool:
        """Whether the conversation that the answer was about is deleted."""
        return self.about is not None and not self.answer

    def sealed(self, body: bytes) -> str:
        """Return a body as this row stores it, with the key of now."""
        return crypto.seal(body.decode(), self._place)

    @property
    def body(self) -> bytes:
        """The body of the first answer."""
        return crypto.unseal(self.answer, self._place).encode()

    @property
    def _place(self) -> str:
        return f"conversations.idempotentrequest:answer:{self.pk}"
