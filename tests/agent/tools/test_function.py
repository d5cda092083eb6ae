"""What a decorated function becomes, and how its calls end."""

from __future__ import annotations

import asyncio
import contextvars
import math
import subprocess
import sys
import threading
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any

import pytest
from pydantic import BaseModel

from agent.runtime.exceptions import ToolFailed
from agent.runtime.tools import ToolAnnotations, ToolCallResult
from agent.testing import call_tool
from agent.tools import ToolContext, ToolError, tool


class Colour(StrEnum):
    RED = "red"


class Book(BaseModel):
    title: str
    printed: date


def test_a_bare_decorator_takes_name_description_and_annotations_from_the_defaults_of_r109() -> None:
    @tool
    def greet(name: str) -> str:
        """Greet somebody."""
        return f"Hello {name}"

    assert greet.definition.name == "local.greet"
    assert greet.definition.description == "Greet somebody."
    assert greet.definition.source == "LOCAL"
    assert greet.definition.permissions == ()
    assert greet.definition.annotations == ToolAnnotations(require_confirmation=False)
    assert not greet.definition.needs_confirmation


def test_the_options_of_the_decorator_reach_the_definition_r109() -> None:
    @tool(
        name="shop.delete",
        description="Delete an order.",
        read_only=False,
        destructive=True,
        idempotent=True,
        require_confirmation=True,
        permissions=["shop.delete_order"],
    )
    async def remove(order: int) -> None:
        """Not shown to the model."""

    definition = remove.definition
    assert (definition.name, definition.description) == ("shop.delete", "Delete an order.")
    assert definition.annotations.destructive_hint and definition.annotations.idempotent_hint
    assert definition.needs_confirmation
    assert definition.permissions == ("shop.delete_order",)


async def test_an_async_function_runs_on_the_loop_and_a_sync_one_in_a_thread_of_its_own() -> None:
    @tool
    async def here() -> str:
        """Name the thread."""
        return str(threading.get_ident())

    @tool
    def elsewhere() -> str:
        """Name the thread."""
        assert threading.current_thread().daemon
        return str(threading.get_ident())

    assert (await call_tool(here)).content == str(threading.get_ident())
    assert (await call_tool(elsewhere)).content != str(threading.get_ident())


async def test_a_sync_function_sees_the_context_variables_of_its_caller() -> None:
    language: contextvars.ContextVar[str] = contextvars.ContextVar("language", default="en")

    @tool
    def speak() -> str:
        """Say the language."""
        spoken = language.get()
        language.set("changed in the thread")
        return spoken

    language.set("fr")
    assert (await call_tool(speak)).content == "fr"
    assert language.get() == "fr"


async def test_the_context_is_injected_and_progress_works_from_the_thread_r8() -> None:
    said: list[str] = []

    @tool
    def work(where: ToolContext, steps: int = 1, maybe: ToolContext | None = None) -> str:
        """Work."""
        assert maybe is where
        where.progress(f"{steps} to go")
        return str(where.principal)

    assert set(work.definition.input_schema["properties"]) == {"steps"}
    assert (await call_tool(work, {"steps": 2}, principal="Ada", progress=said.append)).content == "Ada"
    assert said == ["2 to go"]


async def test_a_model_cannot_fill_the_context_r8() -> None:
    @tool
    def work(where: ToolContext) -> str:
        """Work."""
        return "worked"

    result = await call_tool(work, {"where": {"principal": "root"}})
    assert result.is_error and "'where' is not a parameter" in result.content


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "'count' is required"),
        ({"count": "5"}, "'count'"),
        ({"count": True}, "'count'"),
        ({"count": 1.5}, "'count'"),
        ({"count": math.nan}, "'count'"),
        ({"count": 10**30}, "'count'"),
        ({"count": 1, "size": 2}, "'size' is not a parameter (known: 'count', 'colour')"),
        ({"count": 1, "colour": "blue"}, "'colour'"),
    ],
)
async def test_arguments_that_break_the_schema_give_an_error_that_names_the_field_and_call_nothing_r106(
    arguments: dict[str, Any], named: str
) -> None:
    calls: list[int] = []

    @tool
    def paint(count: int, colour: Colour = Colour.RED) -> None:
        """Paint."""
        calls.append(count)

    result = await call_tool(paint, arguments)
    assert result.is_error
    assert named in result.content and "local.paint" in result.content
    assert calls == []


async def test_a_long_list_of_violations_is_cut_short() -> None:
    @tool
    def quiet() -> None:
        """Do nothing."""

    result = await call_tool(quiet, {f"{'x' * 500}{number}": 1 for number in range(500)})
    assert len(result.content) < 2_000 and "and 492 more" in result.content


async def test_arguments_arrive_as_the_types_that_were_declared_and_left_out_ones_keep_their_default() -> None:
    seen: list[object] = []

    @tool
    async def shelve(book: Book, since: date, copies: int = 3, colour: Colour = Colour.RED) -> None:
        """Shelve."""
        seen.extend([book, since, copies, colour])

    await call_tool(shelve, {"book": {"title": "Emma", "printed": "1815-12-23"}, "since": "2024-02-29"})
    assert seen == [Book(title="Emma", printed=date(1815, 12, 23)), date(2024, 2, 29), 3, Colour.RED]


async def test_a_whole_number_written_as_a_double_is_an_integer() -> None:
    @tool
    def double(number: int, weights: list[float]) -> list[float]:
        """Double."""
        return [number * 2, *weights]

    assert (await call_tool(double, {"number": 4.0, "weights": [1.5, 2.0]})).content == "[8,1.5,2.0]"


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("as it is", "as it is"),
        ("", ""),
        (None, ""),
        (Colour.RED, "red"),
        (True, "true"),
        (3, "3"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        ((1, 2), "[1,2]"),
        ({"mean": math.nan, "max": math.inf}, '{"mean":null,"max":null}'),
        (10**30, '"1000000000000000000000000000000"'),
        (Book(title="Emma", printed=date(1815, 12, 23)), '{"title":"Emma","printed":"1815-12-23"}'),
        ([{"book": Book(title="x", printed=date(2000, 1, 1))}], '[{"book":{"title":"x","printed":"2000-01-01"}}]'),
        ("a\x00b\ud800", "a\ufffdb\ufffd"),
        ({"k\x00": "\udfff"}, '{"k\ufffd":"\ufffd"}'),
        ("literal \\u0000 stays", "literal \\u0000 stays"),
    ],
)
async def test_what_a_function_returns_becomes_text_b69_b71_r107(value: object, content: str) -> None:
    @tool
    def give() -> Any:
        """Give."""
        return value

    result = await call_tool(give)
    assert (result.content, result.is_error) == (content, False)


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def _cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "value",
    [
        object(),
        {1: "a"},
        {"x": {1, 2}},
        b"\xff\xfe\x00",
        datetime(2024, 1, 1, tzinfo=UTC),
        1j,
        _nested(100_000),
        _cyclic(),
    ],
    ids=["object", "key", "set", "bytes", "datetime", "complex", "deep", "cyclic"],
)
async def test_a_value_that_is_no_json_raises_b73_b92_r107(value: object) -> None:
    @tool
    def give() -> Any:
        """Give."""
        return value

    with pytest.raises(ToolFailed, match=r"local\.give"):
        await call_tool(give)


async def test_a_complete_result_passes_through_untouched() -> None:
    made = ToolCallResult(tool_call_id="another", content="x", is_error=True)

    @tool
    def give() -> ToolCallResult:
        """Give."""
        return made

    assert await call_tool(give) is made


@pytest.mark.parametrize("in_thread", [True, False])
async def test_a_tool_error_is_an_error_result_and_any_other_exception_propagates_r80_r81(in_thread: bool) -> None:
    async def asynchronous(kind: str) -> None:
        """Fail."""
        raise ToolError("no such order") if kind == "business" else LookupError("bug")

    def synchronous(kind: str) -> None:
        """Fail."""
        raise ToolError("no such order") if kind == "business" else LookupError("bug")

    failing = tool(synchronous if in_thread else asynchronous)
    result = await call_tool(failing, {"kind": "business"})
    assert (result.content, result.is_error) == ("no such order", True)
    with pytest.raises(LookupError, match="bug"):
        await call_tool(failing, {"kind": "bug"})


@pytest.mark.parametrize("leaving", [SystemExit(3), StopIteration(), KeyboardInterrupt(), asyncio.CancelledError()])
async def test_what_leaves_a_thread_in_an_odd_way_is_an_ordinary_error(leaving: BaseException) -> None:
    @tool
    def leave() -> None:
        """Leave."""
        raise leaving

    with pytest.raises(RuntimeError, match=type(leaving).__name__):
        await call_tool(leave)


async def test_a_wrapper_that_returns_a_coroutine_is_awaited() -> None:
    async def inner() -> str:
        return "from inside"

    @tool
    def outer() -> Any:
        """Hand out a coroutine."""
        return inner()

    assert (await call_tool(outer)).content == "from inside"


async def test_cancelling_a_call_abandons_its_thread_at_once() -> None:
    started, release, ended = threading.Event(), threading.Event(), threading.Event()

    @tool
    def block() -> str:
        """Block."""
        started.set()
        release.wait(10)
        ended.set()
        return "too late"

    task = asyncio.ensure_future(call_tool(block))
    await asyncio.to_thread(started.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not ended.is_set()
    release.set()
    assert await asyncio.to_thread(ended.wait, 10)


def test_an_abandoned_thread_does_not_hold_up_the_exit_of_the_interpreter() -> None:
    script = """
import asyncio, threading
from agent.tools.threads import run_in_thread

async def main():
    task = asyncio.ensure_future(run_in_thread(threading.Event().wait, name="stuck", ended_late=print))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

asyncio.run(main())
print("left")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "left\n"
    assert done.stderr == ""


def test_a_tool_needs_no_django() -> None:
    script = "import sys, agent.tools, agent.agent_tools; sys.exit('django' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], timeout=60, check=True)
