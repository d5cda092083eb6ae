"""The pages of a link: for whoever has it, and for its owner."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, cast
from uuid import UUID, uuid4

from csp.constants import NONE, SELF
from csp.decorators import csp_replace
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from agent.runtime.exceptions import InvalidArgument, InvalidState
from agent.runtime.messages import Value
from conversations.api.attachments import locked_down
from conversations.api.idempotency import done_once
from conversations.api.throttling import take, take_unknown
from conversations.attachments import open_bytes
from conversations.exceptions import AgentNotFound, AttachmentMissing, ConversationNotFound, RateLimited, ShareNotFound
from conversations.models import Conversation, ShareLink, User
from conversations.sharing import links
from conversations.sharing.copies import agent_for, copied_messages, copy_share
from conversations.sharing.pictures import bare_picture
from conversations.sharing.snapshots import shared_picture, snapshot_page
from conversations.store import owned_conversation
from conversations.words import sentence

LIFETIMES = {"": None, "1": "a day", "7": "a week", "30": "a month", "365": "a year"}  # by days
MANAGED = 50

# Nothing on the page acts, so nothing may: no script, no form, no connection.
_STILL: dict[str, Any] = {"script-src": [NONE], "connect-src": [NONE], "form-action": [NONE], "img-src": [SELF]}


class _Copied(Value):
    conversation_id: UUID


class _Made(Value):
    share_id: UUID
    token: str


def _counted(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Let a view that asks nobody who they are answer only so many requests of one address."""

    @wraps(view)
    def counted(request: HttpRequest, **place: Any) -> HttpResponse:
        try:
            take_unknown(request)
        except RateLimited as error:
            return _busy(error)
        return view(request, **place)

    return counted


@require_safe
@never_cache
@csp_replace(_STILL)
@_counted
def shared(request: HttpRequest, token: str) -> HttpResponse:
    """Show a snapshot to whoever has the link; nobody is asked who they are, and no cookie is read or set."""
    share = ShareLink.find(token)
    if share is None:
        return _gone()
    page = snapshot_page(share, request.GET.get("page", ""), f"/s/{token}")
    return _still("share/page.html", {"share": share, "page": page, "token": token})


@require_safe
@never_cache
@_counted
def picture(request: HttpRequest, token: str, pk: UUID) -> HttpResponse:
    """Send a picture of a snapshot, without its name and without what a camera wrote into it."""
    share = ShareLink.find(token)
    attachment = None if share is None else shared_picture(share, pk)
    if attachment is None:
        return _gone()
    try:
        data = bare_picture(open_bytes(attachment), attachment.media_type)
    except AttachmentMissing:
        return _gone()
    response = _hidden(HttpResponse(data, content_type=attachment.media_type))
    locked_down(response)
    response["Content-Disposition"] = "attachment"
    response["Referrer-Policy"] = "no-referrer"
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@never_cache
def copy(request: HttpRequest, token: str) -> HttpResponse:
    """Let a signed-in reader go on with a copy of their own; the form makes one copy, however often it is sent."""
    share = ShareLink.find(token)
    if share is None:
        return _gone()
    user = _user(request)
    try:
        agent = agent_for(user, share)
    except AgentNotFound:
        agent = None
    if request.method == "POST" and agent is not None:
        try:
            copied = _copied(request, user, share)
        except (AttachmentMissing, RateLimited) as error:
            messages.error(request, sentence(error.code, error.message))
        else:
            return redirect("conversation", pk=copied)
    context = {"share": share, "token": token, "agent": agent, "key": uuid4()}
    return _hidden(render(request, "share/copy.html", context))


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@never_cache
def manage(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show the links to a conversation of one's own and make new ones; a new link is shown in this answer only."""
    user = _user(request)
    try:
        conversation = owned_conversation(user, pk)
    except ConversationNotFound:
        raise Http404 from None
    made = None
    if request.method == "POST":
        try:
            made = _make(request, conversation)
        except (InvalidState, RateLimited) as error:
            messages.error(request, sentence(error.code, error.message))
    listing = links.shares_of(
        user, conversation=conversation, before=links.uuid_of(request.GET.get("before", "")), limit=MANAGED
    )
    context = {
        "conversation": conversation,
        "made": made,
        "shares": listing,
        "lifetimes": LIFETIMES,
        "key": uuid4(),
        "back": reverse("share", args=[pk]),
    }
    return _hidden(render(request, "share/manage.html", context))


@require_POST
@login_required
@never_cache
def republish(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Let a link show all that was said by now."""
    try:
        share = links.republish(_user(request), pk)
    except ShareNotFound:
        raise Http404 from None
    except InvalidState as error:
        messages.error(request, sentence(error.code, error.message))
        return _back(request, links.owned_share(_user(request), pk))
    messages.success(request, "The link shows everything that was said by now.")
    return _back(request, share)


@require_POST
@login_required
@never_cache
def revoke(request: HttpRequest, pk: UUID) -> HttpResponse:
    """End a link."""
    user = _user(request)
    try:
        share = links.owned_share(user, pk)
    except ShareNotFound:
        raise Http404 from None
    links.revoke(share, user)
    messages.success(request, "The link is revoked: nobody can read it any more.")
    return _back(request, share)


def address_of(request: HttpRequest, token: str) -> str:
    """Return the whole link with this secret part."""
    return request.build_absolute_uri(reverse("shared", args=[token]))


def _make(request: HttpRequest, conversation: Conversation) -> str:
    days = request.POST.get("days", "")
    if days not in LIFETIMES:
        raise BadRequest("there is no such lifetime")
    expires_at = timezone.now() + timedelta(days=int(days)) if days else None

    def make() -> _Made:
        share, token = links.create_share(conversation.owner, conversation.pk, expires_at=expires_at)
        return _Made(share_id=share.pk, token=token)

    body = _once(conversation.owner, _key_of(request), f"share {conversation.pk} {days}", make)
    return address_of(request, _Made.model_validate_json(body).token)


def _copied(request: HttpRequest, user: User, share: ShareLink) -> UUID:
    """Return the id of the reader's copy; its pictures are made before the transaction that makes the rest."""
    key = _key_of(request)
    with copied_messages(user, share) as said:
        body = _once(user, key, f"copy {share.pk}", lambda: _Copied(conversation_id=copy_share(user, share, said).pk))
    return _Copied.model_validate_json(body).conversation_id


def _key_of(request: HttpRequest) -> UUID:
    """Return the key of a form that counts as one more request; raises `RateLimited`."""
    key = links.uuid_of(request.POST.get("key", ""))
    if key is None:
        raise BadRequest("the form was not one of this page's")
    take(request, _user(request).pk)
    return key


def _once(user: User, key: UUID, what: str, work: Callable[[], Value]) -> bytes:
    """Return what `work` returns, as JSON; the same form again gives the first answer."""
    try:
        return done_once(user, key, hashlib.sha256(what.encode()).hexdigest(), work)[1]
    except InvalidArgument as error:
        raise BadRequest(error.message) from error


def _back(request: HttpRequest, share: ShareLink) -> HttpResponse:
    wanted = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(wanted, allowed_hosts=None):
        wanted = reverse("share", args=[share.conversation_id])
    return redirect(wanted)


def _still(template: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    """Return a page that is the same for everybody; without the request no session can be asked for."""
    response = _hidden(HttpResponse(render_to_string(template, context), status=status))
    response["Referrer-Policy"] = "no-referrer"
    return response


def _gone() -> HttpResponse:
    """Return the one answer for links that are unknown, expired or revoked."""
    return _still("share/gone.html", {}, status=404)


def _busy(error: RateLimited) -> HttpResponse:
    """Return the answer to an address that asks for too much."""
    response = _still("share/busy.html", {"seconds": error.retry_after}, status=429)
    response["Retry-After"] = str(error.retry_after)
    return response


def _hidden(response: HttpResponse) -> HttpResponse:
    response["X-Robots-Tag"] = "noindex, nofollow"
    return response


def _user(request: HttpRequest) -> User:
    return cast(User, request.user)  # the views that ask are for signed-in people
