"""The life of an execution on its row. Every write is conditional on "mine and live"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from django.utils import timezone

from agent.runtime.events import Outcome
from agent.runtime.messages import AgentMessage, ModelContext, Usage
from agent.runtime.values import freeze
from conversations.exceptions import ExecutionLost
from conversations.models import Execution, ExecutionStatus, may_become


def finish_failed(
    execution: Execution,
    *,
    status: Literal[ExecutionStatus.FAILED, ExecutionStatus.CANCELLED],
    messages: Sequence[AgentMessage],
    model_context: ModelContext | None,
    outcome: Outcome | None = None,
    error_code: str = "",
    error_message: str = "",
    retryable: bool = False,
    usage: Usage | None = None,
    partial: dict[str, Any] | None = None,
    last_seq: int = 0,
) -> None:
    """End an execution that does not advance its conversation; what it said so far stays readable on it.

    `messages` are those of `recovered` that the run added, input first; `partial` is the message that was being
    written. Raises `ExecutionLost`.
    """
    move(
        execution,
        status,
        interrupt=None,
        transcript=[message.to_wire() for message in messages],
        partial=freeze(partial),
        model_context=model_context.to_wire() if model_context else None,
        outcome=outcome.to_wire() if outcome else None,
        error_code=error_code,
        error_message=error_message,
        retryable=retryable,
        usage=usage.to_wire() if usage else None,
        last_seq=last_seq,
        finished_at=timezone.now(),
    )


def record_progress(
    execution: Execution,
    *,
    messages: Sequence[AgentMessage],
    model_context: ModelContext,
    calls: Mapping[str, str],
    interrupt: dict[str, Any] | None = None,
    last_seq: int = 0,
) -> None:
    """Note the stable messages so far (input first), so that a lost process loses none; raises `ExecutionLost`.

    `calls` says of each dispatched tool call how far it came; `interrupt` is what the run waits for.
    """
    values = {
        "status": ExecutionStatus.WAITING_INPUT if interrupt else ExecutionStatus.RUNNING,
        "transcript": [message.to_wire() for message in messages],
        "model_context": model_context.to_wire(),
        "calls": dict(calls),
        "interrupt": interrupt,
        "last_seq": last_seq,
    }
    mine = Execution.objects.filter(pk=execution.pk, host=execution.host_id)
    if not mine.filter(status__in=(ExecutionStatus.RUNNING, ExecutionStatus.WAITING_INPUT)).update(**values):
        raise _lost(execution)


def note_cancel(execution_id: str) -> None:
    """Note when a person stopped a run, once."""
    Execution.objects.filter(pk=execution_id, cancel_requested_at=None).update(cancel_requested_at=timezone.now())


def move(execution: Execution, status: ExecutionStatus, **values: Any) -> None:
    """Write to an execution of this process that may legally become `status` (P20)."""
    mine = Execution.objects.filter(pk=execution.pk, host=execution.host_id, status__in=may_become(status))
    if not mine.update(status=status, **values):
        raise _lost(execution)
    execution.status = status
    for name, value in values.items():
        setattr(execution, name, value)


def _lost(execution: Execution) -> ExecutionLost:
    return ExecutionLost(f"execution {str(execution.pk)!r} has ended or belongs to another process")
