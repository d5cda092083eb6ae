"""What model calls cost."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models

from agent.models.endpoint import ModelEndpoint
from agent.models.profile import AgentProfile
from agent.runtime.messages import Usage
from agent.runtime.model import UsageDetails

MILLION = Decimal(1_000_000)


def _price(help_text: str, **options: Any) -> models.DecimalField[Any, Any]:
    zero = MinValueValidator(0)
    return models.DecimalField(max_digits=14, decimal_places=6, validators=[zero], help_text=help_text, **options)


class ModelPrice(models.Model):
    """What an operator pays for a model at an endpoint, in US dollars for a million tokens.

    Without a row the public list prices count, where the model is in them.
    """

    endpoint = models.ForeignKey(ModelEndpoint, on_delete=models.CASCADE, related_name="prices")
    model = models.CharField(max_length=200)
    input = _price("For a million tokens of input.")
    cached_input = _price("For a million tokens of input that came from the provider's cache.")
    cache_write = _price("For a million tokens of input that went into the provider's cache.")
    cache_write_hour = _price(
        "The same, where the cache keeps it for an hour. Empty: twice the price of input.", null=True, blank=True
    )
    output = _price("For a million tokens of output, reasoning included.")

    class Meta:
        verbose_name = "model price"
        ordering = ["endpoint", "model"]
        constraints = [models.UniqueConstraint(fields=["endpoint", "model"], name="modelprice_once")]

    def __str__(self) -> str:
        return f"{self.model} at {self.endpoint}"

    def cost(self, usage: Usage, details: UsageDetails) -> Decimal:
        """Return the price of one call in US dollars."""
        cached, written = details.cached_tokens, details.cache_write_tokens
        hour = min(details.cache_write_hour_tokens, written)
        of_hour = 2 * self.input if self.cache_write_hour is None else self.cache_write_hour
        total = max(0, usage.input_tokens - cached - written) * self.input + cached * self.cached_input
        total += (written - hour) * self.cache_write + hour * of_hour + usage.output_tokens * self.output
        return Decimal(total) / MILLION


class UsageRecord(models.Model):
    """One model call: its tokens, as far as the provider counted them, and its cost in US dollars where that is known.

    Of `cache_write_tokens` some are kept for an hour. A call that was stopped has what was counted until then. What a
    person has cost is still known when their account is closed, without the person.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    agent = models.ForeignKey(AgentProfile, on_delete=models.SET_NULL, null=True, related_name="+")
    endpoint = models.ForeignKey(ModelEndpoint, on_delete=models.SET_NULL, null=True, related_name="+")
    model = models.CharField(max_length=200)
    execution_id: models.UUIDField[UUID, UUID] = models.UUIDField()
    call_index = models.PositiveIntegerField()
    input_tokens = models.PositiveBigIntegerField(null=True)
    cached_tokens = models.PositiveBigIntegerField(default=0)
    cache_write_tokens = models.PositiveBigIntegerField(default=0)
    cache_write_hour_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(null=True)
    reasoning_tokens = models.PositiveBigIntegerField(default=0)
    cost = models.DecimalField(max_digits=18, decimal_places=9, null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "usage record"
        ordering = ["-created_at", "-pk"]
        constraints = [models.UniqueConstraint(fields=["execution_id", "call_index"], name="usage_call_once")]
        indexes = [models.Index(fields=["user", "-created_at"], name="usage_of_user")]

    def __str__(self) -> str:
        return f"call {self.call_index} of {self.execution_id}"
