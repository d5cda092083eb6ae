"""What an Ollama server accepts, written down from its documentation of `/api/chat`."""

from __future__ import annotations

from typing import Any

from tests.agent.providers.pictures import TYPES

ROLES = {"system", "user", "assistant", "tool"}


def check(body: dict[str, Any]) -> None:
    """Fail where a request breaks the API's rules."""
    assert body.keys() <= {"model", "stream", "messages", "tools", "options", "format", "think"}, body.keys()
    assert isinstance(body["model"], str)
    assert body["stream"] is True
    assert body.get("options", {"x": 1}), "no empty options"
    assert body.get("think", True) in (True, "low", "medium", "high")
    for tool in body.get("tools", ()):
        function = tool["function"]
        assert tool["type"] == "function"
        assert function.keys() == {"name", "description", "parameters"}
        assert function["parameters"]["type"] == "object"
        assert isinstance(function["parameters"]["properties"], dict)
    owed: list[str] = []
    before = ""
    for message in body["messages"]:
        role = message["role"]
        assert role in ROLES
        assert isinstance(message["content"], str)
        if role == "tool":
            assert message.keys() == {"role", "content", "tool_name"}
            assert owed and message["tool_name"] == owed.pop(0), "results follow their calls, in order"
            assert message["content"].strip()
        else:
            assert not owed, "every call has a result before anything else is said"
            assert role != before or role == "tool", "neighbours of one role are joined"
            assert message["content"].strip() or message.get("tool_calls") or message.get("images")
        for image in message.get("images", ()):
            assert role == "user"
            assert image in TYPES, "it is a picture"
        for call in message.get("tool_calls", ()):
            assert role == "assistant"
            assert isinstance(call["function"]["arguments"], dict)
            owed.append(call["function"]["name"])
        before = role
    assert not owed
