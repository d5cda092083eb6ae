"""Pages that show what was said: whoever reads somebody else's gives a reason first.

Every page about one row gets it from `get_object`, and that is where the reason is asked for. Lists show no content and
can neither be searched, filtered nor sorted by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, cast
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.contrib.admin.sites import AdminSite
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from unfold.widgets import UnfoldAdminTextareaWidget

from agent.admin.base import ReadOnlyAdmin
from agent.runtime.exceptions import InvalidArgument
from conversations.models import Conversation, User
from conversations.reading import LONGEST_REASON, SHORTEST_REASON, Readings, note_reading, reason_of

READERS = tuple(f"conversations.view_{name}" for name in ("conversation", "revision", "execution", "sharelink"))


class ReasonNeeded(Exception):
    """Raised when a page would show a conversation that nobody has given a reason to read."""

    def __init__(self, conversation_id: UUID) -> None:
        super().__init__(conversation_id)
        self.conversation_id = conversation_id


class ReasonForm(forms.Form):
    """Why somebody wants to read."""

    reason = forms.CharField(
        max_length=LONGEST_REASON,
        help_text=f"At least {SHORTEST_REASON} characters. It is kept with your name.",
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "autofocus": True}),
    )

    def clean_reason(self) -> str:
        try:
            return reason_of(self.cleaned_data["reason"])
        except InvalidArgument as error:
            raise forms.ValidationError(f"{error.message[:1].upper()}{error.message[1:]}.") from error


def may_read(request: HttpRequest, conversation: Conversation) -> bool:
    """Return whether a conversation is one's own, or a reason to read it was given within the hour."""
    if conversation.owner_id == request.user.pk:
        return True
    return Readings(request.session).reason(conversation.pk) is not None


def reason_address(conversation_id: UUID | None, then: str) -> str:
    """Return the page that asks for a reason and goes on to `then`; None is for searching what everybody said."""
    name, args = ("reason", [conversation_id]) if conversation_id is not None else ("search_reason", [])
    return f"{reverse(f'admin:conversations_conversation_{name}', args=args)}?{urlencode({'next': then})}"


class ReadingAdmin(ReadOnlyAdmin):
    """Shows rows of conversations to those who may read the conversation, and asks for a reason otherwise."""

    # The columns by which a list may be filtered over its address; Django would allow every column of the row.
    open_columns: ClassVar[frozenset[str]] = frozenset()

    def conversation_of(self, row: Any) -> Conversation:
        """Return the conversation that a row belongs to."""
        return cast(Conversation, row.conversation)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        row = super().get_object(request, object_id, from_field)
        if row is not None:
            if not self.has_view_permission(request, row):
                raise PermissionDenied
            conversation = self.conversation_of(row)
            if not may_read(request, conversation):
                raise ReasonNeeded(conversation.pk)
        return row

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if request.method == "POST":
            raise PermissionDenied
        return self._asking(request, lambda: super(ReadingAdmin, self).changeform_view(request, *args, **kwargs))

    def history_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return self._asking(request, lambda: super(ReadingAdmin, self).history_view(request, *args, **kwargs))

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        raise PermissionDenied

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        allowed: bool = super().lookup_allowed(lookup, value, request)
        return allowed and lookup.split("__", maxsplit=1)[0] in self.open_columns

    def _asking(self, request: HttpRequest, view: Callable[[], Any]) -> Any:
        try:
            return view()
        except ReasonNeeded as needed:
            return redirect(reason_address(needed.conversation_id, request.get_full_path()))


def ask_for_reason(request: HttpRequest, site: AdminSite, conversation_id: UUID | None) -> HttpResponse:
    """Show the page that asks, and write down what was answered before anything else; None is for a search."""
    if not request.user.has_perms(READERS[:1]) and (
        conversation_id is None or not any(request.user.has_perm(name) for name in READERS)
    ):
        raise PermissionDenied
    conversation: models.Model | None = None
    if conversation_id is not None:
        conversation = Conversation.objects.select_related("owner", "agent").filter(pk=conversation_id).first()
        if conversation is None:
            raise Http404
    form = ReasonForm(request.POST if request.method == "POST" else None)
    then = _then(request)
    if form.is_valid():
        reason = form.cleaned_data["reason"]
        if conversation_id is not None:
            note_reading(cast(User, request.user), conversation_id, reason, place="admin")
        Readings(request.session).keep(conversation_id, reason)
        return redirect(then)
    context = {
        **site.each_context(request),
        "title": "Why do you want to read this?" if conversation else "Why do you want to search?",
        "conversation": conversation,
        "form": form,
        "next": then,
        "opts": Conversation._meta,
    }
    return render(request, "admin/conversations/reason.html", context)


def _then(request: HttpRequest) -> str:
    """Return where to go on, which is a page of the admin."""
    index = reverse("admin:index")
    wanted = request.POST.get("next", request.GET.get("next", ""))
    safe = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return wanted if safe and wanted.startswith(index) else index
