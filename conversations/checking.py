"""Looking for damage in everything that is stored; nothing is ever repaired, for that would be guessing.

Conversations are walked in batches: memory does not grow with their number, and no transaction lasts long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import DEFERRED, Exists, Func, OuterRef, TextField
from django.db.models.sql.compiler import SQLCompiler
from django.utils import timezone

from conversations.attachments.damage import Mentions
from conversations.exceptions import CorruptRevision
from conversations.hosting.lost import gone
from conversations.models import LIVE, Conversation, Execution, Revision
from conversations.store.inspection import ConversationRow, Damage, Inspection, RevisionRow
from conversations.store.integrity import stored_messages

BATCH = 100  # conversations
ROWS = 20  # bodies in memory at a time


@dataclass(slots=True)
class Tally:
    """What was looked at."""

    conversations: int = 0
    revisions: int = 0


class AsStored(Func):
    """A text as it lies in the file: bytes on SQLite, which may not be UTF-8."""

    template = "%(expressions)s"
    output_field = TextField()

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any) -> tuple[str, Any]:
        return self.as_sql(compiler, connection, template="CAST(%(expressions)s AS BLOB)", **extra)


def check_all(tally: Tally) -> Iterator[Damage]:
    """Yield all damage there is, and count in `tally` what was looked at. May run while the site serves."""
    yield from _file()
    last: UUID | None = None
    while True:
        rows = Conversation.objects.order_by("pk") if last is None else Conversation.objects.filter(pk__gt=last)
        batch = list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH])
        if not batch:
            break
        yield from _certain(batch, tally)
        last = batch[-1]
    yield from _strays()


def check_conversation(pk: UUID, tally: Tally) -> Iterator[Damage]:
    """Yield the damage of one conversation."""
    yield from _certain([pk], tally)


def _certain(batch: list[UUID], tally: Tally) -> Iterator[Damage]:
    """Yield the damage of some conversations that is there at a second look, too.

    Between two queries of one look somebody may have written.
    """
    found: dict[UUID | None, list[Damage]] = {}
    for damage in _look(batch, tally):
        found.setdefault(damage.conversation_id, []).append(damage)
    for pk, damages in found.items():
        again = set(_look([pk], Tally())) if pk is not None else set()
        yield from (damage for damage in damages if damage in again)


def _look(batch: list[UUID], tally: Tally) -> Iterator[Damage]:
    found = (
        Conversation.objects.filter(pk__in=batch)
        .annotate(stored_title=AsStored("title"))
        .values_list("pk", "version", "head_version", "head_id", "head__conversation_id", "stored_title", "tags")
    )
    conversations = {row[0]: ConversationRow(*row) for row in found}
    inspections = {pk: Inspection(pk) for pk in conversations}
    mentions = Mentions()
    for pk, rows in groupby(_revisions(batch), attrgetter("conversation_id")):
        inspection = inspections.get(pk)
        if inspection is None:  # made since
            deque(rows, maxlen=0)
            continue
        for row in rows:
            yield from inspection.take(row)
            mentions.take(pk, row.number, row.context)
    for pk, inspection in inspections.items():
        yield from inspection.end(conversations[pk])
        tally.conversations += 1
        tally.revisions += inspection.revisions
    yield from _executions(batch)
    yield from (Damage("attachment", words, owner, number) for owner, number, words in mentions.damage(batch))


def _revisions(batch: list[UUID]) -> Iterator[RevisionRow]:
    rows = (
        Revision.objects.filter(conversation_id__in=batch)
        .order_by("conversation_id", "pk")
        .annotate(stored_label=AsStored("label"))
        .values_list(
            "conversation_id",
            "pk",
            "number",
            "parent_id",
            "parent__conversation_id",
            "keyframe",
            "stored_label",
            "context",
            "model_state",
            "model_context",
            "usage",
            "outcome",
        )
    )
    return (RevisionRow(*row) for row in rows.iterator(ROWS))


def _executions(batch: list[UUID]) -> Iterator[Damage]:
    """Yield executions that point elsewhere, that cannot be read, or that live on without their process."""
    json = ("input", "outcome", "transcript", "calls", "partial", "model_context", "interrupt", "limits", "usage")
    pointers = ("base", "beside", "revision")
    rows = Execution.objects.filter(conversation_id__in=batch).order_by("conversation_id", "pk")
    owners = [f"{name}__conversation_id" for name in pointers]
    keys = [f"{name}_id" for name in pointers]
    for row in rows.values("pk", "conversation_id", *keys, *owners, *json).iterator(ROWS):
        place = {"conversation_id": row["conversation_id"], "execution_id": row["pk"]}
        for name, key, owner in zip(pointers, keys, owners, strict=True):
            if row[key] is not None and row[owner] != row["conversation_id"]:
                which = "is missing" if row[owner] is None else f"is one of conversation {row[owner]}"
                yield Damage("execution", f"its {name} {which}", **place)
        unreadable = [name for name in json if row[name] is DEFERRED]
        for name, messages in (("input", [row["input"]] if row["input"] else []), ("transcript", row["transcript"])):
            try:
                stored_messages([] if name in unreadable else messages, 0)
            except CorruptRevision:
                unreadable.append(name)
        yield from (Damage("execution", f"its {name} cannot be read", **place) for name in unreadable)
    lost = rows.filter(gone(timezone.now()), status__in=LIVE)
    for pk, conversation_id, status in lost.values_list("pk", "conversation_id", "status"):
        yield Damage("process", f"it is {status!r}, and its process is gone", conversation_id, execution_id=pk)


def _strays() -> Iterator[Damage]:
    """Yield what belongs to conversations that are not there."""
    there = Exists(Conversation.objects.filter(pk=OuterRef("conversation_id")))
    revisions = Revision.objects.filter(~there).order_by("pk")
    for number, owner in revisions.values_list("number", "conversation_id").iterator():
        yield Damage("stray", "its conversation is missing", owner, number)
    executions = Execution.objects.filter(~there).order_by("pk")
    for pk, owner in executions.values_list("pk", "conversation_id").iterator():
        yield Damage("stray", "its conversation is missing", owner, execution_id=pk)


def _file() -> Iterator[Damage]:
    """Yield what SQLite says about its own file; PostgreSQL has `pg_amcheck` for that."""
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = ON")  # it names tables only; the rows are looked at below
        try:
            cursor.execute("PRAGMA quick_check")
            said = [words for (words,) in cursor.fetchall() if words != "ok"]
        finally:
            cursor.execute("PRAGMA ignore_check_constraints = OFF")
    yield from (Damage("file", f"SQLite says of its file: {words}") for words in said)
