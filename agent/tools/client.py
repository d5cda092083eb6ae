"""Front-end tools: declared and run by a client, called like any other tool (R87, R102, R105-R107)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import orjson
from pydantic import ValidationError

from agent.runtime.exceptions import ToolFailed
from agent.runtime.tools import Tool, ToolAnnotations, ToolCallResult, ToolDefinition, ToolInvocation
from agent.runtime.values import FrozenDict, freeze
from agent.tools.client_schema import ClientSchema, compile_schema
from agent.tools.exceptions import ClientToolError, ToolError

ClientExecute: TypeAlias = Callable[[ToolInvocation], Awaitable[Any]]


def client_tool(
    name: str,
    description: str,
    input_schema: object,
    execute: ClientExecute,
    *,
    read_only: bool = False,
    destructive: bool = False,
    idempotent: bool = False,
    require_confirmation: bool | None = None,
) -> Tool:
    """Make a tool of the source FRONTEND_LOCAL, which asks a person before each call unless it is read-only (R87).

    `input_schema` is of the small subset of `client_schema`. `execute` gets the call once its arguments fit the schema
    and returns any JSON value: a string is the result as it is, anything else is serialised (R107). It may raise
    `ToolError` to tell the model of a failure.

    Raises `ClientToolError` for a name, description or schema that cannot be used.
    """
    schema = compile_schema(input_schema)
    try:
        definition = ToolDefinition(
            name=name,
            description=description,
            input_schema=schema.schema,
            source="FRONTEND_LOCAL",
            annotations=ToolAnnotations(
                read_only_hint=read_only,
                destructive_hint=destructive,
                idempotent_hint=idempotent,
                require_confirmation=require_confirmation,
            ),
        )
    except ValidationError as error:
        detail = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, detail["loc"]))
        raise ClientToolError(f"the front-end tool {name!r:.140} cannot be used: {where}: {detail['msg']}") from error
    handler = ClientHandler(name, schema, execute)
    return Tool(definition, handler, handler.check)


class ClientHandler:
    """Runs one front-end tool: checks the arguments, calls `execute`, and writes down what it returns."""

    def __init__(self, name: str, schema: ClientSchema, execute: ClientExecute) -> None:
        self.name = name
        self.schema = schema
        self.execute = execute

    async def __call__(self, invocation: ToolInvocation) -> ToolCallResult:
        """Answer the call; raises whatever `execute` raises, except `ToolError` (R80, R81)."""
        if problem := self.check(invocation.arguments):
            return _result(invocation, problem, is_error=True)
        try:
            value = await self.execute(invocation)
        except ToolError as error:
            return _result(invocation, error.message or f"{self.name} failed", is_error=True)
        if isinstance(value, ToolCallResult):
            return value
        return _result(invocation, self._content(value), is_error=False)

    def check(self, arguments: FrozenDict) -> str | None:
        """Return how the arguments violate the schema, None if they do not (R106)."""
        problems = self.schema.problems(arguments)
        return f"Invalid arguments for {self.name}: {'; '.join(problems)}" if problems else None

    def _content(self, value: object) -> str:
        if isinstance(value, str):
            return str.__str__(value)
        try:
            return orjson.dumps(freeze(value)).decode()
        except ValueError as error:
            raise ToolFailed(f"Tool {self.name!r} returned a value that is not JSON: {error}") from error


def _result(invocation: ToolInvocation, content: str, *, is_error: bool) -> ToolCallResult:
    return ToolCallResult(tool_call_id=invocation.call_id, content=content, is_error=is_error)
