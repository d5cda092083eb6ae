"""The model port: what the engine asks of a provider adapter, and the neutral events it gets back (R35-R46).

An adapter yields *batches*: all events that one read from the network brought, as one sequence. It emits nothing after
`MessageStop` or `StreamError`, and gives every call an id of ours. Stream events are mutable slotted dataclasses, so
that the engine can stamp `execution_id` and `seq` on them and hand the same object to its observers.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from agent.runtime.cancellation import CancelSignal
from agent.runtime.messages import AgentMessage, ModelState, StopReason, Usage
from agent.runtime.tools import ToolDefinition

BlockType: TypeAlias = Literal["text", "reasoning", "tool-call"]

ErrorKind: TypeAlias = Literal[
    "provider-error",
    "invalid-request",
    "authentication",
    "permission",
    "not-found",
    "overloaded",
    "rate-limit",
    "quota",
    "timeout",
    "connection-lost",
    "truncated-stream",
    "refusal",
    "content-filter",
]


class CallListener(Protocol):
    """Hears of a call what its events do not say, or say too late if the call is stopped."""

    def used(self, usage: Usage, details: UsageDetails | None) -> None:
        """The provider has counted so much so far; a later count replaces it."""
        ...

    def left_out(self, tools: Sequence[str]) -> None:
        """The model is not told of these tools: its provider would refuse them."""
        ...


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call (R146). `messages` begins with the composed system message, if there is one.

    `max_tokens` and the other sampling settings are None where the provider's own default is wanted. `tool_choice` is
    `auto`, `required`, `none` or the name of a tool. `response_schema` is a JSON Schema that the answer's text must
    follow, for providers that can be told so (P53). A `volatile_prompt` is another one in each run: no cache is asked
    to keep it (P24, P170). A `listener` is told what happens beside the answer.
    """

    response_message_id: str
    messages: tuple[AgentMessage, ...]
    tools: tuple[ToolDefinition, ...] = ()
    model_state: ModelState | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    tool_choice: str | None = None
    response_schema: Mapping[str, Any] | None = None
    volatile_prompt: bool = False
    listener: CallListener | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class UsageDetails:
    """How the tokens of `Usage` divide (P14): input that came from or went into the provider's cache, hidden output.

    `cache_write_hour_tokens` are those of the written ones that are kept for an hour, which costs more.
    """

    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cache_write_hour_tokens: int = 0


@dataclass(slots=True)
class BlockStart:
    """A block begins (R35); `call_id` and `name` belong to tool calls only."""

    type: ClassVar[str] = "block-start"
    index: int
    block_type: BlockType
    call_id: str = ""
    name: str = ""
    execution_id: str = ""
    seq: int = 0


@dataclass(slots=True)
class BlockDelta:
    """A piece of a block (R36); `text` holds text, reasoning or a piece of the tool arguments."""

    type: ClassVar[str] = "block-delta"
    index: int
    block_type: BlockType
    text: str
    execution_id: str = ""
    seq: int = 0


@dataclass(slots=True)
class BlockStop:
    """A block is complete (R37)."""

    type: ClassVar[str] = "block-stop"
    index: int
    execution_id: str = ""
    seq: int = 0


@dataclass(slots=True)
class MessageStop:
    """The message is complete (R38); `model_state` is the complete next state (R28)."""

    type: ClassVar[str] = "message-stop"
    stop_reason: StopReason
    usage: Usage | None = None
    model_state: ModelState | None = None
    details: UsageDetails | None = None


@dataclass(slots=True)
class StreamError:
    """The provider failed (R39); nothing follows.

    `message` names what happened and carries no secret. `refusal` is the provider's refusal text, to be shown.
    `retry_after` is in seconds. `usage` is what was spent all the same.
    """

    type: ClassVar[str] = "error"
    message: str
    code: Literal["MODEL_FAILED", "MODEL_REFUSED", "MODEL_CONTENT_FILTERED"] = "MODEL_FAILED"
    kind: ErrorKind = "provider-error"
    retryable: bool = False
    retry_after: float | None = None
    refusal: str = ""
    usage: Usage | None = None
    details: UsageDetails | None = None


ModelEvent: TypeAlias = BlockStart | BlockDelta | BlockStop | MessageStop | StreamError


class Model(Protocol):
    """A provider adapter bound to one endpoint and one model."""

    def stream(self, request: ModelRequest, signal: CancelSignal) -> AsyncGenerator[Sequence[ModelEvent], Any]:
        """Make exactly one call and yield its events in batches; closing the generator closes the connection.

        The call is cancelled by cancelling the task that reads it; `signal` tells an adapter why.
        """
        ...
