"""Making a backup, also while the site is served."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection
from django.utils import timezone

from agent.crypto import key_name
from conversations.backups.archive import DATABASE, Described, Manifest, pack
from conversations.backups.exceptions import BackupFault
from conversations.backups.places import attachments_directory, check_file, database_file


@dataclass(frozen=True, slots=True)
class MadeBackup:
    """A backup that is whole and on the disk."""

    path: Path
    size: int
    manifest: Manifest


def make_backup(target: Path) -> MadeBackup:
    """Write a backup to a file that does not exist, or into a directory under a name of its own.

    The database is copied as it is at one moment, then the attachments, of which it can know no later ones. The file
    appears whole or not at all. Raises `BackupFault`.
    """
    source, now = database_file(), timezone.now()
    if not source.is_file():
        raise BackupFault(f"there is no database {source}")
    path = target / f"par-{now:%Y%m%d-%H%M%S}.tar" if target.is_dir() else target
    if path.exists():
        raise BackupFault(f"{path} exists already")
    try:
        with tempfile.TemporaryDirectory(prefix=".par-backup-", dir=path.parent) as place:
            copy, archive = Path(place, DATABASE), Path(place, "backup.tar")
            with connection.cursor() as cursor:
                cursor.execute("VACUUM INTO %s", [str(copy)])
            described = Described(
                version=settings.VERSION,
                created_at=now,
                migrations=check_file(copy),
                keys=tuple(map(key_name, settings.PAR.secret_keys)),
            )
            manifest = pack(archive, copy, attachments_directory(), described)
            size = archive.stat().st_size
            _publish(archive, path)
    except (OSError, DatabaseError) as error:
        raise BackupFault(f"{path} cannot be written: {error}") from error
    return MadeBackup(path, size, manifest)


def _publish(archive: Path, path: Path) -> None:
    """Give a finished file its name, unless somebody else took it meanwhile."""
    try:
        os.link(archive, path)
    except FileExistsError:
        raise BackupFault(f"{path} exists already") from None
    except OSError:  # a file system without links
        archive.rename(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
