"""`manage.py rebuild_search`: make the search index anew."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from conversations.models import Conversation, Revision
from conversations.search import rebuild, search_index


class Command(BaseCommand):
    """Index all conversations again, beside a running server if need be."""

    help = "Make the search index anew from what is stored. The site can go on meanwhile."

    def handle(self, *args: Any, **options: Any) -> None:
        index = search_index()
        conversations = sum(rebuild(index, Conversation, Revision))
        index.tidy()
        self.stdout.write(f"{conversations} conversations can be searched.")
