"""Admin of prices, and of what model calls used."""

from __future__ import annotations

from django.contrib import admin
from unfold.admin import ModelAdmin

from agent.admin.base import ReadOnlyAdmin
from agent.models import ModelPrice, UsageRecord


@admin.register(ModelPrice)
class ModelPriceAdmin(ModelAdmin):
    list_display = ["model", "endpoint", "input", "cached_input", "cache_write", "cache_write_hour", "output"]
    list_filter = ["endpoint"]
    list_select_related = ["endpoint"]
    search_fields = ["model"]


@admin.register(UsageRecord)
class UsageRecordAdmin(ReadOnlyAdmin):
    list_display = ["created_at", "user", "agent", "model", "input_tokens", "output_tokens", "cost"]
    list_filter = ["agent", "endpoint", "created_at"]
    list_select_related = ["user", "agent"]
    search_fields = ["model", "user__username", "execution_id"]
    date_hierarchy = "created_at"
