"""Bodies with a whole context, which may be as large as a file that is imported: read in a thread, piece by piece."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, TypeVar, get_args

from django.conf import settings
from django.http import HttpRequest
from ninja.params.models import Body as BodyParam
from ninja.params.models import BodyModel
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from agent.runtime.messages import Value
from agent.runtime.pieces import read_in_pieces
from conversations.api.idempotency import digest_of
from conversations.api.parsing import sent_json, value_of
from conversations.api.serving import body_of, find_host, size_of
from conversations.exceptions import PayloadTooLarge, UnsupportedMediaType
from conversations.moving.elements import MOST_PARTS

LARGE = 1024 * 1024  # bytes

V = TypeVar("V", bound=Value)
B = TypeVar("B", bound=Value | None)


class _Unread(BodyModel):
    """Takes the body of a request without reading it."""

    @classmethod
    def get_request_data(cls, request: HttpRequest, api: Any, path_params: dict[str, Any]) -> dict[str, Any]:
        return {cls.__read_from_single_attr__: Sent(request)}


class Whole(BodyParam):  # type: ignore[misc]
    """Marks a parameter of an operation as the whole body, which is `Sent` and not read yet."""

    _model = _Unread

    def __init__(self, default: Any = ...) -> None:
        super().__init__(default)

    @classmethod
    def _param_source(cls) -> str:
        return "body"


class Sent(Generic[B]):
    """A body that is still to be read; the API's document describes the `Value` in it."""

    def __init__(self, request: HttpRequest) -> None:
        self.request = request

    def room(self, user_id: int) -> AbstractContextManager[None]:
        """Hold room for a large body while it is read and worked on; raises `RateLimited` when entered."""
        host = find_host(self.request)
        if host is None or size_of(self.request) <= LARGE:
            return nullcontext()
        return host.large_bodies.room(user_id)

    def read(self, model: type[V]) -> tuple[V | None, str]:
        """Return what a body says, None for an empty one, and the digest of its request; not for the event loop.

        Raises `PayloadTooLarge`, `UnsupportedMediaType` and `InvalidArgument`.
        """
        request, limit = self.request, settings.PAR.max_import_bytes
        if request.content_type == "multipart/form-data":
            raise UnsupportedMediaType("send the body as application/json")
        raw = body_of(request).read(limit + 1)
        if len(raw) > limit:
            raise PayloadTooLarge(f"the body is larger than {limit:,} bytes")
        digest = digest_of(request, raw)
        if not raw:
            return None, digest
        data = sent_json(request, lambda: read_in_pieces(raw, most=MOST_PARTS))
        return value_of(model, data), digest

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        (model,) = get_args(source)
        return core_schema.no_info_wrap_validator_function(lambda value, _: value, handler.generate_schema(model))
