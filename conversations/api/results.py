"""Whole results of tools, as plain text."""

from __future__ import annotations

from uuid import UUID

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from ninja import Router

from conversations import store
from conversations.api import schemas
from conversations.api.attachments import locked_down
from conversations.api.auth import READ, credential
from conversations.api.serving import find_host
from conversations.models import User

REFUSED = {frozenset({400, 401, 403, 404, 429}): schemas.ErrorBody}
TEXT = {
    "responses": {
        200: {
            "description": "The text that the model was given.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        }
    }
}

router = Router(tags=["executions"])


@router.get(
    "/executions/{execution_id}/tool-results/{path:call_id}",
    auth=READ,
    response=REFUSED,
    by_alias=True,
    openapi_extra=TEXT,
    summary="The whole result of a tool call of a run",
)
async def get_result_of_run(request: HttpRequest, execution_id: UUID, call_id: str) -> HttpResponseBase:
    """Also while the run goes on, as soon as the tool has ended."""
    user = credential(request).user
    text = _of_live_run(request, user, execution_id, call_id)
    if text is None:
        text = await sync_to_async(store.result_of_run)(user, execution_id, call_id)
    return _plain(text)


@router.get(
    "/conversations/{conversation_id}/tool-results/{path:call_id}",
    auth=READ,
    response=REFUSED,
    by_alias=True,
    openapi_extra=TEXT,
    tags=["conversations"],
    summary="The whole result of a tool call of a conversation",
)
async def get_result_of_conversation(request: HttpRequest, conversation_id: UUID, call_id: str) -> HttpResponseBase:
    """Of any of its revisions; also where the run is in another conversation, of which this one is a copy."""
    user = credential(request).user
    return _plain(await sync_to_async(store.result_of_conversation)(user, conversation_id, call_id))


def _of_live_run(request: HttpRequest, user: User, execution_id: UUID, call_id: str) -> str | None:
    host = find_host(request)
    run = host.running(str(execution_id)) if host is not None else None
    if run is None or run.execution is None or run.begun.user_id != user.pk:
        return None
    return store.result_in((message.to_wire() for message in run.execution.added), call_id)


def _plain(text: str) -> HttpResponseBase:
    return locked_down(HttpResponse(text, content_type="text/plain; charset=utf-8"))
