"""Admin of share links: to be read, and to be revoked."""

from __future__ import annotations

from typing import cast

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.decorators import action, display

from agent.admin.base import link_to
from conversations import sharing
from conversations.admin.reading import ReadingAdmin
from conversations.models import ShareLink, User


@admin.register(ShareLink)
class ShareLinkAdmin(ReadingAdmin):
    list_display = ["shown", "conversation", "owner", "state", "created_at", "published_at", "expires_at", "revoked_at"]
    list_select_related = ["owner", "conversation"]
    list_filter = ["created_at", "revoked_at"]
    search_fields = ["prefix", "owner__email", "conversation__id"]
    open_columns = frozenset({"id", "prefix", "owner", "conversation", "created_at", "revoked_at"})
    show_full_result_count = False
    actions = ["revoke"]  # type: ignore[assignment]
    fields = [
        "id",
        "title_shown",
        "shown",
        "state",
        "owner",
        "conversation_link",
        "revision_link",
        "created_at",
        "published_at",
        "expires_at",
        "revoked_at",
    ]

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("conversations.change_sharelink")

    @display(description="title")
    def title_shown(self, row: ShareLink) -> str:
        return row.title or "Untitled chat"

    @display(description="link")
    def shown(self, row: ShareLink) -> str:
        return f"{row.prefix}…"

    @display(description="state")
    def state(self, row: ShareLink) -> str:
        return row.state

    @display(description="conversation")
    def conversation_link(self, row: ShareLink) -> SafeString | str:
        return link_to(row.conversation)

    @display(description="shows")
    def revision_link(self, row: ShareLink) -> SafeString | str:
        return link_to(row.revision)

    @action(description="Revoke the selected links", permissions=["revoke"])
    def revoke(self, request: HttpRequest, rows: QuerySet[ShareLink]) -> None:
        ended = sum(sharing.revoke(row, cast(User, request.user)) for row in rows)
        self.message_user(request, f"{ended} of the links worked and are revoked.", messages.SUCCESS)
