"""How large the body of a request may be."""

from __future__ import annotations

import re
from collections.abc import Callable

from agent.conf import ParSettings


def larger_bodies(par: ParSettings) -> Callable[[bytes, bytes], int | None]:
    """Return what gives the bytes of a body, by method and path, that may be larger than a frame; else None.

    Those are files, and conversations as a whole, which may be as large as a file of them.
    """
    base = re.escape(par.base_path.encode())
    limits = (
        (re.compile(rb"POST %s/attachments" % base), par.max_attachment_bytes),
        (re.compile(rb"POST %s/(?:imports|conversations)" % base), par.max_import_bytes),
        (re.compile(rb"PUT %s/conversations/[^/]+" % base), par.max_import_bytes),
    )

    def limit(method: bytes, path: bytes) -> int | None:
        asked = method + b" " + path
        return next((most for pattern, most in limits if pattern.fullmatch(asked)), None)

    return limit
