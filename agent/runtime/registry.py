"""The tool registry and the snapshot that one run works with (R96-R104).

Tools come from two sides: registered one by one, or offered by a source that `refresh` asks, such as an MCP server. A
refresh replaces all sources' tools or none; one that was overtaken by a newer one changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, Protocol

from agent.runtime.exceptions import InvalidArgument, ToolAlreadyRegisteredError
from agent.runtime.tools import Tool, ToolCallResult, ToolDefinition, ToolInvocation
from agent.runtime.values import FrozenDict


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

    def check(self, name: str, arguments: FrozenDict) -> str | None:
        """Return what is wrong with the arguments of a call, None if nothing is."""
        check = self._routes[name].check
        return check(arguments) if check is not None else None

    async def invoke(self, invocation: ToolInvocation) -> ToolCallResult | Mapping[str, Any]:
        """Call the tool and return what it answers, unchecked."""
        return await self._routes[invocation.name].handler(invocation)


class ToolProvider(Protocol):
    """A source of tools that may change; `id` is unique within a registry."""

    id: str

    async def list_tools(self) -> Sequence[Tool]:
        """Return all tools that the source offers now."""
        ...


class Registration:
    """A place in the registry; `dispose` gives it up, as often as one likes (R100)."""

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
        self._sources: dict[str, ToolProvider] = {}
        self._offered: dict[str, tuple[Tool, ...]] = {}
        self._revision = 0
        self._generation = 0
        self._subscribers: list[Callable[[ToolRegistrySnapshot], None]] = []
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool) -> Registration:
        """Add a tool; raises `ToolAlreadyRegisteredError` if its name is taken (R99)."""
        if not isinstance(tool, Tool):
            raise InvalidArgument(f"{tool!r} is no tool")
        name = tool.definition.name
        if name in self._routes(self._offered):
            raise _taken(name)
        self._tools[name] = tool
        self._changed()
        return Registration(lambda: self._remove(name))

    def add_source(self, source: ToolProvider) -> Registration:
        """Add a source, whose tools come with the next `refresh`; raises `InvalidArgument` if its id is taken."""
        if source.id in self._sources:
            raise InvalidArgument(f"a source with the id {source.id!r} is there already")
        self._sources[source.id] = source
        self._generation += 1
        return Registration(lambda: self._remove_source(source.id))

    async def refresh(self) -> ToolRegistrySnapshot:
        """Ask all sources and take over what they offer, all of it or nothing (R96, R100).

        Raises what a source raises, and `ToolAlreadyRegisteredError` where two offer one name; the registry then stays
        as it was. When another refresh or a change of sources came in between, this one changes nothing.
        """
        self._generation += 1
        generation = self._generation
        offered = {id: tuple(await source.list_tools()) for id, source in tuple(self._sources.items())}
        if generation == self._generation:
            self._routes(offered)  # raises before anything is changed
            if offered != self._offered:
                self._offered = offered
                self._changed()
        return self.snapshot()

    def snapshot(self) -> ToolRegistrySnapshot:
        """Return the tools as they are now, sorted by name."""
        routes = dict(sorted(self._routes(self._offered).items()))
        definitions = tuple(tool.definition for tool in routes.values())
        return ToolRegistrySnapshot(self._revision, definitions, MappingProxyType(routes))

    def subscribe(self, subscriber: Callable[[ToolRegistrySnapshot], None]) -> Registration:
        """Call `subscriber` now and after every change, until the registration is disposed (R100)."""
        self._subscribers.append(subscriber)
        subscriber(self.snapshot())
        return Registration(lambda: self._subscribers.remove(subscriber))

    def _routes(self, offered: Mapping[str, Sequence[Tool]]) -> dict[str, Tool]:
        routes = dict(self._tools)
        for tools in offered.values():
            for tool in tools:
                if tool.definition.name in routes:
                    raise _taken(tool.definition.name)
                routes[tool.definition.name] = tool
        return routes

    def _remove(self, name: str) -> None:
        del self._tools[name]
        self._changed()

    def _remove_source(self, id: str) -> None:
        del self._sources[id]
        self._generation += 1
        if self._offered.pop(id, ()):
            self._changed()

    def _changed(self) -> None:
        self._revision += 1
        for subscriber in tuple(self._subscribers):
            subscriber(self.snapshot())


@dataclass(frozen=True, slots=True)
class ToolInspection:
    """What an inspector shows (R104): the tools of a run in progress, or of the registry; read-only."""

    source: Literal["current-execution", "current-registry"]
    revision: int
    tools: tuple[ToolDefinition, ...]

    @classmethod
    def of(cls, registry: ToolRegistry, running: ToolRegistrySnapshot | None = None) -> ToolInspection:
        """Look at the snapshot of the run in progress, if there is one."""
        shown = running or registry.snapshot()
        return cls("current-execution" if running else "current-registry", shown.revision, shown.tools)


def _taken(name: str) -> ToolAlreadyRegisteredError:
    return ToolAlreadyRegisteredError(f"a tool named {name!r} is registered already")
