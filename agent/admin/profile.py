"""Admin of agents."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from unfold.admin import TabularInline
from unfold.widgets import UnfoldAdminTextareaWidget

from agent.admin.base import KeptWhileUsed
from agent.models import AgentFallback, AgentProfile


class LinesField(forms.Field):
    """A list of texts, one a line."""

    widget = UnfoldAdminTextareaWidget

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(map(str, value)) if isinstance(value, list) else value

    def to_python(self, value: Any) -> list[str]:
        return [line.strip() for line in str(value or "").splitlines() if line.strip()]

    def has_changed(self, initial: Any, data: Any) -> bool:
        return (initial or []) != self.to_python(data)


class AgentProfileForm(forms.ModelForm[AgentProfile]):
    suggested_prompts = LinesField(required=False, help_text="One a line, shown on an empty chat.")
    stop_sequences = LinesField(required=False, help_text="One a line: texts at which the model stops writing.")

    class Meta:
        model = AgentProfile
        fields = "__all__"

    def _post_clean(self) -> None:
        """Judge the agent as if it were not the default: saving takes that away from the one before."""
        wanted = bool(self.cleaned_data.get("is_default"))
        self.cleaned_data["is_default"] = False
        super()._post_clean()  # type: ignore[misc]
        self.cleaned_data["is_default"] = self.instance.is_default = wanted


class AgentFallbackInline(TabularInline):
    model = AgentFallback
    extra = 0
    fields = ["order", "endpoint", "model"]
    verbose_name_plural = "Fallback models, asked in this order where the agent's own fails"


@admin.register(AgentProfile)
class AgentProfileAdmin(KeptWhileUsed):
    kept_by = ("conversations", "executions")
    instead = "Conversations use this agent, so it cannot be deleted: take away “Enabled” instead."
    form = AgentProfileForm
    list_display = ["name", "slug", "endpoint", "model", "enabled", "is_default", "order"]
    list_filter = ["enabled", "endpoint"]
    list_select_related = ["endpoint"]
    search_fields = ["name", "slug", "model"]
    prepopulated_fields = {"slug": ["name"]}
    autocomplete_fields = ["tools", "groups"]
    readonly_fields = ["created_at", "updated_at"]
    inlines = [AgentFallbackInline]
    formfield_overrides = {models.JSONField: {"widget": UnfoldAdminTextareaWidget}}
    fieldsets = [
        (None, {"fields": ["name", "slug", "description", "enabled", "is_default", "order"]}),
        ("Model", {"fields": ["endpoint", "model", "temperature", "top_p", "max_tokens", "context_window"]}),
        ("Model calls", {"fields": ["reasoning_effort", "stop_sequences", "cache_ttl", "retry_policy"]}),
        ("Instructions", {"fields": ["system_prompt", "prompt_zone", "suggested_prompts"]}),
        ("Tools", {"fields": ["tools", "all_tools", "tool_call_errors", "tool_exceptions", "parallel_tools"]}),
        ("Rules", {"fields": ["groups", "limits"]}),
        ("Times", {"fields": ["created_at", "updated_at"]}),
    ]

    def save_model(self, request: HttpRequest, obj: AgentProfile, form: Any, change: bool) -> None:
        if obj.is_default:
            AgentProfile.objects.exclude(pk=obj.pk).filter(is_default=True).update(is_default=False)
        super().save_model(request, obj, form, change)
