"""One spelling of a JSON value, whatever database it comes from: what digests are made of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_encoded = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


def canonical(value: object) -> bytes:
    """Return one spelling of a JSON value: the same for whatever equals it, in any order and out of any database."""
    return _encoded(_numbers(value)).encode()


def _numbers(value: Any) -> Any:
    """Return a value in which whole numbers are integers: PostgreSQL makes 1e16 one, SQLite does not."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, Mapping):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_numbers(item) for item in value]
    return value
