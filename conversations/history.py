"""The pages around a conversation's revisions: all of them, two of them side by side; and the place of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agent.runtime.messages import AgentMessage
from conversations.exceptions import CorruptRevision
from conversations.listing import conversations_of
from conversations.models import Conversation, Revision
from conversations.store import difference, load_context, load_path, way_to_head
from conversations.transcript import history
from conversations.versions import branching, place_of_run
from conversations.views import for_scripts, person, revision_or_404

REVISIONS_SHOWN = 50
MOST_COMPARED = 200  # messages of each side
OPENING = 120  # characters

KINDS = {
    "turn": "Turn",
    "edit": "Edited message",
    "regenerate": "Another answer",
    "compaction": "Shortened for the model",
    "recovered": "Continued from a stopped turn",
    "put": "Saved by a program",
    "import": "Imported",
    "reset": "Model's own notes dropped",
}


@dataclass(frozen=True, slots=True)
class Line:
    """A revision in the list; `follows` is the number of the one that it builds on."""

    public_id: UUID
    number: int
    follows: int | None
    kind: str
    label: str
    created_at: datetime
    opening: str
    is_head: bool
    leads_to_head: bool


@require_safe
@login_required
@never_cache
def revisions(request: HttpRequest, pk: UUID) -> HttpResponse:
    """List the revisions of a conversation of one's own, newest first, with three queries."""
    row = _own(request, pk)
    before = request.GET.get("before", "")
    newest = Revision.objects.filter(conversation=row).order_by("-number")
    if before.isascii() and before.isdigit() and len(before) < 16:
        newest = newest.filter(number__lt=int(before))
    found = list(newest.defer("model_state", "model_context", "usage")[: REVISIONS_SHOWN + 1])
    parents = [each.parent_id for each in found if each.parent_id is not None]
    numbers = dict(Revision.objects.filter(pk__in=parents).values_list("pk", "number"))
    path = way_to_head(row)
    lines = [_line(each, numbers, path, row) for each in found[:REVISIONS_SHOWN]]
    older = lines[-1].number if len(found) > REVISIONS_SHOWN else None
    context = {"conversation": row, "lines": lines, "older": older, "older_than": before}
    return render(request, "history/page.html", {**for_scripts(), **context})


@require_safe
@login_required
@never_cache
def compare(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show what a conversation lost and gained from one revision to another."""
    row = _own(request, pk)
    ends = [revision_or_404(row, request.GET.get(name, "")) for name in ("from", "to")]
    before, after = sorted(ends, key=lambda revision: revision.number)
    try:
        found = difference(load_context(row, before), load_context(row, after))
    except CorruptRevision as error:
        damaged = {"conversation": row, "before": before, "after": after, "damage": error}
        return render(request, "history/compare.html", {**for_scripts(), **damaged})
    context = {
        "conversation": row,
        "before": before,
        "after": after,
        "difference": found,
        "sides": [_side("gone", row, before, found.removed), _side("come", row, after, found.added)],
    }
    return render(request, "history/compare.html", {**for_scripts(), **context})


@require_safe
@login_required
@never_cache
def place_of(request: HttpRequest, pk: UUID, execution_id: UUID) -> HttpResponse:
    """Tell a page that shows the way to the revision `seen` where a run stands in it, and the versions of its turn."""
    row = _own(request, pk)
    execution = get_object_or_404(row.executions.select_related("revision"), pk=execution_id)
    seen, revision = request.GET.get("seen"), execution.revision
    try:
        place = place_of_run(execution, load_path(row, revision_or_404(row, seen) if seen else None))
        versions = branching(row, load_path(row, revision)).versions.values() if revision is not None else ()
    except CorruptRevision as error:
        return JsonResponse({"error": {"code": error.code, "message": error.message}}, status=500)
    own = next((each for each in versions if revision is not None and each.revision_id == revision.public_id), None)
    return JsonResponse(
        {
            "onPath": place.on_path,
            "before": place.before,
            "revisionId": str(revision.public_id) if revision is not None else None,
            "versions": own.to_wire() if own is not None else None,
        }
    )


def _own(request: HttpRequest, pk: UUID) -> Conversation:
    return get_object_or_404(conversations_of(person(request)).select_related("agent", "head"), pk=pk)


def _side(
    name: str, conversation: Conversation, revision: Revision, messages: Sequence[AgentMessage]
) -> dict[str, Any]:
    shown = history(messages, conversation.agent.name, limit=MOST_COMPARED)
    return {"name": name, "revision": revision, "shown": shown, "rest": shown.earlier}


def _line(revision: Revision, numbers: dict[int, int], path: set[int], conversation: Conversation) -> Line:
    return Line(
        revision.public_id,
        revision.number,
        numbers.get(revision.parent_id) if revision.parent_id is not None else None,
        KINDS.get(revision.kind, revision.get_kind_display()),
        revision.label,
        revision.created_at,
        _opening(revision.context),
        revision.pk == conversation.head_id,
        revision.pk in path,
    )


def _opening(context: Any) -> str:
    """Return how what a person said last in a revision begins; of damaged messages nothing."""
    try:
        said = [message for message in context if message["role"] == "user"]
        text = " ".join(
            block["text"] for message in said[-1:] for block in message["blocks"] if block["type"] == "text"
        )
    except (KeyError, TypeError):
        return ""
    return " ".join(text[: 2 * OPENING].split())[:OPENING]
