"""What the admin pages of all apps share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from django.contrib import messages
from django.contrib.admin.utils import quote
from django.db import models
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin

from agent.runtime.exceptions import CorruptRevision


class ReadOnlyAdmin(ModelAdmin):
    """Shows what nobody may change by hand."""

    list_fullwidth = True
    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False


class KeptWhileUsed(ModelAdmin):
    """Offers no deletion of a row that one of the relations `kept_by` leads from, and says what to do `instead`."""

    kept_by: ClassVar[Sequence[str]] = ()
    instead: ClassVar[str] = ""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        permitted: bool = super().has_delete_permission(request, obj)
        return permitted and (obj is None or not self._in_use(obj))

    def render_change_form(
        self,
        request: HttpRequest,
        context: Any,
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> Any:
        if obj is not None and self._in_use(obj):
            self.message_user(request, self.instead, messages.INFO)
        return super().render_change_form(request, context, add, change, form_url, obj)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        used = [f"{obj}: {self.instead}" for obj in objs if self._in_use(obj)]
        return ([], {}, set(), used) if used else super().get_deleted_objects(objs, request)

    def _in_use(self, row: models.Model) -> bool:
        return any(getattr(row, name).exists() for name in self.kept_by)


class JsonColumn:
    """Builds the display methods of JSON columns: `payload_json = JsonColumn("payload")`."""

    admin_order_field: ClassVar[None] = None

    def __init__(self, name: str) -> None:
        self.name = name
        self.short_description = name.replace("_", " ")
        self.__name__ = f"{name}_json"

    def __call__(self, row: models.Model) -> SafeString | str:
        try:
            return readable_json(getattr(row, self.name))
        except CorruptRevision as error:
            return f"It cannot be read: {error.message}."


def readable_json(value: Any) -> SafeString | str:
    """Return JSON to be read by people: indented, in the stored order, with every character as it is."""
    if value is None or value == {} or value == []:
        return "–"
    return format_html('<pre class="par-json">{}</pre>', json.dumps(value, ensure_ascii=False, indent=2))


def link_to(row: models.Model | None) -> SafeString | str:
    """Return a link to the admin page of a row."""
    if row is None:
        return "–"
    meta = row._meta
    address = reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[quote(row.pk)])
    return format_html('<a class="text-link" href="{}">{}</a>', address, row)
