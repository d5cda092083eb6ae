"""What is wrong with one conversation: its revisions are taken in one by one, then the tree is walked.

Only ids are kept of what was taken in, never a body.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import DEFERRED

from agent.runtime.values import clean_text
from conversations.exceptions import CorruptRevision
from conversations.models import LABEL_LENGTH, TITLE_LENGTH
from conversations.store.chains import StateTrail, is_change
from conversations.store.integrity import Mark, flaw, marks, stored_messages, stored_model_context


@dataclass(frozen=True, slots=True)
class Damage:
    """Something that is stored and cannot be right; `revision` is a number, `kind` a stable word for programs."""

    kind: str
    message: str
    conversation_id: UUID | None = None
    revision: int | None = None
    execution_id: UUID | None = None

    def __str__(self) -> str:
        places = [
            f"conversation {self.conversation_id}" if self.conversation_id else "",
            f"revision {self.revision}" if self.revision is not None else "",
            f"execution {self.execution_id}" if self.execution_id else "",
        ]
        place = ", ".join(filter(None, places))
        return f"{place}: {self.message}" if place else self.message


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """A conversation as stored; `title` is bytes on SQLite, `head_of` the conversation of its head."""

    pk: UUID
    version: int
    head_version: int
    head_id: int | None
    head_of: UUID | None
    title: str | bytes | None
    tags: Any


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """A revision as stored; `parent_of` is the conversation of its parent. JSON that does not parse is `DEFERRED`."""

    conversation_id: UUID
    pk: int
    number: int
    parent_id: int | None
    parent_of: UUID | None
    keyframe: bool
    label: str | bytes
    context: Any
    model_state: Any
    model_context: Any
    usage: Any
    outcome: Any


@dataclass(frozen=True, slots=True)
class _Node:
    number: int
    parent_id: int | None
    keyframe: bool
    marks: tuple[Mark, ...]
    whole: bool  # its own messages, and the way to its parent


class Inspection:
    """Takes in the revisions of a conversation by their keys, in order; `end` tells what only all of them can tell."""

    def __init__(self, conversation_id: UUID) -> None:
        self._id = conversation_id
        self._nodes: dict[int, _Node] = {}
        self._states = StateTrail()

    @property
    def revisions(self) -> int:
        return len(self._nodes)

    def take(self, row: RevisionRow) -> Iterator[Damage]:
        """Take in a revision and yield what is wrong with it alone."""
        said: tuple[Mark, ...] = ()
        whole = True
        try:
            said = tuple(marks(stored_messages(row.context, row.number)))
        except CorruptRevision:
            whole = False
            yield self._damage("context", "its messages cannot be read", row.number)
        for mark in said:
            if mark[0] == "call" and ("result", mark[1]) not in said:
                yield self._damage("ids", f"has a call without its result {mark[1][:64]!r}", row.number)
        try:
            self._states.check(row.pk, row.parent_id, row.number, row.keyframe, row.model_state)
            state = None if is_change(row.model_state) else row.model_state
            stored_model_context(state, row.model_context, row.number)
        except CorruptRevision:
            yield self._damage("model-context", "its model context cannot be read", row.number)
        if row.usage is DEFERRED or not isinstance(row.usage, dict | None):
            yield self._damage("usage", "its usage cannot be read", row.number)
        if row.outcome is not None and (not isinstance(row.outcome, dict) or "type" not in row.outcome):
            yield self._damage("outcome", "its outcome cannot be read", row.number)
        if not _storable(row.label, LABEL_LENGTH):
            yield self._damage("label", "its label is no text that can be stored", row.number)
        if row.parent_id is not None:
            if row.parent_of is None:
                wrong = "the revision that it builds on is missing"
            elif row.parent_of != self._id:
                wrong = f"it builds on a revision of conversation {row.parent_of}"
            elif row.parent_id >= row.pk:
                wrong = "it builds on a revision that is not older than itself"
            else:
                wrong = ""
            if wrong:
                whole = whole and row.keyframe
                yield self._damage("parent", wrong, row.number)
        self._nodes[row.pk] = _Node(row.number, row.parent_id, row.keyframe, said, whole)

    def end(self, conversation: ConversationRow) -> Iterator[Damage]:
        """Yield what is wrong with the conversation itself, and with the ways through its tree."""
        numbers = [node.number for node in self._nodes.values()]
        highest = max([conversation.head_version, *numbers])
        if conversation.version < highest:
            words = f"its version is {conversation.version}, but {highest} was given already"
            yield self._damage("version", words)
        if conversation.head_id is None and numbers:
            yield self._damage("head", f"it has {len(numbers)} revisions and no head")
        elif conversation.head_id is not None and conversation.head_of is None:
            yield self._damage("head", "its head is missing")
        elif conversation.head_id is not None and conversation.head_of != conversation.pk:
            yield self._damage("head", f"its head is a revision of conversation {conversation.head_of}")
        if not _storable(conversation.title, TITLE_LENGTH):
            yield self._damage("title", "its title is no text that can be stored")
        tags = conversation.tags
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            yield self._damage("tags", "its tags are no list of texts")
        yield from self._ways()

    def _ways(self) -> Iterator[Damage]:
        """Walk every way from a beginning or keyframe to a tip; an id may be there once on each."""
        below: dict[int | None, list[int]] = {}
        beginnings: list[int] = []
        for pk, node in self._nodes.items():
            parent = self._nodes.get(node.parent_id) if node.parent_id is not None else None
            if node.keyframe or parent is None or node.parent_id is None or node.parent_id >= pk:
                beginnings.append(pk)
            else:
                below.setdefault(node.parent_id, []).append(pk)
        for beginning in beginnings:
            before: set[Mark] = set()
            holes = 0
            way: list[tuple[int, list[Mark] | None]] = [(beginning, None)]
            while way:
                pk, added = way.pop()
                node = self._nodes[pk]
                if added is not None:  # on the way back
                    before.difference_update(added)
                    holes -= not node.whole
                    continue
                holes += not node.whole
                added = []
                for mark in node.marks:
                    wrong = flaw(mark, before)
                    if wrong and not (holes and mark not in before):  # the call may be in what cannot be read
                        yield self._damage("ids", wrong, node.number)
                    if mark not in before:
                        before.add(mark)
                        added.append(mark)
                way.append((pk, added))
                way.extend((child, None) for child in below.get(pk, ()))

    def _damage(self, kind: str, message: str, revision: int | None = None) -> Damage:
        return Damage(kind, message, self._id, revision)


def _storable(text: str | bytes | None, most: int) -> bool:
    if text is None:
        return True
    try:
        plain = text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError:
        return False
    return len(plain) <= most and clean_text(plain) == plain
