"""Conversations to be damaged: revisions written past the store, and bytes written past Django."""

from __future__ import annotations

from typing import Any

from django.db import connection, models

from conversations.models import Conversation, Revision

REST = {"checkpoint": None, "usage": None}


def message(id: str, text: str = "words", role: str = "user") -> dict[str, Any]:
    return {"id": id, "role": role, "blocks": [{"type": "text", "text": text}]}


def answer(id: str, text: str = "words") -> dict[str, Any]:
    return message(id, text, "assistant")


def call(id: str, call_id: str) -> dict[str, Any]:
    block = {"type": "tool-call", "callId": call_id, "name": "look", "input": {}}
    return {"id": id, "role": "assistant", "blocks": [block]}


def result(id: str, call_id: str) -> dict[str, Any]:
    block = {"type": "tool-result", "callId": call_id, "name": "look", "status": "success", "content": []}
    return {"id": id, "role": "tool", "blocks": [{**block, "execution": "completed"}]}


def grow(
    conversation: Conversation, parent: Revision | None, *messages: dict[str, Any], head: bool = True, **given: Any
) -> Revision:
    """Add a revision with these messages, by default as the head."""
    conversation.version += 1
    row = Revision.objects.create(
        conversation=conversation,
        parent=parent,
        number=conversation.version,
        context=list(messages),
        model_context=given.pop("model_context", REST),
        **given,
    )
    if head:
        conversation.head, conversation.head_version = row, row.number
    conversation.save()
    return row


def write_raw(row: models.Model, column: str, value: bytes | int | None) -> None:
    """Write what Django would not, as a failing disk may; bytes become a text on SQLite."""
    table = row._meta.db_table
    target = "CAST(%s AS TEXT)" if isinstance(value, bytes) else "%s"
    pk = row._meta.pk.get_db_prep_value(row.pk, connection)
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA ignore_check_constraints = ON")
        cursor.execute(f'UPDATE "{table}" SET "{column}" = {target} WHERE id = %s', [value, pk])
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA ignore_check_constraints = OFF")
