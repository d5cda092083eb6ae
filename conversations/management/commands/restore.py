"""`manage.py restore`: a backup takes the place of what is there."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from conversations.backups import BackupFault, restore_backup


class Command(BaseCommand):
    """The server must not run."""

    help = "Check a backup, put it in place and bring its database up to date."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("source", type=Path, help="a file that manage.py backup wrote")
        parser.add_argument("--force", action="store_true", help="set aside what is there; without it, that is refused")

    def handle(self, *args: Any, source: Path, force: bool, **options: Any) -> None:
        try:
            with restore_backup(source, force=force) as restored:
                call_command("migrate", verbosity=0, interactive=False)
        except BackupFault as error:
            raise CommandError(str(error)) from error
        manifest = restored.manifest
        made = f"{manifest.created_at:%Y-%m-%d %H:%M} UTC, PAR {manifest.version}"
        self.stdout.write(f"The backup ({made}) is in place and up to date.")
        for path in restored.aside:
            self.stdout.write(f"What was there is kept: {path}")
        self.stdout.write("What was revoked, ended or deleted since that moment is back: see docs/deployment.md.")
        if restored.missing_keys:
            self.stderr.write(
                self.style.ERROR(
                    f"PAR_SECRET_KEYS LACKS THE KEYS {', '.join(restored.missing_keys)} OF THE BACKUP: "
                    "add them, or its secrets cannot be read."
                )
            )
