"""Conversations out and in: exports as streams, and imports of files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.cache import cache
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.http import content_disposition_header
from ninja import Query, Router

from conversations.api import schemas
from conversations.api.auth import READ, WRITE, credential
from conversations.api.idempotency import IdempotencyKey, digest_of, first_answer, once
from conversations.api.serving import body_of
from conversations.exceptions import RateLimited
from conversations.models import User
from conversations.moving import Export, Form, Imported, Upload, export_all, export_one, import_file
from conversations.moving.printed import policy

LONGEST_IMPORT = 600  # seconds until another import may begin, if the first was cut off

FILE = {"type": "string", "format": "binary"}
EXPORTED = {
    200: {
        "description": "A file.",
        "content": {
            "application/json": {"schema": {"type": "object"}},
            "text/markdown": {"schema": {"type": "string"}},
            "text/html": {"schema": {"type": "string"}},
            "application/zip": {"schema": FILE},
        },
    }
}
UPLOADED = {
    "required": True,
    "content": {"application/json": {"schema": FILE}, "application/zip": {"schema": FILE}},
}

router = Router(tags=["export and import"])


@router.get(
    "/conversations/{conversation_id}/export",
    auth=READ,
    response={frozenset({400, 401, 403, 404, 429, 500}): schemas.ErrorBody},
    openapi_extra={"responses": EXPORTED},
    summary="A conversation as a file: with all its branches as JSON, its current branch as Markdown or as a page",
)
async def export_conversation(
    request: HttpRequest, conversation_id: UUID, format: Annotated[Form, Query()] = Form.JSON
) -> HttpResponseBase:
    """The page (`html`) is shown, not saved, when a browser opens it; it can be printed and kept as it is."""
    export = await sync_to_async(export_one)(credential(request).user, conversation_id, format)
    return await _sent(export, shown=format is Form.HTML)


@router.get(
    "/export",
    auth=READ,
    response={frozenset({400, 401, 403, 429}): schemas.ErrorBody},
    openapi_extra={"responses": EXPORTED},
    summary="All your conversations: one JSON file, or a zip archive of Markdown files or pages",
)
async def export_conversations(request: HttpRequest, format: Annotated[Form, Query()] = Form.JSON) -> HttpResponseBase:
    """A conversation that cannot be read is named in `damaged`, or in a file in its place, and costs no other."""
    return await _sent(await sync_to_async(export_all)(credential(request).user, format))


@router.post(
    "/imports",
    auth=WRITE,
    response={200: Imported, frozenset({400, 401, 403, 404, 413, 429}): schemas.ErrorBody},
    openapi_extra={"requestBody": UPLOADED},
    by_alias=True,
    summary="Take in a file of conversations",
)
async def import_conversations(
    request: HttpRequest,
    agent: Annotated[str | None, Query(max_length=64)] = None,
    idempotency_key: IdempotencyKey = None,
) -> HttpResponse:
    """The body is the file: our JSON, or an export of ChatGPT or Claude, also in a zip archive. `agent` is the slug
    of the one that goes on with conversations whose own you have not. The same file again changes nothing.
    """
    user, largest = credential(request).user, settings.PAR.max_import_bytes
    with await asyncio.to_thread(Upload.of, body_of(request), largest) as upload:
        digest = digest_of(request, upload.digest.encode())
        if (seen := await first_answer(request, idempotency_key, digest)) is not None:
            return seen
        work = partial(_import, user, upload, largest, agent)
        found = await sync_to_async(work)()
    return await once(request, idempotency_key, lambda: found, digest=digest)


def _import(user: User, upload: Upload, largest: int, agent: str | None) -> Imported:
    with _alone(user):
        return import_file(user, upload.file, largest=largest, agent=agent)


@contextmanager
def _alone(user: User) -> Iterator[None]:
    """Let a person import one file at a time; raises `RateLimited` meanwhile."""
    key = f"import:{user.pk}"
    if not cache.add(key, True, LONGEST_IMPORT):
        raise RateLimited("another file of yours is being imported; send this one when that has ended")
    try:
        yield
    finally:
        cache.delete(key)


async def _sent(export: Export, *, shown: bool = False) -> HttpResponseBase:
    """Return a file as a stream; what cannot be read at its very beginning is still an error with a status."""
    first = await sync_to_async(_next)(export.pieces)
    headers = {
        "Content-Disposition": str(content_disposition_header(not shown, export.name)),
        "Cache-Control": "no-store",
        "X-Accel-Buffering": "no",
    }
    if shown:
        headers["Content-Security-Policy"] = f"{policy()}; frame-ancestors 'none'; sandbox allow-popups"
    return StreamingHttpResponse(_pieces(first, export.pieces), content_type=export.media_type, headers=headers)


async def _pieces(first: bytes | None, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    piece = first
    while piece is not None:
        yield piece
        piece = await sync_to_async(_next)(pieces)


def _next(pieces: Iterator[bytes]) -> bytes | None:
    try:
        return next(pieces, None)
    finally:
        close_old_connections()  # a slow reader holds no connection between two pieces
