"""Tools as the engine sees them: definitions, invocations and results (R80-R84, R101-R103, E14)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, StringConstraints

from agent.runtime.cancellation import CancelSignal
from agent.runtime.messages import Value
from agent.runtime.values import FrozenDict, JsonObject, Text

TOOL_NAME = re.compile(r"^[A-Za-z0-9_.-]{1,128}$")

ToolSource: TypeAlias = Literal["LOCAL", "MCP", "FRONTEND_LOCAL", "WEBMCP"]


class ToolAnnotations(Value):
    """What is known about a tool's effects (R103); `require_confirmation` None means "unless read-only"."""

    read_only_hint: bool = False
    destructive_hint: bool = False
    idempotent_hint: bool = False
    require_confirmation: bool | None = None
    untrusted_content_hint: bool = False


class ToolDefinition(Value):
    """What a model is told about a tool, and where it comes from.

    `input_schema` is a JSON Schema of type object. `version` is null for tools whose definition is code (E14).
    """

    name: Annotated[str, StringConstraints(pattern=TOOL_NAME.pattern)]
    description: Annotated[Text, StringConstraints(pattern=r"\S", max_length=4096)]
    input_schema: JsonObject
    source: ToolSource = "LOCAL"
    annotations: ToolAnnotations = ToolAnnotations()
    permissions: tuple[str, ...] = ()
    version: str | None = None

    @property
    def needs_confirmation(self) -> bool:
        """Whether a person must agree before each call (R87, R103)."""
        declared = self.annotations.require_confirmation
        if declared is None or (self.source in ("FRONTEND_LOCAL", "WEBMCP") and not declared):
            return not self.annotations.read_only_hint
        return declared


class ToolCallResult(Value):
    """What a tool hands back: exactly these three fields (R82)."""

    tool_call_id: Annotated[str, Field(strict=True)]
    content: Annotated[Text, Field(strict=True)]
    is_error: Annotated[bool, Field(strict=True)]


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Where a call happens; handed to the tool beside its arguments, never filled by the model (R8).

    `principal` is the host's identity object for the person the run belongs to, None outside a host.
    `progress` publishes a line of text as `tool-progress`; it may be called from any thread. `ended_late` is for
    adapters whose work goes on after their task was cancelled: called on the loop, it notes that the work has
    ended, and whether it raised.
    """

    execution_id: str
    call_id: str
    trace_id: str
    conversation_id: str | None
    principal: Any
    signal: CancelSignal
    progress: Callable[[str], None]
    ended_late: Callable[[bool], None]


@dataclass(frozen=True, slots=True)
class ToolInvocation:
    """One call on its way to a tool."""

    call_id: str
    name: str
    arguments: FrozenDict
    context: ToolContext


ArgumentsCheck: TypeAlias = Callable[[FrozenDict], str | None]
ToolHandler: TypeAlias = Callable[[ToolInvocation], Awaitable[ToolCallResult | Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A definition with the coroutine function that runs it.

    `check` tells what is wrong with arguments, None if nothing is; a call that it objects to is answered without
    anybody being asked and without the handler being called (R106).
    """

    definition: ToolDefinition
    handler: ToolHandler = field(repr=False)
    check: ArgumentsCheck | None = field(default=None, repr=False)
