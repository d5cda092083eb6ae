"""The app of people, conversations and how they reach each other."""

from __future__ import annotations

from django.apps import AppConfig


class ConversationsConfig(AppConfig):
    name = "conversations"
    verbose_name = "Conversations"

    def ready(self) -> None:
        from django.contrib.auth.signals import user_logged_in

        from conversations import attachments, checks  # noqa: F401  registers the checks, and what follows a deletion
        from conversations.rights.sign_ins import note_sign_in

        user_logged_in.connect(note_sign_in, dispatch_uid="conversations.sign-in")
