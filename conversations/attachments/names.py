"""Names of files, as they may be shown, stored and sent: what somebody calls a file says nothing about it."""

from __future__ import annotations

import unicodedata

from agent.runtime.values import clean_text
from conversations.models import NAME_LENGTH

LONGEST_ENDING = 16
_UNSEEN = ("C", "Zl", "Zp")  # controls, marks that turn the direction round, line ends


def clean_name(name: str, otherwise: str = "attachment") -> str:
    """Return the last part of a path without what cannot be seen, cut before its ending; `otherwise` for nothing."""
    last = clean_text(name).replace("\\", "/").rsplit("/", 1)[-1]
    seen = "".join(each for each in last if not unicodedata.category(each).startswith(_UNSEEN))
    seen = " ".join(unicodedata.normalize("NFC", seen).split()).strip(". ")
    if len(seen) > NAME_LENGTH:
        stem, dot, ending = seen.rpartition(".")
        ending = dot + ending if stem and len(ending) <= LONGEST_ENDING else ""
        seen = seen[: NAME_LENGTH - len(ending)].rstrip() + ending
    return seen or otherwise
