"""Front-end tools: functions of this program that an agent may call while a run of this client lasts."""

from __future__ import annotations

import asyncio
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, overload

PLAIN: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that this program runs; `schema` is of the small subset of JSON Schema in docs/tools.md.

    `function` is sync (it gets a thread of its own) or async, and takes the arguments by name. It returns any JSON
    value; what it raises is told to the model. A person confirms each call of a tool that is not `read_only`.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    function: Callable[..., Any]
    read_only: bool = False

    def to_wire(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": dict(self.schema),
            "annotations": {"readOnlyHint": self.read_only},
        }


@overload
def client_tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def client_tool(
    *, name: str | None = None, description: str | None = None, read_only: bool = False
) -> Callable[[Callable[..., Any]], Tool]: ...


def client_tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: bool = False,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function with annotations and a docstring; bare `@client_tool` or with options.

    Parameters may be str, int, float, bool, list[…], dict, Literal[…] and unions of them; others raise
    `TypeError`.
    """

    def make(function: Callable[..., Any]) -> Tool:
        said = description or inspect.getdoc(function) or ""
        if not said:
            raise TypeError(f"{function.__name__!r} needs a docstring: it tells the model what the tool does")
        return Tool(name or function.__name__, said, _schema_of(function), function, read_only)

    return make if function is None else make(function)


async def call(function: Callable[..., Any], /, *positional: Any, **named: Any) -> Any:
    """Call a sync function in a thread, or an async one, and return its result."""
    if inspect.iscoroutinefunction(function):
        return await function(*positional, **named)
    result = await asyncio.to_thread(function, *positional, **named)
    return await result if inspect.isawaitable(result) else result


def _schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    hints = get_type_hints(function)
    properties: dict[str, Any] = {}
    required = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"the parameter {name!r} cannot be given by name")
        properties[name] = _node(hints.get(name, str), name)
        if parameter.default is parameter.empty:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _node(hint: Any, name: str) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in PLAIN:
        return {"type": PLAIN[hint]}
    if origin is Literal:
        return {"type": sorted({PLAIN[type(value)] for value in arguments}), "enum": list(arguments)}
    if hint is list or origin is list:
        return {"type": "array"} | ({"items": _node(arguments[0], name)} if arguments else {})
    if hint is dict or origin is dict:
        return {"type": "object"}
    if origin in (Union, types.UnionType):
        nodes = [_node(each, name) for each in arguments]
        merged = {key: value for node in nodes for key, value in node.items()}
        simple = sum(len(node) > 1 for node in nodes) <= 1 and "enum" not in merged
        if simple:
            return merged | {"type": [node["type"] for node in nodes]}
    raise TypeError(f"the parameter {name!r} has the type {hint!r}, which a front-end tool cannot have")
