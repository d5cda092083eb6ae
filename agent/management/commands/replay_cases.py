"""`manage.py replay_cases PATH`: run recorded model answers through the adapters."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from agent.management.replay import Case, load_cases, replay
from agent.management.wire_forms import FORMS
from agent.providers.transport import Transport


class Command(BaseCommand):
    """Prints one line per case; exit status 1 if any failed."""

    help = "Run recorded model answers through the provider adapters over a real socket."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, help="a cases.jsonl file, or the folder that holds it")

    def handle(self, *args: Any, path: Path, **options: Any) -> None:
        try:
            cases = load_cases(path)
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise CommandError(f"{path} cannot be read as cases: {error}") from error
        failed = asyncio.run(self._run(cases))
        if failed:
            raise CommandError(f"{failed} of {len(cases)} cases failed")

    async def _run(self, cases: list[Case]) -> int:
        failed = 0
        transport = Transport()
        await transport.start()
        try:
            for case in cases:
                if case.api not in FORMS:
                    self.stdout.write(f"skip {case.id}: no adapter for {case.api}")
                elif differences := await replay(case, transport):
                    failed += 1
                    self.stdout.write(f"FAIL {case.id}: {'; '.join(differences)}")
                else:
                    self.stdout.write(f"ok {case.id}")
        finally:
            await transport.close()
        return failed
