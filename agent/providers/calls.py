"""Tool calls as providers send them: how many, how long, and what their arguments mean."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NoReturn

import orjson

from agent.runtime.values import freeze

MAX_CALLS = 256  # of one answer
MAX_NAME = 256
MAX_ID = 256


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A call as it came: `arguments` is its JSON text, which may still be no object."""

    provider_id: str
    name: str
    arguments: str


def kept_id(value: Any) -> str:
    """Return the id of a call as it can be kept; nothing for anything else, then our own id stands for it."""
    return value if isinstance(value, str) and value.strip() and len(value) <= MAX_ID else ""


def arguments_text(given: Any) -> str:
    """Return the JSON text of arguments that came as a text or as a value; raises `ValueError` for what is too deep."""
    return given if isinstance(given, str) else orjson.dumps(freeze(given)).decode()


def settled_arguments(text: str) -> str:
    """Return the final text of arguments: nothing and null mean {}, of a run of objects the last one counts (B05, B13).

    Anything else stays as it is; whether it can be used is judged where it is parsed.
    """
    text = text.strip()
    if text in ("", "null"):
        return "{}"
    try:
        orjson.loads(text)
    except ValueError:
        return _last_object(text)
    return text


def is_object(text: str) -> bool:
    """Return whether a text is one JSON object."""
    try:
        return isinstance(orjson.loads(text), dict)
    except ValueError:
        return False


def _last_object(text: str) -> str:
    decoder = json.JSONDecoder(parse_constant=_refuse)
    start = end = 0
    try:
        while end < len(text):
            start = end
            value, end = decoder.raw_decode(text, start)
            if not isinstance(value, dict):
                return text
            while end < len(text) and text[end].isspace():
                end += 1
    except (ValueError, RecursionError):
        return text
    return text[start:end].strip()


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
