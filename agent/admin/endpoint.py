"""Admin of model endpoints."""

from __future__ import annotations

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.decorators import action, display

from agent.models import ModelEndpoint


@admin.register(ModelEndpoint)
class ModelEndpointAdmin(ModelAdmin):
    list_display = ["name", "slug", "protocol", "base_url", "has_key", "enabled"]
    list_filter = ["protocol", "enabled"]
    search_fields = ["name", "slug", "base_url"]
    prepopulated_fields = {"slug": ["name"]}
    actions = ["clear_keys"]
    fieldsets = [
        (None, {"fields": ["name", "slug", "enabled"]}),
        ("Server", {"fields": ["protocol", "base_url", "api_key", "organization"]}),
    ]

    @display(description="API key", boolean=True)
    def has_key(self, row: ModelEndpoint) -> bool:
        return bool(row.api_key)

    @action(description="Forget the API keys of the selected endpoints", permissions=["change"])
    def clear_keys(self, request: HttpRequest, rows: QuerySet[ModelEndpoint]) -> None:
        count = rows.update(api_key="")
        self.message_user(request, f"The keys of {count} endpoints are gone.", messages.SUCCESS)
