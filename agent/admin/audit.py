"""Admin of audit records: millions of rows, so nothing is counted."""

from __future__ import annotations

from uuid import UUID

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.decorators import display
from unfold.paginator import InfinitePaginator

from agent.admin.base import ReadOnlyAdmin, readable_json
from agent.models import AuditRecord


@admin.register(AuditRecord)
class AuditRecordAdmin(ReadOnlyAdmin):
    list_display = ["moment", "event", "user", "tool_name", "code", "execution_id", "trace_id"]
    list_select_related = ["user"]
    search_fields = ["execution_id"]
    search_help_text = "An execution, a conversation or a trace by its full id, or an event such as conversation-read"
    ordering = ["-created_at", "-id"]
    paginator = InfinitePaginator
    show_full_result_count = False
    fields = [
        "moment",
        "event",
        "user",
        "execution_id",
        "conversation_id",
        "trace_id",
        "tool_name",
        "code",
        "payload_json",
        "sequence",
        "seal",
    ]

    @display(description="payload")
    def payload_json(self, row: AuditRecord) -> SafeString | str:
        return readable_json(row.payload)

    @display(description="time", ordering="created_at")
    def moment(self, row: AuditRecord) -> str:
        return f"{row.created_at:%Y-%m-%d %H:%M:%S}"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditRecord], search_term: str
    ) -> tuple[QuerySet[AuditRecord], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        try:
            wanted = Q(execution_id=UUID(term)) | Q(conversation_id=UUID(term))
        except ValueError:
            wanted = Q(trace_id=term) | Q(event=term)
        return queryset.filter(wanted), False
