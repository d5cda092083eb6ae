"""Functions as front-end tools."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from agent.tools.client_schema import compile_schema
from conversations.client.tools import call, client_tool


def find(text: str, most: int = 3, where: list[str] | None = None, how: Literal["exact", "loose"] = "exact") -> str:
    """Find a text."""
    return text * most


def test_a_function_becomes_a_tool_whose_schema_the_server_takes() -> None:
    made = client_tool(find)
    assert made.to_wire() == {
        "name": "find",
        "description": "Find a text.",
        "annotations": {"readOnlyHint": False},
        "inputSchema": {
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "most": {"type": "integer"},
                "where": {"type": ["array", "null"], "items": {"type": "string"}},
                "how": {"type": ["string"], "enum": ["exact", "loose"]},
            },
            "required": ["text"],
            "additionalProperties": False,
        },
    }
    compile_schema(made.schema)


def test_name_description_and_read_only_can_be_given() -> None:
    made = client_tool(name="text.find", description="Look.", read_only=True)(find)
    assert (made.name, made.description, made.read_only) == ("text.find", "Look.", True)


def silent(text: str) -> None: ...


def strange(text: complex) -> None:
    """Take a number."""


def loose(*texts: str) -> None:
    """Take everything."""


@pytest.mark.parametrize(
    ("function", "words"), [(silent, "docstring"), (strange, "'text' has the type"), (loose, "by name")]
)
def test_what_cannot_be_a_tool_is_refused_in_words(function: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        client_tool(function)


async def test_plain_and_async_functions_and_functions_that_return_awaitables_are_called() -> None:
    async def later(text: str) -> str:
        return text

    assert await call(find, text="a", most=2) == "aa"
    assert await call(later, "b") == "b"
    assert await call(lambda function: function, function="an argument of any name") == "an argument of any name"
    assert await call(lambda text: later(text), text="c") == "c"
