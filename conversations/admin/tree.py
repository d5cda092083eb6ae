"""The tree of a conversation as rows of a table: the way to the head straight down, what branches off it indented."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from conversations.models import RevisionKind
from conversations.store import way_to

DEEPEST = 12  # branches of branches that are drawn; deeper ones stand no further right


@dataclass(frozen=True, slots=True)
class LightRevision:
    """A revision without its bodies."""

    pk: int
    parent_id: int | None
    number: int
    kind: str
    label: str
    keyframe: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TreeRow:
    """A revision in its tree.

    `depth` counts the branches that lead here from the way to the head; `parent` is a number, None at a beginning.
    `place` and `siblings` tell which of how many versions it is. `problem` says what is wrong with its place.
    """

    revision: LightRevision
    depth: int
    parent: int | None
    place: int
    siblings: int
    head: bool
    on_way: bool
    tip: bool
    problem: str = ""

    @property
    def rails(self) -> range:
        return range(min(self.depth, DEEPEST))

    @property
    def kind(self) -> str:
        known = dict(RevisionKind.choices)
        return str(known.get(self.revision.kind, self.revision.kind))


def tree_rows(revisions: Iterable[LightRevision], head: int | None) -> list[TreeRow]:
    """Return every revision once, parents before their children; damage in the tree is shown, not raised."""
    nodes = {each.pk: each for each in sorted(revisions, key=lambda each: each.pk)}
    children: dict[int | None, list[int]] = {}
    problems: dict[int, str] = {}
    for node in nodes.values():
        parent = node.parent_id
        if parent is not None and parent not in nodes:
            problems[node.pk] = "builds on a revision that is not here"
        elif parent is not None and parent >= node.pk:
            problems[node.pk] = f"builds on revision {nodes[parent].number}, which is not older"
        children.setdefault(None if node.pk in problems else parent, []).append(node.pk)
    way = way_to(head, {node.pk: node.parent_id for node in nodes.values()})
    places: dict[int, tuple[int, int]] = {}
    for group in children.values():
        whole = [pk for pk in group if pk not in problems]
        places |= {pk: (place, len(whole)) for place, pk in enumerate(whole, 1)}
    rows: list[TreeRow] = []
    waiting: list[tuple[int, int]] = _below(children.get(None, []), way, 0)
    while waiting:
        pk, depth = waiting.pop()
        node = nodes[pk]
        parent = None if pk in problems or node.parent_id is None else nodes[node.parent_id].number
        place, siblings = places.get(pk, (1, 1))
        rows.append(
            TreeRow(
                node,
                depth,
                parent,
                place,
                siblings,
                head=pk == head,
                on_way=pk in way,
                tip=pk not in children,
                problem=problems.get(pk, ""),
            )
        )
        waiting += _below(children.get(pk, []), way, depth)
    return rows


def _below(children: list[int], way: set[int], depth: int) -> list[tuple[int, int]]:
    """Return the children in the order in which they are taken from a stack: branches first, then what goes on."""
    if not children:
        return []
    on = next((pk for pk in children if pk in way), children[-1])
    return [(on, depth), *((pk, depth + 1) for pk in reversed(children) if pk != on)]
