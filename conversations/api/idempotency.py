"""`Idempotency-Key`: a request that is sent again is carried out once."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Protocol, TypeAlias, runtime_checkable
from uuid import UUID

import orjson
from asgiref.sync import sync_to_async
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, RawPostDataException
from ninja import Header

from agent.runtime.exceptions import AgentError
from agent.runtime.messages import Value
from conversations.api.auth import credential
from conversations.models import IdempotentRequest, User
from conversations.store import check_key

IdempotencyKey: TypeAlias = Annotated[
    UUID | None, Header(alias="Idempotency-Key", description="A UUID; the same key again gives the first answer.")
]


@runtime_checkable
class AboutConversation(Protocol):
    """An answer that says something of a conversation, and is not kept for longer than that."""

    @property
    def about(self) -> UUID:
        """The id of the conversation."""


async def once(
    request: HttpRequest,
    key: UUID | None,
    work: Callable[[], Value],
    *,
    status: int = 200,
    digest: str | None = None,
) -> HttpResponse:
    """Answer with what `work` returns, as JSON; under a key that was seen before, with the first answer.

    `work` runs in a thread and in one transaction, with its key: either both are stored or neither. `digest` takes the
    place of the body's where that was read as a stream. Raises as `store.check_key` does, and what `work` raises.
    """
    if digest is None:
        digest = digest_of(request) if key is not None else ""
    status, body = await sync_to_async(done_once)(credential(request).user, key, digest, work, status)
    return HttpResponse(body, status=status, content_type="application/json")


async def first_answer(request: HttpRequest, key: UUID | None, digest: str) -> HttpResponse | None:
    """Return the first answer under a key, for work that is many transactions and ends with `once`; None for a new key.

    Raises as `store.check_key` does.
    """
    seen = await sync_to_async(check_key)(credential(request).user, key, digest) if key is not None else None
    return None if seen is None else HttpResponse(seen.body, status=seen.status, content_type="application/json")


@asynccontextmanager
async def claimed(request: HttpRequest, key: UUID | None) -> AsyncIterator[None]:
    """Hold a key for a request that is carried out as often as it comes, since that changes nothing.

    One that is refused gives its key back. Raises `InvalidArgument` for a key of another request.
    """
    user = credential(request).user
    taken = key is not None and await sync_to_async(_claim)(user, key, digest_of(request))
    try:
        yield
    except AgentError:
        if taken and key is not None:
            await sync_to_async(IdempotentRequest.objects.filter(user=user, key=key).delete)()
        raise


def digest_of(request: HttpRequest, body: bytes | None = None) -> str:
    """Return the digest of what a request asks for; `body` stands for one that was read as a stream."""
    head = f"{request.method} {request.get_full_path()}\n"
    try:
        body = request.body if body is None else body
    except RawPostDataException:  # a form, read already by who looked for a CSRF token; no operation takes one
        body = b""
    return hashlib.sha256(head.encode("utf-8", "replace") + body).hexdigest()


def done_once(
    user: User, key: UUID | None, digest: str, work: Callable[[], Value], status: int = 200
) -> tuple[int, bytes]:
    """Return what `once` answers with: status and body."""
    if key is None:
        with transaction.atomic():
            return status, _json(work())
    try:
        with transaction.atomic():
            if seen := check_key(user, key, digest):
                return seen.status, seen.body
            record = IdempotentRequest.objects.create(user=user, key=key, digest=digest)
            value = work()
            body = _json(value)
            record.keep(status, body, value.about if isinstance(value, AboutConversation) else None)
    except IntegrityError:
        if seen := check_key(user, key, digest):  # the same request came first on another connection
            return seen.status, seen.body
        raise
    return status, body


def _claim(user: User, key: UUID, digest: str) -> bool:
    """Return whether the key is new."""
    if check_key(user, key, digest) is not None:
        return False
    try:
        with transaction.atomic():
            IdempotentRequest.objects.create(user=user, key=key, digest=digest)
    except IntegrityError:
        check_key(user, key, digest)
        return False
    return True


def _json(value: Value) -> bytes:
    return orjson.dumps(value.model_dump(mode="json", by_alias=True))
