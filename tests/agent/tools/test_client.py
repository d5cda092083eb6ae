"""Front-end tools."""

from __future__ import annotations

import math
from typing import Any

import pytest

from agent.runtime import ToolCallResult, ToolFailed, ToolInvocation, create_runtime
from agent.runtime.messages import ToolResultBlock
from agent.testing import EventRecorder, ScriptedModel, call_tool, calls, says
from agent.tools import ClientToolError, ToolError, client_tool

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


class Browser:
    """Answers each call with one value, or raises it, and keeps the calls."""

    def __init__(self, answer: Any = "shown") -> None:
        self.answer = answer
        self.invocations: list[ToolInvocation] = []

    async def execute(self, invocation: ToolInvocation) -> Any:
        self.invocations.append(invocation)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def show_map(browser: Browser, **options: Any) -> Any:
    return client_tool("page.show_map", "Show a map of a city.", SCHEMA, browser.execute, **options)


@pytest.mark.parametrize(
    ("options", "asks"),
    [
        ({}, True),
        ({"require_confirmation": False}, True),
        ({"require_confirmation": True}, True),
        ({"read_only": True}, False),
        ({"read_only": True, "require_confirmation": False}, False),
        ({"read_only": True, "require_confirmation": True}, True),
        ({"idempotent": True, "destructive": False}, True),
    ],
)
def test_a_person_is_asked_unless_the_tool_is_read_only(options: dict[str, bool], asks: bool) -> None:
    """R87."""
    definition = show_map(Browser(), **options).definition
    assert definition.source == "FRONTEND_LOCAL"  # R102
    assert definition.needs_confirmation is asks


async def test_the_call_reaches_the_client_with_its_arguments() -> None:
    browser = Browser()
    result = await call_tool(show_map(browser), {"city": "Tromso"}, principal="Ada")
    assert (result.content, result.is_error) == ("shown", False)
    assert [invocation.arguments for invocation in browser.invocations] == [{"city": "Tromso"}]
    assert browser.invocations[0].context.principal == "Ada"


@pytest.mark.parametrize("arguments", [{}, {"city": 1}, {"city": "Tromso", "zoom": 3}])
async def test_arguments_that_break_the_schema_are_an_error_result_and_the_client_is_not_asked(
    arguments: dict[str, Any],
) -> None:
    """R106."""
    browser = Browser()
    result = await call_tool(show_map(browser), arguments)
    assert result.is_error
    assert result.content.startswith("Invalid arguments for page.show_map: '")
    assert browser.invocations == []


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("as it is", "as it is"),
        ('{"not": "parsed"}', '{"not": "parsed"}'),
        ("", ""),
        (None, "null"),
        (True, "true"),
        (4, "4"),
        (2.5, "2.5"),
        ({"a": [1, {"b": None}]}, '{"a":[1,{"b":null}]}'),
        (["ä"], '["ä"]'),
        (math.nan, "null"),
    ],
)
async def test_a_string_is_the_result_as_it_is_and_other_json_is_serialised(value: Any, content: str) -> None:
    """R107."""
    result = await call_tool(show_map(Browser(value)), {"city": "Tromso"})
    assert (result.content, result.is_error) == (content, False)


def endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize("value", [object(), b"bytes", {1: "a"}, {"a": {2}}, endless()])
async def test_a_value_that_is_no_json_ends_the_run(value: Any) -> None:
    """R107."""
    with ScriptedModel(calls(("page.show_map", {"city": "Tromso"}))) as model:
        execution = create_runtime(model, [show_map(Browser(value), read_only=True)]).start("Show me Tromso")
        with pytest.raises(ToolFailed, match="not JSON"):
            await execution.result


async def test_a_client_can_report_a_failure_to_the_model() -> None:
    """R80, R199."""
    result = await call_tool(show_map(Browser(ToolError("The page was left."))), {"city": "Tromso"})
    assert (result.content, result.is_error) == ("The page was left.", True)
    own = ToolCallResult(tool_call_id="another", content="no", is_error=True)
    assert await call_tool(show_map(Browser(own)), {"city": "Tromso"}) is own


async def test_an_exception_of_execute_goes_up() -> None:
    """R81."""
    with pytest.raises(ConnectionError):
        await call_tool(show_map(Browser(ConnectionError())), {"city": "Tromso"})


@pytest.mark.parametrize("approved", [True, False])
async def test_in_a_run_the_client_is_asked_only_after_a_person_agreed(approved: bool) -> None:
    """R85, R87."""
    browser, recorder = Browser(), EventRecorder()
    with ScriptedModel(calls(("page.show_map", {"city": "Tromso"})), says("There.")) as model:
        execution = create_runtime(model, [show_map(browser)]).start("Show me Tromso", observer=recorder)
        asked: Any = await recorder.wait_for("interrupt-requested")
        assert browser.invocations == []
        execution.respond(asked.interrupt.id, approved)
        result = await execution.result
    assert len(browser.invocations) == approved
    block = result.messages[2].blocks[0]
    assert isinstance(block, ToolResultBlock)
    assert block.status == ("success" if approved else "error")


@pytest.mark.parametrize(
    ("name", "description", "schema", "problem"),
    [
        ("show map", "Shows.", SCHEMA, "name"),
        ("show\n", "Shows.", SCHEMA, "name"),
        ("", "Shows.", SCHEMA, "name"),
        ("x" * 129, "Shows.", SCHEMA, "name"),
        (None, "Shows.", SCHEMA, "name"),
        ("show", " \n", SCHEMA, "description"),
        ("show", None, SCHEMA, "description"),
        ("show", "Shows.", {"type": "object", "minProperties": 1}, "'minProperties' is not supported"),
    ],
)
def test_a_tool_that_cannot_be_offered_is_refused_when_it_is_made(
    name: Any, description: Any, schema: Any, problem: str
) -> None:
    """R101, R105."""
    with pytest.raises(ClientToolError) as caught:
        client_tool(name, description, schema, Browser().execute)
    assert problem in caught.value.message
