"""The page on which a person exports and imports conversations."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agent.models import AgentProfile


@require_safe
@login_required
@never_cache
def import_page(request: HttpRequest) -> HttpResponse:
    """Show what can be taken away, and a form for a file; the form's script sends it to the API."""
    context = {
        "agents": AgentProfile.objects.visible_to(request.user),
        "base_path": settings.PAR.base_path,
        "largest": settings.PAR.max_import_bytes,
    }
    return render(request, "account/import.html", context)
