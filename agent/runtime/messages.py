"""Messages of content blocks and the model state beside them (R13-R31, E1, E23, E24).

All values are frozen; wire names are camelCase, unknown and missing fields are refused (R5).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from agent.runtime.values import JsonData, JsonObject, Text

MAX_SAFE_INTEGER = 2**53 - 1

Role = Literal["system", "user", "assistant", "tool"]
StopReason = Literal["end-turn", "tool-use", "max-tokens", "stop-sequence", "other"]
NonBlank = Annotated[Text, StringConstraints(pattern=r"\S", max_length=512)]
TokenCount = Annotated[int, Field(strict=True, ge=0, le=MAX_SAFE_INTEGER)]


class Value(BaseModel):
    """Base of all stable values: frozen, exact, snake_case in Python and camelCase on the wire."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        defer_build=True,
    )

    @classmethod
    def from_wire(cls, data: object) -> Self:
        """Build the value from its wire form; raises pydantic's `ValidationError`, a `ValueError`."""
        return cls.model_validate(data, by_alias=True, by_name=False)

    def to_wire(self) -> dict[str, Any]:
        """Return the wire form as plain JSON data."""
        return self.model_dump(by_alias=True)


class TextBlock(Value):
    """Text that was said (R16)."""

    type: Literal["text"] = "text"
    text: Text


class UrlSource(Value):
    """A picture by address (R17)."""

    type: Literal["url"] = "url"
    url: NonBlank


class Base64Source(Value):
    """A picture by value; `data` has no `data:` prefix (R17)."""

    type: Literal["base64"] = "base64"
    media_type: NonBlank
    data: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9+/]+={0,2}$")]


class ImageBlock(Value):
    """A picture (R17)."""

    type: Literal["image"] = "image"
    source: Annotated[UrlSource | Base64Source, Field(discriminator="type")]


class ReasoningBlock(Value):
    """Reasoning that the provider allows to be shown (R18)."""

    type: Literal["reasoning"] = "reasoning"
    text: Text


class ToolCallBlock(Value):
    """A call that the model asks for; `input` is a JSON object (R19)."""

    type: Literal["tool-call"] = "tool-call"
    call_id: NonBlank
    name: Annotated[Text, StringConstraints(min_length=1, max_length=256)]
    input: JsonObject


ResultStatus = Literal["success", "error"]
ToolExecution = Literal["completed", "not-executed", "unknown", "result-omitted"]


class ToolResultBlock(Value):
    """The one result of a call, paired by `call_id` (R20); `execution` says what really happened (E1).

    One that a client claims is `imported`; the wire says so only where it is true.
    """

    type: Literal["tool-result"] = "tool-result"
    call_id: NonBlank
    name: Annotated[Text, StringConstraints(min_length=1, max_length=256)]
    status: ResultStatus
    content: tuple[TextBlock, ...]
    execution: ToolExecution
    imported: bool = Field(default=False, strict=True, exclude_if=lambda imported: not imported)


Block = Annotated[
    TextBlock | ImageBlock | ReasoningBlock | ToolCallBlock | ToolResultBlock,
    Field(discriminator="type"),
]


class AgentMessage(Value):
    """One stable message (R13); `blocks` stand in the order of production (R14)."""

    id: NonBlank
    role: Role
    blocks: tuple[Block, ...]

    @cached_property
    def encoded(self) -> dict[Any, Any]:
        """Where a provider adapter keeps this message's request form, keyed by adapter and options."""
        return {}

    @property
    def text(self) -> str:
        """All text blocks joined."""
        return "".join(block.text for block in self.blocks if isinstance(block, TextBlock))

    @cached_property
    def tool_calls(self) -> tuple[ToolCallBlock, ...]:
        """The calls in model order."""
        return tuple(block for block in self.blocks if isinstance(block, ToolCallBlock))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        copied = super().model_copy(update=update, deep=deep)
        for cached in ("encoded", "tool_calls"):
            copied.__dict__.pop(cached, None)
        return copied


class ModelState(Value):
    """What a provider wants back with the next request; nobody else looks into `data` (R25, R26)."""

    format: NonBlank
    data: JsonData


class Usage(Value):
    """Token counts of one model call (R43)."""

    input_tokens: TokenCount
    output_tokens: TokenCount
    total_tokens: TokenCount

    def plus(self, more: Usage) -> Usage:
        """Return the sum; whatever a provider claims, it stays a number that can be kept."""
        return Usage(
            input_tokens=min(self.input_tokens + more.input_tokens, MAX_SAFE_INTEGER),
            output_tokens=min(self.output_tokens + more.output_tokens, MAX_SAFE_INTEGER),
            total_tokens=min(self.total_tokens + more.total_tokens, MAX_SAFE_INTEGER),
        )


class ModelContext(Value):
    """The working view beside the visible history (E23). `checkpoint` is null until compaction exists."""

    checkpoint: None = None
    model_state: ModelState | None
    usage: None = None


class Context(Value):
    """A conversation as the runtime reads and writes it, one unit under one revision (R120, E24)."""

    messages: tuple[AgentMessage, ...] = ()
    model_context: ModelContext = ModelContext(model_state=None)


def tool_result(call: ToolCallBlock, text: str, *, status: ResultStatus, execution: ToolExecution) -> ToolResultBlock:
    """Return the result block for `call`; an empty `text` gives no content."""
    content = (TextBlock(text=text),) if text else ()
    return ToolResultBlock(call_id=call.call_id, name=call.name, status=status, content=content, execution=execution)
