"""The chat page and the one-time link."""

from __future__ import annotations

import logging
from typing import Any, cast
from uuid import UUID

from allauth.account.utils import perform_login
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from agent.models import AgentProfile
from conversations.attachments import pictures_in
from conversations.exceptions import CorruptRevision, RevisionNotFound
from conversations.listing import conversations_of, listing
from conversations.models import Conversation, OneTimeLink, Revision, User
from conversations.sources import Sources
from conversations.store import load_path, owned_revision
from conversations.transcript import blank_blocks, blank_messages, history
from conversations.unsaved import unsaved_turns
from conversations.versions import branching
from conversations.words import for_script

logger = logging.getLogger("conversations.views")

MESSAGES_SHOWN = 60
MOST_MESSAGES_SHOWN = 10_000
PROMPTS_SHOWN = 3
NO_ID = UUID(int=0)

_LINK = "one_time_link"


@require_safe
@login_required
@never_cache
def new_chat(request: HttpRequest) -> HttpResponse:
    """Show an empty chat with the agents to choose from."""
    agents = list(AgentProfile.objects.visible_to(request.user))
    wanted = request.GET.get("agent")
    chosen = next((agent for agent in agents if agent.slug == wanted), None)
    chosen = chosen or next((agent for agent in agents if agent.is_default), None)
    chosen = chosen or next(iter(agents), None)
    choices = [{"agent": agent, "prompts": agent.suggested_prompts[:PROMPTS_SHOWN]} for agent in agents]
    return _chat(request, {"agent": chosen, "choices": choices})


@require_safe
@login_required
@never_cache
def conversation(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show a conversation of one's own; anybody else's is as unknown as one that does not exist."""
    row = get_object_or_404(conversations_of(person(request)).select_related("agent", "head"), pk=pk)
    tip = revision_or_404(row, request.GET["revision"]) if "revision" in request.GET else row.head
    try:
        path = load_path(row, tip)
        messages = path.context.messages
        outcome = tip.outcome if tip is not None else None
        branches = branching(row, path)
        unsaved = unsaved_turns(row, path)
        pictures = pictures_in([*messages, *(message for turn in unsaved for message in turn.messages)])
        names = dict(row.attachments.filter(pk__in=pictures).values_list("pk", "name")) if pictures else {}
        shown = history(
            messages,
            row.agent.name,
            limit=_limit(request),
            unsaved=unsaved,
            cut_off=outcome is not None and outcome["type"] == "max-tokens",
            sources=Sources(settings.PAR.base_path, f"conversations/{row.pk}", names),
            versions=branches.versions,
        )
    except CorruptRevision as error:
        logger.error("conversation %s cannot be shown: %s", row.pk, error.message)
        return _chat(request, {"conversation": row, "agent": None, "damage": error})
    more = {
        "history": shown,
        "show_more": len(messages) - shown.earlier + MESSAGES_SHOWN,
        "tip": tip,
        "is_earlier": tip is not None and tip.pk != row.head_id,
        "has_later": branches.later,
    }
    return _chat(request, {"conversation": row, "agent": row.agent, **more})


def _chat(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    before, archived = request.GET.get("before", ""), request.GET.get("archived") == "1"
    agent = context["agent"]
    shared = {
        "conversations": listing(person(request), before, settings.PAR.conversation_list_limit, archived=archived),
        "archived": archived,
        "blank_messages": blank_messages(agent.name if agent else ""),
        "blank_blocks": blank_blocks(),
        "largest_frame": str(settings.PAR.max_frame_bytes),
        "largest_file": str(settings.PAR.max_attachment_bytes),
        "temporary_hours": settings.PAR.temporary_hours,
    }
    return render(request, "chat/page.html", {**for_scripts(), **shared, **context})


def for_scripts() -> dict[str, Any]:
    """Return what the scripts of every page need to know."""
    return {"base_path": settings.PAR.base_path, "no_id": NO_ID, "words": for_script()}


def _limit(request: HttpRequest) -> int:
    """Return how many messages to show: more than usual if the address says so."""
    asked = request.GET.get("show", "")
    number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 7 else 0
    return max(MESSAGES_SHOWN, min(number, MOST_MESSAGES_SHOWN))


def person(request: HttpRequest) -> User:
    """Return who asks; for views that are for signed-in people."""
    return cast(User, request.user)


def revision_or_404(conversation: Conversation, public_id: str) -> Revision:
    """Return a revision of this conversation by the name in an address."""
    try:
        return owned_revision(conversation, UUID(public_id))
    except (ValueError, RevisionNotFound) as error:
        raise Http404 from error


@require_safe
@never_cache
def link_landing(request: HttpRequest, token: str) -> HttpResponse:
    """Take a token out of the address, so that it is in no history and no Referer, before anything is shown.

    Only a token that counts is kept: strangers who try others leave no session behind.
    """
    if OneTimeLink.find(token) is not None:
        request.session[_LINK] = token
    return redirect("link")


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def link(request: HttpRequest) -> HttpResponse:
    """Ask before signing in, for scanners and previews follow links too; then sign in exactly once."""
    row = OneTimeLink.find(request.session.get(_LINK, ""))
    if row is not None and request.method != "POST":
        return render(request, "link.html", {"person": row.user})
    if row is None or not row.redeem():
        return render(request, "link.html", {"person": None}, status=410)
    request.session.flush()
    # A second factor is still asked for. The signals' answer is typed as optional; without a hook it is never None.
    return cast(
        HttpResponse,
        perform_login(request, row.user, email_verification="none", redirect_url=settings.LOGIN_REDIRECT_URL),
    )
