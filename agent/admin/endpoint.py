"""Admin of model endpoints."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.decorators import action, display

from agent.models import ModelEndpoint
from agent.models.endpoint import OFFLINE, read_headers

SECRETS = {"api_key": "A key is", "headers": "Headers are"}


class ModelEndpointForm(forms.ModelForm[ModelEndpoint]):
    """Wants the key again for another server: nobody gets to see a stored key by sending it to a place of theirs."""

    class Meta:
        model = ModelEndpoint
        fields = "__all__"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, what in SECRETS.items():
            stored = f"{what} stored" if getattr(self.instance, name) else "Nothing is stored"
            self.fields[name].widget.attrs["placeholder"] = stored
        if self.instance._state.adding:
            self.initial.setdefault("protocol", "openai-chat")

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        address: str = cleaned.get("base_url") or ""
        moved = _server(address) != _server(self.instance.base_url) and cleaned.get("protocol") not in OFFLINE
        for name in SECRETS:
            if moved and getattr(self.instance, name) and not cleaned.get(name):
                self.add_error(name, "The address leads to another server: enter what is for it.")
        if headers := cleaned.get("headers"):
            try:
                read_headers(headers)
            except forms.ValidationError as error:
                self.add_error(None, error)
        return cleaned


def _server(address: str) -> tuple[str, str, int | None] | str:
    """Return scheme, host and port of an address, or an address that has none as it is."""
    try:
        parts = urlsplit(address)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return address
    return parts.scheme, parts.hostname or "", port


@admin.register(ModelEndpoint)
class ModelEndpointAdmin(ModelAdmin):
    form = ModelEndpointForm
    list_display = ["name", "slug", "protocol", "base_url", "has_key", "enabled"]
    list_filter = ["protocol", "enabled"]
    search_fields = ["name", "slug", "base_url"]
    prepopulated_fields = {"slug": ["name"]}
    actions = ["clear_keys"]
    fieldsets = [
        (None, {"fields": ["name", "slug", "enabled"]}),
        ("Server", {"fields": ["protocol", "base_url", "api_key", "organization", "headers"]}),
        ("Details", {"fields": ["reasoning_replay", "prompt_cache_key", "embedding_model"]}),
    ]

    @display(description="API key", boolean=True)
    def has_key(self, row: ModelEndpoint) -> bool:
        return bool(row.api_key)

    @action(description="Forget the API keys and headers of the selected endpoints", permissions=["change"])
    def clear_keys(self, request: HttpRequest, rows: QuerySet[ModelEndpoint]) -> None:
        count = rows.update(api_key="", headers="")
        self.message_user(request, f"The keys and headers of {count} endpoints are gone.", messages.SUCCESS)
