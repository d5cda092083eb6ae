"""Where models are served."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import cast, get_args
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import URLValidator
from django.db import models

from agent.models.fields import Plain, SecretField, reveal
from agent.providers.config import ModelConfig, ProtocolName, ReasoningReplay
from agent.providers.guard import is_permitted
from agent.runtime.ids import uuid7

OFFLINE = ("demo",)

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")


def protocol_choices() -> list[tuple[str, str]]:
    """Return the wire protocols there are adapters for."""
    return [(name, name) for name in get_args(ProtocolName)]


class ReplayChoice(models.TextChoices):
    """When reasoning goes back (R34)."""

    AUTO = "auto", "where the vendor is known to want it"
    NEVER = "never", "never"
    ALWAYS = "always", "always"


class ModelEndpoint(models.Model):
    """A server that speaks one of the wire protocols, with the key to it."""

    id: models.UUIDField[UUID, UUID] = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=200)
    protocol = models.CharField(max_length=32, choices=protocol_choices)
    base_url = models.CharField(
        "base URL", max_length=500, blank=True, help_text="As the provider writes it, for instance https://host/v1."
    )
    api_key = SecretField("API key", blank=True, default="", help_text="Stored encrypted, never shown again.")
    organization = models.CharField(max_length=200, blank=True)
    headers = SecretField(
        blank=True,
        default="",
        help_text="Further headers, one “Name: value” a line. Stored encrypted, never shown again.",
    )
    allow_private = models.BooleanField(
        "private addresses",
        default=False,
        help_text="Whether this server may have a loopback or private address, as model servers of one's own have.",
    )
    reasoning_replay = models.CharField(
        max_length=8,
        choices=ReplayChoice,
        default=ReplayChoice.AUTO,
        help_text="Whether the reasoning of earlier answers goes back over OpenAI's protocols.",
    )
    embedding_model = models.CharField(max_length=200, blank=True, help_text="Empty: the provider's default.")
    prompt_cache_key = models.CharField(
        max_length=64, blank=True, help_text="Sent to OpenAI, so that requests with one beginning share its cache."
    )
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "model endpoint"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        if self.protocol in OFFLINE:
            return
        if isinstance(self.headers, Plain):
            read_headers(self.headers)  # raises ValidationError
        if not self.base_url:
            return  # the provider's own
        try:
            URLValidator(schemes=["http", "https"])(self.base_url)
        except ValidationError as error:
            raise ValidationError({"base_url": error.messages}) from error
        # The address is shown, logged and added to; a key in it would be no secret.
        if "@" in urlsplit(self.base_url).netloc or "?" in self.base_url or "#" in self.base_url:
            raise ValidationError(
                {"base_url": "Write it without user name, query and fragment; put the key into API key (--api-key)."}
            )
        allowed = self.allow_private or settings.PAR.allow_private_models
        if not allowed and _is_private(urlsplit(self.base_url).hostname or ""):
            words = "This address is private; “private addresses” admits it, PAR_ALLOW_PRIVATE_MODELS=true all such."
            raise ValidationError({"base_url": words})

    def config(self, model: str) -> ModelConfig:
        """Return what a provider adapter needs to reach a model here, its settings left to the provider."""
        return ModelConfig(
            protocol=cast(ProtocolName, self.protocol),
            model=model,
            base_url=self.base_url,
            api_key=reveal(self, "api_key"),
            organization=self.organization,
            headers=read_headers(reveal(self, "headers")),
            prompt_cache_key=self.prompt_cache_key,
            embedding_model=self.embedding_model,
            reasoning_replay=cast(ReasoningReplay, self.reasoning_replay),
            allow_private=self.allow_private or settings.PAR.allow_private_models,
        )


def read_headers(text: str) -> tuple[tuple[str, str], ...]:
    """Return the headers in a text of one “Name: value” a line; raises `ValidationError`, also for a double one."""
    found: dict[str, tuple[str, str]] = {}
    for line in filter(str.strip, text.splitlines()):
        name, colon, value = line.partition(":")
        if not colon or not _HEADER_NAME.fullmatch(name.strip()) or not value.strip().isprintable():
            raise ValidationError({"headers": "Write one header a line, as in “X-Team: research”."})
        if name.strip().lower() in found:
            raise ValidationError({"headers": f"“{name.strip()}” is there twice; only one of them could be sent."})
        found[name.strip().lower()] = (name.strip(), value.strip())
    return tuple(found.values())


def _is_private(host: str) -> bool:
    """Return whether a host is private by its spelling alone; names are judged again when they are resolved."""
    if host == "localhost":
        return True
    try:
        return not is_permitted(ip_address(host), allow_private=False)
    except ValueError:
        return False
