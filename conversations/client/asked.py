"""What a run asks of this program: its tools, and its approvals."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from conversations.client.effects import Called
from conversations.client.events import ApprovalRequested
from conversations.client.exceptions import ParError
from conversations.client.run import AsyncRun
from conversations.client.tools import Tool, call

logger = logging.getLogger("par.client")

# Asked for each approval: True or new arguments approve, False or a reason reject. Sync or async.
OnApproval: TypeAlias = Callable[[ApprovalRequested], Any]


async def outcome_of(tool: Tool | None, called: Called) -> tuple[Any, bool]:
    """Run a tool and return its result, and whether that tells of a failure."""
    if tool is None:
        return f"there is no tool {called.name!r} here", True
    try:
        return await call(tool.function, **called.arguments), False
    except Exception as error:  # whatever it is, the model is told
        logger.info("the tool %s failed", called.name, exc_info=True)
        return f"{type(error).__name__}: {error}", True


async def decide(run: AsyncRun, asked: ApprovalRequested, handler: OnApproval) -> None:
    """Ask the handler and send its answer; a handler that fails rejects."""
    try:
        answer = await call(handler, asked)
    except Exception:
        logger.exception("on_approval failed; the call is rejected")
        answer = "The person could not be asked."
    if run.interrupt is not asked:
        return
    try:
        if isinstance(answer, Mapping):
            await run.approve(answer)
        elif answer is True:
            await run.approve()
        else:
            await run.reject(answer if isinstance(answer, str) else None)
    except ParError as error:  # somebody else was quicker, or the run has ended
        logger.info("the answer to %s came too late: %s", asked.interrupt_id, error)
