"""Settings of the database and of Redis from their URLs."""

from __future__ import annotations

import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ

# A read-then-write transaction under DEFERRED fails at once when another one writes; IMMEDIATE waits its turn.
SQLITE = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-20000",
}
POOL = {"min_size": 0, "max_size": 8, "timeout": 10, "max_idle": 60}


def database(url: str | None, data_dir: Path) -> dict[str, Any]:
    """Return the settings for `url`; without one SQLite in `data_dir` serves. Raises `ValueError`, without the url."""
    default = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(data_dir / "par.sqlite3")}
    found: dict[str, Any] = _parsed(url) if url else dict(default)
    if found["ENGINE"].endswith("sqlite3"):
        found["OPTIONS"] = {**SQLITE, **found.get("OPTIONS", {})}
    else:
        found["OPTIONS"] = {"pool": POOL, **found.get("OPTIONS", {})}
        found["CONN_HEALTH_CHECKS"] = True
    # Under ASGI each request has a thread of its own: a connection kept open is a connection leaked.
    return {**found, "CONN_MAX_AGE": 0, "ATOMIC_REQUESTS": False}


def _parsed(url: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with suppress(ValueError), warnings.catch_warnings(action="ignore"):  # they quote the url, password and all
        found = environ.Env.db_url_config(url)
    known = found.get("ENGINE") in ("django.db.backends.postgresql", "django.db.backends.sqlite3")
    if not known or not (found["NAME"] or "service" in found.get("OPTIONS", {})):
        raise ValueError(
            "DATABASE_URL is no address of a database, as in postgres://user:password@host:5432/name "
            "or sqlite:////absolute/path (characters such as / in a password are written %2F)"
        )
    return found


def redis_url(url: str) -> str:
    """Return an address of Redis as it is; raises `ValueError`, without the address."""
    with suppress(ValueError):
        parts = urlsplit(url)
        if (parts.scheme in ("redis", "rediss") and parts.hostname and parts.port != 0) or parts.scheme == "unix":
            return url
    raise ValueError("REDIS_URL is no address of Redis, as in redis://host:6379/0")
