"""The page “Your data”: take everything along, end what acts for you, delete it all."""

from __future__ import annotations

from typing import cast
from uuid import UUID

from allauth.account.decorators import reauthentication_required
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AnonymousUser
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from agent.runtime.exceptions import InvalidState
from conversations.api.serving import find_host
from conversations.hosting.leaving import stop_runs
from conversations.models import Conversation, User
from conversations.rights import deletion, sign_ins
from conversations.rights.forms import CloseAccountForm, DeleteConversationsForm, TokenForm
from conversations.sharing import shares_of, uuid_of


@require_safe
@login_required
@never_cache
def data(request: HttpRequest) -> HttpResponse:
    """Show what is kept of a person, and what acts in their name."""
    return _page(request)


@require_POST
@login_required
@reauthentication_required
@never_cache
def create_token(request: HttpRequest) -> HttpResponse:
    """Make a token and show it, this once: the answer to a POST is kept by no browser."""
    form = TokenForm(_person(request), request.POST)
    if not form.is_valid():
        return _page(request, token_form=form, status=422)
    row, plain = form.issue()
    return render(request, "account/new_token.html", {"token": row, "plain": plain})


@require_POST
@login_required
def revoke_token(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Revoke one's own token; anybody else's is as unknown as one that does not exist."""
    token = get_object_or_404(_person(request).api_tokens, pk=pk)
    token.revoke()
    messages.success(request, f"The token “{token.name}” is revoked.")
    return redirect("account-data")


@require_POST
@login_required
def end_session(request: HttpRequest, pk: UUID) -> HttpResponse:
    """End one of one's own sessions, wherever it is used."""
    if not sign_ins.end_session(_person(request), pk):
        raise Http404
    if not request.session.exists(request.session.session_key or ""):
        return redirect("account_login")
    messages.success(request, "The session has ended.")
    return redirect("account-data")


@require_POST
@login_required
def end_other_sessions(request: HttpRequest) -> HttpResponse:
    """End all of one's own sessions but this one."""
    sign_ins.end_sessions(_person(request), but=request.session.session_key)
    messages.success(request, "You are signed in here only.")
    return redirect("account-data")


@require_POST
@login_required
def delete_conversations(request: HttpRequest) -> HttpResponse:
    """Delete all conversations of a person who says so."""
    form = DeleteConversationsForm(request.POST)
    if not form.is_valid():
        return _page(request, delete_form=form, status=422)
    user = _person(request)
    _stop_runs(request, user.pk)
    count = deletion.delete_conversations(user)
    messages.success(request, "1 conversation is deleted." if count == 1 else f"{count} conversations are deleted.")
    return redirect("account-data")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@reauthentication_required
@never_cache
def close_account(request: HttpRequest) -> HttpResponse:
    """Delete the account of a person who has proved again who they are, and typed their address."""
    user, session_key = _person(request), request.session.session_key
    form = CloseAccountForm(user, request.POST if request.method == "POST" else None)
    status = 200
    if form.is_bound and form.is_valid():
        try:
            deletion.check_may_close(user)
            user_id = user.pk
            _stop_runs(request, user_id)
            deletion.close_account(user, session_key=session_key)
            _stop_runs(request, user_id)  # what began meanwhile talks to nobody
        except InvalidState as error:
            form.add_error(None, error.message)
        else:
            request.session.flush()
            request.user = AnonymousUser()
            return render(request, "account/closed.html")
    if form.is_bound:
        status = 422
    return render(request, "account/close.html", {"form": form}, status=status)


def _page(
    request: HttpRequest,
    *,
    token_form: TokenForm | None = None,
    delete_form: DeleteConversationsForm | None = None,
    status: int = 200,
) -> HttpResponse:
    user = _person(request)
    context = {
        "base_path": settings.PAR.base_path,
        "conversation_count": Conversation.objects.filter(owner=user).count(),
        "temporary_hours": settings.PAR.temporary_hours,
        "retention_days": settings.PAR.retention_days,
        "audit_keeps_texts": settings.PAR.audit_enabled and settings.PAR.audit_payload_mode == "full",
        "tokens": user.api_tokens.filter(revoked_at=None),
        "token_form": token_form or TokenForm(user),
        "delete_form": delete_form or DeleteConversationsForm(),
        "shares": shares_of(user, before=uuid_of(request.GET.get("shares", ""))),
        "back": reverse("account-data"),
        "sessions": sign_ins.open_sessions(user, request.session.session_key),
    }
    return render(request, "account/data.html", context, status=status)


def _stop_runs(request: HttpRequest, user_id: int) -> None:
    """End what a person's agents do now; without a host in this process there is nothing that could run."""
    host = find_host(request)
    if host is not None:
        async_to_sync(stop_runs)(host, user_id)


def _person(request: HttpRequest) -> User:
    return cast(User, request.user)  # the views are for signed-in people
