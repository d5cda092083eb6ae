"""The audit hook of hosted runs: notes events on the loop, writes them from a task of its own (R158, R198).

A failing audit never stops a run; what could not be written is counted and logged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from agent.governance.audit import AuditEntry
from agent.runtime.hooks import HookContext, HookEvent

logger = logging.getLogger("conversations.audit")

INTERVAL = 0.5
BATCH = 500
LIMIT = 50_000

Write = Callable[[list[AuditEntry]], Awaitable[object]]


class AuditTrail:
    """Collects entries of all runs and hands them to `write` in batches."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._waiting: list[AuditEntry] = []
        self._wake = asyncio.Event()
        self._closing = asyncio.Event()
        self._writing = asyncio.Lock()
        self.lost = 0

    def add(self, entry: AuditEntry) -> None:
        """Note an entry."""
        if len(self._waiting) >= LIMIT:
            self.lost += 1
            return
        self._waiting.append(entry)
        self._wake.set()

    async def run(self) -> None:
        """Write what comes until `close`; then what is left."""
        while not self._closing.is_set():
            await self._wake.wait()
            self._wake.clear()
            await self.flush()
            await _pause(self._closing, INTERVAL)
        await self.flush()

    def close(self) -> None:
        self._closing.set()
        self._wake.set()

    async def flush(self) -> None:
        """Write everything that waits now, and return when it is written."""
        async with self._writing:
            while self._waiting:
                batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
                try:
                    await self._write(batch)
                except Exception:
                    for entry in batch:  # one that cannot be stored costs itself only
                        await self._write_alone(entry)

    async def _write_alone(self, entry: AuditEntry) -> None:
        try:
            await self._write([entry])
        except Exception:
            self.lost += 1
            logger.exception("an audit entry could not be written, %d in all", self.lost)


class AuditHook:
    """Turns the hook events of one run into audit entries."""

    def __init__(self, trail: AuditTrail, *, user_id: int, execution_id: str) -> None:
        self._trail = trail
        self._user_id = user_id
        self._execution_id = execution_id

    def on_event(self, event: HookEvent, context: HookContext) -> None:
        payload: dict[str, Any] = event.payload
        self._trail.add(
            AuditEntry(
                event=event.type,
                user_id=self._user_id,
                execution_id=self._execution_id,
                conversation_id=context.conversation_id,
                trace_id=context.trace_id,
                tool_name=str(payload.get("toolName", "")),
                code=str(payload.get("errorCode", "")),
                payload=payload,
            )
        )


async def _pause(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
