"""What administrators may do over HTTP; everybody else gets ADMIN_FORBIDDEN (R153)."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from conversations import store
from conversations.api.auth import ADMIN, credential
from conversations.api.schemas import REFUSED, ConversationRow, Owner, ReadConversation
from conversations.api.serving import json_answer
from conversations.exceptions import AdminForbidden, ConversationNotFound
from conversations.models import Conversation, User
from conversations.reading import LONGEST_REASON, SHORTEST_REASON, note_reading, reason_of

router = Router(tags=["administration"])

Reason = Annotated[
    str, Query(description=f"Why, in {SHORTEST_REASON} to {LONGEST_REASON} characters; kept in the audit log.")
]


@router.get(
    "/conversations/{conversation_id}",
    auth=ADMIN,
    response={200: ReadConversation, **REFUSED},
    by_alias=True,
    summary="Anybody's conversation with its messages, for a reason",
)
async def read_conversation(request: HttpRequest, conversation_id: UUID, reason: Reason) -> HttpResponse:
    """For staff who may view conversations in the admin. The reason is written down before anything is read."""
    return json_answer(await sync_to_async(_read)(credential(request).user, conversation_id, reason))


def _read(reader: User, conversation_id: UUID, reason: str) -> ReadConversation:
    if not reader.has_perm("conversations.view_conversation"):
        raise AdminForbidden("you have no permission to view conversations")
    reason = reason_of(reason)
    found = Conversation.objects.select_related("owner", "agent", "head").filter(pk=conversation_id).first()
    if found is None:
        raise ConversationNotFound(f"there is no conversation {str(conversation_id)!r}")
    note_reading(reader, conversation_id, reason, place="http")
    context = store.load_context(found, found.head)
    return ReadConversation(
        conversation=ConversationRow.of(found),
        owner=Owner(id=found.owner_id, email=found.owner.email),
        messages=tuple(message.to_wire() for message in context.messages),
    )
