"""Input schemas as providers accept them: plain object schemas, on a copy (B87, B88)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_COMBINATORS = ("allOf", "anyOf", "oneOf")


def object_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a copy of an input schema with a plain object at its root, None if it describes no object.

    References at the root are followed and combinators at the root are merged into one object that allows at least what
    they allow; the original is still what arguments are checked against.
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
    for name in ("$schema", "$id"):
        root.pop(name, None)
    return root


def _resolved(schema: Any, document: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a copy of `schema` with its own reference, if it has one, replaced by what it points to."""
    root = dict(schema) if isinstance(schema, Mapping) else {}
    document = root if document is None else document
    seen: set[str] = set()
    while isinstance(pointer := root.pop("$ref", None), str) and pointer.startswith("#/") and pointer not in seen:
        seen.add(pointer)
        target: Any = document
        for step in pointer[2:].split("/"):
            target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, Mapping) else None
        root = {**(target if isinstance(target, Mapping) else {}), **root}
    return root


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
