"""Requests against the request types of the official SDKs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import SchemaValidator

_OBJECTS = ("typed-dict", "model-fields")


@cache
def _validator(type: Any) -> SchemaValidator:
    return SchemaValidator(_closed(TypeAdapter(type).core_schema))


def _closed(schema: Any) -> Any:
    """Return a schema in which no object has members that are not declared: the SDK's types say nothing of them."""
    if isinstance(schema, dict):
        closed = {name: _closed(part) for name, part in schema.items()}
        return closed | {"extra_behavior": "forbid"} if schema.get("type") in _OBJECTS else closed
    if isinstance(schema, list | tuple):
        return type(schema)(map(_closed, schema))
    return schema


def check_type(body: Mapping[str, Any], type: Any, *, beside: Collection[str] = ()) -> None:
    """Check a request, with all that the SDK takes as any iterable; raises pydantic's `ValidationError`.

    `beside` are members that servers know and the SDK does not, of the request and of its messages.
    """
    known = {name: value for name, value in body.items() if name not in beside}
    if "messages" in known:
        known["messages"] = [
            {name: value for name, value in message.items() if name not in beside} for message in body["messages"]
        ]
    _walk(_validator(type).validate_python(known))


def _walk(value: Any) -> None:
    if isinstance(value, Mapping):
        for item in value.values():
            _walk(item)
    elif isinstance(value, list | tuple | Iterator) or type(value).__name__ == "ValidatorIterator":
        for item in value:
            _walk(item)
