"""Reading a whole context back: one query for the light rows, one for the bodies on the path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Case, F, When

from agent.runtime.messages import AgentMessage, Context, ModelContext
from conversations.exceptions import CorruptRevision
from conversations.models import Conversation, Revision
from conversations.models.stored import StoredJSON
from conversations.store.chains import KnownState, is_change, known_state, since_of, whole_state
from conversations.store.integrity import check_path, stored_messages, stored_model_context

NOTHING = ModelContext(model_state=None)


@dataclass(frozen=True, slots=True)
class Step:
    """A revision on the path to a tip, and the messages that it brought."""

    pk: int
    public_id: UUID
    parent_id: int | None
    number: int
    keyframe: bool
    messages: tuple[AgentMessage, ...]


@dataclass(frozen=True, slots=True)
class Path:
    """The revisions from the beginning or a keyframe to a tip, and the tip's model context.

    `branches` are the keys of the parents of the steps that have siblings, `state` is what a revision below the tip may
    build its model state on.
    """

    steps: tuple[Step, ...] = ()
    model_context: ModelContext = NOTHING
    branches: frozenset[int | None] = frozenset()
    state: KnownState | None = None

    @property
    def context(self) -> Context:
        messages = tuple(message for step in self.steps for message in step.messages)
        return Context(messages=messages, model_context=self.model_context)


def load_context(conversation: Conversation, tip: Revision | None) -> Context:
    """Return the whole context at revision `tip`, with two queries; None gives the empty context.

    Raises `CorruptRevision`, which names the revision that is missing or cannot be read (R123).
    """
    return load_path(conversation, tip).context


def load_path(conversation: Conversation, tip: Revision | None) -> Path:
    """Return how the context at revision `tip` came about, with two queries; raises as `load_context` does."""
    if tip is None:
        return Path()
    rows = Revision.objects.filter(conversation=conversation).order_by()
    at_tip: dict[str, Any] = {
        f"tip_{name}": Case(When(pk=tip.pk, then=F(name)), output_field=StoredJSON())
        for name in ("model_state", "model_context")
    }
    light: dict[int, tuple[Any, ...]] = {}
    stored: Any = None
    rest: Any = None
    for pk, parent_id, keyframe, number, *at in rows.annotate(**at_tip).values_list(
        "pk", "parent_id", "keyframe", "number", *at_tip
    ):
        light[pk] = parent_id, keyframe, number
        if pk == tip.pk:
            stored, rest = at
    path = _path(light, tip)
    since = _since(stored, light, path)
    state = Case(When(pk__gte=since, then=F("model_state")), output_field=StoredJSON())
    found = rows.filter(pk__range=(path[-1], tip.pk)).annotate(state=state)
    bodies = {row[0]: row[1:] for row in found.values_list("pk", "public_id", "context", "state")}
    steps = []
    for pk in reversed(path):
        parent_id, keyframe, number = light[pk]
        if pk not in bodies:  # deleted between the two queries
            raise CorruptRevision(f"revision {number} is missing")
        public_id, context, _ = bodies[pk]
        steps.append(Step(pk, public_id, parent_id, number, keyframe, stored_messages(context, number)))
    check_path((step.number, step.messages) for step in steps)
    way = [(step.number, bodies[step.pk][2]) for step in steps if step.pk >= since]
    number = light[tip.pk][2]
    model_context = stored_model_context(whole_state(way), rest, number)
    known = known_state(tip.pk, number, model_context.model_state, stored)
    return Path(tuple(steps), model_context, _branches(light, path), known)


def way_to(head: int | None, parents: Mapping[int, int | None]) -> set[int]:
    """Return the keys on the way to a revision, keyframes and what they replaced included.

    `parents` are those of all revisions by their keys; where one is missing the way ends.
    """
    way: set[int] = set()
    while head is not None and head in parents and head not in way:
        way.add(head)
        head = parents[head]
    return way


def way_to_head(conversation: Conversation) -> set[int]:
    """Return the keys of the revisions that lead to the head, with one query."""
    rows = Revision.objects.filter(conversation=conversation).order_by()
    return way_to(conversation.head_id, dict(rows.values_list("pk", "parent_id")))


def _path(light: dict[int, tuple[Any, ...]], tip: Revision) -> list[int]:
    """Return the keys from the tip back to its keyframe or root."""
    path: list[int] = []
    at: int | None = tip.pk
    if tip.pk not in light:
        raise CorruptRevision(f"{tip}, which the conversation builds on, is not one of its own")
    while at is not None:
        if at not in light:
            raise CorruptRevision(f"the revision that revision {light[path[-1]][2]} builds on is missing")
        if path and at >= path[-1]:
            child, parent = light[path[-1]][2], light[at][2]
            raise CorruptRevision(f"revision {child} builds on revision {parent}, which is not older")
        path.append(at)
        parent, keyframe, _ = light[at]
        at = None if keyframe else parent
    return path


def _since(stored: Any, light: dict[int, tuple[Any, ...]], path: list[int]) -> int:
    """Return the key of the revision on a path that holds whole what the tip stores as changes to it."""
    if not is_change(stored):
        return path[0]
    number = light[path[0]][2]
    since = since_of(stored, number)
    for pk in path:
        if light[pk][2] == since:
            return pk
    raise CorruptRevision(f"revision {number} has a model state that builds on revision {since}, which is missing")


def _branches(light: dict[int, tuple[Any, ...]], path: list[int]) -> frozenset[int | None]:
    on_path = {light[pk][0] for pk in path}
    seen: set[int | None] = set()
    twice: set[int | None] = set()
    for parent, *_ in light.values():
        if parent in on_path:
            (twice if parent in seen else seen).add(parent)
    return frozenset(twice)
