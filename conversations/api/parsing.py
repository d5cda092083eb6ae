"""Bodies, read as strictly as frames of the websocket, and times in addresses; one without a zone is UTC."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import orjson
from django.http import HttpRequest
from ninja.parser import Parser
from pydantic import AfterValidator, BeforeValidator, ValidationError

from agent.runtime.exceptions import InvalidArgument
from agent.runtime.messages import Value
from agent.runtime.values import MAX_DEPTH, read_json
from conversations.bodies import faults
from conversations.exceptions import UnsupportedMediaType

V = TypeVar("V", bound=Value)

YEARS = range(1970, 2200)


def _in_utc(moment: datetime) -> datetime:
    if moment.year not in YEARS:  # at the ends of the calendar another time zone has no such day
        raise ValueError(f"a time between the years {YEARS.start} and {YEARS.stop} is needed")
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


Moment = Annotated[datetime, AfterValidator(_in_utc)]


class JsonParser(Parser):
    """Takes JSON that is sent as JSON."""

    def parse_body(self, request: HttpRequest) -> Any:
        return sent_json(request, lambda: read_json(request.body))


def sent_json(request: HttpRequest, read: Callable[[], Any]) -> Any:
    """Return what `read` makes of a JSON body; raises `UnsupportedMediaType` and `InvalidArgument`."""
    if request.content_type != "application/json":
        raise UnsupportedMediaType("send the body as application/json")
    try:
        return read()
    except orjson.JSONDecodeError as error:
        raise InvalidArgument(f"the body is not JSON: {error}") from error
    except ValueError as error:
        raise InvalidArgument(str(error)) from error


def from_wire(model: type[Value], *, optional: bool = False) -> BeforeValidator:
    """Return what reads a body by its wire names only and says what is wrong as the websocket does.

    One that is `optional` may be missing, and is None then.
    """

    def read(data: Any) -> Value | None:
        return None if optional and data is None else value_of(model, data)

    return BeforeValidator(read)


def value_of(model: type[V], data: Any) -> V:
    """Return what a body says by its wire names; raises `InvalidArgument`."""
    try:
        return model.from_wire(data)
    except ValidationError as error:
        raise InvalidArgument(faults(error)) from error
    except RecursionError as error:
        raise InvalidArgument(f"JSON nested deeper than {MAX_DEPTH} levels") from error
