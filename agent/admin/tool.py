"""Admin of tools: which exist is said by the code, who may use them how is said here."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from agent.admin.base import JsonColumn
from agent.models import ToolRecord


@admin.register(ToolRecord)
class ToolRecordAdmin(ModelAdmin):
    list_display = ["name", "app", "enabled", "permission", "present"]
    list_filter = ["enabled", "permission", "present", "app"]
    search_fields = ["name", "description"]
    autocomplete_fields = ["groups"]
    definition_json = JsonColumn("definition")
    readonly_fields = ["name", "app", "description", "definition_json", "present", "last_seen"]
    fieldsets = [
        (None, {"fields": ["name", "app", "description", "present", "last_seen"]}),
        ("Rules", {"fields": ["enabled", "permission", "groups"]}),
        ("Definition", {"fields": ["definition_json"]}),
    ]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ToolRecord | None = None) -> bool:
        gone = obj is not None and not obj.present
        return gone and super().has_delete_permission(request, obj)
