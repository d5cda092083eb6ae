"""`manage.py backup`: the database and the attachments in one file."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from conversations.backups import BackupFault, make_backup


class Command(BaseCommand):
    """May run while the site is served."""

    help = "Write a backup of a site on SQLite, except its keys, to a new file or into a directory."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("target", type=Path, help="a file that does not exist yet, or a directory")

    def handle(self, *args: Any, target: Path, **options: Any) -> None:
        try:
            made = make_backup(target)
        except BackupFault as error:
            raise CommandError(str(error)) from error
        count = len(made.manifest.members) - 1
        self.stdout.write(f"{made.path}: the database and {count} attachments, {made.size:,} bytes.")
        keys = settings.PAR.data_dir / "keys"
        where = f"PAR_SECRET_KEYS (here from {keys})" if keys.exists() else "PAR_SECRET_KEYS"
        self.stderr.write(
            self.style.WARNING(
                f"THE KEYS ARE NOT IN IT. Keep {where} elsewhere: without them no stored secret can be read."
            )
        )
