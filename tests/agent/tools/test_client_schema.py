"""The schema subset of front-end tools."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agent.runtime.values import freeze
from agent.tools.client_schema import MAX_PROBLEMS, MAX_SCHEMA_DEPTH, compile_schema
from agent.tools.exceptions import ClientToolError

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
NAMES = st.sampled_from(["a", "b", "c.d", "ä"])
NUMBERS = st.integers(-3, 3) | st.sampled_from([-0.0, 0.0, 1.0, 0.5, 2.0, 1e300, 2**63])
PRIMITIVES = st.none() | st.booleans() | NUMBERS | st.sampled_from(["", "a", "1", "true", "ä"])
VALUES = st.recursive(
    PRIMITIVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=8
)


@st.composite
def nodes(draw: st.DrawFn, depth: int = 2, *, root: bool = False) -> dict[str, Any]:
    """Schemas of the subset."""
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True))
    if root and "object" not in types:
        types.append("object")
    node: dict[str, Any] = {"type": types[0] if len(types) == 1 and draw(st.booleans()) else types}
    if draw(st.integers(0, 4)) == 0:
        node["enum"] = draw(st.lists(PRIMITIVES, min_size=1, max_size=4))
    if "object" in types:
        if depth and draw(st.booleans()):
            node["properties"] = draw(st.dictionaries(NAMES, nodes(depth - 1), max_size=3))
        if draw(st.booleans()):
            node["required"] = draw(st.lists(NAMES, max_size=2, unique=True))
        if draw(st.booleans()):
            node["additionalProperties"] = draw(st.booleans())
    if "array" in types and depth and draw(st.booleans()):
        node["items"] = draw(nodes(depth - 1))
    if draw(st.booleans()):
        node[draw(st.sampled_from(["title", "description"]))] = "A text."
    return node


@st.composite
def fitting(draw: st.DrawFn, schema: dict[str, Any]) -> Any:
    """Values that mostly fit a schema, so that both answers occur."""
    if draw(st.integers(0, 9)) == 0:
        return draw(VALUES)
    if "enum" in schema and draw(st.integers(0, 3)):
        return draw(st.sampled_from(schema["enum"]))
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    match draw(st.sampled_from(types)):
        case "null":
            return None
        case "boolean":
            return draw(st.booleans())
        case "integer":
            return draw(st.integers(-3, 3) | st.sampled_from([1.0, -0.0]))
        case "number":
            return draw(NUMBERS)
        case "string":
            return draw(st.sampled_from(["", "a", "ä"]))
        case "array":
            return draw(st.lists(fitting(schema["items"]) if "items" in schema else PRIMITIVES, max_size=3))
        case _:
            properties = schema.get("properties", {})
            value = {name: draw(fitting(node)) for name, node in properties.items() if draw(st.integers(0, 4))}
            for name in schema.get("required", ()):
                if name not in value and draw(st.integers(0, 4)):
                    value[name] = draw(fitting(properties[name]) if name in properties else PRIMITIVES)
            return value


@given(st.data())
def test_the_validator_agrees_with_jsonschema_on_every_schema_of_the_subset(data: st.DataObject) -> None:
    """R105, R106."""
    schema = data.draw(nodes(root=True))
    value = data.draw(fitting(schema))
    Draft202012Validator.check_schema(schema)
    problems = compile_schema(schema).problems(freeze(value))
    assert (not problems) == Draft202012Validator(schema).is_valid(value), problems


@settings(max_examples=50)
@given(st.data())
def test_what_is_compiled_is_the_schema_itself_and_any_further_keyword_is_refused(data: st.DataObject) -> None:
    schema = data.draw(nodes(root=True))
    assert compile_schema(schema).schema == freeze(schema)
    places = [schema]
    for place in places:
        places += [*place.get("properties", {}).values(), *([place["items"]] if "items" in place else [])]
    chosen = data.draw(st.sampled_from(places))
    chosen[data.draw(st.sampled_from(["minimum", "pattern", "$ref", "oneOf", "format", "default", "const", ""]))] = 1
    with pytest.raises(ClientToolError, match="not supported"):
        compile_schema(schema)


def nested(levels: int) -> dict[str, Any]:
    node: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        node = {"type": "object", "properties": {"x": node}}
    return node


OBJECT = {"type": "object"}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (None, "a schema is an object, got null"),
        ([OBJECT], "a schema is an object, got array"),
        ({}, "'type' is missing"),
        ({"properties": {}}, "'type' is missing"),
        ({"type": "string"}, "must include 'object', got string"),
        ({"type": ["array", "null"]}, "must include 'object', got array or null"),
        ({"type": []}, "at least one"),
        ({"type": ["object", "object"]}, "each type once"),
        ({"type": "thing"}, "'thing' is no type"),
        ({"type": ["object", 1]}, "1 is no type"),
        ({"type": ["object", ["null"]]}, "['null'] is no type"),
        ({"type": None}, "None is no type"),
        ({"type": {"object": 1}}, "is no type"),
        (OBJECT | {"properties": []}, "'properties' must be an object"),
        (OBJECT | {"properties": {1: OBJECT}}, "names in 'properties' are strings"),
        (OBJECT | {"properties": {"x": True}}, "at properties.x: a schema is an object, got boolean"),
        (OBJECT | {"properties": {"x": {"title": "X"}}}, "at properties.x: 'type' is missing"),
        (OBJECT | {"properties": {"x": {"type": "array", "items": {}}}}, "at properties.x.items: 'type' is missing"),
        (OBJECT | {"properties": {"x": {"type": "array", "items": [OBJECT]}}}, "a schema is an object, got array"),
        (OBJECT | {"required": "x"}, "'required' must be a list"),
        (OBJECT | {"required": [1]}, "'required' is a list of different names"),
        (OBJECT | {"required": ["x", "x"]}, "'required' is a list of different names"),
        (OBJECT | {"additionalProperties": {}}, "'additionalProperties' must be a boolean"),
        (OBJECT | {"additionalProperties": 0}, "'additionalProperties' must be a boolean"),
        (OBJECT | {"enum": []}, "'enum' is empty"),
        (OBJECT | {"enum": "ab"}, "'enum' must be a list"),
        (OBJECT | {"enum": [{}]}, "'enum' holds strings, numbers, booleans and null only"),
        (OBJECT | {"enum": [[1]]}, "'enum' holds strings, numbers, booleans and null only"),
        (OBJECT | {"enum": [float("nan")]}, "no number that arguments can have"),
        (OBJECT | {"enum": [2**70]}, "no number that arguments can have"),
        (OBJECT | {"title": 1}, "'title' must be a string"),
        (OBJECT | {"description": None}, "'description' must be a string"),
        (OBJECT | {"items": OBJECT}, "'items' needs the type 'array', got object"),
        (OBJECT | {"properties": {"x": {"type": "array", "required": []}}}, "'required' needs the type 'object'"),
        (OBJECT | {"properties": {"x": {"type": "null", "properties": {}}}}, "'properties' needs the type 'object'"),
        (OBJECT | {"properties": {"x": {"type": "string", "additionalProperties": False}}}, "needs the type 'object'"),
        (nested(MAX_SCHEMA_DEPTH + 1), "at most 32 levels"),
    ],
)
def test_a_schema_outside_the_subset_is_refused_at_registration(schema: Any, problem: str) -> None:
    """R105."""
    with pytest.raises(ClientToolError) as caught:
        compile_schema(schema)
    assert problem in caught.value.message
    assert caught.value.code == "INVALID_ARGUMENT"


def test_a_schema_nested_without_end_is_refused_and_one_at_the_limit_is_not() -> None:
    """B73."""
    compile_schema(nested(MAX_SCHEMA_DEPTH))
    with pytest.raises(ClientToolError, match="levels deep"):
        compile_schema(nested(5_000))


ORDER = compile_schema(
    {
        "type": "object",
        "properties": {
            "lines": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"count": {"type": "integer"}, "price": {"type": ["number", "null"]}},
                    "required": ["count"],
                    "additionalProperties": False,
                },
            },
            "wrap": {"type": "string", "enum": ["paper", "box"]},
            "gift": {"type": ["boolean", "integer"], "enum": [True, 2]},
        },
        "required": ["lines"],
        "additionalProperties": False,
    }
)


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        ({"lines": []}, []),
        ({"lines": [{"count": 1, "price": 2.5}, {"count": 2.0, "price": None}], "wrap": "box", "gift": True}, []),
        ({}, ["'lines' is required"]),
        ([], ["the arguments must be of type object, got array"]),
        ({"lines": {}}, ["'lines' must be of type array, got object"]),
        ({"lines": [{"count": True}]}, ["'lines.0.count' must be of type integer, got boolean"]),
        ({"lines": [{"count": 1.5}]}, ["'lines.0.count' must be of type integer, got number"]),
        ({"lines": [{"count": "1"}]}, ["'lines.0.count' must be of type integer, got string"]),
        ({"lines": [{"count": 1, "price": "2"}]}, ["'lines.0.price' must be of type number or null, got string"]),
        ({"lines": [{"count": 1}, {}]}, ["'lines.1.count' is required"]),
        ({"lines": [{"count": 1, "size": 2}]}, ["'lines.0.size' is not known here (known: 'count', 'price')"]),
        ({"lines": [], "wrap": "Box"}, ["'wrap' must be one of 'paper', 'box'"]),
        ({"lines": [], "gift": 1}, ["'gift' must be one of True, 2"]),
        ({"lines": [], "gift": 2.0}, []),
        ({"wrap": 1, "x": 1}, ["'lines' is required", "'wrap' must be of type string, got integer", "'x' is not"]),
    ],
)
def test_each_problem_names_its_place(arguments: Any, problems: list[str]) -> None:
    """R106."""
    found = ORDER.problems(freeze(arguments))
    assert len(found) == len(problems)
    assert all(text.startswith(start) for text, start in zip(found, problems, strict=True)), found


def test_the_list_of_problems_is_bounded_in_number_and_length() -> None:
    found = ORDER.problems(freeze({"lines": [{"x" * 5_000: 0} for _ in range(1_000)]}))
    assert len(found) == MAX_PROBLEMS
    assert sum(map(len, found)) < 200 * MAX_PROBLEMS
    wide = compile_schema(OBJECT | {"properties": {"x": {"type": "integer", "enum": list(range(5_000))}}})
    assert len(wide.problems({"x": -1})[0]) < 200


def test_a_later_change_of_the_schema_changes_nothing() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "string"}}}
    compiled = compile_schema(schema)
    schema["properties"]["x"]["type"] = "integer"
    assert compiled.problems({"x": "text"}) == []
    assert json.loads(json.dumps(compiled.schema))["properties"]["x"] == {"type": "string"}
