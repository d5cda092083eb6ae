"""Files: uploaded before they are sent with a message, served to their owner, deleted if no conversation has them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from typing import IO, Annotated
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.http import content_disposition_header, parse_header_parameters
from ninja import Query, Router, Status

from conversations.api import schemas
from conversations.api.auth import READ, WRITE, credential
from conversations.api.idempotency import IdempotencyKey, digest_of, once
from conversations.api.serving import body_of, find_host, in_database, release_thread
from conversations.attachments import ReadFile, delete_attachment, keep, owned_attachment
from conversations.attachments.damage import fault_of
from conversations.attachments.keeping import check_room, remove_unused_file
from conversations.attachments.storage import place_of, storage
from conversations.exceptions import AttachmentMissing, PayloadTooLarge, UnsupportedMediaType
from conversations.hosting.enclosures import FileReader
from conversations.models import Attachment, User

PIECE = 256 * 1024  # bytes
SHOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
REFUSED = {frozenset({400, 401, 403, 404, 409, 413, 415, 422, 429}): schemas.ErrorBody}
NO_BODY = "send the file itself as the body, not a form"
FILE = {"type": "string", "format": "binary"}
UPLOAD = {
    "requestBody": {
        "required": True,
        "description": "The bytes of the file; what it is, is found out from them.",
        "content": {"application/octet-stream": {"schema": FILE}},
    }
}
CONTENT = {
    "responses": {
        200: {
            "description": "The content; a picture under its own type, all else as application/octet-stream.",
            "content": {kind: {"schema": FILE} for kind in ("application/octet-stream", *sorted(SHOWN))},
        },
        304: {"description": "It is what `If-None-Match` says."},
    }
}

router = Router(tags=["attachments"])


@router.post(
    "",
    auth=WRITE,
    response={201: schemas.AttachmentRow, **REFUSED},
    by_alias=True,
    openapi_extra=UPLOAD,
    summary="Upload a file",
)
async def upload_attachment(
    request: HttpRequest,
    name: Annotated[str, Query(max_length=1024)] = "",
    idempotency_key: IdempotencyKey = None,
) -> HttpResponse:
    """A picture, a PDF or a text in UTF-8. It stays for a day until a message has it."""
    if parse_header_parameters(request.headers.get("Content-Type", ""))[0] == "multipart/form-data":
        raise UnsupportedMediaType(NO_BODY)
    user = credential(request).user
    await in_database(request, check_room, user, 0)
    host = find_host(request)
    reader = host.file_reader if host is not None else FileReader()
    file = await reader.read(user.pk, lambda: _read_body(request), name)
    digest = digest_of(request, file.sent.encode())
    try:
        return await once(request, idempotency_key, lambda: _kept(user, file), status=201, digest=digest)
    except Exception:
        await sync_to_async(remove_unused_file)(file.digest)
        raise


def _kept(user: User, file: ReadFile) -> schemas.AttachmentRow:
    return schemas.AttachmentRow.of(keep(user, file))


def _read_body(request: HttpRequest) -> bytes:
    """Return the body, read piece by piece up to the limit; raises `PayloadTooLarge`."""
    limit = settings.PAR.max_attachment_bytes
    pieces: list[bytes] = []
    left = limit
    body = body_of(request)
    while left >= 0 and (piece := body.read(min(PIECE, left + 1))):
        pieces.append(piece)
        left -= len(piece)
    if left < 0:
        raise PayloadTooLarge(f"the file is larger than {limit:,} bytes")
    return b"".join(pieces)


@router.get(
    "/{attachment_id}",
    auth=READ,
    response=REFUSED,
    by_alias=True,
    openapi_extra=CONTENT,
    summary="The content of a file",
)
async def get_attachment(request: HttpRequest, attachment_id: UUID) -> HttpResponseBase:
    """Sent as something to be saved. Ask again with `If-None-Match`: an attachment never changes."""
    attachment = await in_database(request, owned_attachment, credential(request).user, attachment_id)
    return await serve(request, attachment)


async def serve(request: HttpRequest, attachment: Attachment) -> HttpResponseBase:
    """Return the answer that has the content of an attachment, to somebody who may have it."""
    tag = f'"{attachment.digest}"'
    response: HttpResponseBase
    if tag in request.headers.get("If-None-Match", ""):
        response = HttpResponse(status=304)
    else:
        file = await asyncio.to_thread(_open, attachment)
        response = StreamingHttpResponse(_pieces(file))
        response["Content-Length"] = str(attachment.size)
    response["Content-Type"] = attachment.media_type if attachment.media_type in SHOWN else "application/octet-stream"
    response["Content-Disposition"] = content_disposition_header(True, attachment.name) or "attachment"
    response["ETag"] = tag
    return locked_down(response)


def locked_down(response: HttpResponseBase) -> HttpResponseBase:
    """Return an answer with content that somebody else may have made, so that no browser takes it for a page."""
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response["Cross-Origin-Resource-Policy"] = "same-origin"
    response["Cache-Control"] = "private, no-cache"
    return response


def _open(attachment: Attachment) -> IO[bytes]:
    """Return the content, looked at as a whole before the first piece of it is sent; raises `AttachmentMissing`."""
    if fault := fault_of(attachment.digest, attachment.size):
        raise AttachmentMissing(f"the file {attachment.name!r} {fault}")
    try:
        return storage().open(place_of(attachment.digest))  # a `File` is one in all but name
    except OSError as error:
        raise AttachmentMissing(f"the file {attachment.name!r} cannot be read") from error


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    release_thread()  # its reader may be slow
    with closing(file):
        while piece := await asyncio.to_thread(file.read, PIECE):
            yield piece


@router.delete(
    "/{attachment_id}",
    auth=WRITE,
    response={204: None, **REFUSED},
    by_alias=True,
    summary="Delete a file that no conversation has",
)
async def remove_attachment(request: HttpRequest, attachment_id: UUID) -> Status[None]:
    """A file that a conversation has goes with the last of them."""
    await sync_to_async(delete_attachment)(credential(request).user, attachment_id)
    return Status(204, None)
