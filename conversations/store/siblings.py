"""The revisions that stand beside one another: versions of one turn."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q

from conversations.models import Conversation, Revision


@dataclass(frozen=True, slots=True)
class Sibling:
    """A revision among those with the same parent; `message_ids` are those of the messages that it brought."""

    pk: int
    public_id: UUID
    label: str
    message_ids: tuple[str, ...]


def siblings(conversation: Conversation, parents: Collection[int | None]) -> dict[int | None, tuple[Sibling, ...]]:
    """Return the children of these revisions, oldest first, with one query; None stands for the beginning."""
    below = Q(parent_id__in=[pk for pk in parents if pk is not None])
    if None in parents:
        below |= Q(parent_id=None)
    rows = Revision.objects.filter(below, conversation=conversation).order_by("pk")
    found: dict[int | None, list[Sibling]] = {}
    for pk, parent_id, public_id, label, context in rows.values_list(
        "pk", "parent_id", "public_id", "label", "context"
    ):
        found.setdefault(parent_id, []).append(Sibling(pk, public_id, label, _ids(context)))
    return {parent: tuple(each) for parent, each in found.items()}


def _ids(context: Any) -> tuple[str, ...]:
    """Return the ids of stored messages; of damaged ones none, they are somebody else's to report."""
    try:
        return tuple(str(message["id"]) for message in context)
    except (KeyError, TypeError):
        return ()
