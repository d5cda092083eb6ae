"""The small schema subset of front-end tools, compiled once into a validator (R105).

Every node has a `type`, one name or a list of names. Beside it there are `properties`, `required` and
`additionalProperties` for objects, `items` for arrays, `enum` of primitives, `title` and `description`. Any other
keyword is refused, so that nothing a schema says is silently ignored. The keywords mean what they mean in JSON Schema
2020-12: 5.0 is an integer, true is none, and an enum compares numbers by value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from agent.runtime.values import FrozenDict, clean_text, freeze, freeze_object
from agent.tools.exceptions import ClientToolError

MAX_SCHEMA_DEPTH = 32
MAX_PROBLEMS = 8

_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_OBJECT_KEYWORDS = ("properties", "required", "additionalProperties")
_KEYWORDS = ("type", *_OBJECT_KEYWORDS, "items", "enum", "title", "description")
_SHOWN = 80  # characters of one value that a message repeats
_LISTED = 20  # values that a message lists


@dataclass(frozen=True, slots=True)
class ClientSchema:
    """A compiled schema; `schema` is its frozen text, as a model gets to see it."""

    schema: FrozenDict
    _root: _Node

    def problems(self, arguments: object) -> list[str]:
        """Return what breaks the schema, in words for the model; at most `MAX_PROBLEMS`, none if all is well."""
        return list(islice(self._root.problems(arguments, ""), MAX_PROBLEMS))


def compile_schema(schema: object) -> ClientSchema:
    """Compile the input schema of a front-end tool; raises `ClientToolError`, which names the place in the schema."""
    root = _compile(schema, "", 0)
    if "object" not in root.types:
        raise _error("", f"'type' must include 'object', got {_types_text(root.types)}")
    return ClientSchema(freeze_object(schema), root)


@dataclass(frozen=True, slots=True)
class _Node:
    """One compiled node; `enum` and `items` are None where the schema does not have them."""

    types: tuple[str, ...]
    properties: Mapping[str, _Node]
    required: tuple[str, ...]
    additional: bool
    enum: tuple[Any, ...] | None
    items: _Node | None

    def problems(self, value: object, path: str) -> Iterator[str]:
        found = _type_of(value)
        if found not in self.types and not (found == "integer" and "number" in self.types):
            yield f"{_place(path)} must be of type {_types_text(self.types)}, got {found}"
            return
        if self.enum is not None and not any(_equal(value, allowed) for allowed in self.enum):
            yield f"{_place(path)} must be one of {_listed(self.enum)}"
        if isinstance(value, Mapping):
            yield from self._object_problems(value, path)
        elif self.items is not None and isinstance(value, list | tuple):
            for index, item in enumerate(value):
                yield from self.items.problems(item, _below(path, str(index)))

    def _object_problems(self, value: Mapping[str, Any], path: str) -> Iterator[str]:
        for name in self.required:
            if name not in value:
                yield f"{_place(_below(path, name))} is required"
        for name, item in value.items():
            node = self.properties.get(name)
            if node is not None:
                yield from node.problems(item, _below(path, name))
            elif not self.additional:
                yield f"{_place(_below(path, name))} is not known here (known: {_listed(self.properties) or 'none'})"


def _compile(schema: object, path: str, depth: int) -> _Node:
    if not isinstance(schema, Mapping):
        raise _error(path, f"a schema is an object, got {_type_of(schema)}")
    if depth > MAX_SCHEMA_DEPTH:
        raise _error(path, f"schemas are nested at most {MAX_SCHEMA_DEPTH} levels deep")
    for keyword in schema:
        if keyword not in _KEYWORDS:
            raise _error(path, f"the keyword {_shown(keyword)} is not supported (supported: {', '.join(_KEYWORDS)})")
    types = _read_types(schema, path)
    for keyword in (*_OBJECT_KEYWORDS, "items"):
        owner = "array" if keyword == "items" else "object"
        if keyword in schema and owner not in types:
            raise _error(path, f"{keyword!r} needs the type {owner!r}, got {_types_text(types)}")
    for keyword in ("title", "description"):
        _expect(path, keyword, schema.get(keyword, ""), str, "a string")
    properties = _expect(path, "properties", schema.get("properties", {}), Mapping, "an object")
    if not all(isinstance(name, str) for name in properties):
        raise _error(path, "the names in 'properties' are strings")
    return _Node(
        types=types,
        properties={
            clean_text(name): _compile(node, _below(path, name, "properties"), depth + 1)
            for name, node in properties.items()
        },
        required=_read_required(schema, path),
        additional=_expect(path, "additionalProperties", schema.get("additionalProperties", True), bool, "a boolean"),
        enum=_read_enum(schema, path),
        items=_compile(schema["items"], _below(path, "items"), depth + 1) if "items" in schema else None,
    )


def _read_types(schema: Mapping[str, Any], path: str) -> tuple[str, ...]:
    if "type" not in schema:
        raise _error(path, "'type' is missing")
    written = schema["type"]
    types = tuple(written) if isinstance(written, list | tuple) else (written,)
    for name in types:
        if not isinstance(name, str) or name not in _TYPES:
            raise _error(path, f"{_shown(name)} is no type (there are {', '.join(_TYPES)})")
    if not types or len(set(types)) < len(types):
        raise _error(path, f"'type' names each type once, and at least one, got {_shown(written)}")
    return types


def _read_required(schema: Mapping[str, Any], path: str) -> tuple[str, ...]:
    names = _expect(path, "required", schema.get("required", ()), list | tuple, "a list of names")
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise _error(path, f"'required' is a list of different names, got {_shown(names)}")
    return tuple(map(clean_text, names))


def _read_enum(schema: Mapping[str, Any], path: str) -> tuple[Any, ...] | None:
    if "enum" not in schema:
        return None
    values = _expect(path, "enum", schema["enum"], list | tuple, "a list")
    if not values:
        raise _error(path, "'enum' is empty")
    for value in values:
        if not isinstance(value, str | int | float | None):
            raise _error(path, f"'enum' holds strings, numbers, booleans and null only, got {_shown(value)}")
        if not isinstance(value, str) and freeze(value) != value:
            raise _error(path, f"{_shown(value)} in 'enum' is no number that arguments can have")
    return tuple(map(freeze, values))


def _expect(path: str, keyword: str, value: Any, kind: Any, words: str) -> Any:
    if not isinstance(value, kind):
        raise _error(path, f"{keyword!r} must be {words}, got {_shown(value)}")
    return value


def _error(path: str, problem: str) -> ClientToolError:
    return ClientToolError(f"the input schema cannot be used: {f'at {path}: ' if path else ''}{problem}")


def _type_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case Mapping():
            return "object"
        case _:
            return type(value).__name__


def _equal(one: object, other: object) -> bool:
    """Compare as JSON: true is not 1, and 1.0 is 1."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _below(path: str, name: str, *between: str) -> str:
    return ".".join((*filter(None, (path,)), *between, clean_text(name)[:_SHOWN]))


def _place(path: str) -> str:
    return repr(path) if path else "the arguments"


def _types_text(types: tuple[str, ...]) -> str:
    return " or ".join(types)


def _listed(values: Iterable[object]) -> str:
    shown = [_shown(value) for value in islice(values, _LISTED + 1)]
    return ", ".join(shown[:_LISTED] + ["…"] * (len(shown) > _LISTED))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
