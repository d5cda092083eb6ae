"""Conversations as this site exports them."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from agent.runtime.exceptions import InvalidArgument
from agent.runtime.messages import AgentMessage
from conversations.attachments import pictures_in
from conversations.exceptions import ImportInvalid
from conversations.moving.document import ConversationDocument
from conversations.moving.enclosures import Enclosure
from conversations.moving.faults import first_fault, member
from conversations.moving.incoming import MOST_MESSAGES, NOTHING_KEPT, Incoming, Node
from conversations.moving.leftovers import UnsavedTurn, as_claim
from conversations.moving.seals import Trail, is_sealed
from conversations.store.puts import check_messages, claimed

MOST_KEPT = 10 * MOST_MESSAGES  # by all unsaved turns of a conversation: each of them is looked at


def read_own(value: Any, place: str) -> Incoming:
    """Return a conversation of this or another PAR site; raises `ImportInvalid`.

    What nobody may write (model states, results of tools) counts where the seal holds. Elsewhere a model state is
    dropped and a result is a claim.
    """
    try:
        document = ConversationDocument.from_wire(value)
    except ValidationError as error:
        raise first_fault(error, place) from error
    except RecursionError as error:
        raise ImportInvalid(place, "JSON nested too deep") from error
    said = [*(each.messages for each in document.revisions), *(each.messages for each in document.unsaved_turns)]
    if sum(map(len, said)) > MOST_MESSAGES:
        raise ImportInvalid(place, f"more than {MOST_MESSAGES} messages in one conversation")
    if sum(each.kept for each in document.unsaved_turns) > MOST_KEPT:
        raise ImportInvalid(place, f"unsaved turns that keep more than {MOST_KEPT} messages")
    _check_pictures(document, place)
    tree = _Tree(document, place)
    nodes, dropped = tree.nodes()
    unsaved, dropped_there = tree.unsaved()
    above = {each.revision_id: each.parent for each in document.revisions}
    trunk: set[str] = set()
    at = document.head
    while at is not None:
        trunk.add(str(at))
        at = above[at]
    return Incoming(
        external_id=f"par:{document.conversation_id}",
        original=document.conversation_id,
        title=document.title,
        title_by_person=document.title_by_person,
        agent=document.agent,
        pinned=document.pinned,
        archived=document.archived,
        temporary=document.temporary,
        tags=document.tags,
        created_at=document.created_at,
        updated_at=document.updated_at,
        nodes=nodes,
        head=None if document.head is None else str(document.head),
        trunk=frozenset(trunk),
        attachments=tuple(_enclosures(document, place)),
        version=document.version,
        dropped=dropped + dropped_there,
        unsaved=unsaved,
    )


def _enclosures(document: ConversationDocument, place: str) -> Iterator[Enclosure]:
    for at, each in enumerate(document.attachments):
        here = member(place, "attachments", at)
        try:
            data = None if each.data is None else b64decode(each.data, validate=True)
        except binascii.Error:
            raise ImportInvalid(member(here, "data"), "this is no base64") from None
        yield Enclosure(each.attachment_id, each.name, data, here)


def _check_pictures(document: ConversationDocument, place: str) -> None:
    """Check that each picture is in the file: the ids of attachments mean something in this file only."""
    there: set[UUID] = set()
    for at, attachment in enumerate(document.attachments):
        if attachment.attachment_id in there:
            raise ImportInvalid(member(place, "attachments", at, "attachmentId"), "this id is there twice")
        there.add(attachment.attachment_id)
    said = [(member(place, "revisions", at), each.messages) for at, each in enumerate(document.revisions)]
    said += [(member(place, "unsavedTurns", at), each.messages) for at, each in enumerate(document.unsaved_turns)]
    for here, messages in said:
        if lost := pictures_in(messages) - there:
            raise ImportInvalid(here, f"the attachment {str(min(lost))!r} is not in the file")


class _Tree:
    """The revisions of a document and its unsaved turns: checked, and turned into what is planted."""

    def __init__(self, document: ConversationDocument, place: str) -> None:
        self._document = document
        self._place = place
        self._children: dict[UUID | None, list[int]] = {}
        known: set[UUID] = set()
        numbers: set[int] = set()
        for at, each in enumerate(document.revisions):
            here = member(place, "revisions", at)
            if each.revision_id in known:
                raise ImportInvalid(member(here, "revisionId"), f"there are two revisions {str(each.revision_id)!r}")
            if each.parent is not None and each.parent not in known:
                raise ImportInvalid(member(here, "parent"), f"no revision {str(each.parent)!r} stands before this one")
            if each.number in numbers:
                raise ImportInvalid(member(here, "number"), f"there are two revisions {each.number}")
            known.add(each.revision_id)
            numbers.add(each.number)
            self._children.setdefault(each.parent, []).append(at)
        if document.head is not None and document.head not in known:
            raise ImportInvalid(member(place, "head"), f"there is no revision {str(document.head)!r}")
        if document.head is None and document.revisions:
            raise ImportInvalid(member(place, "head"), "a conversation with revisions has a head")
        trail = Trail()
        self._sealed = [is_sealed(trail.add(each), each.seal) for each in document.revisions]
        self._revisions = {each.revision_id: each for each in document.revisions}
        self._turns: dict[UUID | None, list[int]] = {}
        self._check_places()
        self._sealed_turns = [is_sealed(trail.of(each), each.seal) for each in document.unsaved_turns]
        self._check_paths()

    def nodes(self) -> tuple[tuple[Node, ...], int]:
        """Return the revisions, and how many model states among them are not believed."""
        dropped, nodes = 0, []
        for each, sealed in zip(self._document.revisions, self._sealed, strict=True):
            dropped += not sealed and each.model_context.model_state is not None
            nodes.append(
                Node(
                    source=str(each.revision_id),
                    parent=None if each.parent is None else str(each.parent),
                    messages=each.messages if sealed else claimed(each.messages),
                    created_at=each.created_at,
                    kind=each.kind,
                    number=each.number,
                    label=each.label,
                    keyframe=each.keyframe,
                    model_context=each.model_context if sealed else NOTHING_KEPT,
                    usage=each.usage.to_wire() if each.usage else None,
                    outcome=each.outcome.to_wire() if each.outcome else None,
                    execution=str(each.execution_id) if sealed and each.execution_id else None,
                )
            )
        return tuple(nodes), dropped

    def unsaved(self) -> tuple[tuple[UnsavedTurn, ...], int]:
        """Return the unsaved turns, and how many model states among them are not believed."""
        dropped, turns = 0, []
        for each, sealed in zip(self._document.unsaved_turns, self._sealed_turns, strict=True):
            turn = UnsavedTurn(
                source=str(each.execution_id),
                after=None if each.after is None else str(each.after),
                beside=None if each.beside is None else str(each.beside),
                kept=each.kept,
                kind=each.kind,
                current=each.current,
                agent=each.agent,
                status=each.status,
                outcome=each.outcome.to_wire() if each.outcome else None,
                error=each.error,
                messages=each.messages,
                unfinished=each.unfinished.to_wire() if each.unfinished else None,
                model_context=each.model_context,
                usage=each.usage.to_wire() if each.usage else None,
                created_at=each.created_at,
                finished_at=each.finished_at,
            )
            dropped += not sealed and turn.keeps_a_state
            turns.append(turn if sealed else as_claim(turn))
        return tuple(turns), dropped

    def _check_places(self) -> None:
        """Check that each unsaved turn stands where a turn can begin."""
        revisions, known = self._revisions, set[UUID]()
        for at, turn in enumerate(self._document.unsaved_turns):
            here = member(self._place, "unsavedTurns", at)
            if turn.execution_id in known:
                raise ImportInvalid(member(here, "executionId"), f"there are two turns {str(turn.execution_id)!r}")
            known.add(turn.execution_id)
            if turn.after is not None and turn.after not in revisions:
                raise ImportInvalid(member(here, "after"), f"there is no revision {str(turn.after)!r}")
            if (turn.beside is None) is not (turn.kind == "turn"):
                raise ImportInvalid(member(here, "kind"), "a turn stands beside nothing, another version of one does")
            if turn.beside is not None:
                beside = revisions.get(turn.beside)
                if beside is None or beside.parent != turn.after:
                    raise ImportInvalid(member(here, "beside"), "this is no revision below the one of `after`")
            if turn.kept > (len(revisions[turn.beside].messages) if turn.beside is not None else 0):
                raise ImportInvalid(member(here, "kept"), "there are not so many messages to keep")
            if turn.messages[0].role != "user":
                raise ImportInvalid(member(here, "messages", 0, "role"), "a turn begins with what a person says")
            self._turns.setdefault(turn.after, []).append(at)

    def _check_paths(self) -> None:
        """Check that each revision can be gone on from: no id twice on its path, and one result for each call."""
        path = _OpenPath()
        self._check_turns(path, None)
        waiting = [(at, False) for at in reversed(self._children.get(None, []))]
        while waiting:
            at, leave = waiting.pop()
            if leave:
                path.leave()
                continue
            revision = self._document.revisions[at]
            place = None if self._sealed[at] else member(self._place, "revisions", at)
            path.enter(revision.messages, place, keyframe=revision.keyframe)
            self._check_turns(path, revision.revision_id)
            waiting.append((at, True))
            waiting.extend((child, False) for child in reversed(self._children.get(revision.revision_id, [])))

    def _check_turns(self, path: _OpenPath, after: UUID | None) -> None:
        """Check the unsaved turns that began at the end of this path."""
        for at in self._turns.get(after, ()):
            turn = self._document.unsaved_turns[at]
            beside = self._revisions[turn.beside] if turn.beside is not None else None
            kept = beside.messages[: turn.kept] if beside is not None else ()
            path.enter(kept, None, keyframe=beside is not None and beside.keyframe)
            here = member(self._place, "unsavedTurns", at)
            path.enter(turn.messages, None if self._sealed_turns[at] else here)
            if turn.unfinished is not None and path.has_message(turn.unfinished.message_id):
                raise ImportInvalid(member(here, "unfinished", "messageId"), "a message has this id")
            path.leave()
            path.leave()


class _OpenPath:
    """The ids on the way to a revision, while the tree is walked."""

    def __init__(self) -> None:
        self._ids: list[set[str]] = [set()]
        self._steps: list[set[str] | None] = []

    def enter(self, messages: tuple[AgentMessage, ...], place: str | None, *, keyframe: bool = False) -> None:
        """Take in a revision; raises `ImportInvalid` where it has a `place`, and something is wrong with it."""
        if keyframe:
            self._ids.append(set())
        added: set[str] = set()
        for at, message in enumerate(messages):
            for name in (_name(message.id), *(f"call {call.call_id}" for call in message.tool_calls)):
                if place is not None and (name in added or name in self._ids[-1]):
                    raise ImportInvalid(member(place, "messages", at), f"the id of the {name[:80]!r} is there twice")
                added.add(name)
        added -= self._ids[-1]
        self._ids[-1] |= added
        self._steps.append(None if keyframe else added)
        if place is not None:
            _check_messages(messages, place)

    def has_message(self, id: str) -> bool:
        """Return whether a message on the way has this id."""
        return _name(id) in self._ids[-1]

    def leave(self) -> None:
        """Go back to the revision before."""
        added = self._steps.pop()
        if added is None:
            self._ids.pop()
        else:
            self._ids[-1] -= added


def _name(message_id: str) -> str:
    return f"message {message_id}"


def _check_messages(messages: tuple[AgentMessage, ...], place: str) -> None:
    """Check what nobody may write; raises `ImportInvalid`."""
    try:
        check_messages(messages)
    except InvalidArgument as error:
        at, _, what = error.message.partition(": ")
        raise ImportInvalid(f"{place}.{at}", what) from error
