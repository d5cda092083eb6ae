"""The one question that a run may be waiting with (R86-R91), and the answers it takes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from agent.runtime.events import DecisionKind, Interrupt
from agent.runtime.exceptions import InvalidArgument, InvalidState
from agent.runtime.values import FrozenDict


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer to a confirmation.

    `arguments` replace the model's own when `kind` is `modified`; `reason` is what a rejection tells the model.
    """

    kind: DecisionKind
    reason: str | None = None
    arguments: FrozenDict | None = None

    @property
    def allows(self) -> bool:
        return self.kind in ("approved", "modified")


APPROVED = Decision("approved")


class InterruptSlot:
    """Holds at most one pending interrupt; it is used up by the first answer, by cancel or by the end (R90, R91)."""

    __slots__ = ("_answer", "_closed", "interrupt")

    def __init__(self) -> None:
        self.interrupt: Interrupt | None = None
        self._answer: asyncio.Future[Decision] | None = None
        self._closed = False

    def open(self, interrupt: Interrupt) -> asyncio.Future[Decision]:
        """Make `interrupt` the pending one and return the future of its answer."""
        if self.interrupt is not None:
            raise InvalidState(f"the interrupt {self.interrupt.id!r} is pending already")
        self.interrupt = interrupt
        self._answer = asyncio.get_running_loop().create_future()
        return self._answer

    def answer(self, interrupt_id: str, decision: Decision) -> None:
        """Answer the pending interrupt; raises `InvalidState` or `InvalidArgument` where that cannot be (R89)."""
        if self._closed:
            raise InvalidState("the execution has ended")
        if self.interrupt is None or self._answer is None:
            raise InvalidState("no interrupt is pending")
        if interrupt_id != self.interrupt.id:
            raise InvalidArgument(f"{interrupt_id!r} is not the pending interrupt")
        answer, self._answer, self.interrupt = self._answer, None, None
        if not answer.done():
            answer.set_result(decision)

    def close(self) -> None:
        """Use up the slot for good."""
        self._closed = True
        self.interrupt = None
        if self._answer is not None:
            self._answer.cancel()
            self._answer = None
