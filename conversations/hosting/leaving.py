"""What the host does for somebody who deletes a conversation, or everything: their runs end first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from conversations.hosting.host import ExecutionHost

STORED_WITHIN = 10.0  # seconds beside the grace period of tools


async def stop_runs(host: ExecutionHost, user_id: int, conversation_id: UUID | None = None) -> None:
    """Cancel the runs of a person and return when they have ended and what happened in them is written down.

    With `conversation_id` only those of this conversation. One whose end cannot be stored in time is left behind: it
    finds later that it was deleted.
    """
    runs = [
        run
        for run in host.runs_of(user_id)
        if conversation_id is None or run.begun.conversation_id == str(conversation_id)
    ]
    for run in runs:
        if run.execution is not None:
            run.execution.cancel("user")
    ends = [asyncio.create_task(run.ended.wait()) for run in runs]
    if ends:
        _, late = await asyncio.wait(ends, timeout=host.par.cancel_grace_period + STORED_WITHIN)
        for end in late:
            end.cancel()
    await host.trail.flush()
