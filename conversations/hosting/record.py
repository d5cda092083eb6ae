"""A run as somebody reads it who does not follow it: at once, or as soon as there is something new to do about it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from agent.providers.metering import total_usage
from agent.runtime.state import ExecutionState
from conversations.exceptions import ExecutionNotFound
from conversations.hosting.past import state_of
from conversations.models import Execution, User

if TYPE_CHECKING:
    from conversations.hosting.host import ExecutionHost

LOOK_AGAIN = 1.0  # seconds, for a run of another process


@dataclass(frozen=True, slots=True)
class Record:
    """A run at one moment; `usage` is null where the provider told none."""

    state: ExecutionState
    created_at: datetime
    finished_at: datetime | None
    usage: dict[str, Any] | None

    def settled(self, seen_interrupt: str | None) -> bool:
        """Return whether the run has ended, was put aside, or asks a person something else than `seen_interrupt`."""
        state = self.state
        if state.ended or state.status == "suspended":
            return True
        return state.interrupt is not None and state.interrupt["id"] != seen_interrupt

    def to_wire(self) -> dict[str, Any]:
        return {
            **self.state.to_wire(),
            "createdAt": self.created_at,
            "finishedAt": self.finished_at,
            "usage": self.usage,
        }


async def read_execution(
    host: ExecutionHost, user: User, execution_id: UUID, *, wait: float = 0, seen_interrupt: str | None = None
) -> Record:
    """Return a run when it is `settled`, at the latest after `wait` seconds.

    No connection and no thread is held meanwhile. Raises `ExecutionNotFound`.
    """
    record = await _look(host, user, execution_id)
    if not wait:
        return record
    try:
        async with asyncio.timeout(wait):
            while not record.settled(seen_interrupt):
                run = host.running(str(execution_id))
                await (run.settled(seen_interrupt) if run is not None else asyncio.sleep(LOOK_AGAIN))
                record = await _look(host, user, execution_id)
    except TimeoutError:
        record = await _look(host, user, execution_id)
    return record


async def _look(host: ExecutionHost, user: User, execution_id: UUID) -> Record:
    record = await host.executor.run(_stored, user, execution_id)
    run = host.running(str(execution_id))
    if run is None:
        return record
    # Also when its end is stored already: nobody is to hear of it before those who follow the run.
    usage = total_usage(run.calls)
    return replace(record, state=run.channel.state, finished_at=None, usage=usage.to_wire() if usage else None)


def _stored(user: User, execution_id: UUID) -> Record:
    owned = Execution.objects.filter(conversation__owner=user).select_related("agent", "revision")
    row = owned.filter(pk=execution_id).first()
    if row is None:
        raise ExecutionNotFound(f"there is no execution {str(execution_id)!r}")
    return Record(state_of(row), row.created_at, row.finished_at, row.usage)
