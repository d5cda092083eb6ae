"""The input schema that a function gets, and the functions that are refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Annotated, Any, Literal, Optional

import orjson
import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

from agent.runtime.tools import Tool
from agent.testing import call_tool
from agent.tools import ToolContext, ToolDeclarationError, tool


class Node(BaseModel):
    """A node."""

    value: int
    children: list[Node] = []


def as_json(made: Tool) -> Any:
    return orjson.loads(orjson.dumps(made.definition.input_schema))


def test_types_defaults_and_the_args_section_make_the_schema() -> None:
    @tool
    def search(query: str, limit: int = 10, order: Literal["new", "old"] | None = None) -> str:
        """Search the archive.

        Finds exact words only.

        Args:
            query: What to look for,
                in quotes if it has spaces.
            limit (int, optional): How many at most: 10 is plenty.

        Returns:
            One hit a line.

        Raises:
            LookupError: Nobody needs to know.
        """
        return query

    assert search.definition.description == (
        "Search the archive.\n\nFinds exact words only.\n\nReturns:\n    One hit a line."
    )
    assert as_json(search) == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for, in quotes if it has spaces."},
            "limit": {"type": "integer", "default": 10, "description": "How many at most: 10 is plenty."},
            "order": {"anyOf": [{"type": "string", "enum": ["new", "old"]}, {"type": "null"}], "default": None},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def test_annotated_fields_win_over_the_docstring_and_bring_their_limits() -> None:
    @tool
    def pick(number: Annotated[int, Field(ge=1, le=6, description="The eyes of the die.")]) -> None:
        """Pick.

        Args:
            number: Anything.
        """

    assert pick.definition.input_schema["properties"]["number"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 6,
        "description": "The eyes of the die.",
    }


def test_a_function_without_parameters_has_an_object_schema_with_empty_properties_b87() -> None:
    @tool
    def now() -> None:
        """Now."""

    assert now.definition.input_schema == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


async def test_a_recursive_type_keeps_its_definitions_and_validates_b88() -> None:
    @tool
    def count(tree: Node) -> int:
        """Count."""
        return 1 + sum(len(child.children) + 1 for child in tree.children)

    schema = as_json(count)
    Draft202012Validator.check_schema(schema)
    assert "Node" in schema["$defs"] and schema["type"] == "object"
    assert (await call_tool(count, {"tree": {"value": 1, "children": [{"value": 2}]}})).content == "2"
    result = await call_tool(count, {"tree": {"value": 1, "children": [{"value": "two"}]}})
    assert result.is_error and "'tree.children.0.value'" in result.content


async def test_parameters_may_have_names_that_a_pydantic_model_keeps_for_itself() -> None:
    @tool
    def store(copy: str, schema: str, model_config: str, _hidden: str, title: str = "t") -> str:
        """Store."""
        return copy + schema + model_config + _hidden + title

    assert list(store.definition.input_schema["properties"]) == ["copy", "schema", "model_config", "_hidden", "title"]
    given = {"copy": "a", "schema": "b", "model_config": "c", "_hidden": "d"}
    assert (await call_tool(store, given)).content == "abcdt"
    assert (await call_tool(store, {**given, "parameter_0": "x"})).is_error


async def test_a_default_that_no_json_can_show_is_left_out_of_the_schema_and_still_used() -> None:
    marker = object()

    @tool
    def check(value: Any = marker) -> bool:
        """Check."""
        return value is marker

    assert "default" not in check.definition.input_schema["properties"]["value"]
    assert (await call_tool(check)).content == "true"


def no_hint(value):  # type: ignore[no-untyped-def]
    """Doc."""


def unresolved(value: Missing) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Doc."""


def stars(*values: int) -> None:
    """Doc."""


def double_stars(**values: int) -> None:
    """Doc."""


def positional(value: int, /) -> None:
    """Doc."""


def blank() -> None:
    """ """


def only_args(value: int) -> None:
    """
    Args:
        value: A value.
    """


def stale(value: int) -> None:
    """Doc.

    Args:
        valeu: A value.
    """


def no_schema(value: Callable[[], None]) -> None:
    """Doc."""


def unknown_type(value: asyncio.Event) -> None:
    """Doc."""


def hidden_context(contexts: list[ToolContext]) -> None:
    """Doc."""


def field_default(value: int = Field(3)) -> None:
    """Doc."""


def generator() -> Iterator[int]:
    """Doc."""
    yield 1


async def async_generator() -> AsyncIterator[int]:
    """Doc."""
    yield 1


def old_optional(value: Optional[ToolContext] = None) -> None:  # noqa: UP045
    """Doc."""


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (no_hint, "parameter 'value' has no type hint"),
        (unresolved, "Missing"),
        (stars, r"'\*values' has no schema"),
        (double_stars, r"'\*\*values' has no schema"),
        (positional, "'value' is positional-only"),
        (blank, "has no description"),
        (only_args, "has no description"),
        (stale, "'valeu', which is not a parameter"),
        (no_schema, "without a JSON schema"),
        (unknown_type, "without a JSON schema"),
        (hidden_context, "'contexts' must be a plain ToolContext"),
        (field_default, "put the Field of 'value' into Annotated"),
        (generator, "is a generator"),
        (async_generator, "is a generator"),
        (lambda: None, "'local.<lambda>' is no tool name"),
        (partial(blank), "decorates functions"),
        (Node, "decorates functions"),
        ("text", "decorates functions"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused_when_it_is_decorated(function: Any, problem: str) -> None:
    with pytest.raises(ToolDeclarationError, match=problem):
        tool(function)


@pytest.mark.parametrize("name", ["", "a b", "über", "x" * 129, "line\n", "a/b"])
def test_a_name_outside_r101_is_refused_b85(name: str) -> None:
    with pytest.raises(ToolDeclarationError, match="is no tool name"):
        tool(name=name, description="Doc.")(old_optional)


def test_a_blank_description_or_a_bare_string_of_permissions_is_refused_r101() -> None:
    with pytest.raises(ToolDeclarationError, match="no description"):
        tool(description=" \n")(old_optional)
    with pytest.raises(ToolDeclarationError, match="permissions is a sequence"):
        tool(permissions="one.permission")(old_optional)
