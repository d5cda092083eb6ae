"""The lock that lets one process serve a database: two would not see each other's runs."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from django.db import connection

KEY = int.from_bytes(b"PAR")
WAIT = 3.0  # seconds in which a database server notices that the process before was killed
PAUSE = 0.1
# A database server on another machine gives the lock of a machine that vanished free after half a minute.
KEEP_ALIVE = "SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"


class Taken(Exception):
    """Raised when another process serves the database."""


def serving_alone() -> AbstractContextManager[None]:
    """Hold the lock; raises `Taken`. A database in memory needs none."""
    if connection.vendor == "postgresql":
        return _advisory_lock()
    name = str(connection.settings_dict["NAME"])
    if ":memory:" in name or "mode=memory" in name:
        return nullcontext()
    return _file_lock(Path(name + ".serve-lock"))


@contextmanager
def _advisory_lock() -> Iterator[None]:
    """Hold a lock of the session, on a connection that serves nothing else; it ends with the process."""
    own = connection.copy()
    own.settings_dict["OPTIONS"].pop("pool", None)
    try:
        with own.cursor() as cursor:
            cursor.execute(KEEP_ALIVE)
            until = time.monotonic() + WAIT
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [KEY])
            while not cursor.fetchone()[0]:
                if time.monotonic() > until:
                    raise Taken
                time.sleep(PAUSE)
                cursor.execute("SELECT pg_try_advisory_lock(%s)", [KEY])
        yield
    finally:
        own.close()


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    """Hold a lock on a file beside the database file."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Taken from None
        yield
