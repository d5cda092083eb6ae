"""What the HTTP API answers about runs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from agent.runtime.events import Interrupt, Outcome, RunPhase
from agent.runtime.messages import (
    ImageBlock,
    NonBlank,
    ReasoningBlock,
    Role,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    Usage,
    Value,
)
from agent.runtime.state import RunStatus

EVENT_EXAMPLE = """\
id: 6
event: block-delta
data: {"type":"block-delta","executionId":"…","seq":6,"index":0,"delta":{"type":"text","text":"Hel"}}

"""


class Started(Value):
    """A run that was started, now or with the same key before (`created` false).

    `model_state_reset` tells that the agent has another model since, to which the old model state was no use.
    """

    execution_id: UUID
    conversation_id: UUID
    created: bool
    model_state_reset: bool = False


class Stopped(Value):
    """The state of a run after somebody stopped it."""

    execution_id: UUID
    status: RunStatus


class Responded(Value):
    """An interrupt that was answered."""

    execution_id: UUID
    interrupt_id: str


class ResultTaken(Value):
    """A call of a front-end tool that was answered."""

    execution_id: UUID
    call_id: str


class WrittenBlock(Value):
    """A block of the message that is being written; `text` holds the arguments of a call, too."""

    index: int
    type: Literal["text", "reasoning", "tool-call"]
    call_id: str
    name: str
    text: str
    stopped: bool


class WrittenMessage(Value):
    """The message that is being written, or was when the run ended."""

    message_id: str
    blocks: tuple[WrittenBlock, ...]


class ToolRunRow(Value):
    """A tool that was started in a run."""

    call_id: str
    tool_name: str
    arguments: dict[str, Any]
    status: Literal["running", "completed"]
    is_error: bool
    progress: tuple[str, ...]


class RevisionRow(Value):
    """The revision that holds a run; `version` is the conversation's from then on."""

    id: UUID
    number: int
    version: int


class Failure(Value):
    """Why a run failed."""

    code: str
    message: str
    retryable: bool


class ShownResult(ToolResultBlock):
    """A tool's result; of a long one only beginning and end, and then `omitted` characters are left out."""

    omitted: Annotated[int, Field(ge=1)] | None = Field(default=None, exclude_if=lambda omitted: omitted is None)


class ShownMessage(Value):
    """A message as those who follow a run are shown it."""

    id: NonBlank
    role: Role
    blocks: tuple[
        Annotated[TextBlock | ImageBlock | ReasoningBlock | ToolCallBlock | ShownResult, Field(discriminator="type")],
        ...,
    ]


class ExecutionRow(Value):
    """A run: the state of a `snapshot`, and when it was."""

    execution_id: UUID
    conversation_id: UUID
    agent: str
    seq: int
    status: RunStatus
    phase: RunPhase | None
    messages: tuple[ShownMessage, ...]
    current: WrittenMessage | None
    tools: tuple[ToolRunRow, ...]
    interrupt: Interrupt | None
    interrupt_call_id: str | None
    revision: RevisionRow | None
    outcome: Annotated[Outcome, Field(discriminator="type")] | None
    error: Failure | None
    created_at: datetime
    finished_at: datetime | None
    usage: Usage | None
