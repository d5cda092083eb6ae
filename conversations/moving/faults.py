"""What is wrong with a file, and where."""

from __future__ import annotations

from itertools import pairwise

from pydantic import ValidationError

from conversations.exceptions import ImportInvalid

_SHOWN_KEY = 64
_KINDS = frozenset(
    {"text", "image", "reasoning", "tool-call", "tool-result", "url", "base64", "completed", "max-tokens", "cancelled"}
)


def member(place: str, *keys: str | int) -> str:
    """Return the JSON path of what is inside of `place`."""
    for key in keys:
        if isinstance(key, int):
            place += f"[{key}]"
        elif key.isidentifier():
            place += f".{key[:_SHOWN_KEY]}"
        else:
            place += f"[{key[:_SHOWN_KEY]!r}]"
    return place


def first_fault(error: ValidationError, place: str) -> ImportInvalid:
    """Return pydantic's first fault with its place in the file."""
    fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
    # Which kind of block it is stands in pydantic's place, too; it is no member of the JSON.
    keys = [
        key
        for before, key in pairwise(("", *fault["loc"]))
        if not (key in _KINDS and (isinstance(before, int) or before in ("source", "outcome")))
    ]
    return ImportInvalid(member(place, *keys), fault["msg"].removeprefix("Value error, "))
