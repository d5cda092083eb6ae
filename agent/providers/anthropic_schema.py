"""Schemas of structured answers as the Messages API compiles them, on a copy (P53)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.providers.failures import quoted

_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
_KEPT = ("$ref", "type", "enum", "const", "description", "title", "required", "default")


def output_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with what the API can enforce; the rest becomes a part of the descriptions, for the model.

    Objects are closed, as the API demands. What comes back is still checked against the original.
    """
    made = {name: value for name, value in schema.items() if name in _KEPT}
    rest = {name: value for name, value in schema.items() if name not in _KEPT}
    for name in ("$defs", "definitions", "properties"):
        if isinstance(members := rest.pop(name, None), Mapping):
            made[name] = {key: _inner(member) for key, member in members.items()}
    for name, kept in (("anyOf", "anyOf"), ("oneOf", "anyOf"), ("allOf", "allOf")):
        if isinstance(branches := rest.pop(name, None), list | tuple):
            made.setdefault(kept, [_inner(branch) for branch in branches])
    if isinstance(rest.get("items"), Mapping):
        made["items"] = output_schema(rest.pop("items"))
    if rest.get("minItems") in (0, 1):
        made["minItems"] = rest.pop("minItems")
    if rest.get("format") in _FORMATS:
        made["format"] = rest.pop("format")
    if "properties" in made or _is_object(made.get("type")):
        made["additionalProperties"] = False
    for name in ("$schema", "$id", "additionalProperties"):
        rest.pop(name, None)
    if rest:
        words = [made["description"]] if isinstance(made.get("description"), str) else []
        made["description"] = "\n\n".join([*words, quoted(rest)])
    return made


def _inner(schema: Any) -> Any:
    return output_schema(schema) if isinstance(schema, Mapping) else schema


def _is_object(kind: Any) -> bool:
    return kind == "object" or (isinstance(kind, list | tuple) and "object" in kind)
