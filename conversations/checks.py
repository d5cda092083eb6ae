"""System checks of how the site is put together; ids are stable.

conversations.E001  the base path is below a path that the site itself uses
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.apps.config import AppConfig
from django.conf import settings
from django.core import checks
from django.urls import URLPattern, URLResolver, get_resolver

API = "par-api"


@checks.register(checks.Tags.urls)
def check_base_path(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[checks.CheckMessage]:
    """Report a PAR_BASE_PATH whose pages and API would hide one another."""
    first = _first_part(settings.PAR.base_path)
    if first not in {*_first_parts(get_resolver().url_patterns), _first_part(settings.STATIC_URL)}:
        return []
    words = f"PAR_BASE_PATH is {settings.PAR.base_path!r}, but the site itself uses /{first}"
    return [checks.Error(words, hint="Take another path, such as /ai.", id="conversations.E001")]


def _first_parts(patterns: Sequence[URLPattern | URLResolver]) -> Iterator[str]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver) and pattern.namespace == API:
            continue
        first = _first_part(str(pattern.pattern))
        if first:
            yield first
        elif isinstance(pattern, URLResolver):
            yield from _first_parts(pattern.url_patterns)


def _first_part(path: str) -> str:
    return path.lstrip("/").partition("/")[0]
