"""Admin of conversations and revisions: to be read, never to be changed."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.decorators import display

from agent.admin.base import JsonColumn, ReadOnlyAdmin, link_to
from conversations.admin.messages import readable_messages
from conversations.exceptions import CorruptRevision
from conversations.models import Conversation, Revision
from conversations.store import load_context

_SHOWN = 200


@admin.register(Conversation)
class ConversationAdmin(ReadOnlyAdmin):
    list_display = ["label", "owner", "agent", "version", "revision_count", "archived", "updated_at"]
    list_filter = ["archived", "agent"]
    list_select_related = ["owner", "agent"]
    search_fields = ["title", "owner__email", "id"]
    date_hierarchy = None
    show_full_result_count = False
    fields = [
        "id",
        "owner",
        "agent",
        "title",
        "version",
        "head_link",
        "revision_list",
        "execution_list",
        "pinned",
        "archived",
        "tags",
        "created_at",
        "updated_at",
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conversation]:
        rows: QuerySet[Conversation] = super().get_queryset(request)
        return rows.annotate(revisions_count=Count("revisions"))

    @display(description="conversation", ordering="title")
    def label(self, row: Conversation) -> str:
        return str(row)

    @display(description="revisions")
    def revision_count(self, row: Conversation) -> int:
        return row.revisions_count  # type: ignore[attr-defined, no-any-return]

    @display(description="head")
    def head_link(self, row: Conversation) -> SafeString | str:
        return link_to(row.head)

    @display(description="revisions")
    def revision_list(self, row: Conversation) -> SafeString | str:
        found = row.revisions.defer("context", "model_state", "model_context").order_by("-number")[:_SHOWN]
        lines = ((link_to(item), item.get_kind_display(), f"{item.created_at:%Y-%m-%d %H:%M}") for item in found)
        return format_html_join("", "<div>{} · {} · {}</div>", lines) or "–"

    @display(description="executions")
    def execution_list(self, row: Conversation) -> SafeString:
        address = reverse("admin:conversations_execution_changelist")
        count = row.executions.count()
        return format_html('<a class="text-link" href="{}?conversation={}">{} executions</a>', address, row.pk, count)


@admin.register(Revision)
class RevisionAdmin(ReadOnlyAdmin):
    list_display = ["public_id", "conversation", "number", "kind", "keyframe", "created_at"]
    list_filter = ["kind"]
    list_select_related = ["conversation"]
    search_fields = ["public_id", "conversation__title", "conversation__id"]
    ordering = ["-pk"]
    show_full_result_count = False
    usage_json = JsonColumn("usage")
    outcome_json = JsonColumn("outcome")
    context_json = JsonColumn("context")
    model_state_json = JsonColumn("model_state")
    model_context_json = JsonColumn("model_context")
    fieldsets = [
        (None, {"fields": ["public_id", "conversation_link", "number", "kind", "parent_link", "keyframe"]}),
        ("Result", {"fields": ["outcome_json", "usage_json", "execution_links", "created_at"]}),
        ("Full context", {"fields": ["full_context"]}),
        ("As stored", {"fields": ["context_json", "model_state_json", "model_context_json"]}),
    ]

    @display(description="conversation")
    def conversation_link(self, row: Revision) -> SafeString | str:
        return link_to(row.conversation)

    @display(description="builds on")
    def parent_link(self, row: Revision) -> SafeString | str:
        return link_to(row.parent)

    @display(description="execution")
    def execution_links(self, row: Revision) -> SafeString | str:
        return format_html_join(" ", "{}", ((link_to(item),) for item in row.executions.all())) or "–"

    @display(description="messages")
    def full_context(self, row: Revision) -> SafeString | str:
        try:
            context = load_context(row.conversation, row)
        except CorruptRevision as error:
            return f"It cannot be read: {error.message}."
        return readable_messages(context.messages)
