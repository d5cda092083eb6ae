"""Reading a whole context back: one query for the light rows, one for the bodies on the path."""

from __future__ import annotations

from typing import Any

from django.db.models import Case, F, JSONField, When

from agent.runtime.messages import AgentMessage, Context, ModelContext
from conversations.exceptions import CorruptRevision
from conversations.models import Conversation, Revision


def load_context(conversation: Conversation, tip: Revision | None) -> Context:
    """Return the whole context at revision `tip`, with two queries; None gives the empty context.

    Raises `CorruptRevision`, which names the revision that is missing or cannot be read (R123).
    """
    if tip is None:
        return Context()
    rows = Revision.objects.filter(conversation=conversation).order_by()
    light = {row[0]: row[1:] for row in rows.values_list("pk", "parent_id", "keyframe", "number")}
    path = _path(light, tip.pk)
    # One body of the whole path carries the state: the tip's.
    at_tip: dict[str, Any] = {
        f"tip_{name}": Case(When(pk=tip.pk, then=F(name)), output_field=JSONField())
        for name in ("model_state", "model_context")
    }
    found = rows.filter(pk__range=(path[-1], tip.pk)).annotate(**at_tip)
    bodies = {row[0]: row[1:] for row in found.values_list("pk", "context", *at_tip)}
    messages: list[AgentMessage] = []
    for pk in reversed(path):
        try:
            messages += map(AgentMessage.from_wire, bodies[pk][0])
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptRevision(f"the messages of revision {light[pk][2]} cannot be read") from error
    _, state, rest = bodies[tip.pk]
    try:
        model_context = ModelContext.from_wire({**rest, "modelState": state})
    except (TypeError, ValueError) as error:
        raise CorruptRevision(f"the model context of revision {light[tip.pk][2]} cannot be read") from error
    return Context(messages=tuple(messages), model_context=model_context)


def _path(light: dict[int, tuple[Any, ...]], tip: int) -> list[int]:
    """Return the keys from the tip back to its keyframe or root."""
    path: list[int] = []
    at: int | None = tip
    while at is not None:
        if at not in light or (path and at >= path[-1]):
            child = f"revision {light[path[-1]][2]}" if path else "the conversation"
            raise CorruptRevision(f"the revision that {child} builds on is missing")
        path.append(at)
        parent, keyframe, _ = light[at]
        at = None if keyframe else parent
    return path
