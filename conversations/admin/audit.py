"""Admin of audit records, where in the mode `full` there is what was said: shown only to those who may read it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display

from agent.admin import AuditRecordAdmin
from agent.admin.base import readable_json
from agent.governance.audit import reduced
from agent.models import AuditRecord
from conversations.admin.reading import may_read, reason_address
from conversations.models import Conversation
from conversations.reading import READ, SEARCH

admin.site.unregister(AuditRecord)


@admin.register(AuditRecord)
class GuardedAuditRecordAdmin(AuditRecordAdmin):
    def get_fields(self, request: HttpRequest, obj: AuditRecord | None = None) -> Any:
        shown = obj is None or _open(request, obj)
        return [name if shown or name != "payload_json" else "payload_light" for name in self.fields]

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        allowed: bool = super().lookup_allowed(lookup, value, request)
        return allowed and lookup.split("__", maxsplit=1)[0] != "payload"

    @display(description="payload")
    def payload_light(self, row: AuditRecord) -> SafeString | str:
        """The payload as `metadata-only` would have left it, and the way to all of it."""
        light = reduced(row.payload, "metadata-only")
        if light == row.payload or row.conversation_id is None:
            return readable_json(light)
        then = reverse("admin:agent_auditrecord_change", args=[row.pk])
        words = '<p><a class="text-link" href="{}">Give a reason</a> to see what was said.</p>{}'
        return format_html(words, reason_address(row.conversation_id, then), readable_json(light))


def _open(request: HttpRequest, row: AuditRecord) -> bool:
    """Return whether the whole payload may be shown: it says nothing, or its conversation may be read."""
    if row.event in (READ, SEARCH) or row.payload is None:
        return True
    conversation = Conversation.objects.filter(pk=row.conversation_id).first() if row.conversation_id else None
    return conversation is not None and may_read(request, conversation)
