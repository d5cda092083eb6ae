"""Where a site on SQLite keeps what a backup holds."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from django.conf import settings
from django.db import connection

from conversations.backups.archive import ATTACHMENTS
from conversations.backups.exceptions import BackupFault

OTHER_WAY = (
    "this command is for SQLite. On PostgreSQL use pg_dump and pg_restore, and copy PAR_DATA_DIR/attachments: "
    "docs/deployment.md, “Backups”, says how"
)


def database_file() -> Path:
    """Return the file of the database; raises `BackupFault` where there is none."""
    if connection.vendor != "sqlite":
        raise BackupFault(OTHER_WAY)
    name = str(connection.settings_dict["NAME"])
    if ":memory:" in name or "mode=memory" in name:
        raise BackupFault("a database in memory has no file")
    return Path(name)


def attachments_directory() -> Path:
    """Return the directory of attachments, which need not exist."""
    found: Path = settings.PAR.data_dir / ATTACHMENTS
    return found


def check_file(path: Path) -> tuple[str, ...]:
    """Return the migrations of a SQLite database that is whole; raises `BackupFault`."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            (verdict,) = database.execute("PRAGMA integrity_check(1)").fetchone()
            if verdict != "ok":
                raise BackupFault(f"the database is damaged: {verdict}")
            rows = database.execute("SELECT app, name FROM django_migrations ORDER BY id").fetchall()
    except sqlite3.Error as error:
        raise BackupFault(f"the database cannot be read: {error}") from error
    return tuple(dict.fromkeys(f"{app}.{name}" for app, name in rows))
