"""What a program without an adapter must know of each protocol: its requests, and where an event has what is wanted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tests.benchmarks.script import TURN_TOOL, Event

MODEL = "scripted"
QUESTION = "What will the weather be like in Tromso tomorrow, and do I need a coat?"
INSTRUCTIONS = "You are a helpful assistant. Use the tools that you have. Answer briefly and in plain words. " * 3
DESCRIPTION = "Tell the weather of a city."
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "The name of a city."}},
    "required": ["city"],
    "additionalProperties": False,
}
FUNCTION = {"name": TURN_TOOL, "description": DESCRIPTION, "parameters": SCHEMA}


class Answer:
    """What was read of one answer: its text, and its tool call if there is one; `items` is the output of Responses."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.call_id = ""
        self.arguments = ""
        self.items: list[Any] = []

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Dialect(Protocol):
    """One protocol; each event begins with `mark`."""

    path: str
    mark: str

    def body(self, messages: Sequence[Event], *, tools: bool) -> Event:
        """Return a request, with the instructions and the tool of the turns if it is one of theirs."""
        ...

    def take(self, event: Event, answer: Answer) -> None:
        """Add what an event says."""
        ...

    def called(self, answer: Answer, result: str) -> list[Event]:
        """Return what a history keeps of a tool call."""
        ...

    def said(self, answer: Answer) -> list[Event]:
        """Return what a history keeps of a text."""
        ...


class Chat:
    path = "/v1/chat/completions"
    mark = "data: "

    def body(self, messages: Sequence[Event], *, tools: bool) -> Event:
        body: Event = {"model": MODEL, "stream": True, "stream_options": {"include_usage": True}}
        if not tools:
            return {**body, "messages": messages}
        opening = {"role": "system", "content": INSTRUCTIONS}
        return {**body, "messages": [opening, *messages], "tools": [{"type": "function", "function": FUNCTION}]}

    def take(self, event: Event, answer: Answer) -> None:
        choices = event["choices"]
        if not choices:  # the chunk with the usage
            return
        delta = choices[0]["delta"]
        if text := delta.get("content"):
            answer.pieces.append(text)
        for part in delta.get("tool_calls") or ():
            answer.call_id = part.get("id") or answer.call_id
            answer.arguments += part["function"].get("arguments") or ""

    def called(self, answer: Answer, result: str) -> list[Event]:
        function = {"name": TURN_TOOL, "arguments": answer.arguments}
        call = {"id": answer.call_id, "type": "function", "function": function}
        return [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": answer.call_id, "content": result},
        ]

    def said(self, answer: Answer) -> list[Event]:
        return [{"role": "assistant", "content": answer.text}]


class Responses:
    path = "/v1/responses"
    mark = "data: "

    def body(self, messages: Sequence[Event], *, tools: bool) -> Event:
        body: Event = {"model": MODEL, "stream": True, "store": False, "include": ["reasoning.encrypted_content"]}
        body["input"] = messages
        if tools:
            body |= {"instructions": INSTRUCTIONS, "tools": [{"type": "function", **FUNCTION, "strict": True}]}
        return body

    def take(self, event: Event, answer: Answer) -> None:
        if event["type"] == "response.output_text.delta":
            answer.pieces.append(event["delta"])
        elif event["type"] == "response.output_item.done":
            item = event["item"]
            answer.items.append(item)
            if item["type"] == "function_call":
                answer.call_id, answer.arguments = item["call_id"], item["arguments"]

    def called(self, answer: Answer, result: str) -> list[Event]:
        return [*answer.items, {"type": "function_call_output", "call_id": answer.call_id, "output": result}]

    def said(self, answer: Answer) -> list[Event]:
        return answer.items


class Messages:
    path = "/v1/messages"
    mark = "data: "

    def body(self, messages: Sequence[Event], *, tools: bool) -> Event:
        body: Event = {"model": MODEL, "stream": True, "max_tokens": 4_096, "messages": messages}
        if tools:
            tool = {"name": TURN_TOOL, "description": DESCRIPTION, "input_schema": SCHEMA}
            body |= {"system": INSTRUCTIONS, "tools": [tool]}
        return body

    def take(self, event: Event, answer: Answer) -> None:
        if event["type"] == "content_block_delta":
            delta = event["delta"]
            if delta["type"] == "text_delta":
                answer.pieces.append(delta["text"])
            elif delta["type"] == "input_json_delta":
                answer.arguments += delta["partial_json"]
        elif event["type"] == "content_block_start":
            answer.call_id = event["content_block"].get("id") or answer.call_id

    def called(self, answer: Answer, result: str) -> list[Event]:
        given = json.loads(answer.arguments)
        call = {"type": "tool_use", "id": answer.call_id, "name": TURN_TOOL, "input": given}
        told = {"type": "tool_result", "tool_use_id": answer.call_id, "content": result}
        return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [told]}]

    def said(self, answer: Answer) -> list[Event]:
        return [{"role": "assistant", "content": [{"type": "text", "text": answer.text}]}]


class Ollama:
    path = "/api/chat"
    mark = ""

    def body(self, messages: Sequence[Event], *, tools: bool) -> Event:
        if not tools:
            return {"model": MODEL, "stream": True, "messages": messages}
        opening = {"role": "system", "content": INSTRUCTIONS}
        tool = {"type": "function", "function": FUNCTION}
        return {"model": MODEL, "stream": True, "messages": [opening, *messages], "tools": [tool]}

    def take(self, event: Event, answer: Answer) -> None:
        message = event["message"]
        if text := message["content"]:
            answer.pieces.append(text)
        for call in message.get("tool_calls") or ():
            answer.arguments = json.dumps(call["function"]["arguments"])

    def called(self, answer: Answer, result: str) -> list[Event]:
        function = {"name": TURN_TOOL, "arguments": json.loads(answer.arguments)}
        return [
            {"role": "assistant", "content": "", "tool_calls": [{"function": function}]},
            {"role": "tool", "tool_name": TURN_TOOL, "content": result},
        ]

    def said(self, answer: Answer) -> list[Event]:
        return [{"role": "assistant", "content": answer.text}]


DIALECTS: Mapping[str, Dialect] = {
    "openai-chat": Chat(),
    "openai-responses": Responses(),
    "anthropic-messages": Messages(),
    "ollama-chat": Ollama(),
}
