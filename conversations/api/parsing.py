"""Bodies, read as strictly as frames of the websocket."""

from __future__ import annotations

from typing import Any

import orjson
from django.http import HttpRequest
from ninja.parser import Parser
from pydantic import BeforeValidator, ValidationError

from agent.runtime.exceptions import InvalidArgument
from agent.runtime.messages import Value
from agent.runtime.values import MAX_DEPTH, read_json
from conversations.bodies import faults
from conversations.exceptions import UnsupportedMediaType


class JsonParser(Parser):
    """Takes JSON that is sent as JSON."""

    def parse_body(self, request: HttpRequest) -> Any:
        if request.content_type != "application/json":
            raise UnsupportedMediaType("send the body as application/json")
        try:
            return read_json(request.body)
        except orjson.JSONDecodeError as error:
            raise InvalidArgument(f"the body is not JSON: {error}") from error
        except ValueError as error:
            raise InvalidArgument(str(error)) from error


def from_wire(model: type[Value], *, optional: bool = False) -> BeforeValidator:
    """Return what reads a body by its wire names only and says what is wrong as the websocket does.

    One that is `optional` may be missing, and is None then.
    """

    def read(data: Any) -> Value | None:
        if optional and data is None:
            return None
        try:
            return model.from_wire(data)
        except ValidationError as error:
            raise InvalidArgument(faults(error)) from error
        except RecursionError as error:
            raise InvalidArgument(f"JSON nested deeper than {MAX_DEPTH} levels") from error

    return BeforeValidator(read)
