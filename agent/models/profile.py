"""Agents as people see and choose them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from agent.models.endpoint import ModelEndpoint
from agent.models.tool import ToolRecord
from agent.providers.config import CacheTtl, ModelConfig, ReasoningEffort
from agent.providers.retry import RetryPolicy
from agent.runtime.ids import uuid7
from agent.runtime.limits import DEFAULT_LIMITS, Limits, PartialLimits

if TYPE_CHECKING:
    from django.db.models import QuerySet


class OnError(models.TextChoices):
    """What a run does about a bad call or a tool that raises (DESIGN: hosted default is to report)."""

    FAIL = "fail", "the run fails"
    REPORT = "report", "the model is told"


class AgentQuerySet(models.QuerySet["AgentProfile"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> QuerySet[AgentProfile]:
        """Return the agents this person may use: enabled, and open to everybody or to one of their groups."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        usable = self.filter(enabled=True, endpoint__enabled=True)
        allowed = AgentProfile.groups.through.objects.filter(
            agentprofile=models.OuterRef("pk"), group__user=cast(Any, user)
        )
        closed = AgentProfile.groups.through.objects.filter(agentprofile=models.OuterRef("pk"))
        return usable.filter(~models.Exists(closed) | models.Exists(allowed))


class AgentProfile(models.Model):
    """An agent: a model, instructions, tools and limits."""

    id: models.UUIDField[UUID, UUID] = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    system_prompt = models.TextField(blank=True, help_text="Composed per run, never part of a stored conversation.")
    prompt_zone = models.CharField(
        max_length=8,
        default="stable",
        choices=[("stable", "the same in each run"), ("volatile", "another one in each run")],
        help_text="Instructions that change with each run are never marked for a cache.",
    )
    endpoint = models.ForeignKey(ModelEndpoint, on_delete=models.PROTECT, related_name="agents")
    model = models.CharField(max_length=200)
    temperature = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0.0), MaxValueValidator(2.0)],
        help_text="Empty: the provider's default.",
    )
    max_tokens = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)], help_text="Empty: the provider's default."
    )
    top_p = models.FloatField(
        "top p",
        null=True,
        blank=True,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
        help_text="Empty: the provider's default.",
    )
    reasoning_effort = models.CharField(
        max_length=8,
        blank=True,
        default="",
        choices=[("", "the provider's default"), ("low", "low"), ("medium", "medium"), ("high", "high")],
        help_text="How much the model thinks before it answers, for models that can.",
    )
    stop_sequences: models.JSONField[list[str], list[str]] = models.JSONField(
        default=list, blank=True, help_text="Texts at which the model stops writing."
    )
    cache_ttl = models.CharField(
        "prompt cache",
        max_length=8,
        blank=True,
        default="",
        choices=[("", "off"), ("five_min", "5 minutes"), ("one_hour", "1 hour")],
        help_text="Marks what stays the same for the cache of providers that want marks (Anthropic).",
    )
    context_window = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Tokens that the model can take in; Ollama is told so. Empty: what is known of the model.",
    )
    retry_policy: models.JSONField[dict[str, Any] | None, dict[str, Any] | None] = models.JSONField(
        null=True,
        blank=True,
        help_text='When a failed model call is made again, as in {"maxAttempts": 3}. Empty: never.',
    )
    tools = models.ManyToManyField(ToolRecord, blank=True, related_name="agents")
    all_tools = models.BooleanField(default=False, help_text="Offer every enabled tool, whatever is chosen above.")
    limits: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(
        default=dict, blank=True, help_text='Limits that differ from the defaults, as in {"maxModelCalls": 8}.'
    )
    tool_call_errors = models.CharField(
        max_length=8, choices=OnError, default=OnError.REPORT, help_text="When the model asks for an impossible call."
    )
    tool_exceptions = models.CharField(
        max_length=8, choices=OnError, default=OnError.REPORT, help_text="When a tool raises an error."
    )
    parallel_tools = models.BooleanField(
        default=False, help_text="Run the tools of one answer side by side, where nobody has to confirm them."
    )
    suggested_prompts: models.JSONField[list[str], list[str]] = models.JSONField(
        default=list, blank=True, help_text="A list of texts shown on an empty chat."
    )
    groups = models.ManyToManyField(
        Group, blank=True, related_name="+", help_text="Who may use the agent; empty: everybody who is signed in."
    )
    enabled = models.BooleanField(default=True)
    is_default = models.BooleanField(default=False, help_text="Chosen for a new chat.")
    order = models.IntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = AgentQuerySet.as_manager()

    class Meta:
        verbose_name = "agent"
        ordering = ["order", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["is_default"], condition=models.Q(is_default=True), name="agent_one_default"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        try:
            PartialLimits.from_wire(self.limits)
        except ValueError as error:
            raise ValidationError({"limits": _faults(error)}) from error
        if self.retry_policy is not None and not isinstance(self.retry_policy, dict):
            raise ValidationError({"retry_policy": 'An object is needed, as in {"maxAttempts": 3}.'})
        try:
            self.retries()
        except ValueError as error:
            raise ValidationError({"retry_policy": _faults(error)}) from error
        if self.cache_ttl and self.prompt_zone == "volatile":  # P26
            raise ValidationError({"cache_ttl": "Instructions that change with each run cannot be cached."})
        for name in ("suggested_prompts", "stop_sequences"):
            texts: object = getattr(self, name)
            if not isinstance(texts, list) or not all(isinstance(text, str) and text.strip() for text in texts):
                raise ValidationError({name: "A list of texts is needed."})

    def retries(self) -> RetryPolicy | None:
        """Return when a failed model call is made again; None is never (P29)."""
        return None if self.retry_policy is None else RetryPolicy.from_wire(self.retry_policy)

    def model_configs(self) -> list[tuple[str, ModelConfig]]:
        """Return the models to ask, by the slug of their endpoint: the agent's own, then those that take over (P37)."""
        own = (self.endpoint.slug, self._config(self.endpoint, self.model))
        fallbacks = self.fallbacks.select_related("endpoint").filter(endpoint__enabled=True)
        return [own, *((each.endpoint.slug, self._config(each.endpoint, each.model)) for each in fallbacks)]

    def _config(self, endpoint: ModelEndpoint, model: str) -> ModelConfig:
        return replace(
            endpoint.config(model),
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            top_p=self.top_p,
            stop_sequences=tuple(self.stop_sequences),
            cache_ttl=cast(CacheTtl, self.cache_ttl),
            reasoning_effort=cast(ReasoningEffort, self.reasoning_effort),
            context_window=self.context_window,
        )

    def effective_limits(self) -> Limits:
        """Return the limits of the agent's runs: the defaults with the agent's own in their place."""
        own = PartialLimits.from_wire(self.limits).model_dump(exclude_none=True)
        return DEFAULT_LIMITS.model_copy(update=own)

    def tool_names(self) -> list[str]:
        """Return the names of the enabled, installed tools the agent is offered."""
        known = ToolRecord.objects.all() if self.all_tools else self.tools.all()
        return list(known.filter(enabled=True, present=True).order_by("name").values_list("name", flat=True))


class AgentFallback(models.Model):
    """A model that takes over where the agent's own fails (P37)."""

    agent = models.ForeignKey(AgentProfile, on_delete=models.CASCADE, related_name="fallbacks")
    endpoint = models.ForeignKey(ModelEndpoint, on_delete=models.PROTECT, related_name="+")
    model = models.CharField(max_length=200)
    order = models.PositiveIntegerField(default=0)

    class Meta:
        verbose_name = "fallback model"
        ordering = ["order", "pk"]

    def __str__(self) -> str:
        return f"{self.model} at {self.endpoint}"


def _faults(error: ValueError) -> list[str]:
    errors = getattr(error, "errors", None)
    if errors is None:
        return [str(error)]
    return [
        ": ".join(filter(None, (".".join(map(str, fault["loc"])), fault["msg"].removeprefix("Value error, "))))
        for fault in errors()
    ]
