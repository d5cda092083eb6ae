"""`manage.py create_token`: a bearer token for a program."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Q
from django.utils import timezone

from conversations.models import ApiToken, User
from conversations.models.credentials import SCOPES, USUAL_SCOPES

MOST_DAYS = 36_500


class Command(BaseCommand):
    """Print a new token, once."""

    help = "Make an API token for a person and print it. It cannot be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", help="user name or e-mail address of the person the program acts for")
        parser.add_argument("--name", default="command line", help="what the token is for (default: %(default)s)")
        parser.add_argument(
            "--scopes",
            default=",".join(USUAL_SCOPES),
            help=f"any of {', '.join(SCOPES)}, separated by commas (default: %(default)s)",
        )
        parser.add_argument("--days", type=int, help="days until the token expires (default: never)")

    def handle(self, *args: Any, username: str, name: str, scopes: str, days: int | None, **options: Any) -> None:
        user = User.objects.filter(Q(username=username) | Q(email=username.lower())).first()
        if user is None:
            raise CommandError(f"there is nobody called {username!r}")
        if not user.is_active:
            raise CommandError(f"the account of {username!r} is closed")
        if days is not None and not 1 <= days <= MOST_DAYS:
            raise CommandError(f"--days is from 1 to {MOST_DAYS}, got {days}; leave it out for a token without an end")
        try:
            row, plain = ApiToken.issue(
                user,
                name,
                scopes=[scope.strip() for scope in scopes.split(",") if scope.strip()],
                expires_at=timezone.now() + timedelta(days=days) if days else None,
            )
        except ValueError as error:
            raise CommandError(str(error)) from error
        until = f" until {row.expires_at:%Y-%m-%d}" if row.expires_at else ""
        self.stderr.write(f"A token for {user.email} ({', '.join(row.scopes)}){until}; it is not shown again:")
        self.stdout.write(plain)
