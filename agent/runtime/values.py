"""JSON values as the runtime keeps them: clean, frozen and bounded.

Everything that comes from outside (a model, a tool, a client, a database) passes `freeze` once, on entry. It copies the
value into immutable containers and applies the one replacement rule, so that whatever is inside can be stored by
PostgreSQL and SQLite alike and be sent to a browser:

* NUL and lone surrogates become U+FFFD,
* NaN and the infinities become null,
* integers beyond 64 bits become their decimal digits as a string,
* nesting beyond `MAX_DEPTH` is refused with `ValueError`.

What a client sends is read by `read_json`, which refuses what would be dear to build before it is built.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from operator import is_
from typing import Annotated, Any, NoReturn, TypeAlias

import orjson
from pydantic import BeforeValidator, PlainSerializer

MAX_DEPTH = 100
MAX_PARTS = 20_000

JsonValue: TypeAlias = "None | bool | int | float | str | FrozenList | FrozenDict"

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_NO_PARTS = bytes(set(range(256)) - set(b",[{"))
_LISTS = (list, tuple)


class FrozenDict(dict[str, Any]):
    """A JSON object that cannot be changed after it was made."""

    __slots__ = ()

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("this JSON object is frozen")

    __setitem__ = __delitem__ = update = setdefault = pop = popitem = clear = __ior__ = _refuse

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, memo: object) -> FrozenDict:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(orjson.dumps(self, option=orjson.OPT_SORT_KEYS))


FrozenList: TypeAlias = tuple[Any, ...]


def clean_text(text: str) -> str:
    """Return `text` with NUL and lone surrogates replaced by U+FFFD."""
    return text if text.isascii() and "\x00" not in text else _UNSTORABLE.sub("\ufffd", text)


def read_json(data: str | bytes, *, most: int | None = None) -> Any:
    """Return the JSON that somebody sent; raises `ValueError` for what is none and for more than `most` parts.

    Parts are the commas and opening brackets outside of texts. They are counted first: a megabyte of `[],[],…` takes
    a second to build and to check, in which the process does nothing else.
    """
    most = MAX_PARTS if most is None else most
    raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
    if _parts(raw) > most and count_parts(raw, most) > most:
        raise ValueError(f"JSON of more than {most} parts")
    return orjson.loads(data)


def count_parts(raw: bytes, most: int) -> int:
    """Return how many parts JSON has; where that is more than `most`, any such number."""
    return _parts(_outside_texts(raw, most))


def _parts(raw: bytes) -> int:
    return len(raw.translate(None, _NO_PARTS))


def _outside_texts(raw: bytes, most: int) -> bytes:
    """Return JSON without its texts; as it is if there are so many that there must be too many parts as well."""
    bare = raw.replace(rb"\\", b"").replace(rb"\"", b"")
    if bare.count(b'"') > 4 * most + 2:  # each text is behind a part, or behind a key that is
        return raw
    return b"".join(bare.split(b'"')[::2])


def freeze(value: object, *, depth: int = MAX_DEPTH) -> Any:
    """Return an independent, deeply immutable copy of a JSON value; what is so already is its own copy.

    Raises `ValueError` for what is no JSON value and for nesting deeper than `depth`.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean_text(str.__str__(value))
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**64 else _digits(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if depth <= 0:
        raise ValueError(f"JSON nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, _LISTS):
        items = tuple([freeze(item, depth=depth - 1) for item in value])
        return value if type(value) is tuple and all(map(is_, items, value)) else items
    if isinstance(value, Mapping):
        frozen: dict[str, Any] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"JSON object keys are strings, got {key!r}")
            frozen[clean_text(key)] = freeze(item, depth=depth - 1)
        same = type(value) is FrozenDict and frozen.keys() == value.keys()
        return value if same and all(map(is_, frozen.values(), value.values())) else FrozenDict(frozen)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return freeze(list(value), depth=depth)
    raise ValueError(f"{type(value).__name__} is not a JSON value")


def _digits(value: int) -> str:
    return str(value) if value.bit_length() < 10_000 else hex(value)


def freeze_object(value: object) -> FrozenDict:
    """Return `freeze(value)`, which must be a JSON object; raises `ValueError` otherwise."""
    frozen = freeze(value)
    if not isinstance(frozen, FrozenDict):
        raise ValueError(f"a JSON object is needed, got {type(value).__name__}")
    return frozen


def _plain(value: Any) -> Any:
    return value


Text = Annotated[str, BeforeValidator(lambda value: clean_text(value) if isinstance(value, str) else value)]
JsonData = Annotated[Any, BeforeValidator(freeze), PlainSerializer(_plain)]
JsonObject = Annotated[Any, BeforeValidator(freeze_object), PlainSerializer(_plain)]
