"""Requests against the request types of the official SDKs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter


@cache
def _adapter(type: Any) -> TypeAdapter[Any]:
    return TypeAdapter(type)


def check_type(body: Any, type: Any) -> None:
    """Check a request, with all that the SDK takes as any iterable; raises pydantic's `ValidationError`."""
    _walk(_adapter(type).validate_python(body))


def _walk(value: Any) -> None:
    if isinstance(value, Mapping):
        for item in value.values():
            _walk(item)
    elif isinstance(value, list | tuple | Iterator) or type(value).__name__ == "ValidatorIterator":
        for item in value:
            _walk(item)
