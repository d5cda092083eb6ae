"""Databases to measure: each row's work is done in a process of its own, on a database of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

DATABASES = ("sqlite", "postgresql")


def servers(wanted: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield name and URL, empty for SQLite, of each database that there is and that a wanted row begins with."""
    server = os.environ.get("DATABASE_URL") or os.environ.get("PAR_TEST_DATABASE_URL")
    for name, url in zip(DATABASES, ("", server), strict=True):
        if url is not None and any(row.startswith(f"{name}.") for row in wanted):
            yield name, url


def measured(module: str, url: str, *arguments: str) -> str:
    """Run a module with a URL and more, and return what it prints."""
    environment = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    command = [sys.executable, "-m", module, url, *arguments]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


@contextmanager
def migrated(url: str) -> Iterator[None]:
    """Have Django use a new database, on the server of `url` if it is not empty."""
    with tempfile.TemporaryDirectory(prefix="par-bench-") as place, _database(url, Path(place)):
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import connection

        call_command("migrate", verbosity=0)
        yield
        connection.close()
        if pool := getattr(connection, "pool", None):
            pool.close()


@contextmanager
def _database(url: str, place: Path) -> Iterator[None]:
    os.environ["DJANGO_SETTINGS_MODULE"] = "par_project.test_settings"
    if not url:
        os.environ["DATABASE_URL"] = f"sqlite:///{place / 'bench.sqlite3'}"
        yield
        return
    import psycopg

    name = f"par_bench_{uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}"')  # type: ignore[arg-type]
        os.environ["DATABASE_URL"] = urlsplit(url)._replace(path=f"/{name}").geturl()
        try:
            yield
        finally:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')  # type: ignore[arg-type]
