"""Admin of executions and the processes that run them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.decorators import display
from unfold.paginator import InfinitePaginator

from agent.admin.base import JsonColumn, ReadOnlyAdmin, link_to, readable_json
from conversations.admin.history import VIEW_STATE
from conversations.admin.messages import readable_partial, readable_wire, without_state
from conversations.admin.reading import ReadingAdmin
from conversations.exceptions import CorruptRevision
from conversations.models import Execution, ExecutionStatus, HostProcess

_COLOURS = {
    ExecutionStatus.RUNNING.label: "info",
    ExecutionStatus.WAITING_INPUT.label: "warning",
    ExecutionStatus.COMPLETED.label: "success",
    ExecutionStatus.FAILED.label: "danger",
}


@admin.register(Execution)
class ExecutionAdmin(ReadingAdmin):
    list_display = ["created_at", "conversation", "agent", "user", "state", "error_code", "duration"]
    list_filter = ["status", "agent"]
    list_select_related = ["conversation", "agent", "user"]
    search_fields = ["id"]
    search_help_text = "The full id of an execution or its conversation, or a part of the person's address"
    open_columns = frozenset({"id", "conversation", "agent", "user", "status", "host", "created_at"})
    ordering = ["-created_at", "-id"]
    paginator = InfinitePaginator
    show_full_result_count = False
    input_json = JsonColumn("input")
    outcome_json = JsonColumn("outcome")
    usage_json = JsonColumn("usage")
    limits_json = JsonColumn("limits")
    interrupt_json = JsonColumn("interrupt")
    calls_json = JsonColumn("calls")
    model_context_json = JsonColumn("model_context")

    def get_fieldsets(self, request: HttpRequest, obj: Execution | None = None) -> Any:
        context = "model_context_json" if request.user.has_perm(VIEW_STATE) else "model_context_light"
        state = ["state", "outcome_json", "error_code", "error_message", "retryable", "revision_link"]
        return [
            (None, {"fields": ["id", "conversation_link", "agent", "user", "trace_id", "request_id", "client_id"]}),
            ("State", {"fields": state}),
            ("Times", {"fields": ["created_at", "started_at", "finished_at", "duration", "cancel_requested_at"]}),
            ("What was asked", {"fields": ["kind", "input_messages", "base_link", "base_version", "limits_json"]}),
            ("Not part of the conversation", {"fields": ["transcript_messages", "partial_message", context]}),
            ("While it runs", {"fields": ["interrupt_json", "calls_json", "last_seq", "host", "usage_json"]}),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Execution]:
        rows: QuerySet[Execution] = super().get_queryset(request)
        match = request.resolver_match
        listed = match is not None and match.url_name == "conversations_execution_changelist"
        return rows.defer("input", "transcript", "partial", "model_context") if listed else rows

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Execution], search_term: str
    ) -> tuple[QuerySet[Execution], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        try:
            pk = UUID(term)
        except ValueError:
            return queryset.filter(user__email__icontains=term), False
        return queryset.filter(Q(pk=pk) | Q(conversation=pk)), False

    @display(description="status", ordering="status", label=_COLOURS)
    def state(self, row: Execution) -> str:
        return row.get_status_display()

    @display(description="took")
    def duration(self, row: Execution) -> str:
        if row.started_at is None or row.finished_at is None:
            return "–"
        return f"{(row.finished_at - row.started_at).total_seconds():.1f} s"

    @display(description="conversation")
    def conversation_link(self, row: Execution) -> SafeString | str:
        return link_to(row.conversation)

    @display(description="saved as")
    def revision_link(self, row: Execution) -> SafeString | str:
        return link_to(row.revision)

    @display(description="builds on")
    def base_link(self, row: Execution) -> SafeString | str:
        return link_to(row.base)

    @display(description="input")
    def input_messages(self, row: Execution) -> SafeString | str:
        return _shown(lambda: readable_wire([row.input] if row.input else []))

    @display(description="messages")
    def transcript_messages(self, row: Execution) -> SafeString | str:
        return _shown(lambda: readable_wire(row.transcript))

    @display(description="was being written")
    def partial_message(self, row: Execution) -> SafeString | str:
        return _shown(lambda: readable_partial(row.partial))

    @display(description="model context")
    def model_context_light(self, row: Execution) -> SafeString | str:
        return _shown(lambda: readable_json(without_state(row.model_context)))


def _shown(show: Callable[[], SafeString | str]) -> SafeString | str:
    try:
        return show()
    except CorruptRevision as error:
        return f"It cannot be read: {error.message}."


@admin.register(HostProcess)
class HostProcessAdmin(ReadOnlyAdmin):
    list_display = ["channel", "started_at", "heartbeat_at", "stopped_at"]
    fields = ["id", "channel", "started_at", "heartbeat_at", "stopped_at"]
