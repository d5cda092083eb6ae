"""The one reducer: events in, the state of a run out (DESIGN of events: a snapshot is this state serialised).

`conversations/static/par/reducer.js` is the same reducer for the browser and is tested with the same recordings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias, assert_never

from agent.runtime import events as ev
from agent.runtime.excerpts import shown
from agent.runtime.messages import AgentMessage
from agent.runtime.model import BlockDelta, BlockStart, BlockStop, BlockType

RunStatus: TypeAlias = Literal["running", "waiting_input", "suspended", "completed", "failed", "cancelled"]

PART = 64 * 1024  # letters


class TextParts:
    """A text as it was at one moment, in parts that the run and all others of them share.

    It is no dataclass: what encodes JSON would take that for an object.
    """

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[str, ...]) -> None:
        self.parts = parts


@dataclass(slots=True)
class StreamedBlock:
    """A block of the message that is being written; `pieces` are its deltas, after what is `settled`."""

    type: BlockType
    call_id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    stopped: bool = False
    settled: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.parts())

    def parts(self) -> tuple[str, ...]:
        """Return the text in parts; all but the last are the same objects the next time."""
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        if self.pieces and len(self.pieces[0]) >= PART:
            self.settled.append(self.pieces.pop())
        return (*self.settled, *self.pieces)


@dataclass(slots=True)
class ToolRun:
    """A tool that was started in this run."""

    name: str
    arguments: dict[str, Any]
    status: Literal["running", "completed"] = "running"
    is_error: bool = False
    progress: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ExecutionState:
    """Everything a late reader needs to know about a run, up to event `seq`."""

    execution_id: str
    conversation_id: str | None = None
    agent: str = ""
    seq: int = 0
    status: RunStatus = "running"
    phase: ev.RunPhase | None = None
    messages: list[dict[str, Any]] = field(default_factory=list)
    message_id: str | None = None
    blocks: dict[int, StreamedBlock] = field(default_factory=dict)
    tools: dict[str, ToolRun] = field(default_factory=dict)
    interrupt: dict[str, Any] | None = None
    interrupt_call_id: str | None = None
    revision: dict[str, Any] | None = None
    outcome: dict[str, Any] | None = None
    error: dict[str, Any] | None = None

    @property
    def ended(self) -> bool:
        return self.status in ("completed", "failed", "cancelled")

    def apply(self, event: ev.Event) -> None:
        """Take in the next event; raises `ValueError` unless it is the one after `seq`."""
        if event.seq != self.seq + 1:
            raise ValueError(f"event {event.seq!r} cannot follow event {self.seq!r}")
        self.seq = event.seq
        if type(event) is BlockDelta:  # first: nearly all events are deltas
            self.blocks[event.index].pieces.append(event.text)
            return
        match event:
            case ev.ExecutionStarted():
                self.conversation_id, self.agent = event.conversation_id, event.agent
            case ev.StatusChanged():
                self.phase = event.status
            case ev.ModelCallStarted():
                self.message_id, self.blocks = event.response_message_id, {}
            case BlockStart():
                self.blocks[event.index] = StreamedBlock(event.block_type, event.call_id, event.name)
            case BlockDelta():
                raise AssertionError("handled above")
            case BlockStop():
                self.blocks[event.index].stopped = True
            case ev.ModelCallCompleted():
                pass
            case ev.MessagesAdded():
                self._add(event.messages, event.from_index)
            case ev.ToolCallStarted():
                self.tools[event.call_id] = ToolRun(event.tool_name, event.arguments)
            case ev.ToolProgress():
                self.tools[event.call_id].progress.append(event.text)
            case ev.ToolCallCompleted():
                if tool := self.tools.get(event.call_id):
                    tool.status, tool.is_error = "completed", event.is_error
            case ev.InterruptRequested():
                self.interrupt, self.interrupt_call_id = event.interrupt.to_wire(), event.call_id
                self.status = "waiting_input"
            case ev.InterruptResolved():
                self.interrupt = self.interrupt_call_id = None
                self.status = "running"
            case ev.ContextCompacted():
                pass
            case ev.AgentHandoff():
                self.agent = event.to_agent
            case ev.ExecutionSuspended():
                self.status, self.phase = "suspended", None
            case ev.RevisionSaved():
                self.revision = {"id": event.revision_id, "number": event.number, "version": event.version}
            case ev.ExecutionCompleted():
                self.outcome = event.outcome.to_wire()
                self._end("cancelled" if isinstance(event.outcome, ev.Cancelled) else "completed")
            case ev.ExecutionFailed():
                self.error = {"code": event.error_code, "message": event.error_message, "retryable": event.retryable}
                self._end("failed")
            case _:
                assert_never(event)

    def _add(self, messages: tuple[AgentMessage, ...], from_index: int) -> None:
        del self.messages[from_index:]
        for message in messages[from_index:]:
            self.messages.append(shown(message, self.execution_id))
            if message.id == self.message_id:
                self.message_id, self.blocks = None, {}

    def _end(self, status: RunStatus) -> None:
        self.status, self.phase, self.interrupt, self.interrupt_call_id = status, None, None, None
        # What was half-streamed is no part of the result (R63) but stays readable: nobody loses what they saw.

    def current(self, *, in_parts: bool = False) -> dict[str, Any] | None:
        """Return the message that is being written, or was when the run ended, as JSON data; texts as `to_wire`."""
        if self.message_id is None:
            return None
        return {
            "messageId": self.message_id,
            "blocks": [
                {
                    "index": index,
                    "type": block.type,
                    "callId": block.call_id,
                    "name": block.name,
                    "text": TextParts(block.parts()) if in_parts else block.text,
                    "stopped": block.stopped,
                }
                for index, block in sorted(self.blocks.items())
            ],
        }

    def set_current(self, current: dict[str, Any] | None) -> None:
        """Take over what `current` returned."""
        self.message_id, self.blocks = (current["messageId"], {}) if current else (None, {})
        for block in current["blocks"] if current else ():
            pieces = [block["text"]] if block["text"] else []
            self.blocks[block["index"]] = StreamedBlock(
                block["type"], block["callId"], block["name"], pieces, block["stopped"]
            )

    def to_wire(self, *, in_parts: bool = False) -> dict[str, Any]:
        """Return the state as JSON data, the body of a `snapshot` frame; no later event changes it.

        With `in_parts` the texts that are being written are `TextParts`, which cost no copy.
        """
        return {
            "executionId": self.execution_id,
            "conversationId": self.conversation_id,
            "agent": self.agent,
            "seq": self.seq,
            "status": self.status,
            "phase": self.phase,
            "messages": self.messages.copy(),
            "current": self.current(in_parts=in_parts),
            "tools": [
                {
                    "callId": call_id,
                    "toolName": tool.name,
                    "arguments": tool.arguments,
                    "status": tool.status,
                    "isError": tool.is_error,
                    "progress": tool.progress.copy(),
                }
                for call_id, tool in self.tools.items()
            ],
            "interrupt": self.interrupt,
            "interruptCallId": self.interrupt_call_id,
            "revision": self.revision,
            "outcome": self.outcome,
            "error": self.error,
        }

    @classmethod
    def from_wire(cls, data: dict[str, Any]) -> Self:
        """Rebuild a state from `to_wire`; the next event may be applied to it."""
        state = cls(
            execution_id=data["executionId"],
            conversation_id=data["conversationId"],
            agent=data["agent"],
            seq=data["seq"],
            status=data["status"],
            phase=data["phase"],
            messages=list(data["messages"]),
            interrupt=data["interrupt"],
            interrupt_call_id=data["interruptCallId"],
            revision=data["revision"],
            outcome=data["outcome"],
            error=data["error"],
        )
        state.set_current(data["current"])
        for tool in data["tools"]:
            state.tools[tool["callId"]] = ToolRun(
                tool["toolName"], tool["arguments"], tool["status"], tool["isError"], list(tool["progress"])
            )
        return state
