"""The tool registry and the snapshot that one run works with (R96-R101)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from agent.runtime.exceptions import InvalidArgument, ToolAlreadyRegisteredError
from agent.runtime.tools import Tool, ToolCallResult, ToolDefinition, ToolInvocation


@dataclass(frozen=True, slots=True)
class ToolRegistrySnapshot:
    """Definitions and call routes of one moment: what the model sees is what can be called (R96, R98)."""

    revision: int
    tools: tuple[ToolDefinition, ...]
    _routes: Mapping[str, Tool] = field(repr=False)

    def get(self, name: str) -> ToolDefinition | None:
        """Return the definition of `name`, None if this run has no such tool."""
        tool = self._routes.get(name)
        return tool.definition if tool else None

    async def invoke(self, invocation: ToolInvocation) -> ToolCallResult | Mapping[str, Any]:
        """Call the tool and return what it answers, unchecked."""
        return await self._routes[invocation.name].handler(invocation)


class Registration:
    """A tool's place in the registry; `dispose` gives it up, as often as one likes (R100)."""

    def __init__(self, dispose: Callable[[], None]) -> None:
        self._dispose: Callable[[], None] | None = dispose

    def dispose(self) -> None:
        if self._dispose is not None:
            dispose, self._dispose = self._dispose, None
            dispose()


class ToolRegistry:
    """The tools of an agent; a change affects runs that start afterwards only (R97)."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._revision = 0
        self._subscribers: list[Callable[[ToolRegistrySnapshot], None]] = []
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool) -> Registration:
        """Add a tool; raises `ToolAlreadyRegisteredError` if its name is taken (R99)."""
        name = tool.definition.name
        if name in self._tools:
            raise ToolAlreadyRegisteredError(f"a tool named {name!r} is registered already")
        if not isinstance(tool.definition, ToolDefinition):
            raise InvalidArgument(f"{tool.definition!r} is no ToolDefinition")
        self._tools[name] = tool
        self._changed()
        return Registration(lambda: self._remove(name))

    def snapshot(self) -> ToolRegistrySnapshot:
        """Return the tools as they are now, sorted by name."""
        routes = dict(sorted(self._tools.items()))
        definitions = tuple(tool.definition for tool in routes.values())
        return ToolRegistrySnapshot(self._revision, definitions, MappingProxyType(routes))

    def subscribe(self, subscriber: Callable[[ToolRegistrySnapshot], None]) -> Registration:
        """Call `subscriber` now and after every change, until the registration is disposed (R100)."""
        self._subscribers.append(subscriber)
        subscriber(self.snapshot())
        return Registration(lambda: self._subscribers.remove(subscriber))

    def _remove(self, name: str) -> None:
        del self._tools[name]
        self._changed()

    def _changed(self) -> None:
        self._revision += 1
        for subscriber in tuple(self._subscribers):
            subscriber(self.snapshot())
