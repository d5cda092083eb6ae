"""Continue from here: what remains of a stopped or failed run becomes part of its conversation, if a person says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from agent.runtime.exceptions import InvalidState, ModelProtocolError
from agent.runtime.history import History
from agent.runtime.messages import AgentMessage, Context, ModelContext, TextBlock
from agent.runtime.recovery import CallState, close_open_calls
from conversations.exceptions import CorruptRevision, ExecutionNotFound
from conversations.models import UNSAVED, Execution, RevisionKind, User
from conversations.store.branching import base_of
from conversations.store.integrity import check_path
from conversations.store.revisions import refuse_while_live
from conversations.store.turns import append_turn


@dataclass(frozen=True, slots=True)
class Adopted:
    """An execution whose revision is part of its conversation; `created` is false if it was so before."""

    execution: Execution
    created: bool

    @property
    def number(self) -> int:
        """The number of that revision; the conversation may have gone on since."""
        assert self.execution.revision is not None
        return self.execution.revision.number


def adopt_recovered(user: User, execution_id: UUID, *, as_branch: bool = False) -> Adopted:
    """Save what a stopped or failed run said as a revision of kind `recovered` on the run's base, once.

    All of it is one transaction. `as_branch` does so too where the conversation has gone on elsewhere. Raises
    `ExecutionNotFound`, also for somebody else's; `InvalidState` unless the run was stopped or failed, and while
    another answer is being written; `ConversationConflict` when the head has moved since the run began;
    `CorruptRevision`.
    """
    with transaction.atomic():
        execution = _locked(user, execution_id)
        if execution.status not in UNSAVED:
            raise InvalidState(f"only a stopped or failed run can be continued from; this one is {execution.status!r}")
        if execution.revision_id is not None:
            return Adopted(execution, created=False)
        base = base_of(execution)
        execution.revision = append_turn(
            execution,
            _messages(execution, base.context),
            _model_context(execution, base.context),
            base=base.state,
            usage=execution.usage,
            outcome=execution.outcome,
            now=timezone.now(),
            kind=RevisionKind.RECOVERED,
            anywhere=as_branch,
        )
        refuse_while_live(execution.conversation)
        execution.transcript, execution.partial, execution.model_context = [], None, None
        execution.save(update_fields=["revision", "transcript", "partial", "model_context"])
    return Adopted(execution, created=True)


def _locked(user: User, pk: UUID) -> Execution:
    """Return a run of this person that nobody else adopts meanwhile."""
    owned = Execution.objects.filter(pk=pk, conversation__owner=user)
    if not owned.select_for_update(of=("self",)).values_list("pk"):
        raise ExecutionNotFound(f"there is no execution {str(pk)!r}")
    return owned.select_related(
        "conversation__agent", "conversation__head", "agent", "base", "beside", "revision"
    ).get()


def _messages(execution: Execution, base: Context) -> tuple[AgentMessage, ...]:
    """Return what the run said, input first and half an answer last; raises `InvalidState` if it cannot be replayed."""
    try:
        said = tuple(AgentMessage.from_wire(each) for each in execution.transcript or [execution.input])
        said += close_open_calls(said, cast(dict[str, CallState], execution.calls))
        said += _half_answer(execution.partial, {message.id for message in said})
        check_path([(0, base.messages + said)])
        History.of(base.messages + said)
    except (KeyError, TypeError, ValueError, CorruptRevision, ModelProtocolError) as error:
        raise InvalidState("what is kept of this run cannot be continued from") from error
    return said


def _half_answer(partial: dict[str, Any] | None, known: set[str]) -> tuple[AgentMessage, ...]:
    """Return the text of the message that was being written; half a thought or half a call is nothing to go on from."""
    if partial is None or partial["messageId"] in known:
        return ()
    texts = [block["text"] for block in partial["blocks"] if block["type"] == "text"]
    if not "".join(texts).strip():
        return ()
    blocks = tuple(TextBlock(text=text) for text in texts if text)
    return (AgentMessage(id=partial["messageId"], role="assistant", blocks=blocks),)


def _model_context(execution: Execution, base: Context) -> ModelContext:
    """Return the model context as the run left it; one that ended before it had any leaves that of its base."""
    kept = ModelContext.from_wire(execution.model_context) if execution.model_context else None
    return base.model_context if kept is None or kept.model_state is None else kept
