"""Where a turn begins: at the head, at an older revision, or beside a turn of which it is another version."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from agent.runtime.exceptions import InvalidArgument
from agent.runtime.messages import AgentMessage, Context, ModelContext
from conversations.models import Conversation, Execution, Revision, RevisionKind
from conversations.store.chains import KnownState
from conversations.store.contexts import Path, Step, load_path
from conversations.store.integrity import stored_messages
from conversations.store.revisions import owned_revision


@dataclass(frozen=True, slots=True)
class Branch:
    """What somebody wants to go on from instead of the head.

    `edit` is the id of the user message that the input takes the place of, `regenerate` that of the message to be
    answered again (or of the answer).
    """

    revision_id: UUID | None = None
    edit: str | None = None
    regenerate: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a turn's revision will stand, see `Execution`; `input` is the message that is answered again."""

    base: Revision | None
    kind: RevisionKind = RevisionKind.TURN
    beside: Revision | None = None
    kept: int = 0
    input: AgentMessage | None = None


@dataclass(frozen=True, slots=True)
class Base:
    """The context that a run begins with, and the stored model state in it."""

    context: Context
    state: KnownState | None = None


def place_of(conversation: Conversation, branch: Branch) -> Place:
    """Return where a turn begins; raises `RevisionNotFound`, `InvalidArgument` for a message that is not on the way."""
    tip = conversation.head if branch.revision_id is None else owned_revision(conversation, branch.revision_id)
    if branch.edit is None and branch.regenerate is None:
        return Place(tip)
    path = load_path(conversation, tip)
    if branch.edit is not None:
        step, at = _find(path, branch.edit)
        if step.messages[at].role != "user":
            raise InvalidArgument(f"only a message of a person can be edited; {branch.edit!r} is none")
        return _beside(step, at, RevisionKind.EDIT)
    assert branch.regenerate is not None
    step, at = _question(path, branch.regenerate)
    return _beside(step, at, RevisionKind.REGENERATE, step.messages[at])


def base_of(execution: Execution) -> Base:
    """Return the context that a run begins with; raises `CorruptRevision`.

    Of a turn that has been cut in its middle no model state is known.
    """
    before, beside = execution.base, execution.beside
    if beside is None:
        path = load_path(execution.conversation, before)
        return Base(path.context, path.state)
    kept = kept_messages(execution)
    if beside.keyframe:
        return Base(Context(messages=kept))
    path = load_path(execution.conversation, before)
    context = path.context
    if not kept:
        return Base(context, path.state)
    return Base(Context(messages=context.messages + kept, model_context=ModelContext(model_state=None)))


def kept_messages(execution: Execution) -> tuple[AgentMessage, ...]:
    """Return what stays of the revision that the execution's will stand beside; raises `CorruptRevision`."""
    beside = execution.beside
    return stored_messages(beside.context, beside.number)[: execution.kept] if beside is not None else ()


def _find(path: Path, message_id: str) -> tuple[Step, int]:
    for step in path.steps:
        for at, message in enumerate(step.messages):
            if message.id == message_id:
                return step, at
    raise InvalidArgument(f"there is no message {message_id[:64]!r} on this branch")


def _question(path: Path, message_id: str) -> tuple[Step, int]:
    """Return the user message that the message answers, or is."""
    _find(path, message_id)
    asked: tuple[Step, int] | None = None
    for step in path.steps:
        for at, message in enumerate(step.messages):
            if message.role == "user":
                asked = step, at
            if message.id == message_id and asked is not None:
                return asked
    raise InvalidArgument("nobody asked for this message, so it cannot be made again")


def _beside(step: Step, kept: int, kind: RevisionKind, input: AgentMessage | None = None) -> Place:
    beside = Revision.objects.select_related("parent").get(pk=step.pk)
    return Place(beside.parent, kind, beside, kept, input)
