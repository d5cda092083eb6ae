"""Tools as a chat completions server accepts them: legal names and plain object schemas (B85, B87, B88)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from agent.runtime.tools import ToolDefinition

MAX_NAME = 64

_LEGAL = re.compile(rf"[a-zA-Z0-9_-]{{1,{MAX_NAME}}}")
_ILLEGAL_CHARACTER = re.compile(r"[^a-zA-Z0-9_-]")
_COMBINATORS = ("allOf", "anyOf", "oneOf")


class ToolNames:
    """The two-way table between our tool names and those of one request.

    Legal names stay. Others get their illegal characters replaced, and a digest of the whole name where that would not
    tell them apart; the table depends on the set of names only, not on their order.
    """

    __slots__ = ("_original", "_wire")

    def __init__(self, names: Iterable[str]) -> None:
        distinct = sorted(set(names))
        self._wire = {name: name for name in distinct if _LEGAL.fullmatch(name)}
        plain = {name: _ILLEGAL_CHARACTER.sub("_", name) for name in distinct if name not in self._wire}
        taken = [*self._wire, *plain.values()]
        for name, candidate in plain.items():
            fits = 0 < len(candidate) <= MAX_NAME and taken.count(candidate) == 1
            self._wire[name] = candidate if fits else _with_digest(name, candidate)
        self._original = {wire: name for name, wire in self._wire.items()}

    def wire(self, name: str) -> str:
        """Return the name for the provider; a name of an older tool, unknown to this request, is made legal too."""
        known = self._wire.get(name)
        if known is not None:
            return known
        return name if _LEGAL.fullmatch(name) else _with_digest(name, _ILLEGAL_CHARACTER.sub("_", name))

    def original(self, name: str) -> str:
        """Return our name for what the provider said; a name that it made up stays as it is."""
        return self._original.get(name, name)


def _with_digest(name: str, candidate: str) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{candidate[: MAX_NAME - 17]}_{digest}"


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


def encode_tool(definition: ToolDefinition, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the wire form of a tool as plain JSON data."""
    return {
        "type": "function",
        "function": {"name": name, "description": definition.description, "parameters": schema},
    }
