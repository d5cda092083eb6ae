"""`manage.py prune`: delete what is due by PAR_TEMPORARY_HOURS and PAR_RETENTION_DAYS, and what has expired."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from conversations.rights.retention import RETENTION, TEMPORARY, Pruning

WORDS = {TEMPORARY: "temporary conversations", RETENTION: "conversations past their time"}


class Command(BaseCommand):
    """Safe beside a running site, which does the same once an hour."""

    help = "Delete conversations whose time is over, expired sessions, links, tickets and idempotency keys."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="say what is due and delete nothing")

    def handle(self, *args: Any, dry_run: bool, **options: Any) -> None:
        pruning = Pruning()
        if dry_run:
            self.stdout.write(f"Due: {_listed(pruning.due())}.")
            return
        for _ in pruning.steps():
            pass
        self.stdout.write(f"Deleted: {_listed(pruning.counts)}.")
        if pruning.failed:
            raise CommandError(f"{len(pruning.failed)} conversations could not be deleted; the log says why")


def _listed(counts: Mapping[str, int]) -> str:
    found = [f"{count} {WORDS.get(name, name)}" for name, count in counts.items() if count]
    return ", ".join(found) or "nothing"
