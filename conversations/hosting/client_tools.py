"""Front-end tools: declared with a start, run by the client that declared them (R102, R105-R107).

A call goes to every open connection of (person, client id), and again to each that comes later, until one answers it or
its time is over. The client tells calls apart by `callId`; the first answer counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from agent.governance.tools import installed_tools
from agent.runtime.exceptions import InvalidArgument, InvalidState
from agent.runtime.tools import Tool, ToolCallResult, ToolInvocation
from agent.tools.client import ClientExecute, client_tool
from conversations.bodies import ClientTool, ToolResultBody

UNANSWERED = "The client did not answer in time. The tool may have run."
UNREACHED = "The client was not connected, so the tool was not run."


def check_client_tools(declared: Sequence[ClientTool]) -> None:
    """Raise `InvalidArgument` for tools that cannot be used: a bad name or schema, or a name that is taken (R99)."""
    if not declared:
        return

    async def nothing(invocation: ToolInvocation) -> None: ...

    seen = set(installed_tools())
    for each in declared:
        if each.name in seen:
            raise InvalidArgument(f"a tool named {each.name!r} exists already")
        seen.add(each.name)
        _made(each, nothing)


@dataclass(slots=True)
class _Waiting:
    frame: bytes
    answer: asyncio.Future[ToolResultBody]
    reached: bool = False


@dataclass(slots=True)
class ClientCalls:
    """The front-end calls of one run; `deliver` sends a frame to the run's client, false where nobody is there."""

    execution_id: str
    timeout: float
    deliver: Callable[[bytes], bool]
    _waiting: dict[str, _Waiting] = field(default_factory=dict)

    def tools(self, declared: Sequence[ClientTool]) -> tuple[Tool, ...]:
        """Return the declared tools, which ask the client."""
        return tuple(_made(each, self._ask) for each in declared)

    def pending(self) -> Iterator[bytes]:
        """Return the frames of the calls that wait, for a client that has come back; they count as delivered."""
        for waiting in self._waiting.values():
            waiting.reached = True
            yield waiting.frame

    def answer(self, body: ToolResultBody) -> None:
        """Take the result of a call; raises `InvalidState` where no such call waits."""
        waiting = self._waiting.get(body.call_id)
        if waiting is None or waiting.answer.done():
            raise InvalidState(f"no call {body.call_id!r} waits for a client")
        waiting.answer.set_result(body)

    async def _ask(self, invocation: ToolInvocation) -> ToolCallResult:
        expires = datetime.now(UTC) + timedelta(seconds=self.timeout)
        frame = call_frame(self.execution_id, invocation, expires)
        waiting = _Waiting(frame, asyncio.get_running_loop().create_future())
        self._waiting[invocation.call_id] = waiting
        try:
            waiting.reached = self.deliver(frame)
            async with asyncio.timeout(self.timeout):
                body = await waiting.answer
        except TimeoutError:
            words = UNANSWERED if waiting.reached else UNREACHED
            return ToolCallResult(tool_call_id=invocation.call_id, content=words, is_error=True)
        finally:
            del self._waiting[invocation.call_id]
        return ToolCallResult(tool_call_id=invocation.call_id, content=_text(body.result), is_error=body.is_error)


def _made(declared: ClientTool, execute: ClientExecute) -> Tool:
    hints = declared.annotations
    return client_tool(
        declared.name,
        declared.description,
        declared.input_schema,
        execute,
        read_only=hints.read_only_hint,
        destructive=hints.destructive_hint,
        idempotent=hints.idempotent_hint,
        require_confirmation=hints.require_confirmation,
    )


def call_frame(execution_id: str, invocation: ToolInvocation, expires: datetime) -> bytes:
    """Return the frame that asks a client to run one of its tools."""
    return orjson.dumps(
        {
            "type": "client-tool-call",
            "executionId": execution_id,
            "callId": invocation.call_id,
            "name": invocation.name,
            "arguments": invocation.arguments,
            "expiresAt": expires.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
    )


def _text(result: Any) -> str:
    return result if isinstance(result, str) else orjson.dumps(result).decode()
