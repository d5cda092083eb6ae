"""The events of a response of the Responses API: numbered, each item told again when it is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.benchmarks.script import MODEL, TURN_ARGUMENTS, TURN_TOOL, Event

MESSAGE_ID = "msg_0123456789abcdef0123456789abcdef0123456789abcdef"
CALL_ID = "fc_0123456789abcdef0123456789abcdef0123456789abcdef"
REASONING = {
    "id": "rs_0123456789abcdef0123456789abcdef0123456789abcdef",
    "type": "reasoning",
    "summary": [],
    "encrypted_content": "gAAAAABo" + "0123456789abcdef" * 40,
}
USAGE = {
    "input_tokens": 1_200,
    "input_tokens_details": {"cached_tokens": 1_024},
    "output_tokens": 40,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 1_240,
}


def text(pieces: Sequence[str]) -> list[Event]:
    """Return a message of some deltas."""
    answer = _Answer()
    begun: Event = {"id": MESSAGE_ID, "type": "message", "status": "in_progress", "role": "assistant", "content": []}
    part: Event = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
    at = {"item_id": MESSAGE_ID, "output_index": 0, "content_index": 0}
    whole = "".join(pieces)
    answer.say("output_item.added", output_index=0, item=begun)
    answer.say("content_part.added", **at, part=part)
    for piece in pieces:
        answer.say("output_text.delta", **at, delta=piece, logprobs=[], obfuscation="0123456789ab")
    answer.say("output_text.done", **at, text=whole, logprobs=[])
    answer.say("content_part.done", **at, part={**part, "text": whole})
    answer.done({**begun, "status": "completed", "content": [{**part, "text": whole}]})
    return answer.end()


def call() -> list[Event]:
    """Return encrypted reasoning and a call of the tool."""
    answer = _Answer()
    answer.say("output_item.added", output_index=0, item=REASONING)
    answer.done(REASONING)
    begun: Event = {"id": CALL_ID, "type": "function_call", "status": "in_progress", "arguments": ""}
    begun |= {"call_id": "call_of_the_provider", "name": TURN_TOOL}
    at = {"item_id": CALL_ID, "output_index": 1}
    answer.say("output_item.added", output_index=1, item=begun)
    for piece in TURN_ARGUMENTS:
        answer.say("function_call_arguments.delta", **at, delta=piece, obfuscation="0123456789ab")
    whole = "".join(TURN_ARGUMENTS)
    answer.say("function_call_arguments.done", **at, arguments=whole)
    answer.done({**begun, "status": "completed", "arguments": whole})
    return answer.end()


def has_result(request: Event) -> bool:
    return bool(request["input"][-1].get("type") == "function_call_output")


class _Answer:
    """Numbers the events of one answer and collects its items."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._items: list[Event] = []
        self.say("created", response=self._response("in_progress"))
        self.say("in_progress", response=self._response("in_progress"))

    def say(self, kind: str, **members: Any) -> None:
        self._events.append({"type": f"response.{kind}", "sequence_number": len(self._events), **members})

    def done(self, item: Event) -> None:
        self.say("output_item.done", output_index=len(self._items), item=item)
        self._items.append(item)

    def end(self) -> list[Event]:
        self.say("completed", response=self._response("completed", USAGE))
        return self._events

    def _response(self, status: str, usage: Event | None = None) -> Event:
        return {
            "id": "resp_0123456789abcdef0123456789abcdef0123456789abcdef",
            "object": "response",
            "created_at": 1_760_000_000,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "max_output_tokens": None,
            "model": MODEL,
            "output": list(self._items),
            "parallel_tool_calls": True,
            "previous_response_id": None,
            "reasoning": {"effort": "medium", "summary": None},
            "service_tier": "default",
            "store": False,
            "temperature": 1.0,
            "text": {"format": {"type": "text"}, "verbosity": "medium"},
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": usage,
            "user": None,
            "metadata": {},
        }
