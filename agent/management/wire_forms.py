"""What the requests of each protocol say, so that a case can be judged by the request that follows it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

from agent.providers.config import ProtocolName
from agent.runtime.model import MessageStop, StreamError

_ASKING = ("user", "system")
_LED_TO = ("function_call", "assistant", "reasoning")


class WireForm:
    """How to read the requests of one protocol.

    `ending` is an answer that ends a turn without a word, for answers that are not the end of theirs.
    """

    protocol: ClassVar[ProtocolName]
    ending: ClassVar[bytes] = b""

    def said(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """Return what goes back of the model's own answers, in order."""
        raise NotImplementedError

    def call_ids(self, request: dict[str, Any]) -> list[str]:
        """Return the ids of the calls, in order."""
        raise NotImplementedError

    def answered_ids(self, request: dict[str, Any]) -> list[str]:
        """Return the ids of the calls that have a result, in order."""
        raise NotImplementedError

    def broken_rules(self, request: dict[str, Any]) -> list[str]:
        """Return the rules of the protocol that a request breaks, beyond those about ids."""
        return []

    def usage(self, end: MessageStop | StreamError) -> dict[str, int]:
        """Return the token counts in the provider's own terms."""
        return {} if end.usage is None else end.usage.model_dump()


class ChatForm(WireForm):
    """OpenAI-compatible chat completions."""

    protocol = "openai-chat"

    def said(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        return [message for message in request["messages"] if message["role"] == "assistant"]

    def call_ids(self, request: dict[str, Any]) -> list[str]:
        return [call["id"] for message in self.said(request) for call in message.get("tool_calls", ())]

    def answered_ids(self, request: dict[str, Any]) -> list[str]:
        return [message["tool_call_id"] for message in request["messages"] if message["role"] == "tool"]


class ResponsesForm(WireForm):
    """OpenAI's Responses API."""

    protocol = "openai-responses"

    def said(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        return [item for item in request["input"] if item.get("role") not in _ASKING and "output" not in item]

    def call_ids(self, request: dict[str, Any]) -> list[str]:
        return [item["call_id"] for item in self.said(request) if item.get("type") == "function_call"]

    def answered_ids(self, request: dict[str, Any]) -> list[str]:
        return [item["call_id"] for item in request["input"] if item.get("type") == "function_call_output"]

    def broken_rules(self, request: dict[str, Any]) -> list[str]:
        items, broken = request["input"], []
        if request["store"] is not False or "reasoning.encrypted_content" not in request["include"]:
            broken.append("nothing is kept on the server, and its reasoning is asked for")
        if any("id" in item and not item.get("encrypted_content") for item in items):
            broken.append("no item goes by an id that the server never kept")
        for at, item in enumerate(items):
            follower = items[at + 1] if at + 1 < len(items) else {}
            if item.get("type") == "reasoning" and follower.get("type", follower.get("role")) not in _LED_TO:
                broken.append("a reasoning item stands directly before what it led to")
        return broken


class MessagesForm(WireForm):
    """Anthropic's Messages API."""

    protocol = "anthropic-messages"
    ending = (
        b'data: {"type":"message_start","message":{"type":"message","role":"assistant","content":[]}}\n\n'
        b'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n'
        b'data: {"type":"message_stop"}\n\n'
    )

    def said(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        return self._blocks(request, "assistant")

    def call_ids(self, request: dict[str, Any]) -> list[str]:
        return [block["id"] for block in self.said(request) if block["type"] == "tool_use"]

    def answered_ids(self, request: dict[str, Any]) -> list[str]:
        return [block["tool_use_id"] for block in self._blocks(request, "user") if block["type"] == "tool_result"]

    def broken_rules(self, request: dict[str, Any]) -> list[str]:
        messages = request["messages"]
        broken = []
        if any(one["role"] == next_["role"] for one, next_ in pairwise(messages)) or messages[-1]["role"] != "user":
            broken.append("the user and the assistant take turns, and the user has the last word")
        for one, next_ in pairwise(messages):
            called = [block["id"] for block in one["content"] if block["type"] == "tool_use"]
            answered = [block.get("tool_use_id") for block in next_["content"]]
            if called and (answered[: len(called)] != called or any(answered[len(called) :])):
                broken.append("the next message begins with the results of all calls, and only words follow")
        return broken

    def usage(self, end: MessageStop | StreamError) -> dict[str, int]:
        usage, details = super().usage(end), end.details
        if usage and details is not None:
            usage["input_tokens"] -= details.cached_tokens + details.cache_write_tokens
            usage |= {"cache_read_tokens": details.cached_tokens, "cache_write_tokens": details.cache_write_tokens}
        return usage

    def _blocks(self, request: dict[str, Any], role: str) -> list[dict[str, Any]]:
        return [block for message in request["messages"] if message["role"] == role for block in message["content"]]


class OllamaForm(WireForm):
    """Ollama's own protocol; calls and results have no ids, their names and order must do."""

    protocol = "ollama-chat"

    def said(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        return [message for message in request["messages"] if message["role"] == "assistant"]

    def call_ids(self, request: dict[str, Any]) -> list[str]:
        calls = [call for message in self.said(request) for call in message.get("tool_calls", ())]
        return [f"{at} {call['function']['name']}" for at, call in enumerate(calls)]

    def answered_ids(self, request: dict[str, Any]) -> list[str]:
        results = [message for message in request["messages"] if message["role"] == "tool"]
        return [f"{at} {message['tool_name']}" for at, message in enumerate(results)]


FORMS: dict[str, WireForm] = {
    "chat": ChatForm(),
    "responses": ResponsesForm(),
    "messages": MessagesForm(),
    "ollama": OllamaForm(),
}


def replay_differences(said: Sequence[dict[str, Any]], expected: Sequence[dict[str, Any]]) -> list[str]:
    """Return what a request does not say as `expected`, which names the members that matter."""
    if len(said) != len(expected):
        return [f"{len(said)} parts of the answer go back instead of {len(expected)}: {said!r}"]
    return [
        f"{ {name: part.get(name) for name in wanted}!r} goes back instead of {wanted!r}"
        for part, wanted in zip(said, expected, strict=True)
        if any(part.get(name) != value for name, value in wanted.items())
    ]
