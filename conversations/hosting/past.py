"""The state of a run that is not live here, rebuilt from the database."""

from __future__ import annotations

from agent.runtime.excerpts import shown_wire
from agent.runtime.state import ExecutionState, RunStatus
from conversations.models import Execution, ExecutionStatus

_STATUS: dict[str, RunStatus] = {
    ExecutionStatus.WAITING_INPUT: "waiting_input",
    ExecutionStatus.SUSPENDED: "suspended",
    ExecutionStatus.COMPLETED: "completed",
    ExecutionStatus.FAILED: "failed",
    ExecutionStatus.CANCELLED: "cancelled",
}


def state_of(execution: Execution) -> ExecutionState:
    """Return the state as its last event left it."""
    revision = execution.revision
    messages = revision.context[execution.kept :] if revision is not None else execution.transcript
    state = ExecutionState(
        execution_id=str(execution.pk),
        conversation_id=str(execution.conversation_id),
        agent=execution.agent.slug,
        seq=execution.last_seq,
        status=_STATUS.get(execution.status, "running"),
        messages=[shown_wire(message, str(execution.pk)) for message in messages] or [execution.input],
        outcome=execution.outcome,
    )
    state.set_current(execution.partial)
    if revision is not None:
        state.revision = {
            "id": str(revision.public_id),
            "number": revision.number,
            "version": revision.number,
        }
    if execution.error_code:
        state.error = {
            "code": execution.error_code,
            "message": execution.error_message,
            "retryable": execution.retryable,
        }
    return state
