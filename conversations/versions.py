"""Where the page lets a person choose between the versions of a turn, and where a run stands among what is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from agent.runtime.messages import AgentMessage
from conversations.models import Conversation, Execution
from conversations.store import Path, Sibling, Step, siblings


@dataclass(frozen=True, slots=True)
class Versions:
    """One version of a turn among all: number `at` of `count`, from 1, and its neighbours."""

    revision_id: UUID
    at: int
    count: int
    previous: UUID | None
    next: UUID | None
    label: str

    def to_wire(self) -> dict[str, object]:
        """Return what the page's script fills its fragment with."""
        return {
            "revisionId": str(self.revision_id),
            "at": self.at,
            "count": self.count,
            "previous": str(self.previous) if self.previous else None,
            "next": str(self.next) if self.next else None,
            "label": self.label,
        }


@dataclass(frozen=True, slots=True)
class Branching:
    """The `versions` on a path by the message at which they part; `later` tells that its end has been gone on from."""

    versions: Mapping[str, Versions]
    later: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run stands: whether it begins on a path, and the message of the path that it comes before, if any."""

    on_path: bool
    before: str | None = None


def branching(conversation: Conversation, path: Path) -> Branching:
    """Return where a path branches, with one query."""
    if not path.steps:
        return Branching({}, later=False)
    tip = path.steps[-1].pk
    children = siblings(conversation, path.branches | {tip})
    found = {}
    for place, step in enumerate(path.steps):
        beside = children.get(step.parent_id, ()) if step.parent_id in path.branches else ()
        anchor = _parting(path.steps, place, beside)
        if len(beside) > 1 and anchor is not None:
            found[anchor] = _versions(step, beside)
    return Branching(found, later=tip in children)


def place_of_run(execution: Execution, path: Path) -> Place:
    """Return where a run stands on a path."""
    keys = [step.pk for step in path.steps]
    if execution.kept:
        if execution.beside_id not in keys:
            return Place(on_path=False)
        at = keys.index(execution.beside_id)
        return Place(True, _first_shown(path.steps[at].messages[execution.kept :], path.steps[at + 1 :]))
    if execution.base_id is None:
        return Place(not path.steps or not path.steps[0].keyframe, _first_shown((), path.steps))
    if execution.base_id not in keys:
        return Place(on_path=False)
    return Place(True, _first_shown((), path.steps[keys.index(execution.base_id) + 1 :]))


def _versions(step: Step, beside: Sequence[Sibling]) -> Versions:
    at = next(n for n, each in enumerate(beside) if each.pk == step.pk)
    return Versions(
        step.public_id,
        at + 1,
        len(beside),
        beside[at - 1].public_id if at else None,
        beside[at + 1].public_id if at + 1 < len(beside) else None,
        beside[at].label,
    )


def _parting(steps: Sequence[Step], place: int, beside: Sequence[Sibling]) -> str | None:
    """Return the message at which a step parts from its siblings: that of the person who asked, where there is one."""
    messages = steps[place].messages
    others = [each.message_ids for each in beside if each.pk != steps[place].pk]
    common = min((_common(messages, other) for other in others), default=0)
    asked = [message.id for message in messages[: common + 1] if message.role == "user"]
    return asked[-1] if asked else _first_shown(messages[common:], steps[place + 1 :])


def _common(messages: Sequence[AgentMessage], other: Sequence[str]) -> int:
    pairs = zip(messages, other, strict=False)
    return next((at for at, (message, id) in enumerate(pairs) if message.id != id), min(len(messages), len(other)))


def _first_shown(messages: Sequence[AgentMessage], steps: Sequence[Step]) -> str | None:
    following = (message for part in (messages, *(step.messages for step in steps)) for message in part)
    return next((message.id for message in following if message.role in ("user", "assistant")), None)
