"""A conversation on its way in, whatever wrote the file: what the adapters make and `imports` plants."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from agent.runtime.messages import AgentMessage, ModelContext
from agent.runtime.values import clean_text
from conversations.exceptions import ImportInvalid
from conversations.models import TITLE_LENGTH
from conversations.moving.enclosures import Enclosure
from conversations.moving.faults import member
from conversations.moving.leftovers import UnsavedTurn

MOST_ID = 100
MOST_MESSAGES = 100_000  # that one conversation plants
NOTHING_KEPT = ModelContext(model_state=None)


@dataclass(frozen=True, slots=True)
class Node:
    """A revision to be; `source` is its id in the file, `parent` its parent's. `number` None takes the next one.

    `execution` is the id there of a turn that was not saved at first, where that is known for sure.
    """

    source: str
    parent: str | None
    messages: tuple[AgentMessage, ...]
    created_at: datetime
    kind: str = "import"
    number: int | None = None
    label: str = ""
    keyframe: bool = False
    model_context: ModelContext = NOTHING_KEPT
    usage: dict[str, Any] | None = None
    outcome: dict[str, Any] | None = None
    execution: str | None = None


@dataclass(frozen=True, slots=True)
class Incoming:
    """A conversation to be; `nodes` stand parents first.

    `original` is the conversation of this site that the file was made of. `trunk` holds the ids in the file that lead
    to the head, `dropped` counts the model states whose seal does not hold.
    """

    external_id: str
    title: str | None
    created_at: datetime
    updated_at: datetime
    nodes: tuple[Node, ...]
    head: str | None
    trunk: frozenset[str]
    original: UUID | None = None
    title_by_person: bool = False
    agent: str | None = None
    pinned: bool = False
    archived: bool = False
    temporary: bool = False
    tags: tuple[str, ...] = ()
    attachments: tuple[Enclosure, ...] = ()
    version: int = 0
    dropped: int = 0
    unsaved: tuple[UnsavedTurn, ...] = ()

    @property
    def said(self) -> list[AgentMessage]:
        """All messages, those of unsaved turns too."""
        return messages_of(self.nodes, self.unsaved)

    @property
    def worth_planting(self) -> bool:
        """Whether there is anything in it; a conversation of a PAR site is kept whole, empty or not."""
        return bool(self.nodes) or self.original is not None


def messages_of(nodes: Iterable[Node], turns: Iterable[UnsavedTurn]) -> list[AgentMessage]:
    """Return what is said in them."""
    return [*(m for node in nodes for m in node.messages), *(m for turn in turns for m in turn.messages)]


@dataclass(slots=True)
class Said:
    """A message of a foreign file, in a tree of messages; one without `message` was left out."""

    id: str
    parent: str | None
    message: AgentMessage | None
    created_at: datetime


def turns(
    said: Mapping[str, Said], current: str | None, place: str
) -> tuple[tuple[Node, ...], str | None, frozenset[str]]:
    """Return a tree of messages as a tree of turns, the id of its head and the ids that lead to it.

    A turn is a person's message with all that follows; it ends where there is nothing more, or where a person goes on.
    So each branch of the messages is a branch of turns, and each message can be edited and gone on from. `said` stands
    parents first. Without `current`, the newest end is the head. Raises `ImportInvalid` when they are too many.
    """
    above = _kept_above(said)
    kept = [each for each in said.values() if each.message is not None]
    asked_from = {above[each.id] for each in kept if each.message is not None and each.message.role == "user"}
    gone_on = {above[each.id] for each in kept}
    nodes: dict[str, Node] = {}
    planted = 0
    for each in kept:
        if each.id in gone_on and each.id not in asked_from:
            continue
        messages, before = _turn(said, above, each)
        planted += len(messages)
        if planted > MOST_MESSAGES:
            raise ImportInvalid(place, f"more than {MOST_MESSAGES} messages in one conversation")
        nodes[each.id] = Node(each.id, before, messages, each.created_at)
    head = _head(said, above, current, nodes)
    trunk: set[str] = set()
    at = head
    while at is not None:
        trunk.add(at)
        at = above[at]
    return tuple(nodes.values()), head, frozenset(trunk)


def _kept_above(said: Mapping[str, Said]) -> dict[str, str | None]:
    """Return of each message the nearest one above it that was not left out."""
    above: dict[str, str | None] = {}
    for each in said.values():
        parent = None if each.parent is None else said[each.parent]
        above[each.id] = parent.id if parent is not None and parent.message is not None else None
        if parent is not None and parent.message is None:
            above[each.id] = above[parent.id]
    return above


def _turn(
    said: Mapping[str, Said], above: Mapping[str, str | None], last: Said
) -> tuple[tuple[AgentMessage, ...], str | None]:
    """Return the messages of the turn that ends with `last`, and the id of the message before it."""
    messages: list[AgentMessage] = []
    at: str | None = last.id
    while at is not None:
        message = said[at].message
        assert message is not None
        messages.append(message)
        at = above[at]
        if message.role == "user" or len(messages) > MOST_MESSAGES:
            break
    return tuple(reversed(messages)), at


def _head(
    said: Mapping[str, Said], above: Mapping[str, str | None], current: str | None, nodes: Mapping[str, Node]
) -> str | None:
    """Return the turn in which the person was: at `current`, or the newest below it where that is inside of a turn."""
    if not nodes:
        return None
    if current is not None and current in said:
        at: str | None = current if said[current].message is not None else above[current]
        if at in nodes:
            return at
        if at is not None:
            below = {at}
            for each in said.values():
                if above[each.id] in below:
                    below.add(each.id)
            return max((id for id in nodes if id in below), key=lambda id: nodes[id].created_at)
    ends = nodes.keys() - {node.parent for node in nodes.values()}
    return max((id for id in nodes if id in ends), key=lambda id: nodes[id].created_at)


def in_order(said: Sequence[Said], place: str) -> dict[str, Said]:
    """Return messages parents first, otherwise in their order; raises `ImportInvalid` where they go in a circle.

    One whose parent is not in the file begins a tree of its own.
    """
    known = {each.id for each in said}
    children: dict[str | None, list[Said]] = {}
    for each in said:
        if each.parent not in known:
            each.parent = None
        children.setdefault(each.parent, []).append(each)
    ordered: dict[str, Said] = {}
    waiting = children.get(None, [])[::-1]
    while waiting:
        each = waiting.pop()
        ordered[each.id] = each
        waiting.extend(children.get(each.id, [])[::-1])
    if len(ordered) < len(said):
        lost = next(each.id for each in said if each.id not in ordered)
        raise ImportInvalid(place, f"the message {lost[:64]!r} is above itself")
    return ordered


class Reader:
    """Takes members out of a foreign JSON object; raises `ImportInvalid` with the place where one has another type."""

    __slots__ = ("_above", "_key", "value")

    def __init__(self, value: Any, above: Reader | str, key: str | tuple[str, int] = "") -> None:
        self._above, self._key = above, key
        if not isinstance(value, dict):
            raise ImportInvalid(self.place, "an object is needed")
        self.value: dict[str, Any] = value

    @property
    def place(self) -> str:
        """Where the object stands in the file."""
        if isinstance(self._above, str):
            return self._above
        return member(self._above.place, *(self._key if isinstance(self._key, tuple) else (self._key,)))

    def fault(self, name: str, what: str) -> ImportInvalid:
        """Return what is to be raised about a member."""
        return ImportInvalid(member(self.place, name), what)

    def object(self, name: str) -> Reader:
        """Return a member that is an object; null and nothing are an empty one."""
        return Reader(self.value.get(name) or {}, self, name)

    def list(self, name: str) -> Sequence[Any]:
        """Return a member that is a list; null and nothing are an empty one."""
        found = self.value.get(name) or []
        if not isinstance(found, list):
            raise self.fault(name, "a list is needed")
        return found

    def objects(self, name: str) -> Iterator[Reader]:
        """Yield the objects of a list."""
        for at, item in enumerate(self.list(name)):
            yield Reader(item, self, (name, at))

    def text(self, name: str) -> str:
        """Return a member that is a text; null and nothing are an empty one."""
        found = self.value.get(name)
        if found is None:
            return ""
        if not isinstance(found, str):
            raise self.fault(name, "a text is needed")
        return clean_text(found)

    def id(self, name: str) -> str:
        """Return a member that names something."""
        found = self.text(name)
        if not found.strip() or len(found) > MOST_ID:
            raise self.fault(name, f"a text of 1 to {MOST_ID} characters is needed")
        return found

    def moment(self, name: str) -> datetime | None:
        """Return a time in seconds since 1970 or in ISO form, None for null."""
        value = self.value.get(name)
        try:
            if value is None or value == "":
                return None
            if isinstance(value, int | float) and not isinstance(value, bool):
                return datetime.fromtimestamp(value, UTC)
            if isinstance(value, str):
                found = datetime.fromisoformat(value)
                return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        except (ValueError, OverflowError, OSError):
            pass
        raise self.fault(name, f"{clean_text(str(value))[:64]!r} is no time")


def fenced(code: str, language: str = "") -> str:
    """Return code as Markdown shows it, whatever it holds."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{re.sub('[^A-Za-z0-9+#_-]', '', language)}\n{code}\n{fence}"


def title_of(value: object) -> str | None:
    """Return a title in one line, cut where it is too long for one; None for no title."""
    if not isinstance(value, str):
        return None
    title = " ".join(clean_text(value).split())
    return title if len(title) <= TITLE_LENGTH else title[: TITLE_LENGTH - 1] + "…" if title else None
