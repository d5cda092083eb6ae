"""Reads the chunks of a chat completions stream, with all that real servers do to them.

Text and reasoning are passed on as they come. Tool calls are held back until the finish reason is known: only then is
it sure that their arguments are whole, and a call that was once started cannot be taken back.
"""

from __future__ import annotations

from typing import Any

from agent.providers.decoder import AnswerDecoder
from agent.providers.decoding import count, details_of, joined_halves, member, usage_of
from agent.providers.failures import Scrubber, from_error_object
from agent.providers.framing import DEFAULT_LIMIT
from agent.providers.openai_chat_calls import PendingCalls
from agent.providers.openai_chat_history import REASONING
from agent.providers.openai_chat_request import STATE_FORMAT
from agent.providers.prepared import PreparedRequest
from agent.runtime.messages import StopReason, Usage
from agent.runtime.model import MessageStop, ModelEvent, StreamError, UsageDetails
from agent.runtime.values import clean_text

_STOP_REASONS: dict[str, StopReason] = {
    "stop": "end-turn",
    "end_turn": "end-turn",
    "tool_calls": "tool-use",
    "tool_use": "tool-use",
    "function_call": "tool-use",
    "length": "max-tokens",
    "max_tokens": "max-tokens",
    "stop_sequence": "stop-sequence",
}
_FILTERED = ("content_filter", "content-filter", "safety")
_FAILED = ("error", "insufficient_system_resource")
_REASONING_NAMES = (*REASONING, "reasoning_details")


class ChatDecoder(AnswerDecoder):
    """The state of one answer; `finished` once it has its finish reason, `ended` once nothing more is to be read.

    `keep_reasoning` puts the reasoning into the model state, for servers that want it back.
    """

    __slots__ = (
        "_call_ids",
        "_calls",
        "_details",
        "_kept_reasoning",
        "_reasoning_name",
        "_refusal",
        "_room",
        "_stop_reason",
        "_usage",
    )
    unit = "a chunk"
    ends_with_mark = True

    def __init__(
        self, prepared: PreparedRequest, scrub: Scrubber, *, limit: int = DEFAULT_LIMIT, keep_reasoning: bool = False
    ) -> None:
        super().__init__(prepared, scrub)
        self._call_ids: dict[str, str] = {}
        self._calls = PendingCalls(limit)
        self._kept_reasoning: list[str] | None = [] if keep_reasoning else None
        self._reasoning_name = ""
        self._refusal: list[str] = []
        self._room = limit  # for what is kept here and shown later
        self._stop_reason: StopReason = "other"
        self._usage: Usage | None = None
        self._details: UsageDetails | None = None

    def _piece(self, value: Any) -> str | None:
        choice = value["choices"][0]
        delta = choice["delta"]
        if (
            len(delta) == 1
            and type(text := delta["content"]) is str
            and self._blocks.kind == "text"
            and choice.get("finish_reason") is None
            and not value.get("usage")
            and "error" not in value
            and not self.finished
            and not self._blocks.half
        ):
            return text
        return None

    def _whole(self, answer: Any, out: list[ModelEvent]) -> None:
        if isinstance(answer, dict) and isinstance(choices := answer.get("choices"), list):
            for choice in choices:
                if isinstance(choice, dict):
                    choice.setdefault("delta", choice.get("message"))
        self._value(answer, out)

    def _end(self, out: list[ModelEvent]) -> None:
        prepared, reasoning = self._prepared, joined_halves("".join(self._kept_reasoning or ()))
        extras = ({self._reasoning_name: clean_text(reasoning)},) if reasoning.strip() else ()
        state = prepared.state.plus(self._call_ids, prepared.message_id, extras).to_model_state(STATE_FORMAT)
        out.append(MessageStop(self._stop_reason, self._usage, state, self._details))

    def spent(self) -> tuple[Usage | None, UsageDetails | None]:
        return self._usage, self._details

    def _take(self, chunk: dict[str, Any], out: list[ModelEvent]) -> None:
        self._count(chunk.get("usage"))
        if self.finished:
            return
        if error := chunk if chunk.get("object") == "error" else chunk.get("error"):
            self._fail(from_error_object(error, self._scrub), out)
            return
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return
        self._count(choice.get("usage"))  # Moonshot puts it there
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self._delta(delta, out)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason not in ("", "null") and not self.ended:
            self._finish(reason, out)

    def _count(self, value: Any) -> None:
        usage = usage_of(*(member(value, name) for name in ("prompt_tokens", "completion_tokens", "total_tokens")))
        if usage is not None:
            cached = count(member(value, "prompt_tokens_details", "cached_tokens"))
            self._usage, self.counted = usage, True
            self._details = details_of(
                cached=member(value, "prompt_cache_hit_tokens") if cached is None else cached,  # DeepSeek's name
                written=member(value, "prompt_tokens_details", "cache_write_tokens"),
                reasoning=member(value, "completion_tokens_details", "reasoning_tokens"),
            )

    def _delta(self, delta: dict[str, Any], out: list[ModelEvent]) -> None:
        self._blocks.say("reasoning", self._reasoning_of(delta), out)
        content = delta.get("content")
        if isinstance(content, str):
            self._blocks.say("text", content, out)
        elif isinstance(content, list):
            for part in content:
                if isinstance(part, dict):
                    self._blocks.say("reasoning", _joined(part.get("thinking")), out)
                    self._blocks.say("text", _joined(part.get("text")), out)
        if isinstance(refusal := delta.get("refusal"), str):
            self._refusal.append(refusal)
            self._room -= len(refusal)
        if not self._calls.take(delta) or self._room < 0:
            self._fail(StreamError("the provider sent more than can be kept"), out)

    def _reasoning_of(self, delta: dict[str, Any]) -> str:
        """Return the reasoning of a delta; of several names that mirror one text the first that spoke counts (B14)."""
        for name in (self._reasoning_name,) if self._reasoning_name else _REASONING_NAMES:
            if text := _joined(delta.get(name)):
                self._reasoning_name = name
                if self._kept_reasoning is not None and name in REASONING:
                    self._kept_reasoning.append(text)
                    self._room -= len(text)
                return text
        return ""

    def _finish(self, reason: str, out: list[ModelEvent]) -> None:
        self.finished = True
        self._blocks.close(out)
        refusal = "".join(self._refusal)
        if refusal.strip():
            message = self._scrub(f"the model refused: {refusal}")
            error = StreamError(message, code="MODEL_REFUSED", kind="refusal", refusal=clean_text(refusal))
            self._fail(error, out)
        elif reason.lower() in _FILTERED:
            message = "the provider's content filter stopped the answer"
            self._fail(StreamError(message, code="MODEL_CONTENT_FILTERED", kind="content-filter"), out)
        elif reason in _FAILED:
            self._fail(StreamError(f"the provider ended the answer with {reason!r}", retryable=True), out)
        else:
            self._stop_reason = _STOP_REASONS.get(reason, "other")
            self._finish_calls(out)

    def _finish_calls(self, out: list[ModelEvent]) -> None:
        for call in self._calls.finished(cut=self._stop_reason == "max-tokens"):
            if not call.name:
                self._fail(StreamError("the provider sent a tool call without a name", retryable=True), out)
                return
            call_id = self._blocks.call(self._prepared.names.original(call.name), call.arguments, out)
            if call.provider_id:
                self._call_ids[call_id] = call.provider_id
            if self._stop_reason != "max-tokens":
                self._stop_reason = "tool-use"  # whatever the label said (B10)


def _joined(value: Any) -> str:
    """Return the text of a member that may be a string or a list of parts with a text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        texts = (part.get("text") for part in value if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))
    return ""
