"""Tool names as a provider allows them, and back (B85)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

MAX_WIRE_NAME = 64

_LEGAL = re.compile(rf"[a-zA-Z0-9_-]{{1,{MAX_WIRE_NAME}}}")
_ILLEGAL_CHARACTER = re.compile(r"[^a-zA-Z0-9_-]")


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
            fits = 0 < len(candidate) <= MAX_WIRE_NAME and taken.count(candidate) == 1
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
    return f"{candidate[: MAX_WIRE_NAME - 17]}_{digest}"
