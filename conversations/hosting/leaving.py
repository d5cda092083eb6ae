"""What the host does for somebody who deletes everything: their runs end first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conversations.hosting.host import ExecutionHost

STORED_WITHIN = 10.0  # seconds beside the grace period of tools


async def stop_runs(host: ExecutionHost, user_id: int) -> None:
    """Cancel the runs of a person and return when they have ended and what happened in them is written down.

    One whose end cannot be stored in time is left behind: it finds later that it was deleted.
    """
    runs = host.runs_of(user_id)
    for run in runs:
        if run.execution is not None:
            run.execution.cancel("user")
    ends = [asyncio.create_task(run.ended.wait()) for run in runs]
    if ends:
        _, late = await asyncio.wait(ends, timeout=host.par.cancel_grace_period + STORED_WITHIN)
        for end in late:
            end.cancel()
    await host.trail.flush()
