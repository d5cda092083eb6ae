"""`manage.py bootstrap`: what a fresh database needs before somebody can sign in.

Running it again changes nothing that is there; only the endpoint of the environment's OpenAI key follows its variables.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from argparse import ArgumentParser
from typing import Any
from urllib.parse import urlsplit

from allauth.account.models import EmailAddress
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.core.validators import validate_email
from django.db import DatabaseError, transaction
from django.urls import reverse

from agent.governance.tools import sync_tool_records
from agent.models import AgentProfile, ModelEndpoint, Plain, reveal
from agent.providers.config import OLLAMA_URL
from conversations.models import OneTimeLink, User

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_MODEL = "gpt-5-mini"
DEMO_PROMPTS = [
    "Show me what you can do",
    "What time is it, and what is 17 * 23?",
    "Send a postcard to a friend",
]


class Command(BaseCommand):
    """Make the administrator, the first agents and, with --demo, somebody to try them."""

    help = "Prepare a fresh site; safe to run again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--demo", action="store_true", help="also a demo user and agent (development only)")
        parser.add_argument("--migrate", action="store_true", help="bring the database up to date first")
        parser.add_argument(
            "--email", default="admin@localhost", help="address of the administrator (default: %(default)s)"
        )

    def handle(self, *args: Any, demo: bool, migrate: bool, email: str, **options: Any) -> None:
        if demo and not settings.PAR.development:
            raise CommandError("--demo is for development only; set PAR_ENVIRONMENT=development")
        try:
            validate_email(email)
        except ValidationError:
            raise CommandError(f"--email {email!r} is no e-mail address") from None
        try:
            self._prepare(demo, migrate, email)
        except DatabaseError as error:
            hint = "" if migrate else " (is it up to date? --migrate makes it so)"
            raise CommandError(f"the database cannot be used: {error}{hint}") from error

    def _prepare(self, demo: bool, migrate: bool, email: str) -> None:
        if migrate:
            call_command("migrate", verbosity=0)
        site = settings.PAR.origins[0] if settings.PAR.origins else ""
        lines: list[str] = []
        sync_tool_records()
        ollama = _ollama_url()
        local = _local_models(ollama or OLLAMA_URL) if settings.PAR.allow_private_models else []
        with transaction.atomic():
            if not User.objects.filter(is_superuser=True).exists():
                lines += _created("Administrator", *_person("admin", email, is_staff=True, is_superuser=True))
            if demo:
                user = User.objects.filter(username="demo").first()
                if user is None:
                    user, password = _person("demo", "demo@localhost")
                    lines += _created("Demo user", user, password)
                _demo_agent()
            if os.environ.get("OPENAI_API_KEY"):
                _openai_agent()
            if local:
                lines += _ollama_agent(ollama, local)
            if demo and user is not None and user.is_active:
                link = reverse("link-landing", args=[OneTimeLink.issue(user)])
                lines.append(f"Sign in as {user.email}, once and within 15 minutes: {site}{link}")
        lines.append(f"Chat: {site}/   Admin: {site}/admin/")
        for line in lines:
            self.stdout.write(line)


def _ollama_url() -> str:
    """Return where Ollama would be: OLLAMA_HOST is its own variable, host and port with or without a scheme."""
    given = os.environ.get("OLLAMA_HOST", "").strip()
    return given if "://" in given or not given else f"http://{given}"


def _local_models(url: str) -> list[str]:
    """Return the models of an Ollama server; a closed port costs next to nothing."""
    try:
        address = urlsplit(url)
        socket.create_connection((address.hostname or "", address.port or 11434), timeout=0.3).close()
    except (OSError, ValueError):
        return []
    from agent.providers.discovery import local_models  # loads an HTTP client
    from agent.providers.failures import ProviderFault
    from agent.providers.transport import Transport

    async def look() -> list[str]:
        transport = Transport(total_timeout=3.0)
        await transport.start()
        try:
            return [config.model for config in await local_models(transport, url)]
        except ProviderFault:
            return []
        finally:
            await transport.close()

    return asyncio.run(look())


def _ollama_agent(url: str, models: list[str]) -> list[str]:
    named = {"name": "Ollama on this machine", "protocol": "ollama-chat", "base_url": url, "allow_private": True}
    endpoint, _ = ModelEndpoint.objects.get_or_create(slug="ollama", defaults=named)
    defaults = {
        "name": "Ollama",
        "description": f"Runs {models[0]} on this machine.",
        "endpoint": endpoint,
        "model": models[0],
        "order": 2,
    }
    profile, created = AgentProfile.objects.get_or_create(slug="ollama", defaults=defaults)
    return [f"Found Ollama on this machine; the agent {profile.name!r} uses {profile.model}."] if created else []


def _person(username: str, email: str, **given: Any) -> tuple[User, str]:
    password = secrets.token_urlsafe(12)
    user = User.objects.create_user(username, email, password, **given)
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    return user, password


def _created(who: str, user: User, password: str) -> list[str]:
    return [f"{who}: {user.email}, password {password} (shown only this once)"]


def _demo_agent() -> None:
    endpoint, _ = ModelEndpoint.objects.get_or_create(slug="demo", defaults={"name": "Demo", "protocol": "demo"})
    AgentProfile.objects.get_or_create(
        slug="demo",
        defaults={
            "name": "Demo",
            "description": "Shows what the product does, without a key and without a network.",
            "endpoint": endpoint,
            "model": "demo",
            "all_tools": True,
            "suggested_prompts": DEMO_PROMPTS,
            "is_default": not AgentProfile.objects.filter(is_default=True).exists(),
        },
    )


def _openai_agent() -> None:
    key, model = os.environ["OPENAI_API_KEY"], os.environ.get("OPENAI_MODEL")
    url = os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
    endpoint = ModelEndpoint.objects.filter(slug="openai").first()
    if endpoint is None:
        endpoint = ModelEndpoint(slug="openai", name="OpenAI", protocol="openai-chat")
    if endpoint.base_url != url or reveal(endpoint, "api_key") != key:
        endpoint.base_url = url
        endpoint.api_key = Plain(key)
        endpoint.save()
    profile, created = AgentProfile.objects.get_or_create(
        slug="openai",
        defaults={
            "name": "OpenAI",
            "endpoint": endpoint,
            "model": model or OPENAI_MODEL,
            "system_prompt": "You are a helpful assistant.",
            "all_tools": True,
            "order": 1,
            "is_default": not AgentProfile.objects.filter(is_default=True).exists(),
        },
    )
    if not created and model and profile.model != model:
        AgentProfile.objects.filter(pk=profile.pk).update(model=model)
