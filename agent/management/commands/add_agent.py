"""`manage.py add_agent`: connect a model in one step."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any, get_args

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from agent.models import AgentProfile, ModelEndpoint, Plain
from agent.providers.config import ProtocolName


class Command(BaseCommand):
    """Make an endpoint and an agent on it."""

    help = (
        "Make an agent that talks to a model server, for instance: "
        "add_agent local --protocol openai-chat --base-url http://127.0.0.1:8080/v1 --model NAME"
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="short name of the agent, as in the API: letters, digits, - and _")
        parser.add_argument("--protocol", required=True, choices=get_args(ProtocolName))
        parser.add_argument("--base-url", default="", help="address of the server, as its documentation writes it")
        parser.add_argument("--model", required=True, help="name of the model at the server")
        parser.add_argument("--api-key", default="", help="key to the server; - reads it from standard input")
        parser.add_argument("--name", default="", help="name that people see (default: the slug)")
        parser.add_argument("--system-prompt", default="", help="instructions that every run begins with")
        parser.add_argument("--tools", action="store_true", help="offer it every enabled tool")
        parser.add_argument("--default", action="store_true", help="choose it for new chats")

    def handle(self, *args: Any, **options: Any) -> None:
        slug: str = options["slug"]
        if AgentProfile.objects.filter(slug=slug).exists():
            raise CommandError(f"there is an agent {slug!r} already; change it in the admin")
        if ModelEndpoint.objects.filter(slug=slug).exists():
            raise CommandError(f"there is a model endpoint {slug!r} already; choose another name")
        key: str = sys.stdin.readline().strip() if options["api_key"] == "-" else options["api_key"]
        name = options["name"] or slug
        endpoint = ModelEndpoint(slug=slug, name=name, protocol=options["protocol"], base_url=options["base_url"])
        profile = AgentProfile(
            slug=slug,
            name=name,
            endpoint=endpoint,
            model=options["model"],
            system_prompt=options["system_prompt"],
            all_tools=options["tools"],
            order=AgentProfile.objects.count(),
        )
        try:
            endpoint.full_clean()
            profile.full_clean(exclude=["endpoint"])
        except ValidationError as error:
            raise CommandError(_lines(error)) from error
        if key:
            endpoint.api_key = Plain(key)
        with transaction.atomic():
            endpoint.save()
            if options["default"] or not AgentProfile.objects.filter(is_default=True).exists():
                AgentProfile.objects.filter(is_default=True).update(is_default=False)
                profile.is_default = True
            profile.save()
        where = f" at {endpoint.base_url}" if endpoint.base_url else ""
        self.stdout.write(f"The agent {slug!r} is there: {profile.model}{where}.")


def _lines(error: ValidationError) -> str:
    faults = [f"--{field.replace('_', '-')}: {' '.join(texts)}" for field, texts in error.message_dict.items()]
    return "; ".join(faults)
