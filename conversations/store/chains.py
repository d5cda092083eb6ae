"""Model states of revisions, stored as what changed since the parent's: a state may grow with its conversation.

A revision holds its state whole, or a change to its parent's, the number of the revision `since` which there are only
changes, their `size` together, and a digest over all of that. Whoever reads a state checks the digests on the way, so
that damage is named and never becomes another state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from agent.runtime.messages import ModelContext, ModelState
from conversations.exceptions import CorruptRevision
from conversations.store.spelling import canonical
from conversations.store.states import change_between, changed, larger_than

_AROUND = 128  # bytes of a stored change beside the change itself
_SPENT = 4  # times its size: what may be read to get at a state
_WRONG = (AttributeError, KeyError, RecursionError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class KnownState:
    """The model state of a stored revision, as somebody read it: what a child's state is stored as a change to."""

    revision_id: int
    state: ModelState
    since: int
    size: int = 0
    digest: str | None = None  # None for one that is stored whole


def known_state(revision_id: int, number: int, state: ModelState | None, stored: Any) -> KnownState | None:
    """Return what a child's state can build on, once the `state` has been read; None gives nothing to build on."""
    if state is None:
        return None
    if is_change(stored):
        return KnownState(revision_id, state, stored["since"], stored["size"], stored["digest"])
    return KnownState(revision_id, state, number)


def is_change(stored: Any) -> bool:
    """Return whether a stored model state is a change, and no whole one."""
    return isinstance(stored, dict) and "change" in stored


def since_of(stored: Any, number: int) -> int:
    """Return the number of the revision that a stored change goes back to; raises `CorruptRevision`."""
    counts = stored.get("since"), stored.get("size")
    if any(type(count) is not int for count in counts) or not isinstance(stored.get("digest"), str):
        raise _corrupt(number)
    return int(counts[0])


def stored_state(state: ModelState | None, base: KnownState | None) -> dict[str, Any] | None:
    """Return a model state as it is stored below the revision of `base`: a change where that is much smaller."""
    if state is None:
        return None
    if base is None or base.state.format != state.format:
        return _whole(state)
    old, new = _shared(base.state), _shared(state)
    change = change_between(old, new)
    spelled = canonical(change)
    size = base.size + len(spelled) + _AROUND
    if not larger_than(new, 2 * (len(spelled) + _AROUND)):
        return _whole(state)
    # To measure all of the state each time would cost more the longer a conversation is.
    if size.bit_length() > base.size.bit_length() and not larger_than(new, size // _SPENT):
        return _whole(state)
    digest = _next(base.digest or _first(old), spelled)
    return {"since": base.since, "size": size, "change": change, "digest": digest}


def stored_rest(model_context: ModelContext) -> dict[str, Any]:
    """Return what is stored of a model context beside its state."""
    rest: dict[str, Any] = model_context.model_copy(update={"model_state": None}).to_wire()
    del rest["modelState"]
    return rest


def whole_state(way: Sequence[tuple[int, Any]]) -> Any:
    """Return the state that a way of numbers and stored states ends with: a whole one, then changes.

    Uses up what is stored. Raises `CorruptRevision`.
    """
    (number, state), *changes = way
    if not changes:
        return state
    digest = _checked_whole(state, number)
    for number, stored in changes:
        digest = _checked(stored, digest, number)
        state = _applied(state, stored, number)
    return state


class WholeStates:
    """Gives the whole states of a conversation's revisions, which are taken in one by one, parents first.

    A state is kept as long as there are children to come: of a conversation without branches, one. `parents` are the
    parents of all its revisions.
    """

    def __init__(self, parents: Iterable[int | None]) -> None:
        self._children: dict[int | None, int] = {}
        for parent in parents:
            self._children[parent] = self._children.get(parent, 0) + 1
        self._kept: dict[int, tuple[Any, str]] = {}

    def add(self, pk: int, parent_id: int | None, number: int, stored: Any) -> Any:
        """Return the state of a revision, to be read before the next is taken in; raises `CorruptRevision`."""
        before = self._taken(parent_id)
        state, digest = stored, None
        if is_change(stored):
            if before is None:
                raise _corrupt(number)
            digest = _checked(stored, before[1], number)
            state = _applied(before[0], stored, number)
        if state is not None and self._children.get(pk):
            self._kept[pk] = state, digest or _checked_whole(state, number)
        return state

    def _taken(self, parent_id: int | None) -> tuple[Any, str] | None:
        if parent_id not in self._kept or parent_id is None:
            return None
        self._children[parent_id] -= 1
        if self._children[parent_id]:
            state, digest = self._kept[parent_id]
            return deepcopy(state), digest
        return self._kept.pop(parent_id)


class StateTrail:
    """Checks stored states revision by revision, parents first; keeps a digest of each and no state."""

    def __init__(self) -> None:
        self._marks: dict[int, tuple[str, int] | None] = {}

    def check(self, pk: int, parent_id: int | None, number: int, keyframe: bool, stored: Any) -> None:
        """Raise `CorruptRevision` for a change that does not follow from what the parent holds.

        What is below a state that cannot be read is not told of again.
        """
        if not is_change(stored):
            self._marks[pk] = None if stored is None else (_checked_whole(stored, number), number)
            return
        if keyframe or parent_id is None:
            raise _corrupt(number)
        if parent_id not in self._marks:
            return
        before = self._marks[parent_id]
        if before is None:
            raise _corrupt(number)
        digest, since = before
        if since_of(stored, number) != since:
            raise _corrupt(number)
        self._marks[pk] = _checked(stored, digest, number), since


def _whole(state: ModelState) -> dict[str, Any]:
    wire: dict[str, Any] = state.to_wire()
    return wire


def _shared(state: ModelState) -> dict[str, Any]:
    """Return the wire form with the state's own data: what two states share stays one object."""
    return {"format": state.format, "data": state.data}


def _first(state: Any) -> str:
    return hashlib.sha256(canonical(state)).hexdigest()


def _next(digest: str, change: bytes) -> str:
    """Return the digest of what a change makes of the state with this digest."""
    return hashlib.sha256(digest.encode() + change).hexdigest()


def _checked_whole(state: Any, number: int) -> str:
    if not isinstance(state, dict) or is_change(state):
        raise _corrupt(number)
    try:
        return _first(state)
    except _WRONG as error:
        raise _corrupt(number) from error


def _checked(stored: Any, before: str, number: int) -> str:
    try:
        digest = _next(before, canonical(stored["change"]))
        if digest == stored["digest"]:
            return digest
    except _WRONG as error:
        raise _corrupt(number) from error
    raise CorruptRevision(f"the model state of revision {number} does not follow from the one that it builds on")


def _applied(state: Any, stored: Any, number: int) -> Any:
    try:
        return changed(state, stored["change"])
    except _WRONG as error:
        raise _corrupt(number) from error


def _corrupt(number: int) -> CorruptRevision:
    return CorruptRevision(f"the model context of revision {number} cannot be read")
