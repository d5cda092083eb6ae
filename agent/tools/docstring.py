"""Reading a Google-style docstring: what a tool does, and what its parameters mean."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

_ARGS = ("Args:", "Arguments:", "Parameters:")
_HIDDEN = ("Raises:",)  # of interest to programmers only
_ENTRY = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")


@dataclass(frozen=True, slots=True)
class Docstring:
    """The description without its parameter section, and the text of each documented parameter."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def read_docstring(text: str | None) -> Docstring:
    """Split a docstring into the description and its `Args:` section; `Raises:` is left out."""
    if not text:
        return Docstring()
    described: list[str] = []
    documented: list[str] = []
    section = ""
    for line in inspect.cleandoc(text).splitlines():
        indented = line[:1].isspace()
        if line.strip() and not indented:
            section = line.strip() if line.strip() in (*_ARGS, *_HIDDEN) else ""
            if section:
                continue
        if section in _ARGS:
            documented.append(line)
        elif not section:
            described.append(line.rstrip())
    description = re.sub(r"\n{3,}", "\n\n", "\n".join(described)).strip()
    return Docstring(description, _entries(documented))


def _entries(lines: list[str]) -> dict[str, str]:
    entries: dict[str, list[str]] = {}
    current: list[str] = []
    width = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    for line in lines:
        entry = _ENTRY.match(line[width:])
        if entry:
            current = entries.setdefault(entry[1], [])
            current.append(entry[2].strip())
        elif line.strip():
            current.append(line.strip())
    return {name: " ".join(piece for piece in pieces if piece) for name, pieces in entries.items()}
