"""Admin of conversations and revisions: to be read, for a reason, and never to be changed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast
from uuid import UUID

from django.contrib import admin, messages
from django.core.paginator import Paginator
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.decorators import display
from unfold.paginator import InfinitePaginator

from agent.admin.base import JsonColumn, link_to, readable_json
from agent.runtime.exceptions import InvalidArgument
from conversations.admin.messages import readable_messages, readable_state
from conversations.admin.reading import ReadingAdmin, ask_for_reason, reason_address
from conversations.admin.tree import LightRevision, tree_rows
from conversations.exceptions import CorruptRevision
from conversations.models import Conversation, Revision, User
from conversations.reading import Readings, note_search
from conversations.search import conversations_of_all
from conversations.store import Path, load_path

ROWS_SHOWN = 100
MESSAGES_SHOWN = 100
DETAILS = ["pinned", "archived", "temporary", "tags_json", "external_id", "created_at", "updated_at"]
VIEW_STATE = "conversations.view_model_state"
BODIES = ("context", "model_state", "model_context", "usage", "outcome")


@admin.register(Conversation)
class ConversationAdmin(ReadingAdmin):
    list_display = ["label", "owner", "agent", "version", "revision_count", "archived", "temporary", "updated_at"]
    list_filter = ["archived", "temporary", "agent"]
    list_select_related = ["owner", "agent"]
    search_fields = ["id"]
    search_help_text = "A full id, a part of the owner's name or address; words of your own titles and messages."
    paginator = InfinitePaginator
    show_full_result_count = False
    open_columns = frozenset({"id", "owner", "agent", "archived", "pinned", "temporary"})
    change_form_outer_after_template = "admin/conversations/tree.html"
    tags_json = JsonColumn("tags")
    fieldsets = [
        (None, {"fields": ["id", "title", "owner", "agent", "version", "head_link", "execution_list"]}),
        ("Details", {"fields": DETAILS, "classes": ["collapse"]}),
    ]

    def conversation_of(self, row: Conversation) -> Conversation:
        return row

    def get_urls(self) -> list[URLPattern]:
        ask = self.admin_site.admin_view(self.ask)
        return [
            path("reason/", ask, name="conversations_conversation_search_reason"),
            path("<uuid:pk>/reason/", ask, name="conversations_conversation_reason"),
            *super().get_urls(),
        ]

    def ask(self, request: HttpRequest, pk: UUID | None = None) -> HttpResponse:
        """Ask for a reason to read a conversation, or without one to search what everybody said."""
        return ask_for_reason(request, self.admin_site, pk)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conversation]:
        rows: QuerySet[Conversation] = super().get_queryset(request)
        count = Revision.objects.filter(conversation=OuterRef("pk")).order_by().values("conversation")
        number = Coalesce(Subquery(count.annotate(count=Count("pk")).values("count")), 0)
        light = rows.select_related("head", "owner", "agent").defer(*(f"head__{name}" for name in BODIES))
        return light.annotate(revisions_count=number)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        query = request.GET.get("q", "").strip()
        if query and _id(query) is None:
            reason = Readings(request.session).reason(None)
            if reason is not None and self.has_view_permission(request):
                note_search(cast(User, request.user), reason, query)
                request.par_search_noted = True  # type: ignore[attr-defined]
            elif reason is None:
                words = 'What other people said is not searched. <a class="underline" href="{}">Give a reason</a>'
                address = reason_address(None, request.get_full_path())
                self.message_user(request, format_html(words + " to search it, too.", address), messages.INFO)
        return super().changelist_view(request, extra_context)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Conversation], search_term: str
    ) -> tuple[QuerySet[Conversation], bool]:
        """Search by id and owner; by what was said only what may be read, or everything if that was written down."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if (pk := _id(term)) is not None:
            return queryset.filter(pk=pk), False
        readings = Readings(request.session)
        readable = Q(owner=request.user.pk) | Q(pk__in=readings.conversations())
        if getattr(request, "par_search_noted", False):
            readable = Q()
        owner = Q(owner__email__icontains=term) | Q(owner__username__icontains=term)
        said = Q(title__icontains=term)
        with suppress(InvalidArgument):  # nothing but signs, or too much: only titles have it
            said |= Q(pk__in=conversations_of_all(term).values("pk"))
        return queryset.filter(owner | (said & readable)), False

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        row: Conversation = kwargs["obj"]
        columns = ("pk", "parent_id", "number", "kind", "label", "keyframe", "created_at")
        light = Revision.objects.filter(conversation=row).order_by().values_list(*columns)
        rows = tree_rows((LightRevision(*each) for each in light), row.head_id)
        pages = Paginator(rows, ROWS_SHOWN)
        at_head = next((place for place, each in enumerate(rows) if each.head), 0) // ROWS_SHOWN + 1
        context["tree"] = pages.get_page(request.GET.get("tree", at_head))
        context["tree_at_head"] = at_head
        return super().render_change_form(request, context, *args, **kwargs)

    @display(description="conversation")
    def label(self, row: Conversation) -> str:
        return str(row)

    @display(description="revisions")
    def revision_count(self, row: Conversation) -> int:
        return row.revisions_count  # type: ignore[attr-defined, no-any-return]

    @display(description="head")
    def head_link(self, row: Conversation) -> SafeString | str:
        return link_to(row.head)

    @display(description="executions")
    def execution_list(self, row: Conversation) -> SafeString:
        address = reverse("admin:conversations_execution_changelist")
        count = row.executions.count()
        return format_html('<a class="text-link" href="{}?conversation={}">{} executions</a>', address, row.pk, count)


@admin.register(Revision)
class RevisionAdmin(ReadingAdmin):
    list_display = ["public_id", "conversation", "number", "kind", "keyframe", "created_at"]
    list_filter = ["kind"]
    list_select_related = ["conversation"]
    search_fields = ["public_id"]
    search_help_text = "The full id of a revision or of its conversation, or a part of the owner's address"
    ordering = ["-pk"]
    paginator = InfinitePaginator
    show_full_result_count = False
    open_columns = frozenset({"id", "public_id", "conversation", "kind", "number", "keyframe"})
    change_form_outer_after_template = "admin/conversations/messages.html"
    usage_json = JsonColumn("usage")
    outcome_json = JsonColumn("outcome")
    context_json = JsonColumn("context")
    model_context_json = JsonColumn("model_context")

    def get_fieldsets(self, request: HttpRequest, obj: Revision | None = None) -> Any:
        stored = ["context_json", "model_context_json"]
        if request.user.has_perm(VIEW_STATE):
            stored.append("model_state_json")
        place = ["public_id", "conversation_link", "number", "kind", "label", "parent_link", "keyframe"]
        return [
            (None, {"fields": place}),
            ("Result", {"fields": ["outcome_json", "usage_json", "execution_links", "state", "created_at"]}),
            ("As stored", {"fields": stored, "classes": ["collapse"]}),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Revision]:
        rows: QuerySet[Revision] = super().get_queryset(request)
        light = rows.select_related("conversation", "parent").defer(*BODIES)
        return light.defer(*(f"parent__{name}" for name in BODIES))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Revision], search_term: str
    ) -> tuple[QuerySet[Revision], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        if (pk := _id(term)) is not None:
            return queryset.filter(Q(public_id=pk) | Q(conversation=pk)), False
        return queryset.filter(conversation__owner__email__icontains=term), False

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        row: Revision = kwargs["obj"]
        try:
            said = _path(row).context.messages
            pages = Paginator(said, MESSAGES_SHOWN)
            context["thread"] = page = pages.get_page(request.GET.get("messages", pages.num_pages))
            context["thread_html"] = readable_messages(page.object_list)
        except CorruptRevision as error:
            context["thread_problem"] = error
        return super().render_change_form(request, context, *args, **kwargs)

    @display(description="conversation")
    def conversation_link(self, row: Revision) -> SafeString | str:
        return link_to(row.conversation)

    @display(description="builds on")
    def parent_link(self, row: Revision) -> SafeString | str:
        return link_to(row.parent)

    @display(description="execution")
    def execution_links(self, row: Revision) -> SafeString | str:
        return format_html_join(" ", "{}", ((link_to(item),) for item in row.executions.all())) or "–"

    @display(description="model state")
    def state(self, row: Revision) -> str:
        try:
            return readable_state(_whole_state(row))
        except CorruptRevision as error:
            return f"It cannot be read: {error.message}."

    @display(description="model state")
    def model_state_json(self, row: Revision) -> SafeString | str:
        """The whole state, also where a change to the one before it is stored."""
        try:
            return readable_json(_whole_state(row))
        except CorruptRevision as error:
            return f"It cannot be read: {error.message}."


def _path(row: Revision) -> Path:
    """Return the way to a revision, which is read once for a page."""
    if "par_path" not in row.__dict__:
        row.__dict__["par_path"] = load_path(row.conversation, row)
    found: Path = row.__dict__["par_path"]
    return found


def _whole_state(row: Revision) -> Any:
    state = _path(row).model_context.model_state
    return None if state is None else state.to_wire()


def _id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
