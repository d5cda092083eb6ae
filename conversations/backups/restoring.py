"""Putting a backup in the place of what is there: everything is checked first, and nothing is thrown away."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone

from agent.crypto import key_name
from conversations.backups.archive import ATTACHMENTS, DATABASE, Manifest, unpack
from conversations.backups.exceptions import BackupFault
from conversations.backups.places import attachments_directory, check_file, database_file
from conversations.hosting.lock import Taken, serving_alone

BESIDE = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class Restored:
    """A backup that is in place.

    `aside` is what was there before, `missing_keys` are the names of keys that its secrets may need.
    """

    manifest: Manifest
    aside: tuple[Path, ...]
    missing_keys: tuple[str, ...]


@contextmanager
def restore_backup(source: Path, *, force: bool = False) -> Iterator[Restored]:
    """Put a backup in place; until the end of the `with` nobody can begin to serve, so that it can be migrated.

    What is there is refused without `force` and set aside with it. Raises `BackupFault` before anything is changed, or
    with the words for what a full disk left behind.
    """
    database, attachments = database_file(), attachments_directory()
    if not source.is_file():
        raise BackupFault(f"there is no backup {source}")
    database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with serving_alone():
            yield put_in_place(source, database, attachments, force)
    except Taken:
        raise BackupFault("a server uses this database: stop it first") from None


def put_in_place(source: Path, database: Path, attachments: Path, force: bool) -> Restored:
    """Check a backup and let it take the place of these files; see `restore_backup`."""
    if not force and (there := [each for each in (database, attachments) if _holds_something(each)]):
        raise BackupFault(f"{there[0]} is there already; --force sets it aside")
    with tempfile.TemporaryDirectory(prefix=".par-restore-", dir=database.parent) as name:
        place = Path(name)
        manifest = unpack(source, place)
        if set(check_file(place / DATABASE)) != set(manifest.migrations):
            raise BackupFault("the backup is damaged: its database is not the one of its manifest")
        _check_release(manifest)
        connections.close_all()
        suffix = f"before-restore-{timezone.now():%Y%m%d-%H%M%S-%f}"
        try:
            aside = _swap(place, database, attachments, suffix)
        except OSError as error:
            raise BackupFault(
                f"not all could be put in place ({error}); look for names that end in {suffix}"
            ) from error
    known = {key_name(key) for key in settings.PAR.secret_keys}
    return Restored(manifest, aside, tuple(key for key in manifest.keys if key not in known))


def _holds_something(path: Path) -> bool:
    if path.is_dir():
        return any(path.iterdir())
    return path.exists() and path.stat().st_size > 0


def _check_release(manifest: Manifest) -> None:
    known = {f"{app}.{name}" for app, name in MigrationLoader(None).disk_migrations}
    if newer := sorted(set(manifest.migrations) - known):
        raise BackupFault(
            f"the backup is of another release (PAR {manifest.version}) with {newer[0]}: install that or a later one"
        )


def _swap(place: Path, database: Path, attachments: Path, suffix: str) -> tuple[Path, ...]:
    """Set aside what is there, and put in place what was unpacked; there is a database at every moment."""
    aside: list[Path] = []
    if _holds_something(attachments):
        aside.append(attachments.rename(attachments.with_name(f"{attachments.name}.{suffix}")))
    elif attachments.exists():
        attachments.rmdir()
    if (place / ATTACHMENTS).exists():
        attachments.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.move(place / ATTACHMENTS, attachments)
    kept = database.with_name(f"{database.name}.{suffix}")
    if database.exists():
        _settle(database)
        _copy(database, kept)
        aside.append(kept)
    for ending in BESIDE:  # what a crash left there would be written into the new database
        with suppress(FileNotFoundError):
            aside.append(database.with_name(database.name + ending).rename(kept.with_name(kept.name + ending)))
    (place / DATABASE).replace(database)
    return tuple(aside)


def _settle(database: Path) -> None:
    """Bring what was written last into the file itself; a damaged one keeps its log beside it."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(database)) as opened:
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _copy(database: Path, kept: Path) -> None:
    try:
        os.link(database, kept)
    except OSError:  # a file system without links
        shutil.copy2(database, kept)
