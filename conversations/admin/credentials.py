"""Admin of API tokens: made here once, shown once, then only revoked."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.decorators import action, display
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from conversations.models import ApiToken
from conversations.models.credentials import SCOPES, USUAL_SCOPES


class ApiTokenForm(forms.ModelForm[ApiToken]):
    scopes = forms.MultipleChoiceField(
        choices=[(scope, scope) for scope in SCOPES],
        initial=list(USUAL_SCOPES),
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )

    class Meta:
        model = ApiToken
        fields = ["user", "name", "scopes", "expires_at"]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        user = data.get("user")
        if user is not None and not user.is_staff and "admin" in data.get("scopes", ()):
            self.add_error("scopes", "Only staff can have a token with the scope “admin”.")
        return data


@admin.register(ApiToken)
class ApiTokenAdmin(ModelAdmin):
    form = ApiTokenForm
    list_display = ["name", "shown", "user", "scope_list", "created_at", "expires_at", "last_used_at", "is_valid"]
    list_select_related = ["user"]
    search_fields = ["name", "prefix", "user__email"]
    autocomplete_fields = ["user"]
    actions = ["revoke"]
    fields = ["user", "name", "scopes", "expires_at"]

    def get_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> list[str]:
        if obj is None:
            return ["user", "name", "scopes", "expires_at"]
        return ["user", "name", "shown", "scope_list", "created_at", "expires_at", "last_used_at", "revoked_at"]

    def get_readonly_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> list[str]:
        return [] if obj is None else self.get_fields(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        return obj is None and super().has_change_permission(request, obj)

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        row, plain = ApiToken.issue(obj.user, obj.name, scopes=obj.scopes, expires_at=obj.expires_at)
        obj.pk, obj.prefix = row.pk, row.prefix
        obj._state.adding = False
        self.message_user(request, f"The token is {plain} – copy it now, it is not shown again.", messages.WARNING)

    @display(description="token")
    def shown(self, row: ApiToken) -> str:
        return f"{row.prefix}…"

    @display(description="scopes")
    def scope_list(self, row: ApiToken) -> str:
        return ", ".join(row.scopes)

    @display(description="valid", boolean=True)
    def is_valid(self, row: ApiToken) -> bool:
        return row.valid

    @action(description="Revoke the selected tokens", permissions=["change"])
    def revoke(self, request: HttpRequest, rows: QuerySet[ApiToken]) -> None:
        for row in rows:
            row.revoke()
        self.message_user(request, "The tokens are revoked.", messages.SUCCESS)
