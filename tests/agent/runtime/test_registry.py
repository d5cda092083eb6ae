"""Which tools a run has, and that this does not change under it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from pydantic import ValidationError

from agent.runtime import (
    InvalidArgument,
    Tool,
    ToolAlreadyRegisteredError,
    ToolAnnotations,
    ToolDefinition,
    ToolInspection,
    ToolRegistry,
    ToolRegistrySnapshot,
    create_runtime,
)
from agent.testing import EventRecorder, ScriptedModel, calls, says, scripted_tool


class Source:
    """A source whose tools a test sets, with a gate to hold its answer up."""

    def __init__(self, id: str, *names: str) -> None:
        self.id = id
        self.names = names
        self.error: Exception | None = None
        self.gate: asyncio.Event | None = None

    async def list_tools(self) -> Sequence[Tool]:
        names, gate = self.names, self.gate
        if gate is not None:
            await gate.wait()
        if self.error is not None:
            raise self.error
        return [scripted_tool(name) for name in names]


def names(snapshot: ToolRegistrySnapshot) -> list[str]:
    return [tool.name for tool in snapshot.tools]


async def test_a_tool_registered_during_a_run_affects_only_the_next_one() -> None:
    """R96, R97, R195."""
    registry = ToolRegistry([scripted_tool("first")])

    async def add(_: object) -> str:
        registry.register(scripted_tool("second"))
        return "x"

    registry.register(scripted_tool("adds", add))
    model = ScriptedModel(calls(("adds", {})), calls(("second", {})), says("Sorry"), says("ok"))
    runtime = create_runtime(model, tool_call_errors="report")
    runtime.tools = registry
    recorder = EventRecorder()
    await runtime.start("Go", observer=recorder).result
    await runtime.start("Again").result
    assert [tool.name for tool in model.requests[1].tools] == ["adds", "first"]
    assert [tool.name for tool in model.requests[3].tools] == ["adds", "first", "second"]
    assert recorder.types().count("tool-call-started") == 1


def test_a_name_is_taken_once_and_free_again_after_dispose() -> None:
    """R99, R100."""
    registry = ToolRegistry()
    registration = registry.register(scripted_tool("one"))
    with pytest.raises(ToolAlreadyRegisteredError):
        registry.register(scripted_tool("one"))
    registration.dispose()
    again = registry.register(scripted_tool("one"))
    registration.dispose()
    assert names(registry.snapshot()) == ["one"]
    again.dispose()
    assert names(registry.snapshot()) == []


def test_a_subscriber_hears_at_once_and_of_every_change() -> None:
    """R100."""
    registry, heard = ToolRegistry(), list[list[str]]()
    subscription = registry.subscribe(lambda snapshot: heard.append(names(snapshot)))
    registration = registry.register(scripted_tool("b"))
    registry.register(scripted_tool("a"))
    registration.dispose()
    subscription.dispose()
    registry.register(scripted_tool("c"))
    assert heard == [[], ["b"], ["a", "b"], ["a"]]


async def test_a_refresh_takes_over_what_the_sources_offer() -> None:
    registry, source = ToolRegistry([scripted_tool("mine")]), Source("s", "theirs")
    registration = registry.add_source(source)
    assert names(registry.snapshot()) == ["mine"]
    assert names(await registry.refresh()) == ["mine", "theirs"]
    source.names = ("other",)
    assert names(await registry.refresh()) == ["mine", "other"]
    registration.dispose()
    registration.dispose()
    assert names(registry.snapshot()) == ["mine"]


@pytest.mark.parametrize("fault", ["raises", "double", "mine"])
async def test_a_refresh_is_all_or_nothing(fault: str) -> None:
    """R99, R100, R195."""
    registry, good, bad = ToolRegistry([scripted_tool("mine")]), Source("good", "a"), Source("bad", "b")
    registry.add_source(good)
    registry.add_source(bad)
    before = await registry.refresh()
    good.names = ("new",)
    if fault == "raises":
        bad.error = OSError("down")
    else:
        bad.names = ("new",) if fault == "double" else ("mine",)
    with pytest.raises((OSError, ToolAlreadyRegisteredError)):
        await registry.refresh()
    after = registry.snapshot()
    assert (names(after), after.revision) == (names(before), before.revision)
    with pytest.raises(ToolAlreadyRegisteredError):
        registry.register(scripted_tool("a"))


async def test_an_overtaken_refresh_changes_nothing() -> None:
    """R100: the generation guard."""
    registry, source = ToolRegistry(), Source("s", "old")
    registry.add_source(source)
    source.gate = slow = asyncio.Event()
    first = asyncio.create_task(registry.refresh())
    await asyncio.sleep(0)
    source.names, source.gate = ("new",), None
    await registry.refresh()
    slow.set()
    await first
    assert names(registry.snapshot()) == ["new"]


async def test_source_ids_are_unique() -> None:
    """R100."""
    registry = ToolRegistry()
    registry.add_source(Source("s"))
    with pytest.raises(InvalidArgument):
        registry.add_source(Source("s"))


def test_what_is_no_tool_is_refused() -> None:
    with pytest.raises(InvalidArgument):
        ToolRegistry(["tool"])  # type: ignore[list-item]


async def test_an_inspector_sees_the_run_and_otherwise_the_registry() -> None:
    """R104."""
    registry = ToolRegistry([scripted_tool("one")])
    running = registry.snapshot()
    registry.register(scripted_tool("two"))
    assert ToolInspection.of(registry, running).source == "current-execution"
    assert len(ToolInspection.of(registry, running).tools) == 1
    idle = ToolInspection.of(registry)
    assert (idle.source, len(idle.tools)) == ("current-registry", 2)


@pytest.mark.parametrize("name", ["", "a b", "über", "x" * 129, "a/b", "a\n"])
def test_tool_names_follow_the_pattern(name: str) -> None:
    """R101."""
    with pytest.raises(ValidationError):
        ToolDefinition(name=name, description="d", input_schema={})


def test_a_description_is_not_blank_and_a_source_is_known() -> None:
    """R101, R102."""
    with pytest.raises(ValidationError):
        ToolDefinition(name="t", description=" \n", input_schema={})
    with pytest.raises(ValidationError):
        ToolDefinition(name="t", description="d", input_schema={}, source="OPENAPI")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "read_only", "declared", "needed"),
    [
        ("LOCAL", False, None, True),
        ("LOCAL", True, None, False),
        ("LOCAL", False, False, False),
        ("LOCAL", True, True, True),
        ("FRONTEND_LOCAL", False, False, True),
        ("FRONTEND_LOCAL", True, False, False),
        ("FRONTEND_LOCAL", True, True, True),
        ("WEBMCP", False, False, True),
        ("MCP", False, False, False),
    ],
)
def test_when_a_tool_needs_a_confirmation(source: str, read_only: bool, declared: bool | None, needed: bool) -> None:
    """R87, R103."""
    annotations = ToolAnnotations(read_only_hint=read_only, require_confirmation=declared)
    definition = ToolDefinition(
        name="t",
        description="d",
        input_schema={},
        source=source,  # type: ignore[arg-type]
        annotations=annotations,
    )
    assert definition.needs_confirmation is needed
