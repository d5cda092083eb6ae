"""What can be searched for; `conversations.search` is the only code that writes it."""

from __future__ import annotations

from django.db import models

from conversations.models.history import Conversation, Revision

MESSAGE_ID_LENGTH = 512
DIGEST_LENGTH = 32


class SearchEntry(models.Model):
    """A message of a conversation, or with no revision, no message id, no digest and no role its title.

    A message whose text is another one in another revision has an entry for each text; the digest tells them apart.
    The key rises with `created_at`. The words stand beside it: on SQLite in a table for full text whose rows go with
    these by a trigger, on PostgreSQL in a column that only `conversations.search` knows.
    """

    id = models.BigAutoField(primary_key=True)  # always given; on SQLite this kind is the row id
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="+", db_index=False)
    revision = models.ForeignKey(Revision, on_delete=models.CASCADE, null=True, related_name="+")
    message_id = models.CharField(max_length=MESSAGE_ID_LENGTH, blank=True)
    digest = models.CharField(max_length=DIGEST_LENGTH, blank=True, default="")
    role = models.CharField(max_length=16, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "search entries"
        constraints = [
            # Its index also finds the entries of a conversation.
            models.UniqueConstraint(fields=["conversation", "message_id", "digest"], name="search_entry_once"),
        ]

    def __str__(self) -> str:
        return self.message_id or "title"
