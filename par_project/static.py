"""Static files: one application serves them, from the sources in development, hashed and compressed otherwise."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from servestatic import ServeStaticASGI
from servestatic.storage import CompressedManifestStaticFilesStorage

_HASHED = re.compile(r"\.[0-9a-f]{12}\.")


class HashedModules(CompressedManifestStaticFilesStorage):
    """Names files by their content; modules find each other through the import map, so nothing rewrites them."""

    keep_intermediate_files = False


def serve_static(application: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the site's HTTP application so that requests below STATIC_URL get files."""
    fresh = settings.PAR.development
    served: Callable[..., Any] = ServeStaticASGI(
        application,
        root=None if fresh else settings.STATIC_ROOT,
        prefix=settings.STATIC_URL,
        max_age=0 if fresh else 60,
        autorefresh=fresh,
        allow_all_origins=False,
        immutable_file_test=lambda path, url: not fresh and _HASHED.search(url) is not None,
        add_headers_function=_headers,
    )
    if fresh:
        add_files = served.add_files  # type: ignore[attr-defined]
        for finder in get_finders():
            for storage in getattr(finder, "storages", {}).values():
                add_files(storage.location, prefix=settings.STATIC_URL)
    return served


def _headers(headers: Any, path: str, url: str) -> None:
    headers["X-Content-Type-Options"] = "nosniff"
