"""What the requests of each protocol say, so that a case can be judged by the request that follows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from agent.providers.config import ProtocolName
from agent.runtime.model import MessageStop


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

    def usage(self, stop: MessageStop) -> dict[str, int]:
        """Return the token counts in the provider's own terms."""
        return {} if stop.usage is None else stop.usage.model_dump()


class ChatForm(WireForm):
    """OpenAI-compatible chat completions."""

    protocol = "openai-chat"

    def said(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        return [message for message in request["messages"] if message["role"] == "assistant"]

    def call_ids(self, request: dict[str, Any]) -> list[str]:
        return [call["id"] for message in self.said(request) for call in message.get("tool_calls", ())]

    def answered_ids(self, request: dict[str, Any]) -> list[str]:
        return [message["tool_call_id"] for message in request["messages"] if message["role"] == "tool"]


FORMS: dict[str, WireForm] = {"chat": ChatForm()}


def replay_differences(said: Sequence[dict[str, Any]], expected: Sequence[dict[str, Any]]) -> list[str]:
    """Return what a request does not say as `expected`, which names the members that matter."""
    if len(said) != len(expected):
        return [f"{len(said)} parts of the answer go back instead of {len(expected)}: {said!r}"]
    return [
        f"{ {name: part.get(name) for name in wanted}!r} goes back instead of {wanted!r}"
        for part, wanted in zip(said, expected, strict=True)
        if any(part.get(name) != value for name, value in wanted.items())
    ]
