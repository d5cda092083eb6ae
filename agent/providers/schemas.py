"""JSON Schemas as providers accept them, on a copy (B87, B88, P54): the original is what is checked against."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

logger = logging.getLogger(__name__)

_COMBINATORS = ("allOf", "anyOf", "oneOf")
_REFUSED_AT_ROOT = ("$schema", "$id", "enum", "const", "not", "if", "then", "else")
_MAPS_OF_SCHEMAS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_STRICT_KEYWORDS = frozenset(
    """type properties required additionalProperties items enum const anyOf $ref $defs definitions title description
    pattern format minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems
    """.split()
)


def object_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a copy of a schema with a plain object at its root, None if providers cannot be told what it says.

    References at the root are followed and combinators at the root are merged into one object that allows at least what
    they allow. References elsewhere stay; each must lead somewhere inside the schema.
    """
    root = _resolved(schema)
    for combinator in _COMBINATORS:
        branches = root.pop(combinator, None)
        if isinstance(branches, list | tuple) and branches:
            _merge(root, [_resolved(branch, schema) for branch in branches], every=combinator == "allOf")
    kind = root.get("type", "object")
    if kind != "object" and not (isinstance(kind, list | tuple) and "object" in kind):
        return None
    root["type"] = "object"
    if not isinstance(root.get("properties"), Mapping):
        root["properties"] = {}
    for name in _REFUSED_AT_ROOT:
        root.pop(name, None)
    pointers = (part["$ref"] for part in _parts(root) if "$ref" in part)
    return root if all(_target(pointer, root) is not None for pointer in pointers) else None


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Return whether OpenAI's strict mode takes a schema as it is: nothing optional, nothing open, nothing unknown."""
    return all(part.keys() <= _STRICT_KEYWORDS and _is_closed(part) for part in _parts(schema))


def structured_output(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what OpenAI's protocols say about the form of an answer (P53, P54), None where they cannot be told."""
    plain = object_schema(schema)
    if plain is None:
        logger.warning("the schema of the answer is left out of the request: it cannot be expressed")
        return None
    changes: dict[str, None] = {}
    if any(name in _resolved(schema) for name in _COMBINATORS):
        changes["alternatives at the root became one object"] = None
    strict = _strict(plain, changes)
    if changes:
        logger.warning("the schema of the answer means something else to the provider: %s", "; ".join(changes))
    return {"name": "structured_output", "schema": strict, "strict": True}


def _strict(schema: Any, changes: dict[str, None]) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    made: dict[str, Any] = {}
    for name, value in schema.items():
        if name == "const":
            made["enum"] = [value]
        elif name == "oneOf":
            made["anyOf"] = [*made.get("anyOf", ()), *(_strict(each, changes) for each in value)]
        elif name not in _STRICT_KEYWORDS:
            if name not in ("$schema", "$id", "$comment", "default", "examples", "deprecated", "readOnly"):
                changes[f"{name!r} was left out"] = None
        elif name in _MAPS_OF_SCHEMAS and isinstance(value, Mapping):
            made[name] = {key: _strict(part, changes) for key, part in value.items()}
        elif name == "anyOf":
            made[name] = [*made.get("anyOf", ()), *(_strict(each, changes) for each in value)]
        elif name == "items":
            made[name] = _strict(value, changes)
        else:
            made[name] = value
    if _is_object(made):
        properties = made.setdefault("properties", {})
        if schema.get("additionalProperties") is not False:
            changes["further properties are not allowed"] = None
        if missing := sorted(set(properties) - set(schema.get("required") or ())):
            changes[f"{', '.join(map(repr, missing))} must be there"] = None
        made |= {"required": list(properties), "additionalProperties": False}
    return made


def _is_object(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return "properties" in schema or kind == "object" or (isinstance(kind, list | tuple) and "object" in kind)


def _is_closed(schema: Mapping[str, Any]) -> bool:
    if not _is_object(schema):
        return True
    properties = schema.get("properties") or {}
    return schema.get("additionalProperties") is False and set(properties) == set(schema.get("required") or ())


def _parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and all schemas in it; a reference is not followed, so that this ends."""
    if not isinstance(schema, Mapping):
        return
    yield schema
    for name, value in schema.items():
        if name in _MAPS_OF_SCHEMAS and isinstance(value, Mapping):
            inner: Sequence[Any] = list(value.values())
        elif name in (*_COMBINATORS, "prefixItems") and isinstance(value, list | tuple):
            inner = value
        elif name in ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"):
            inner = value if isinstance(value, list | tuple) else [value]
        else:
            continue
        for part in inner:
            yield from _parts(part)


def _resolved(schema: Any, document: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a copy of `schema` with its own reference, if it has one, replaced by what it points to."""
    root = dict(schema) if isinstance(schema, Mapping) else {}
    document = root if document is None else document
    seen: set[str] = set()
    while isinstance(pointer := root.pop("$ref", None), str) and pointer not in seen:
        seen.add(pointer)
        target = _target(pointer, document)
        root = {**({"type": "null"} if target is None else target), **root}
    return root


def _target(pointer: Any, document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what a reference inside a document points to, None if that is no schema."""
    if not isinstance(pointer, str) or not (pointer == "#" or pointer.startswith("#/")):
        return None
    target: Any = document
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(target, Mapping):
            target = target.get(step)
        elif isinstance(target, list | tuple) and step.isdecimal() and len(step) < 6 and int(step) < len(target):
            target = target[int(step)]
        else:
            return None
    if target is True:
        return {}
    return target if isinstance(target, Mapping) else None


def _merge(root: dict[str, Any], branches: list[dict[str, Any]], *, every: bool) -> None:
    """Merge the branches of a combinator into `root`; `every` says that all of them hold at once."""
    properties = dict(root.get("properties") or {})
    required = [set(branch.get("required") or ()) for branch in branches]
    for branch in branches:
        for name, value in (branch.get("properties") or {}).items():
            known = properties.get(name)
            if known is None or known == value:
                properties[name] = value
            else:
                properties[name] = {"allOf" if every else "anyOf": [known, value]}
        if branch.get("type", "object") == "object":
            root.setdefault("type", "object")
    wanted = set().union(*required) if every else set.intersection(*required)
    root["properties"] = properties
    root["required"] = sorted(wanted | set(root.get("required") or ()))
