"""Tool names and schemas for chat completions."""

from __future__ import annotations

import logging
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.providers.names import ToolNames
from agent.providers.schemas import is_strict, object_schema, structured_output

AWKWARD = ["admin.tools.list", "admin_tools_list", "a b", "über", "", "x" * 70, "x" * 71, "Look", "look", "a_b"]

names = st.one_of(st.sampled_from(AWKWARD), st.text("ab._- é", max_size=80))


@given(st.lists(names, max_size=12), st.randoms())
def test_every_set_of_names_becomes_legal_and_comes_back(originals: list[str], order: object) -> None:
    """B85: legal, without collisions, independent of the order, and mapped back."""
    table = ToolNames(originals)
    wire = {name: table.wire(name) for name in originals}
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in wire.values())
    assert len(set(wire.values())) == len(wire)
    assert all(table.original(made) == name for name, made in wire.items())
    assert {name: ToolNames(reversed(originals)).wire(name) for name in originals} == wire


def test_legal_names_stay_and_dots_become_underscores_where_they_can() -> None:
    assert ToolNames(["look", "local.look"]).wire("local.look") == "local_look"
    both = ToolNames(["local_look", "local.look"])
    assert both.wire("local_look") == "local_look"
    assert re.fullmatch(r"local_look_[0-9a-f]{16}", both.wire("local.look"))


def test_a_tool_that_is_gone_still_has_a_legal_name_in_the_history() -> None:
    table = ToolNames(["here"])
    assert table.wire("gone") == "gone"
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", table.wire("gone.for.good"))
    assert table.original("made up") == "made up"


@pytest.mark.parametrize(
    "schema", [{"type": "object"}, {}, {"type": "object", "properties": None}, {"type": ["object", "null"]}]
)
def test_a_tool_without_parameters_has_an_empty_object(schema: dict[str, object]) -> None:
    """B87, on a copy."""
    before = dict(schema)
    made = object_schema(schema)
    assert made is not None
    assert (made["type"], made["properties"]) == ("object", {})
    assert schema == before


@pytest.mark.parametrize("schema", [{"type": "array"}, {"type": "string"}, {"type": ["null"]}])
def test_a_schema_of_something_else_is_refused(schema: dict[str, object]) -> None:
    assert object_schema(schema) is None


def test_combinators_at_the_root_become_one_object_that_allows_what_they_allow() -> None:
    """B88."""
    one = {"type": "object", "properties": {"a": {"type": "integer"}, "c": {"type": "null"}}, "required": ["a", "c"]}
    two = {"type": "object", "properties": {"b": {"type": "string"}, "c": {"type": "string"}}, "required": ["b", "c"]}
    for combinator, required in (("anyOf", ["c"]), ("oneOf", ["c"]), ("allOf", ["a", "b", "c"])):
        made = object_schema({combinator: [one, two]})
        assert made is not None and combinator not in made
        assert made["required"] == required
        if combinator != "allOf":
            jsonschema.validate({"a": 1, "c": None}, made)
            jsonschema.validate({"b": "x", "c": "y"}, made)


def test_references_at_the_root_are_followed_and_cycles_end() -> None:
    """B88."""
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    made = object_schema({"$ref": "#/$defs/node", "$defs": {"node": node}, "$schema": "x", "$id": "y"})
    assert made is not None
    assert made["properties"] == node["properties"] and made["$defs"] == {"node": node}
    assert "$schema" not in made and "$id" not in made and "$ref" not in made
    loop = object_schema({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}})
    assert loop is not None and loop["properties"] == {}
    assert object_schema({"$ref": "#/$defs/missing"}) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "https://example.com/schema.json"}}},
        {"properties": {"a": {"items": [{"$ref": "#/$defs/missing"}]}}},
        {"properties": {"a": {"anyOf": [{"not": {"$ref": "#anchor"}}]}}},
        {"additionalProperties": {"$ref": 5}},
        {"anyOf": [{"$ref": "#/$defs/n"}], "properties": {"a": {"$ref": "#/anyOf/0"}}, "$defs": {"n": {}}},
    ],
)
def test_a_reference_that_leads_nowhere_cannot_be_expressed(schema: dict[str, Any]) -> None:
    """B88: that tool is left out, instead of a refused request."""
    assert object_schema(schema) is None


def test_references_inside_stay_where_they_lead_somewhere() -> None:
    """B88."""
    schema: dict[str, Any] = {
        "properties": {"self": {"$ref": "#"}, "a": {"$ref": "#/$defs/a~1b"}},
        "$defs": {"a/b": {"prefixItems": [{"$ref": "#/$defs/any"}]}, "any": True},
    }
    made = object_schema(schema)
    assert made is not None and made["properties"] == schema["properties"] and made["$defs"] == schema["$defs"]


def test_what_providers_refuse_at_the_root_is_left_out() -> None:
    """B88: it still counts where the arguments are checked."""
    made = object_schema(
        {"type": "object", "not": {"required": ["a"]}, "if": {}, "then": {}, "enum": [{}], "const": {}}
    )
    assert made == {"type": "object", "properties": {}}


CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        ({**CLOSED, "properties": {"a": CLOSED}}, True),
        ({**CLOSED, "properties": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}}}, True),
        ({**CLOSED, "required": []}, False),
        ({**CLOSED, "additionalProperties": True}, False),
        ({"type": "object", "properties": {}}, False),
        ({**CLOSED, "properties": {"a": {"type": "object"}}}, False),
        ({**CLOSED, "properties": {"a": {"oneOf": [{"type": "null"}]}}}, False),
        ({**CLOSED, "properties": {"a": {"type": "string", "default": "x"}}}, False),
    ],
)
def test_strict_mode_is_for_schemas_that_it_does_not_change(schema: dict[str, Any], *, strict: bool) -> None:
    """B88."""
    assert is_strict(schema) is strict


def test_the_form_of_an_answer_is_made_strict_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """P53, P54: on a copy."""
    schema = {
        "$schema": "x",
        "type": "object",
        "properties": {
            "kind": {"const": "note"},
            "parts": {"type": "array", "items": {"properties": {"n": {"type": "integer", "default": 1}}}},
            "either": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/part"}]},
        },
        "required": ["kind"],
        "patternProperties": {"^x": {}},
        "$defs": {"part": {"type": "object", "additionalProperties": {"type": "string"}}},
    }
    before = repr(schema)
    with caplog.at_level(logging.WARNING):
        made = structured_output(schema)
    assert repr(schema) == before and made is not None
    assert (made["name"], made["strict"], is_strict(made["schema"])) == ("structured_output", True, True)
    assert made["schema"] == {
        "type": "object",
        "properties": {
            "kind": {"enum": ["note"]},
            "parts": {
                "type": "array",
                "items": {"properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False},
            },
            "either": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/part"}]},
        },
        "required": ["kind", "parts", "either"],
        "additionalProperties": False,
        "$defs": {"part": {"type": "object", "properties": {}, "required": [], "additionalProperties": False}},
    }
    for words in ("further properties are not allowed", "'either', 'parts' must be there", "'patternProperties'"):
        assert words in caplog.text


def test_a_form_that_means_the_same_brings_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    """P54."""
    with caplog.at_level(logging.WARNING):
        assert structured_output(CLOSED) == {"name": "structured_output", "schema": CLOSED, "strict": True}
    assert caplog.text == ""


def test_a_form_that_is_no_object_is_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """P54."""
    with caplog.at_level(logging.WARNING):
        assert structured_output({"type": "array"}) is None
    assert "cannot be expressed" in caplog.text
