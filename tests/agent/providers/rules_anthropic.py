"""What the Messages API accepts, written down from its documentation and its error messages."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.agent.providers.pictures import TYPES

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ID = re.compile(r"[a-zA-Z0-9_-]+")
PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
MEMBERS = {
    *("model", "stream", "max_tokens", "temperature", "top_p", "stop_sequences", "output_config", "thinking"),
    *("tools", "tool_choice", "system", "messages"),
}
REASONING = ("thinking", "redacted_thinking")
MARKABLE = {"text", "image", "tool_use", "tool_result"}


def check(body: dict[str, Any]) -> None:
    """Fail where a request breaks the API's rules."""
    assert body.keys() <= MEMBERS, body.keys()
    assert body["model"] and body["max_tokens"] >= 1
    assert 0 <= body.get("temperature", 0) <= 1
    assert all(stop.strip() for stop in body.get("stop_sequences", ()))
    assert body.get("system", [{}]), "no empty instructions"
    for block in body.get("system", ()):
        assert block["type"] == "text" and block["text"].strip()
    if thinking := body.get("thinking"):
        assert 1_024 <= thinking["budget_tokens"] < body["max_tokens"]
        assert "temperature" not in body and body.get("top_p", 1) >= 0.95
        assert body.get("tool_choice", {"type": "auto"})["type"] in ("auto", "none"), "no tool is forced"
    check_tools(body)
    check_messages(body["messages"])
    check_marks(body)
    if "output_config" in body:
        check_closed(body["output_config"]["format"]["schema"])


def check_tools(body: dict[str, Any]) -> None:
    tools = body.get("tools", [])
    names = [tool["name"] for tool in tools]
    assert len(set(names)) == len(names), "names are unique"
    for tool in tools:
        assert NAME.fullmatch(tool["name"])
        schema = tool["input_schema"]
        assert schema["type"] == "object" and not schema.keys() & {"oneOf", "allOf", "anyOf"}
        assert all(PROPERTY.fullmatch(name) for name in schema.get("properties", ()))
    if "tool_choice" in body:
        assert tools, "a choice needs tools"
        assert body["tool_choice"].get("name", names[0]) in names
    kinds = {block["type"] for message in body["messages"] for block in message["content"]}
    assert tools or not kinds & {"tool_use", "tool_result"}, "a history with calls needs tools"


def check_messages(messages: list[dict[str, Any]]) -> None:
    assert messages[0]["role"] == messages[-1]["role"] == "user"
    owed: list[str] = []
    seen: set[str] = set()
    before = ""
    for message in messages:
        role, content = message["role"], message["content"]
        assert message.keys() == {"role", "content"} and role in ("user", "assistant")
        assert role != before, "roles alternate"
        assert content, "no message is empty"
        results = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        assert results == owed, "every call has one result, in the next message, in order"
        assert all(block["type"] == "tool_result" for block in content[: len(results)]), "results come first"
        for block in content:
            check_block(block, role)
        assert content[-1]["type"] not in REASONING, "reasoning leads to something"
        owed = [block["id"] for block in content if block["type"] == "tool_use"]
        assert len(set(owed)) == len(owed) and seen.isdisjoint(owed), "ids are unique"
        seen.update(owed)
        check_server_tools(content)
        before = role
    assert not owed


def check_block(block: dict[str, Any], role: str) -> None:
    match block["type"]:
        case "text":
            assert block["text"].strip()
        case "image":
            assert role == "user"
            check_source(block["source"])
        case "tool_use":
            assert role == "assistant"
            assert ID.fullmatch(block["id"]) and NAME.fullmatch(block["name"]) and isinstance(block["input"], dict)
        case "tool_result":
            assert role == "user" and block["content"]
            assert all(part["type"] == "text" and part["text"].strip() for part in block["content"])
        case "thinking":
            assert role == "assistant" and isinstance(block["thinking"], str) and isinstance(block["signature"], str)
        case "redacted_thinking":
            assert role == "assistant" and block["data"]
        case "server_tool_use" | "web_search_tool_result":
            assert role == "assistant"
        case unknown:
            raise AssertionError(f"unknown block {unknown!r}")


def check_source(source: dict[str, Any]) -> None:
    assert source["type"] == "base64", "no address that nobody has looked at"
    assert TYPES.get(source["data"]) == source["media_type"], "it is a picture, and of the type that is said"


def check_server_tools(content: list[dict[str, Any]]) -> None:
    asked = [block["id"] for block in content if block["type"] == "server_tool_use"]
    answered = [block["tool_use_id"] for block in content if block["type"] == "web_search_tool_result"]
    assert asked == answered, "what the provider's tools did is whole"


def check_marks(body: dict[str, Any]) -> None:
    """Check the cache marks: at most four, of one length, on blocks that may carry one (B36)."""
    blocks = [*body.get("tools", ()), *body.get("system", ()), *(b for m in body["messages"] for b in m["content"])]
    marked = [block for block in blocks if "cache_control" in block]
    assert len(marked) <= 4
    assert json.dumps(body).count('"cache_control"') == len(marked), "nowhere else"
    assert all(block.get("type", "text") in MARKABLE for block in marked)
    assert len({(block["cache_control"]["type"], block["cache_control"]["ttl"]) for block in marked}) <= 1


def check_closed(schema: Any) -> None:
    """Check that all objects of an answer's schema are closed and nothing in it is beyond the API's grammar."""
    if not isinstance(schema, dict):
        return
    assert not schema.keys() & {"oneOf", "minimum", "maximum", "minLength", "maxLength", "pattern", "patternProperties"}
    if schema.get("type") == "object":
        assert schema["additionalProperties"] is False
    for name in ("properties", "$defs"):
        for member in schema.get(name, {}).values():
            check_closed(member)
    for part in [*schema.get("anyOf", ()), *schema.get("allOf", ()), schema.get("items")]:
        check_closed(part)
