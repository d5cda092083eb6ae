"""docs/http.md shows what is really sent, and the OpenAPI document says the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest

from agent.runtime.messages import Value
from conversations import bodies, moving
from conversations.api import api, execution_schemas, schemas, shares, usage
from conversations.api import bodies as api_bodies
from conversations.api.errors import STATUS
from conversations.api.events import event_of
from conversations.api.examples import EXAMPLES
from conversations.api.execution_schemas import EVENT_EXAMPLE
from tests.docs.codes import REFUSALS

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text()
SHOWN = [(name, orjson.loads(text)) for name, text in re.findall(r"```json (\w+)\n(.*?)```", PAGE, re.DOTALL)]
OPENAPI: dict[str, Any] = orjson.loads(orjson.dumps(api.get_openapi_schema(), option=orjson.OPT_NON_STR_KEYS))


def model(name: str) -> type[Value]:
    found: type[Value] = next(
        getattr(each, name)
        for each in (schemas, execution_schemas, bodies, api_bodies, shares, usage, moving)
        if hasattr(each, name)
    )
    return found


@pytest.mark.parametrize(("name", "example"), [*SHOWN, *EXAMPLES.items()])
def test_each_example_is_what_its_model_says(name: str, example: Any) -> None:
    model(name).from_wire(example)
    schema = {"$ref": f"#/components/schemas/{name}", "components": OPENAPI["components"]}
    jsonschema.validate(example, schema)


def test_the_page_shows_each_example_of_the_openapi_document() -> None:
    for name, example in EXAMPLES.items():
        assert (name, example) in SHOWN, name
        assert OPENAPI["components"]["schemas"][name]["examples"] == [example]


def test_each_operation_is_on_the_page_and_has_a_schema_and_its_errors() -> None:
    for path, operations in OPENAPI["paths"].items():
        for method, operation in operations.items():
            address = re.sub(r"\{\w+\}", "{id}", path)
            assert f"`{method.upper()} {address}`" in PAGE, (method, path)
            if path.startswith("/ai/executions"):
                answers = operation["responses"]
                assert answers["404"]["content"]["application/json"]["schema"]["$ref"].endswith("/ErrorBody")
                (good,) = (answers[code] for code in answers if code in ("200", "202"))
                assert good["content"], path


def test_each_refusal_has_a_status() -> None:
    assert STATUS.keys() >= REFUSALS


def test_each_code_is_on_the_page_beside_its_status() -> None:
    for code, status in STATUS.items():
        assert any(line.startswith(f"| {status} |") and f"`{code}`" in line for line in PAGE.splitlines()), code


def test_the_event_of_the_page_is_made_like_a_real_one() -> None:
    assert EVENT_EXAMPLE.strip() in PAGE
    data = EVENT_EXAMPLE.split("data: ")[1].strip()
    assert b"".join(event_of(data.encode())[0]).decode() == EVENT_EXAMPLE
