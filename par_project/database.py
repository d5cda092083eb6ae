"""Database settings from a URL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import environ

# A read-then-write transaction under DEFERRED fails at once when another one writes; IMMEDIATE waits its turn.
SQLITE = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-20000",
}
POOL = {"min_size": 0, "max_size": 8, "timeout": 10, "max_idle": 60}


def database(url: str | None, data_dir: Path) -> dict[str, Any]:
    """Return the settings for `url`; without one SQLite in `data_dir` serves."""
    found: dict[str, Any] = (
        environ.Env.db_url_config(url)
        if url
        else {"ENGINE": "django.db.backends.sqlite3", "NAME": str(data_dir / "par.sqlite3")}
    )
    if found["ENGINE"].endswith("sqlite3"):
        found["OPTIONS"] = {**SQLITE, **found.get("OPTIONS", {})}
    else:
        found["OPTIONS"] = {"pool": POOL, **found.get("OPTIONS", {})}
        found["CONN_HEALTH_CHECKS"] = True
    # Under ASGI each request has a thread of its own: a connection kept open is a connection leaked.
    return {**found, "CONN_MAX_AGE": 0, "ATOMIC_REQUESTS": False}
