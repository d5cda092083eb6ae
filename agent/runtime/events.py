"""The closed set of events of one execution, and their wire form.

Each event carries `execution_id` and `seq` (from 1, consecutive, never reset), which the engine stamps on publishing.
Block events are the very objects that the provider adapter made. `encode` gives the JSON bytes of an event once;
deltas take a short path, because there are thousands of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, assert_never

import orjson

from agent.runtime.excerpts import shown
from agent.runtime.messages import AgentMessage, ModelContext, StopReason, Usage, Value
from agent.runtime.model import BlockDelta, BlockStart, BlockStop
from agent.runtime.tools import ToolDefinition
from agent.runtime.values import FrozenDict, JsonObject, Text

DecisionKind: TypeAlias = Literal["approved", "rejected", "modified", "timeout"]
RunPhase: TypeAlias = Literal["streaming", "calling-tool", "waiting-confirmation"]


class Interrupt(Value):
    """A question to a person (R86); `reason` is absent on the wire where there is none."""

    id: str
    type: Literal["tool-confirmation"] = "tool-confirmation"
    tool: ToolDefinition
    arguments: JsonObject
    reason: str | None = None

    def to_wire(self) -> dict[str, Any]:
        wire = super().to_wire()
        if self.reason is None:
            del wire["reason"]
        return wire


class Completed(Value):
    """The model ended its turn (R56)."""

    type: Literal["completed"] = "completed"
    stop_reason: StopReason


class MaxTokens(Value):
    """The model's token limit cut the answer (R52, R58)."""

    type: Literal["max-tokens"] = "max-tokens"


class Cancelled(Value):
    """Somebody stopped the run."""

    type: Literal["cancelled"] = "cancelled"
    reason: Text


Outcome: TypeAlias = Completed | MaxTokens | Cancelled


@dataclass(slots=True)
class ExecutionStarted:
    """The run begins; `messages` that it adds start with the input."""

    type: ClassVar[str] = "execution-started"
    conversation_id: str | None
    agent: str
    initial_message_count: int
    tool_revision: int
    execution_id: str = ""
    seq: int = 0


@dataclass(slots=True)
class StatusChanged:
    """What the run is doing (R65)."""

    type: ClassVar[str] = "status"
    status: RunPhase
    execution_id: str = ""
    seq: int = 0


@dataclass(slots=True)
class ModelCallStarted:
    """Model call number `call_index` (from 1) begins; its blocks follow."""

    type: ClassVar[str] = "model-call-started"
    call_index: int
    response_message_id: str
    execution_id: str = ""
    seq: int = 0


@dataclass(slots=True)
class ModelCallCompleted:
    """A model call ended and passed preflight (R77); latencies are in milliseconds."""

    type: ClassVar[str] = "model-call-completed"
    call_index: int
    response_message_id: str
    stop_reason: StopReason
    usage: Usage | None
    first_token_latency_ms: int | None
    output_duration_ms: int | None
    execution_id: str = ""
    seq: int = 0


@dataclass(slots=True)
class MessagesAdded:
    """All new stable messages so far and the next model context (R65, E10); `from_index` tells which are new."""

    type: ClassVar[str] = "messages"
    messages: tuple[AgentMessage, ...]
    from_index: int
    model_context: ModelContext
    execution_id: str = ""
    seq: int = 0


@dataclass(slots=True)
class ToolCallStarted:
    """A tool is about to run."""

    type: ClassVar[str] = "tool-call-started"
    call_id: str
    tool_name: str
    arguments: FrozenDict
    execution_id: str = ""
    seq: int = 0


@dataclass(slots=True)
class ToolProgress:
    """A running tool says how far it is."""

    type: ClassVar[str] = "tool-progress"
    call_id: str
    text: str
    execution_id: str = ""
    seq: int = 0


@dataclass(slots=True)
class ToolCallCompleted:
    """A tool ended; its result follows in `messages`."""

    type: ClassVar[str] = "tool-call-completed"
    call_id: str
    tool_name: str
    is_error: bool
    execution_id: str = ""
    seq: int = 0


@dataclass(slots=True)
class InterruptRequested:
    """The run waits for a person; `call_id` names the call that is meant."""

    type: ClassVar[str] = "interrupt-requested"
    interrupt: Interrupt
    call_id: str
    execution_id: str = ""
    seq: int = 0


@dataclass(slots=True)
class InterruptResolved:
    """A person answered, or nobody did in time; `arguments` are those that a person put in the place of the model's."""

    type: ClassVar[str] = "interrupt-resolved"
    interrupt_id: str
    value: bool
    decision: DecisionKind
    arguments: FrozenDict | None = None
    execution_id: str = ""
    seq: int = 0


@dataclass(slots=True)
class ContextCompacted:
    """The working view of the context was shortened; the visible history stays whole (E22)."""

    type: ClassVar[str] = "context-compacted"
    trigger: Literal["automatic", "manual"]
    tokens_before: int
    estimated_tokens_after: int
    execution_id: str = ""
    seq: int = 0


@dataclass(slots=True)
class AgentHandoff:
    """Another agent takes the run over."""

    type: ClassVar[str] = "agent-handoff"
    from_agent: str
    to_agent: str
    execution_id: str = ""
    seq: int = 0


@dataclass(slots=True)
class ExecutionSuspended:
    """The run was put aside until a person decides; it goes on with the next `seq`. `expires_at` is an ISO time."""

    type: ClassVar[str] = "execution-suspended"
    interrupt_id: str
    tool_name: str
    expires_at: str
    execution_id: str = ""
    seq: int = 0


@dataclass(slots=True)
class RevisionSaved:
    """The host stored the turn; sent before the terminal event, so that an ended run is a stored run."""

    type: ClassVar[str] = "revision-saved"
    revision_id: str
    number: int
    conversation_id: str
    version: int
    execution_id: str = ""
    seq: int = 0


@dataclass(slots=True)
class ExecutionCompleted:
    """Terminal: the run ended with an outcome."""

    type: ClassVar[str] = "execution-completed"
    outcome: Outcome
    added_message_count: int
    execution_id: str = ""
    seq: int = 0


@dataclass(slots=True)
class ExecutionFailed:
    """Terminal: the run ended with an error."""

    type: ClassVar[str] = "execution-failed"
    error_code: str
    error_message: str
    retryable: bool = False
    execution_id: str = ""
    seq: int = 0


Event: TypeAlias = (
    ExecutionStarted
    | StatusChanged
    | ModelCallStarted
    | BlockStart
    | BlockDelta
    | BlockStop
    | ModelCallCompleted
    | MessagesAdded
    | ToolCallStarted
    | ToolProgress
    | ToolCallCompleted
    | InterruptRequested
    | InterruptResolved
    | ContextCompacted
    | AgentHandoff
    | ExecutionSuspended
    | RevisionSaved
    | ExecutionCompleted
    | ExecutionFailed
)

TERMINAL = (ExecutionCompleted, ExecutionFailed)


def to_wire(event: Event) -> dict[str, Any]:
    """Return the wire form of an event as plain JSON data."""
    wire: dict[str, Any] = {"type": event.type, "executionId": event.execution_id, "seq": event.seq}
    match event:
        case ExecutionStarted():
            wire |= {
                "conversationId": event.conversation_id,
                "agent": event.agent,
                "initialMessageCount": event.initial_message_count,
                "toolRevision": event.tool_revision,
            }
        case StatusChanged():
            wire["status"] = event.status
        case ModelCallStarted():
            wire |= {"callIndex": event.call_index, "responseMessageId": event.response_message_id}
        case BlockStart():
            block: dict[str, str] = {"type": event.block_type}
            if event.block_type == "tool-call":
                block |= {"callId": event.call_id, "name": event.name}
            wire |= {"index": event.index, "block": block}
        case BlockDelta():
            key = "argumentsDelta" if event.block_type == "tool-call" else "text"
            wire |= {"index": event.index, "delta": {"type": event.block_type, key: event.text}}
        case BlockStop():
            wire["index"] = event.index
        case ModelCallCompleted():
            wire |= {
                "callIndex": event.call_index,
                "responseMessageId": event.response_message_id,
                "stopReason": event.stop_reason,
                "usage": event.usage.to_wire() if event.usage else None,
                "firstTokenLatencyMs": event.first_token_latency_ms,
                "outputDurationMs": event.output_duration_ms,
            }
        case MessagesAdded():
            # ModelState is opaque and stays on the server; a reader needs the messages only.
            added = event.messages[event.from_index :]
            wire |= {
                "fromIndex": event.from_index,
                "messages": [shown(message, event.execution_id) for message in added],
            }
        case ToolCallStarted():
            wire |= {"callId": event.call_id, "toolName": event.tool_name, "arguments": event.arguments}
        case ToolProgress():
            wire |= {"callId": event.call_id, "text": event.text}
        case ToolCallCompleted():
            wire |= {"callId": event.call_id, "toolName": event.tool_name, "isError": event.is_error}
        case InterruptRequested():
            wire |= {"interrupt": event.interrupt.to_wire(), "callId": event.call_id}
        case InterruptResolved():
            wire |= {
                "interruptId": event.interrupt_id,
                "value": event.value,
                "decision": event.decision,
                "arguments": event.arguments,
            }
        case ContextCompacted():
            wire |= {
                "trigger": event.trigger,
                "tokensBefore": event.tokens_before,
                "estimatedTokensAfter": event.estimated_tokens_after,
            }
        case AgentHandoff():
            wire |= {"fromAgent": event.from_agent, "toAgent": event.to_agent}
        case ExecutionSuspended():
            wire |= {
                "interruptId": event.interrupt_id,
                "toolName": event.tool_name,
                "expiresAt": event.expires_at,
            }
        case RevisionSaved():
            wire |= {
                "revisionId": event.revision_id,
                "number": event.number,
                "conversationId": event.conversation_id,
                "version": event.version,
            }
        case ExecutionCompleted():
            wire |= {"outcome": event.outcome.to_wire(), "addedMessageCount": event.added_message_count}
        case ExecutionFailed():
            wire |= {
                "errorCode": event.error_code,
                "errorMessage": event.error_message,
                "retryable": event.retryable,
            }
        case _:
            assert_never(event)
    return wire


def encode(event: Event) -> bytes:
    """Return the JSON bytes of one event."""
    if type(event) is BlockDelta:
        return encode_delta(event, event.seq, event.text)
    return orjson.dumps(to_wire(event))


def encode_delta(event: BlockDelta, from_seq: int, text: str) -> bytes:
    """Return the JSON bytes of the deltas from `from_seq` to `event.seq`, joined to `text`."""
    merged = b',"fromSeq":%d' % from_seq if from_seq != event.seq else b""
    key = b"argumentsDelta" if event.block_type == "tool-call" else b"text"
    return b'{"type":"block-delta","executionId":"%b"%b,"seq":%d,"index":%d,"delta":{"type":"%b","%b":%b}}' % (
        event.execution_id.encode(),
        merged,
        event.seq,
        event.index,
        event.block_type.encode(),
        key,
        orjson.dumps(text),
    )
