"""Conversations over HTTP: listed, made, read, saved, changed and deleted (R147, R122-R128)."""

from __future__ import annotations

from functools import partial
from typing import Annotated
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status
from ninja.params.functions import Body

from agent.runtime.exceptions import InvalidArgument
from conversations import store
from conversations.api import schemas
from conversations.api.auth import READ, WRITE, credential
from conversations.api.bodies import ForkBody, NewConversation, PatchBody, ResetBody, RestoreBody, SaveBody
from conversations.api.idempotency import IdempotencyKey, done_once, once
from conversations.api.parsing import Moment, from_wire
from conversations.api.serving import find_host, json_answer
from conversations.api.whole import Sent, Whole
from conversations.hosting.leaving import stop_runs
from conversations.listing import Filters, page_of
from conversations.models import Conversation, User
from conversations.search import matching_conversations

REFUSED = schemas.REFUSED
MOST_LISTED = 1000

router = Router(tags=["conversations"])


@router.get(
    "",
    auth=READ,
    response={200: schemas.ConversationList, **REFUSED},
    by_alias=True,
    summary="Your conversations, newest first",
)
async def list_conversations(
    request: HttpRequest,
    limit: Annotated[int | None, Query(ge=1, le=MOST_LISTED)] = None,
    cursor: Annotated[str, Query(max_length=100)] = "",
    q: Annotated[str, Query(max_length=1000)] = "",
    agent: Annotated[str | None, Query(max_length=64)] = None,
    tag: Annotated[str | None, Query(max_length=50)] = None,
    pinned: bool | None = None,
    archived: bool | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
) -> HttpResponse:
    """`q` is searched for as in `/search`; `since` and `until` are times of the last change.

    `nextCursor` of an answer is the `cursor` of the next page.
    """
    filters = Filters(agent=agent, tag=tag, pinned=pinned, archived=archived, since=since, until=until)
    user = credential(request).user
    limit = limit or settings.PAR.conversation_list_limit

    def read() -> schemas.ConversationList:
        found = page_of(user, filters, cursor, limit, among=matching_conversations(user, q) if q else None)
        rows = tuple(map(schemas.ConversationRow.of, found.rows))
        return schemas.ConversationList(conversations=rows, next_cursor=found.older or None)

    return json_answer(await sync_to_async(read)())


@router.post(
    "",
    auth=WRITE,
    response={200: schemas.ConversationSnapshot, **REFUSED},
    by_alias=True,
    summary="Make a conversation",
)
async def create_conversation(
    request: HttpRequest,
    body: Annotated[Sent[NewConversation | None], Whole(None)],
    idempotency_key: IdempotencyKey = None,
) -> HttpResponse:
    """Without `agent` it is the usual one; a run in it may name another. `context` is what was said elsewhere."""
    user = credential(request).user

    def create() -> HttpResponse:
        with body.room(user.pk):
            given, digest = body.read(NewConversation)
            work = partial(_make, user, given or NewConversation())
            status, answer = done_once(user, idempotency_key, digest, work)
        return HttpResponse(answer, status=status, content_type="application/json")

    return await sync_to_async(create)()


@router.get(
    "/{conversation_id}",
    auth=READ,
    response={200: schemas.ConversationSnapshot, **REFUSED},
    by_alias=True,
    summary="One of your conversations with its whole context",
)
async def get_conversation(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    user = credential(request).user
    return await sync_to_async(lambda: json_answer(_snapshot(store.owned_conversation(user, conversation_id))))()


@router.put(
    "/{conversation_id}",
    auth=WRITE,
    response={200: schemas.ConversationSnapshot, **REFUSED},
    by_alias=True,
    summary="Save a whole conversation, if nothing has changed since",
)
async def save_conversation(
    request: HttpRequest, conversation_id: UUID, body: Annotated[Sent[SaveBody], Whole()]
) -> HttpResponse:
    """`modelState` is the one that was read, or null. What was there before stays a revision of its own."""
    user = credential(request).user

    def save() -> HttpResponse:
        with body.room(user.pk):
            wanted, _ = body.read(SaveBody)
            if wanted is None:
                raise InvalidArgument("a body is needed")
            return json_answer(
                _snapshot(store.put_conversation(user, conversation_id, wanted.title, wanted.revision, wanted.context))
            )

    return await sync_to_async(save)()


@router.patch(
    "/{conversation_id}",
    auth=WRITE,
    response={200: schemas.ConversationHead, **REFUSED},
    by_alias=True,
    summary="Change title, pin, archive or tags",
)
async def patch_conversation(
    request: HttpRequest, conversation_id: UUID, body: Annotated[PatchBody, from_wire(PatchBody), Body()]
) -> HttpResponse:
    """What is missing stays as it is, null clears."""
    user = credential(request).user

    def change() -> schemas.ConversationHead:
        return head_of(store.change_conversation(user, conversation_id, body.changes(), known=body.revision))

    return json_answer(await sync_to_async(change)())


@router.delete(
    "/{conversation_id}",
    auth=WRITE,
    response={204: None, **REFUSED},
    summary="Delete a conversation, as often as you like",
)
async def delete_conversation(request: HttpRequest, conversation_id: UUID) -> Status[None]:
    """A run that is live in it is stopped first. What does not exist is deleted, too (R128)."""
    user = credential(request).user
    host = find_host(request)
    if host is not None:
        await stop_runs(host, user.pk, conversation_id)
    await sync_to_async(store.delete_conversation)(user, conversation_id)
    return Status(204, None)


@router.post(
    "/{conversation_id}/restore",
    auth=WRITE,
    response={200: schemas.ConversationHead, **REFUSED},
    by_alias=True,
    summary="Make an earlier revision the head again",
)
async def restore_revision(
    request: HttpRequest,
    conversation_id: UUID,
    body: Annotated[RestoreBody, from_wire(RestoreBody), Body()],
    idempotency_key: IdempotencyKey = None,
) -> HttpResponse:
    """Nothing is deleted. `newest` takes the newest revision of that branch: this is how to change to a sibling."""
    user = credential(request).user

    def restore() -> schemas.ConversationHead:
        return head_of(store.restore(user, conversation_id, body.revision_id, known=body.revision, newest=body.newest))

    return await once(request, idempotency_key, restore)


@router.post(
    "/{conversation_id}/fork",
    auth=WRITE,
    response={201: schemas.ConversationHead, **REFUSED},
    by_alias=True,
    summary="Copy a branch, or all of them, into a new conversation",
)
async def fork_conversation(
    request: HttpRequest,
    conversation_id: UUID,
    body: Annotated[ForkBody | None, from_wire(ForkBody, optional=True)] = Body(None),
    idempotency_key: IdempotencyKey = None,
) -> HttpResponse:
    user, wanted = credential(request).user, body or ForkBody()

    def copy() -> schemas.ConversationHead:
        whole = wanted.scope == "all"
        return head_of(store.fork(user, conversation_id, wanted.revision_id, whole=whole, title=wanted.title))

    return await once(request, idempotency_key, copy, status=201)


@router.post(
    "/{conversation_id}/reset-model-state",
    auth=WRITE,
    response={200: schemas.ConversationSnapshot, **REFUSED},
    by_alias=True,
    summary="Drop what the model keeps for itself",
)
async def reset_model_state(
    request: HttpRequest,
    conversation_id: UUID,
    body: Annotated[ResetBody, from_wire(ResetBody), Body()],
    idempotency_key: IdempotencyKey = None,
) -> HttpResponse:
    """`revision` rises by one, also where there was nothing to drop (E3)."""
    user = credential(request).user

    def reset() -> schemas.ConversationSnapshot:
        return _snapshot(store.reset_model_state(user, conversation_id, known=body.revision))

    return await once(request, idempotency_key, reset)


def head_of(conversation: Conversation) -> schemas.ConversationHead:
    return schemas.ConversationHead(conversation=schemas.ConversationRow.of(conversation))


def _make(user: User, wanted: NewConversation) -> schemas.ConversationSnapshot:
    made = store.create_conversation(user, title=wanted.title, agent=wanted.agent, temporary=wanted.temporary)
    if wanted.context is not None and wanted.context.messages:
        made = store.put_conversation(user, made.pk, wanted.title, made.version, wanted.context)
    return _snapshot(made)


def _snapshot(conversation: Conversation) -> schemas.ConversationSnapshot:
    return schemas.ConversationSnapshot(
        conversation=schemas.ConversationRow.of(conversation),
        context=store.load_context(conversation, conversation.head),
    )
