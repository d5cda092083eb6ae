"""Share links over HTTP: made, listed, changed, published again and revoked."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query, Router, Status
from ninja.params.functions import Body

from agent.runtime.messages import Value
from conversations import sharing, store
from conversations.api.auth import READ, WRITE, credential
from conversations.api.bodies import ShareBody, SharePatch
from conversations.api.idempotency import IdempotencyKey, once
from conversations.api.parsing import from_wire
from conversations.api.schemas import REFUSED
from conversations.api.serving import json_answer
from conversations.models import ShareLink, ShareState

MOST_LISTED = 200

router = Router(tags=["shares"])
of_conversation = Router(tags=["shares"])


class ShareRow(Value):
    """A link; of its secret part only the beginning is known any more. `title` is that of what it shows.

    `up_to_date` says whether it shows the head of the conversation.
    """

    share_id: UUID
    conversation_id: UUID
    revision_id: UUID
    prefix: str
    title: str
    state: ShareState
    up_to_date: bool
    created_at: datetime
    published_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    @classmethod
    def of(cls, share: ShareLink) -> ShareRow:
        return cls(
            share_id=share.pk,
            conversation_id=share.conversation_id,
            revision_id=share.revision.public_id,
            prefix=share.prefix,
            title=share.title,
            state=share.state,
            up_to_date=share.up_to_date,
            created_at=share.created_at,
            published_at=share.published_at,
            expires_at=share.expires_at,
            revoked_at=share.revoked_at,
        )


class MadeShare(Value):
    """A new link, which is not told again."""

    share: ShareRow
    link: str

    @property
    def about(self) -> UUID:
        return self.share.conversation_id


class ShareHead(Value):
    """A link as it is."""

    share: ShareRow

    @property
    def about(self) -> UUID:
        return self.share.conversation_id


class ShareList(Value):
    """Links of one's own, newest first."""

    shares: tuple[ShareRow, ...]
    next_cursor: UUID | None

    @classmethod
    def of(cls, found: sharing.ShareListing) -> ShareList:
        return cls(shares=tuple(map(ShareRow.of, found.rows)), next_cursor=found.older)


@of_conversation.post(
    "/{conversation_id}/shares",
    auth=WRITE,
    response={201: MadeShare, **REFUSED},
    by_alias=True,
    summary="Share a conversation as it is now, or at a revision",
)
async def create_share(
    request: HttpRequest,
    conversation_id: UUID,
    body: Annotated[ShareBody | None, from_wire(ShareBody, optional=True)] = Body(None),
    idempotency_key: IdempotencyKey = None,
) -> HttpResponse:
    """Whoever has the `link` can read, without signing in. It is told in this answer only."""
    user, wanted = credential(request).user, body or ShareBody()

    def make() -> MadeShare:
        share, token = sharing.create_share(
            user, conversation_id, revision_id=wanted.revision_id, expires_at=wanted.expires_at
        )
        link = request.build_absolute_uri(reverse("shared", args=[token]))
        return MadeShare(share=ShareRow.of(share), link=link)

    return _kept_back(await once(request, idempotency_key, make, status=201))


@of_conversation.get(
    "/{conversation_id}/shares",
    auth=READ,
    response={200: ShareList, **REFUSED},
    by_alias=True,
    summary="The links to a conversation, newest first",
)
async def list_conversation_shares(
    request: HttpRequest,
    conversation_id: UUID,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 50,
    cursor: UUID | None = None,
) -> HttpResponse:
    user = credential(request).user

    def read() -> ShareList:
        conversation = store.owned_conversation(user, conversation_id)
        return ShareList.of(sharing.shares_of(user, conversation=conversation, before=cursor, limit=limit))

    return json_answer(await sync_to_async(read)())


@router.get("", auth=READ, response={200: ShareList, **REFUSED}, by_alias=True, summary="All your links, newest first")
async def list_shares(
    request: HttpRequest,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 50,
    cursor: UUID | None = None,
) -> HttpResponse:
    """`nextCursor` of an answer is the `cursor` of the next page."""
    user = credential(request).user
    return json_answer(await sync_to_async(lambda: ShareList.of(sharing.shares_of(user, before=cursor, limit=limit)))())


@router.get("/{share_id}", auth=READ, response={200: ShareHead, **REFUSED}, by_alias=True, summary="One of your links")
async def get_share(request: HttpRequest, share_id: UUID) -> HttpResponse:
    user = credential(request).user
    return json_answer(await sync_to_async(lambda: _head(sharing.owned_share(user, share_id)))())


@router.patch(
    "/{share_id}",
    auth=WRITE,
    response={200: ShareHead, **REFUSED},
    by_alias=True,
    summary="Change when a link expires, or which revision it shows",
)
async def change_share(
    request: HttpRequest, share_id: UUID, body: Annotated[SharePatch, from_wire(SharePatch), Body()]
) -> HttpResponse:
    """What is missing stays as it is; `expiresAt` null lets the link last."""
    user = credential(request).user

    def change() -> ShareHead:
        return _head(sharing.change_share(user, share_id, expires_at=body.new_expiry, revision_id=body.new_revision))

    return json_answer(await sync_to_async(change)())


@router.post(
    "/{share_id}/republish",
    auth=WRITE,
    response={200: ShareHead, **REFUSED},
    by_alias=True,
    summary="Let a link show all that was said by now",
)
async def republish_share(request: HttpRequest, share_id: UUID, idempotency_key: IdempotencyKey = None) -> HttpResponse:
    user = credential(request).user
    return await once(request, idempotency_key, lambda: _head(sharing.republish(user, share_id)))


@router.delete(
    "/{share_id}", auth=WRITE, response={204: None, **REFUSED}, summary="Revoke a link, as often as you like"
)
async def revoke_share(request: HttpRequest, share_id: UUID) -> Status[None]:
    """It stays in the lists, and never works again."""
    user = credential(request).user
    await sync_to_async(lambda: sharing.revoke(sharing.owned_share(user, share_id), user))()
    return Status(204, None)


def _head(share: ShareLink) -> ShareHead:
    return ShareHead(share=ShareRow.of(share))


def _kept_back(response: HttpResponse) -> HttpResponse:
    response["Cache-Control"] = "no-store"
    return response
