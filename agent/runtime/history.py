"""What a run must know of the messages before it: call ids (R75) and tools whose last effect is not known (E6)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from agent.runtime.exceptions import ModelProtocolError
from agent.runtime.messages import AgentMessage, ToolCallBlock, ToolResultBlock


@dataclass(slots=True)
class History:
    """`issued` are all call ids so far; `unverified` the tools whose last fact is `unknown` or `result-omitted`."""

    issued: set[str] = field(default_factory=set)
    unverified: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, messages: Iterable[AgentMessage]) -> History:
        """Read a history; raises `ModelProtocolError` where a call id repeats or a result has no call (R75)."""
        history = cls()
        for message in messages:
            for block in message.blocks:
                if isinstance(block, ToolCallBlock):
                    history.issue(block.call_id)
                elif isinstance(block, ToolResultBlock):
                    history.answer(block)
        return history

    def issue(self, call_id: str) -> None:
        """Take in a call id."""
        if call_id in self.issued:
            raise ModelProtocolError(f"the history has the call id {call_id!r} twice")
        self.issued.add(call_id)

    def answer(self, block: ToolResultBlock) -> None:
        """Take in a result; only a real completed one verifies a tool again (E6), one that is claimed says nothing."""
        if block.call_id not in self.issued or block.call_id in self.answered:
            raise ModelProtocolError(f"the history has a result without its call {block.call_id!r}")
        self.answered.add(block.call_id)
        if block.imported:
            return
        if block.execution == "completed":
            self.unverified.discard(block.name)
        elif block.execution in ("unknown", "result-omitted"):
            self.unverified.add(block.name)
