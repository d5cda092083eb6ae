"""Whole results of tools, where readers were sent an excerpt only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from django.db.models import TextField
from django.db.models.functions import Cast

from conversations.exceptions import ExecutionNotFound, ToolResultNotFound
from conversations.models import Execution, Revision, User
from conversations.store.conversations import owned_conversation

BETWEEN = "\n\n"  # the parts of a result
_PLAIN = re.compile(r"[A-Za-z0-9_.:-]+")


def result_in(messages: Iterable[Mapping[str, Any]], call_id: str) -> str | None:
    """Return the whole result of a call, from messages in wire form; None if it is not among them."""
    for message in messages:
        for block in message["blocks"] if message["role"] == "tool" else ():
            if block["type"] == "tool-result" and block["callId"] == call_id:
                return BETWEEN.join(part["text"] for part in block["content"])
    return None


def result_of_run(user: User, execution_id: UUID, call_id: str) -> str:
    """Return the result of a call of a run; raises `ExecutionNotFound`, `ToolResultNotFound`."""
    owned = Execution.objects.filter(pk=execution_id, conversation__owner=user).select_related("revision")
    execution = owned.first()
    if execution is None:
        raise ExecutionNotFound(f"there is no execution {str(execution_id)!r}")
    messages = execution.revision.context if execution.revision is not None else execution.transcript
    return _found(result_in(messages, call_id), call_id)


def result_of_conversation(user: User, conversation_id: UUID, call_id: str) -> str:
    """Return the result of a call of any branch of a conversation; raises `ConversationNotFound`, `ToolResultNotFound`.

    The database looks for the longest part of the id that is written the same way however it stores JSON.
    """
    conversation = owned_conversation(user, conversation_id)
    part = max(_PLAIN.findall(call_id), key=len, default="")
    rows = Revision.objects.filter(conversation=conversation).annotate(body=Cast("context", TextField()))
    bodies = rows.filter(body__contains=part).order_by("-pk").values_list("context", flat=True)
    found = (result_in(body, call_id) for body in bodies.iterator(20))
    return _found(next((text for text in found if text is not None), None), call_id)


def _found(text: str | None, call_id: str) -> str:
    if text is None:
        raise ToolResultNotFound(f"there is no result of a call {call_id[:64]!r}")
    return text
