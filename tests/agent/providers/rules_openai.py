"""What OpenAI's protocols and the strictest servers behind them demand of every request, as checks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.agent.providers.pictures import TYPES

LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}|functions\.look:\d+")
_DATA = re.compile(r"data:(image/[a-z]+);base64,([A-Za-z0-9+/]+=*)")


def check_tool(name: str, schema: Mapping[str, Any], strict: bool | None) -> None:
    """Check the parts of a tool that both protocols have."""
    assert LEGAL_NAME.fullmatch(name)
    assert schema["type"] == "object" and isinstance(schema["properties"], dict)
    assert schema.keys().isdisjoint(("anyOf", "oneOf", "allOf", "enum", "not", "$schema", "$ref"))
    for pointer in re.findall(r'"\$ref": ?"([^"]*)"', json.dumps(schema)):
        target: Any = schema
        for step in pointer.removeprefix("#").strip("/").split("/") if pointer != "#" else ():
            target = target[step]
    if strict:
        assert schema["additionalProperties"] is False and set(schema["required"]) == set(schema["properties"])


def check_picture(url: str) -> None:
    match = _DATA.fullmatch(url)
    assert match, "a picture goes by value"
    assert TYPES.get(match[2]) == match[1], "it is one, and of the type that is said"


def check_call(call_id: str, name: str, arguments: str) -> None:
    assert LEGAL_ID.fullmatch(call_id) and LEGAL_NAME.fullmatch(name)
    assert isinstance(json.loads(arguments), dict), "the arguments are an object"


def _check_choice(body: Mapping[str, Any], tools: Sequence[Mapping[str, Any]], choice: Any) -> None:
    """Check that only a tool of the request is asked for, and that there is one."""
    assert "tool_choice" not in body or tools
    if isinstance(body.get("tool_choice"), dict):
        assert choice["function"]["name"] in [tool["name"] for tool in tools]


def check_chat(body: Mapping[str, Any]) -> None:
    """Check a chat completions request."""
    tools = [tool["function"] for tool in body.get("tools", ())]
    for tool in tools:
        check_tool(tool["name"], tool["parameters"], tool.get("strict"))
    assert len({tool["name"] for tool in tools}) == len(tools)
    assert "tools" not in body or tools
    _check_choice(body, tools, body.get("tool_choice", {}))
    assert body["messages"], "something is asked"
    check_turns(body["messages"])
    for message in body["messages"]:
        _check_content(message)
        for call in message.get("tool_calls", ()):
            check_call(call["id"], call["function"]["name"], call["function"]["arguments"])


def check_turns(messages: Sequence[Mapping[str, Any]]) -> None:
    """Check who speaks when, as the strictest chat servers want it."""
    open_calls: list[str] = []
    seen: set[str] = set()
    previous = ""
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_calls.pop(0), "results directly follow their calls, in order"
        else:
            assert not open_calls, "every call has a result"
            assert message["role"] != previous, "roles alternate"
            open_calls = [call["id"] for call in message.get("tool_calls", ())]
            assert len(set(open_calls)) == len(open_calls) and seen.isdisjoint(open_calls), "ids are unique"
            seen.update(open_calls)
        previous = message["role"]
    assert not open_calls


def _check_content(message: Mapping[str, Any]) -> None:
    content = message["content"]
    if isinstance(content, list):
        assert message["role"] == "user", "only users show pictures"
        for part in content:
            if part["type"] == "image_url":
                check_picture(part["image_url"]["url"])
            else:
                assert part["text"].strip()
    else:
        assert (content and content.strip()) or (content is None and message.get("tool_calls")), "nothing is empty"


def check_responses(body: Mapping[str, Any]) -> None:
    """Check a request to the Responses API."""
    tools = body.get("tools", ())
    for tool in tools:
        check_tool(tool["name"], tool["parameters"], tool["strict"])
    assert len({tool["name"] for tool in tools}) == len(tools)
    _check_choice(body, tools, {"function": body.get("tool_choice", {})})
    assert body["store"] is False and body.get("include", []) in ([], ["reasoning.encrypted_content"])
    assert "include" in body or all(item.get("type") != "reasoning" for item in body["input"]), (
        "who wants none gets none"
    )
    assert body.get("instructions", "x").strip()
    assert body["input"], "something is asked"
    _check_items(body["input"])


def _check_items(items: list[Mapping[str, Any]]) -> None:
    open_calls: list[str] = []
    seen: set[str] = set()
    for item, following in zip(items, [*items[1:], {}], strict=True):
        kind = item.get("type", item.get("role"))
        if kind == "function_call_output":
            assert item["call_id"] == open_calls.pop(0), "outputs follow their calls, in order"
            assert item["output"].strip()
            continue
        if kind in ("user", "system"):
            assert not open_calls, "every call has an output before anybody else speaks"
        match kind:
            case "function_call":
                check_call(item["call_id"], item["name"], item["arguments"])
                assert item["call_id"] not in seen, "ids are unique"
                seen.add(item["call_id"])
                open_calls.append(item["call_id"])
            case "reasoning":
                assert item["encrypted_content"] and isinstance(item["summary"], list)
                follower = following.get("type", following.get("role"))
                assert follower in ("reasoning", "function_call", "assistant"), "reasoning comes with what it led to"
            case _:
                assert item["role"] in ("user", "assistant", "system")
                assert item["role"] == "assistant" or item["role"] != following.get("role"), "neighbours are joined"
                _check_message(item)
        assert kind == "reasoning" or "id" not in item, "no item goes by its id"
    assert not open_calls


def _check_message(item: Mapping[str, Any]) -> None:
    if isinstance(item["content"], str):
        assert item["content"].strip(), "nothing is empty"
        return
    assert item["role"] == "user", "only users show pictures"
    for part in item["content"]:
        if part["type"] == "input_image":
            check_picture(part["image_url"])
        else:
            assert part["type"] == "input_text" and part["text"].strip()
