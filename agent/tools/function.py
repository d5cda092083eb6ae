"""The `@tool` decorator: a typed function becomes a tool (R109)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, overload

import orjson
from pydantic import BaseModel, ValidationError

from agent.runtime.exceptions import ToolFailed
from agent.runtime.tools import (
    TOOL_NAME,
    Tool,
    ToolAnnotations,
    ToolCallResult,
    ToolContext,
    ToolDefinition,
    ToolInvocation,
)
from agent.runtime.values import MAX_DEPTH, FrozenDict, freeze
from agent.tools.docstring import read_docstring
from agent.tools.exceptions import ArgumentsError, ToolDeclarationError, ToolError
from agent.tools.schema import Parameters, read_parameters
from agent.tools.threads import run_in_thread


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: bool = False,
    destructive: bool = False,
    idempotent: bool = False,
    require_confirmation: bool = False,
    permissions: Iterable[str] = (),
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: bool = False,
    destructive: bool = False,
    idempotent: bool = False,
    require_confirmation: bool = False,
    permissions: Iterable[str] = (),
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a sync or async function; bare `@tool` or with options.

    The name defaults to `local.<function>`, the description to the docstring; the input schema comes from the type
    hints, and its texts from the docstring's `Args:` or from `Annotated[..., Field(description=...)]`. A parameter
    annotated `ToolContext` is injected and not part of the schema (R8). Sync functions run in a thread.

    Raises `ToolDeclarationError` for a function that cannot become a tool.
    """
    if function is None:
        return partial(
            tool,
            name=name,
            description=description,
            read_only=read_only,
            destructive=destructive,
            idempotent=idempotent,
            require_confirmation=require_confirmation,
            permissions=permissions,
        )
    _check_function(function)
    documented = read_docstring(function.__doc__)
    parameters = read_parameters(function, documented)
    definition = _definition(
        function,
        name=f"local.{function.__name__}" if name is None else name,
        description=documented.description if description is None else description,
        input_schema=parameters.schema,
        annotations=ToolAnnotations(
            read_only_hint=read_only,
            destructive_hint=destructive,
            idempotent_hint=idempotent,
            require_confirmation=require_confirmation,
        ),
        permissions=permissions,
    )
    handler = FunctionHandler(definition.name, function, parameters)
    return Tool(definition, handler, handler.check)


class FunctionHandler:
    """Runs one tool function: validates the arguments, calls it, and turns what it returns into a result."""

    def __init__(self, name: str, function: Callable[..., Any], parameters: Parameters) -> None:
        self.name = name
        self.function = function
        self.parameters = parameters

    async def __call__(self, invocation: ToolInvocation) -> ToolCallResult:
        """Answer the call; raises whatever the function raises, except `ToolError` (R80, R81)."""
        try:
            arguments = self.parameters.validate(invocation.arguments)
        except ArgumentsError as error:
            return _result(invocation, self._invalid(error), is_error=True)
        arguments.update((name, invocation.context) for name in self.parameters.context_names)
        try:
            value = await self._call(arguments, invocation.context)
        except ToolError as error:
            return _result(invocation, error.message or f"{self.name} failed", is_error=True)
        if isinstance(value, ToolCallResult):
            return value
        return _result(invocation, self._content(value), is_error=False)

    def check(self, arguments: FrozenDict) -> str | None:
        """Return how the arguments violate the type hints, None if they do not."""
        try:
            self.parameters.validate(arguments)
        except ArgumentsError as error:
            return self._invalid(error)
        return None

    def _invalid(self, error: ArgumentsError) -> str:
        return f"Invalid arguments for {self.name}: {error}"

    async def _call(self, arguments: dict[str, Any], context: ToolContext) -> Any:
        call = partial(self.function, **arguments)
        if inspect.iscoroutinefunction(self.function):
            return await call()
        value = await run_in_thread(call, name=self.name, ended_late=context.ended_late)
        return await value if inspect.isawaitable(value) else value

    def _content(self, value: Any) -> str:
        """A string as it is, any other JSON serialised; what is no JSON ends the run (R107)."""
        if isinstance(value, str):
            return str.__str__(value)
        if value is None:
            return ""
        try:
            return orjson.dumps(freeze(_plain(value))).decode()
        except (ValueError, TypeError) as error:
            raise ToolFailed(f"Tool {self.name!r} returned a value that is not JSON: {error}") from error


def _check_function(function: Any) -> None:
    if not inspect.isroutine(function) or not hasattr(function, "__qualname__"):
        raise ToolDeclarationError(f"@tool decorates functions, got {function!r}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolDeclarationError(f"{function.__qualname__} is a generator; a tool returns one value")


def _definition(
    function: Callable[..., Any],
    *,
    name: str,
    description: str,
    input_schema: dict[str, Any],
    annotations: ToolAnnotations,
    permissions: Iterable[str],
) -> ToolDefinition:
    where = f"{function.__module__}.{function.__qualname__}"
    if not TOOL_NAME.fullmatch(name):
        raise ToolDeclarationError(f"{where}: {name!r} is no tool name; it must match {TOOL_NAME.pattern}")
    if not description.strip():
        raise ToolDeclarationError(f"{where} has no description; write a docstring or pass description=")
    if isinstance(permissions, str):
        raise ToolDeclarationError(f"{where}: permissions is a sequence of names, got {permissions!r}")
    try:
        return ToolDefinition(
            name=name,
            description=description.strip(),
            input_schema=input_schema,
            annotations=annotations,
            permissions=tuple(permissions),
        )
    except ValidationError as error:
        raise ToolDeclarationError(f"{where} cannot be a tool: {error}") from error


def _result(invocation: ToolInvocation, content: str, *, is_error: bool) -> ToolCallResult:
    return ToolCallResult(tool_call_id=invocation.call_id, content=content, is_error=is_error)


def _plain(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Write pydantic models, wherever they stand, as plain data."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    if depth < 0:
        raise ValueError(f"JSON nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        return {key: _plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth - 1) for item in value]
    return value
