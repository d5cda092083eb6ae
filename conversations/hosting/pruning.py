"""The hourly pruning of a serving process: in a thread of its own, a short transaction at a time, with pauses between.

Neither the thread of the runs nor a request has to wait for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

from django.db import connection

from conversations.rights.retention import Pruning

logger = logging.getLogger("conversations.retention")

FIRST = 60.0  # seconds after the start, which has other things to do
EVERY = 3600.0
PAUSE = 0.02


async def prune_hourly() -> None:
    """Prune for ever; what fails is tried again an hour later."""
    await asyncio.sleep(FIRST)
    while True:
        try:
            counts = await prune_once()
        except Exception:
            logger.exception("nothing could be pruned")
        else:
            if counts:
                logger.info("pruned: %s", ", ".join(f"{count} {name}" for name, count in counts.items()))
        await asyncio.sleep(EVERY)


async def prune_once() -> dict[str, int]:
    """Prune what is due now; returns how much of each kind that was."""
    pruning = Pruning()
    steps = pruning.steps()
    more = True
    while more:
        more = await asyncio.to_thread(_step, steps)
        await asyncio.sleep(PAUSE)
    return dict(pruning.counts)


def _step(steps: Iterator[None]) -> bool:
    """Do one step; false when there is nothing left. The thread keeps no connection."""
    try:
        for _ in steps:
            return True
        return False
    finally:
        connection.close()
