"""Revisions over HTTP: the tree of a conversation, the whole context at any of them, and what differs."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from ninja import Body, Query, Router

from conversations import store
from conversations.api import schemas
from conversations.api.auth import READ, WRITE, credential
from conversations.api.bodies import LabelBody
from conversations.api.parsing import from_wire
from conversations.api.serving import json_answer
from conversations.models import Conversation, Revision, User

REFUSED = schemas.REFUSED
MOST_LISTED = 200

router = Router(tags=["revisions"])


@router.get(
    "/{conversation_id}/revisions",
    auth=READ,
    response={200: schemas.RevisionList, **REFUSED},
    by_alias=True,
    summary="The revisions of a conversation, newest first",
)
async def list_revisions(
    request: HttpRequest,
    conversation_id: UUID,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 50,
    before: Annotated[int | None, Query(ge=1, le=2**53)] = None,
) -> HttpResponse:
    """`before` is a number; `nextBefore` of an answer leads to the next page. `parentId` makes them a tree."""
    user = credential(request).user
    return json_answer(await sync_to_async(_list)(user, conversation_id, limit, before))


@router.get(
    "/{conversation_id}/revisions/{revision_id}",
    auth=READ,
    response={200: schemas.RevisionSnapshot, **REFUSED},
    by_alias=True,
    summary="The whole context at a revision",
)
async def get_revision(request: HttpRequest, conversation_id: UUID, revision_id: UUID) -> HttpResponse:
    user = credential(request).user

    def read() -> schemas.RevisionSnapshot:
        conversation = store.owned_conversation(user, conversation_id)
        revision = store.owned_revision(conversation, revision_id)
        context = store.load_context(conversation, revision)
        return schemas.RevisionSnapshot(revision=_entry(revision, conversation), context=context)

    return json_answer(await sync_to_async(read)())


@router.patch(
    "/{conversation_id}/revisions/{revision_id}",
    auth=WRITE,
    response={200: schemas.RevisionChanged, **REFUSED},
    by_alias=True,
    summary="Name a branch",
)
async def label_revision(
    request: HttpRequest,
    conversation_id: UUID,
    revision_id: UUID,
    body: Annotated[LabelBody, from_wire(LabelBody), Body()],
) -> HttpResponse:
    user = credential(request).user

    def label() -> schemas.RevisionChanged:
        conversation, revision = store.label_revision(
            user, conversation_id, revision_id, body.label, known=body.revision
        )
        return schemas.RevisionChanged(
            conversation=schemas.ConversationRow.of(conversation),
            revision=_entry(revision, conversation),
        )

    return json_answer(await sync_to_async(label)())


@router.get(
    "/{conversation_id}/revisions/{revision_id}/diff",
    auth=READ,
    response={200: schemas.RevisionDiff, **REFUSED},
    by_alias=True,
    summary="What differs between two revisions",
)
async def diff_revisions(
    request: HttpRequest, conversation_id: UUID, revision_id: UUID, against: Annotated[UUID, Query()]
) -> HttpResponse:
    """From `against` to this revision: both begin with the same `common` messages and end with `commonEnd` ones."""
    user = credential(request).user

    def compare() -> schemas.RevisionDiff:
        conversation = store.owned_conversation(user, conversation_id)
        before, after = (store.owned_revision(conversation, each) for each in (against, revision_id))
        found = store.difference(store.load_context(conversation, before), store.load_context(conversation, after))
        return schemas.RevisionDiff(
            from_id=before.public_id,
            to_id=after.public_id,
            common=found.common,
            common_end=found.common_end,
            removed=found.removed,
            added=found.added,
            model_state_changed=found.model_state_changed,
        )

    return json_answer(await sync_to_async(compare)())


def _list(user: User, conversation_id: UUID, limit: int, before: int | None) -> schemas.RevisionList:
    conversation = store.owned_conversation(user, conversation_id)
    rows = Revision.objects.filter(conversation=conversation).order_by("-number").defer("model_state", "model_context")
    if before is not None:
        rows = rows.filter(number__lt=before)
    found = list(rows[: limit + 1])
    shown = found[:limit]
    parents = dict(
        Revision.objects.filter(pk__in={row.parent_id for row in shown if row.parent_id is not None}).values_list(
            "pk", "public_id"
        )
    )
    on_path = store.way_to_head(conversation)
    entries = (
        schemas.RevisionEntry.of(
            row, conversation, None if row.parent_id is None else parents.get(row.parent_id), on_path
        )
        for row in shown
    )
    return schemas.RevisionList(revisions=tuple(entries), next_before=shown[-1].number if len(found) > limit else None)


def _entry(revision: Revision, conversation: Conversation) -> schemas.RevisionEntry:
    parent_id = None if revision.parent is None else revision.parent.public_id
    return schemas.RevisionEntry.of(revision, conversation, parent_id, store.way_to_head(conversation))
