"""The frames that a client may send over `par.v1`, and the frames that answer them.

Every command has an `id` and is answered by exactly one `ack` or `error`. docs/protocol.md shows each frame.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias
from uuid import UUID

import orjson
from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

from agent.runtime.exceptions import AgentError, InvalidArgument
from agent.runtime.messages import Value
from agent.runtime.values import MAX_DEPTH, read_json
from conversations.bodies import ApproveBody, ClientId, RejectBody, StartBody, ToolResultBody, faults
from conversations.hosting.hub import Format

PROTOCOL = "par.v1"
SHORT = 4096  # characters of a frame that is read whole for the sake of its id
_ID = re.compile(r'\s*\{\s*(?:"type"\s*:\s*"[a-z-]{0,20}"\s*,\s*)?"id"\s*:\s*"([^"\\\x00-\x1f]{0,64})"')

CommandId = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class Start(StartBody):
    """Start a run; `id` is the caller's UUID of this start: the same id again gives the first answer (idempotent)."""

    type: Literal["start"]
    id: UUID
    format: Format = "text"


class Subscribe(Value):
    """Follow a conversation, or one run of it."""

    type: Literal["subscribe"]
    id: CommandId
    conversation_id: UUID | None = None
    execution_id: UUID | None = None
    client_id: ClientId | None = None
    format: Format = "text"


class Unsubscribe(Value):
    """Stop following a conversation."""

    type: Literal["unsubscribe"]
    id: CommandId
    conversation_id: UUID


class Approve(ApproveBody):
    """Allow the pending tool call."""

    type: Literal["approve"]
    id: CommandId
    execution_id: UUID


class Reject(RejectBody):
    """Refuse the pending tool call."""

    type: Literal["reject"]
    id: CommandId
    execution_id: UUID


class Cancel(Value):
    """End a run."""

    type: Literal["cancel"]
    id: CommandId
    execution_id: UUID


class ToolResult(ToolResultBody):
    """Answer the call of a front-end tool."""

    type: Literal["tool-result"]
    id: CommandId
    execution_id: UUID


class Ping(Value):
    """Ask whether the server is there."""

    type: Literal["ping"]
    id: CommandId


Command: TypeAlias = Annotated[
    Start | Subscribe | Unsubscribe | Approve | Reject | Cancel | ToolResult | Ping, Field(discriminator="type")
]

COMMANDS: TypeAdapter[Command] = TypeAdapter(Command)


class BadFrame(InvalidArgument):
    """Raised for a frame that is no command; `id` is the frame's own where one could be read."""

    def __init__(self, message: str, id: str | None = None) -> None:
        super().__init__(message)
        self.id = id


def parse(text: str | None) -> tuple[str, Command]:
    """Return the id of a frame as the client wrote it, and its command; `text` is None for a binary frame.

    Raises `BadFrame`, whose message says what is wrong.
    """
    if text is None:
        raise BadFrame("binary frames are not understood; send JSON text")
    try:
        data = read_json(text)
    except orjson.JSONDecodeError as error:
        raise BadFrame(f"the frame is not JSON: {error}", id_of(text)) from error
    except ValueError as error:
        raise BadFrame(str(error), id_of(text)) from error
    if not isinstance(data, dict):
        raise BadFrame("a frame is a JSON object")
    known = _known_id(data)
    try:
        return str(data.get("id")), COMMANDS.validate_python(data, by_alias=True, by_name=False)
    except ValidationError as error:
        raise BadFrame(faults(error), known) from error
    except RecursionError as error:
        raise BadFrame(f"JSON nested deeper than {MAX_DEPTH} levels", known) from error


def id_of(text: str | None) -> str | None:
    """Return the id of a frame that is not read; of a long one only if it is the first member or follows `type`."""
    if text is None:
        return None
    if len(text) > SHORT:
        found = _ID.match(text)
        return found[1] if found else None
    try:
        data = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return _known_id(data) if isinstance(data, dict) else None


def _known_id(data: dict[str, Any]) -> str | None:
    id = data.get("id")
    return id if isinstance(id, str) and len(id) <= 64 else None


def ack(id: str, **members: Any) -> bytes:
    """Return the answer to a command that was carried out."""
    return orjson.dumps({"type": "ack", "id": id, **members})


def error_frame(id: str | None, error: AgentError) -> bytes:
    """Return the answer to a command that was refused."""
    frame: dict[str, Any] = {"type": "error", "id": id, "code": error.code, "message": error.message}
    current = getattr(error, "current_revision", None)
    if current is not None:
        frame["currentRevision"] = current
    return orjson.dumps(frame)
