"""Admin of model endpoints."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path
from unfold.admin import ModelAdmin
from unfold.decorators import action, display
from unfold.widgets import UnfoldAdminTextareaWidget

from agent.crypto import SecretUnreadable
from agent.models import AgentProfile, ModelEndpoint
from agent.models.endpoint import read_headers
from agent.providers.clients import BASE_URLS, FAMILIES
from agent.providers.probe import Probe, probe

MODELS_SHOWN = 12
SECRETS = {"api_key": "A key is", "headers": "Headers are"}


class ModelEndpointForm(forms.ModelForm[ModelEndpoint]):
    """Wants the key again for another server: nobody gets to see a stored key by sending it to a place of theirs."""

    class Meta:
        model = ModelEndpoint
        fields = "__all__"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["headers"].widget = UnfoldAdminTextareaWidget(attrs={"autocomplete": "off", "rows": 3})
        for name, what in SECRETS.items():
            stored = f"{what} stored" if getattr(self.instance, name) else "Nothing is stored"
            self.fields[name].widget.attrs["placeholder"] = stored
        if self.instance._state.adding:
            self.initial.setdefault("protocol", "openai-chat")

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        address: str = cleaned.get("base_url") or ""
        moved = _server(cleaned.get("protocol") or "", address) != _server(
            self.instance.protocol, self.instance.base_url
        )
        for name in SECRETS:
            if moved and getattr(self.instance, name) and not cleaned.get(name):
                self.add_error(name, "The address leads to another server: enter what is for it.")
        if headers := cleaned.get("headers"):
            try:
                read_headers(headers)
            except forms.ValidationError as error:
                self.add_error(None, error)
        return cleaned


def _server(protocol: str, address: str) -> tuple[str, str, int | None] | str:
    """Return scheme, host and port of where an endpoint really leads, or an address that has none as it is.

    Without an address that is the provider's own server.
    """
    address = address or BASE_URLS.get(FAMILIES.get(protocol, "plain"), "")
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
    change_form_outer_after_template = "admin/agent/modelendpoint/test.html"
    fieldsets = [
        (None, {"fields": ["name", "slug", "enabled"]}),
        ("Server", {"fields": ["protocol", "base_url", "allow_private", "api_key", "organization", "headers"]}),
        ("Details", {"fields": ["reasoning_replay", "prompt_cache_key", "embedding_model"]}),
    ]

    @display(description="API key", boolean=True)
    def has_key(self, row: ModelEndpoint) -> bool:
        return bool(row.api_key)

    @action(description="Forget the API keys and headers of the selected endpoints", permissions=["change"])
    def clear_keys(self, request: HttpRequest, rows: QuerySet[ModelEndpoint]) -> None:
        count = rows.update(api_key="", headers="")
        self.message_user(request, f"The keys and headers of {count} endpoints are gone.", messages.SUCCESS)

    def get_urls(self) -> list[URLPattern]:
        test = path("<uuid:pk>/test/", self.admin_site.admin_view(self.test), name="agent_modelendpoint_test")
        return [test, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        row = self.get_object(request, unquote(object_id))
        used = AgentProfile.objects.filter(endpoint=row).first() if row is not None else None
        more = {"test_model": used.model if used is not None else ""}
        answer: HttpResponse = super().change_view(request, object_id, form_url, {**(extra_context or {}), **more})
        return answer

    def test(self, request: HttpRequest, pk: UUID) -> HttpResponse:
        """Try an endpoint as it is stored, and say in words what came of it."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row = get_object_or_404(ModelEndpoint, pk=pk)
        try:
            result = asyncio.run(probe(row.config(request.POST.get("model", "").strip())))
        except SecretUnreadable as error:
            self.message_user(request, str(error), messages.ERROR)
        else:
            self._tell(request, result)
        self.log_change(request, row, "Tested.")
        return redirect("admin:agent_modelendpoint_change", pk)

    def _tell(self, request: HttpRequest, result: Probe) -> None:
        if result.models:
            listed = ", ".join(result.models[:MODELS_SHOWN]) + ("…" if len(result.models) > MODELS_SHOWN else "")
            self.message_user(request, f"{len(result.models)} models: {listed}", messages.INFO)
        elif result.models_error:
            self.message_user(request, f"No list of models: {result.models_error}", messages.WARNING)
        if result.works:
            said = "".join(result.pieces).strip()
            words = f"It works: {result.model} began with “{said}” after {result.first_token_ms} ms."
            self.message_user(request, words, messages.SUCCESS)
        else:
            who = result.model or "The endpoint"
            self.message_user(request, f"{who} did not answer: {result.error}.", messages.ERROR)
