"""`manage.py check_conversations`: whether everything that was said can still be read."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

import orjson
from django.core.management.base import BaseCommand, CommandError

from conversations.checking import Tally, check_all, check_conversation
from conversations.models import Conversation


class Command(BaseCommand):
    """Print all damage and repair none; the exit status is 1 where there is any."""

    help = "Look for damage in the stored conversations and print it, a line each. Nothing is changed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--conversation", type=UUID, metavar="ID", help="look at this conversation only")
        parser.add_argument("--json", action="store_true", help="print each damage as a JSON object, one a line")

    def handle(self, *args: Any, conversation: UUID | None, json: bool, **options: Any) -> None:
        if conversation is not None and not Conversation.objects.filter(pk=conversation).exists():
            raise CommandError(f"there is no conversation {str(conversation)!r}", returncode=2)
        tally, count = Tally(), 0
        for damage in check_all(tally) if conversation is None else check_conversation(conversation, tally):
            self.stdout.write(orjson.dumps(damage).decode() if json else str(damage))
            count += 1
        looked = f"{tally.conversations} conversations with {tally.revisions} revisions were looked at"
        if count:
            raise CommandError(f"{looked}: damage in {count} places. docs/deployment.md says what to do.")
        self.stderr.write(f"{looked}: no damage.")
