"""The search page."""

from __future__ import annotations

from typing import Any, cast

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agent.runtime.exceptions import InvalidArgument
from agent.runtime.values import clean_text
from conversations.listing import listing
from conversations.models import User
from conversations.search.finding import Found, search
from conversations.search.forms import SearchForm
from conversations.search.index import LARGEST_KEY
from conversations.search.query import Query

SHOWN = 20


@require_safe
@login_required
@never_cache
def search_page(request: HttpRequest) -> HttpResponse:
    """Show what was found, or why nothing can be searched for."""
    user = cast(User, request.user)
    asked = {name: clean_text(str(value)).replace("\ufffd", "") for name, value in request.GET.items()}
    form = SearchForm(user, asked)
    context: dict[str, Any] = {
        "form": form,
        "conversations": listing(user, asked.get("before", ""), settings.PAR.conversation_list_limit),
    }
    if asked.get("q", "").strip():
        context |= _found(user, form, asked.get("after", ""))
    return render(request, "search/page.html", context, status=400 if context.get("problem") else 200)


def _found(user: User, form: SearchForm, after: str) -> dict[str, Found | str]:
    if not form.is_valid():
        return {"problem": "Look at the fields that are marked."}
    try:
        query = Query.parse(form.cleaned_data["q"])
    except InvalidArgument as error:
        return {"problem": f"{error.message[:1].upper()}{error.message[1:]}."}
    return {"found": search(user, query, form.filters(), before=_place(after), limit=SHOWN)}


def _place(after: str) -> int | None:
    """Return where a page begins; a senseless one is the first."""
    number = int(after) if after.isascii() and after.isdigit() and len(after) < 20 else 0
    return number if 0 < number <= LARGEST_KEY else None
