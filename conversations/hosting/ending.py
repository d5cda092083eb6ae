"""The end of a run in the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self
from uuid import UUID

from django.db import transaction

from agent.governance.prices import record_usage
from agent.providers.metering import CallUsage, total_usage
from agent.runtime import events as ev
from agent.runtime.exceptions import AgentError
from agent.runtime.execution import AgentExecution, RunResult
from agent.runtime.messages import AgentMessage, ModelContext, Usage
from agent.runtime.state import ExecutionState
from conversations import store
from conversations.models import Execution, ExecutionStatus


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended; `last_seq` is the number of the last event before its closing ones.

    `base` is the stored model state that it began with.
    """

    execution_id: str
    outcome: ev.Outcome | None
    error: AgentError | None
    messages: tuple[AgentMessage, ...]
    model_context: ModelContext
    usage: Usage | None
    last_seq: int
    partial: dict[str, Any] | None = None
    calls: tuple[CallUsage, ...] = ()
    base: store.KnownState | None = None

    @classmethod
    def of(
        cls,
        execution: AgentExecution,
        state: ExecutionState,
        calls: Sequence[CallUsage],
        base: store.KnownState | None = None,
    ) -> Self:
        """Return the end of an execution whose gate has closed; `state` is what its readers have seen.

        `calls` are the model calls that were made.
        """
        verdict = execution.verdict
        error = verdict if isinstance(verdict, AgentError) else None
        outcome = verdict.outcome if isinstance(verdict, RunResult) else None
        return cls(
            execution.id,
            outcome,
            error,
            tuple(execution.added),
            execution.model_context,
            total_usage(calls),
            state.seq,
            state.current(),
            tuple(calls),
            base,
        )


@dataclass(frozen=True, slots=True)
class Saved:
    """The revision that holds a turn."""

    public_id: UUID
    number: int
    version: int


def save(execution: Execution, ending: Ending) -> Saved | None:
    """Store the end of a run: a revision for an outcome that counts (R57), else what remains readable of it.

    May be repeated when its answer was lost. `execution` has its conversation and revision loaded.
    """
    if execution.revision is not None:
        return Saved(execution.revision.public_id, execution.revision.number, execution.conversation.version)
    outcome = ending.outcome
    if outcome is None or isinstance(outcome, ev.Cancelled):
        keep(execution, ending, ending.error)
        return None
    with transaction.atomic():
        revision = store.save_turn(
            execution,
            ending.messages,
            ending.model_context,
            outcome,
            ending.usage,
            base=ending.base,
            last_seq=ending.last_seq + 2,
        )
        _record_usage(execution, ending)
    return Saved(revision.public_id, revision.number, revision.conversation.version)


def keep(execution: Execution, ending: Ending, error: AgentError | None) -> None:
    """Store a run as failed, without `error` as cancelled; what it said remains readable on its row."""
    status: Literal[ExecutionStatus.FAILED, ExecutionStatus.CANCELLED] = (
        ExecutionStatus.CANCELLED if error is None else ExecutionStatus.FAILED
    )
    with transaction.atomic():
        store.finish_failed(
            execution,
            status=status,
            messages=ending.messages,
            model_context=ending.model_context,
            outcome=ending.outcome if error is None else None,
            error_code=error.code if error else "",
            error_message=error.message if error else "",
            retryable=error.retryable if error else False,
            usage=ending.usage,
            partial=ending.partial,
            last_seq=ending.last_seq + 1,
        )
        _record_usage(execution, ending)


def _record_usage(execution: Execution, ending: Ending) -> None:
    record_usage(ending.calls, user_id=execution.user_id, agent_id=execution.agent_id, execution_id=execution.pk)
