"""The app of people, conversations and how they reach each other."""

from __future__ import annotations

from django.apps import AppConfig


class ConversationsConfig(AppConfig):
    name = "conversations"
    verbose_name = "Conversations"

    def ready(self) -> None:
        from conversations import attachments, checks  # noqa: F401  registers the system checks, and what follows a deletion
