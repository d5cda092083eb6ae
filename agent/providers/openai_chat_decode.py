"""Reads the chunks of a chat completions stream, with all that real servers do to them.

Text and reasoning are passed on as they come. Tool calls are held back until the finish reason is known: only then is
it sure that their arguments are whole, and a call that was once started cannot be taken back.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import orjson

from agent.providers.failures import Scrubber, from_error_object
from agent.providers.framing import DEFAULT_LIMIT
from agent.providers.openai_chat_calls import PendingCalls
from agent.providers.openai_chat_request import STATE_FORMAT
from agent.providers.prepared import PreparedRequest
from agent.runtime import ids
from agent.runtime.messages import MAX_SAFE_INTEGER, StopReason, Usage
from agent.runtime.model import BlockDelta, BlockStart, BlockStop, MessageStop, ModelEvent, StreamError
from agent.runtime.values import clean_text

TextKind: TypeAlias = Literal["text", "reasoning"]

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
_REASONING_NAMES = ("reasoning_content", "reasoning", "reasoning_details")


class ChatDecoder:
    """The state of one answer; `finished` once it has its finish reason, `ended` once nothing more is to be read."""

    __slots__ = (
        "_call_ids",
        "_calls",
        "_half",
        "_index",
        "_next_index",
        "_open",
        "_prepared",
        "_reasoning_name",
        "_refusal",
        "_scrub",
        "_stop_reason",
        "_usage",
        "ended",
        "finished",
    )

    def __init__(self, prepared: PreparedRequest, scrub: Scrubber, *, limit: int = DEFAULT_LIMIT) -> None:
        self._prepared = prepared
        self._call_ids: dict[str, str] = {}
        self._scrub = scrub
        self._calls = PendingCalls(limit)
        self._open: TextKind | None = None
        self._index = -1
        self._next_index = 0
        self._half = ""
        self._reasoning_name = ""
        self._refusal: list[str] = []
        self._stop_reason: StopReason = "other"
        self._usage: Usage | None = None
        self.finished = False
        self.ended = False

    def decode(self, payloads: Sequence[bytes]) -> list[ModelEvent]:
        """Return the events of some chunks."""
        out: list[ModelEvent] = []
        loads = orjson.loads
        for payload in payloads:
            try:
                chunk = loads(payload)
                choice = chunk["choices"][0]
                delta = choice["delta"]
                if (
                    len(delta) == 1
                    and type(text := delta["content"]) is str
                    and text
                    and self._open == "text"
                    and choice.get("finish_reason") is None
                    and not chunk.get("usage")
                    and "error" not in chunk
                    and not self.finished
                    and not self._half
                ):
                    # Nearly all chunks are these.
                    out.append(BlockDelta(self._index, "text", text if "\x00" not in text else clean_text(text)))
                    continue
            except ValueError:
                self._odd(payload, out)
            except (LookupError, TypeError):
                self._chunk(chunk, out)
            else:
                self._chunk(chunk, out)
            if self.ended:
                break
        return out

    def decode_whole(self, body: bytes) -> list[ModelEvent]:
        """Return the events of an answer that came in one piece from a server that does not stream."""
        out: list[ModelEvent] = []
        try:
            chunk = orjson.loads(body)
        except ValueError:
            self._fail(StreamError("the provider answered with something that is no JSON"), out)
            return out
        if isinstance(chunk, dict) and isinstance(choices := chunk.get("choices"), list):
            for choice in choices:
                if isinstance(choice, dict):
                    choice.setdefault("delta", choice.get("message"))
        self._chunk(chunk, out)
        return out

    def close(self, payloads: Sequence[bytes] = ()) -> list[ModelEvent]:
        """Return the events that end the stream; `payloads` is an event whose end never came, used if it is whole."""
        out = self.decode([payload for payload in payloads if _is_json(payload)])
        if self.finished and not self.ended:
            self.ended = True
            prepared = self._prepared
            state = prepared.state.plus(self._call_ids, prepared.message_id, ())
            out.append(MessageStop(self._stop_reason, self._usage, state.to_model_state(STATE_FORMAT)))
        elif not self.ended:
            message = "the provider's answer ended in the middle"
            self._fail(StreamError(message, kind="truncated-stream", retryable=True), out)
        return out

    def _fail(self, error: StreamError, out: list[ModelEvent]) -> None:
        self.ended = True
        out.append(error)

    def _odd(self, payload: bytes, out: list[ModelEvent]) -> None:
        """Take in a payload that orjson refused: the end mark, a keep-alive, a cut emoji, or garbage."""
        payload = payload.strip()
        if payload == b"[DONE]":
            out += self.close()
        elif payload and not payload.startswith(b":"):
            try:
                chunk = json.loads(payload.decode("utf-8", "replace"))
            except (ValueError, RecursionError):
                self._fail(StreamError("the provider sent a chunk that is no JSON", retryable=True), out)
            else:
                self._chunk(chunk, out)

    def _chunk(self, chunk: Any, out: list[ModelEvent]) -> None:
        if not isinstance(chunk, dict):
            self._fail(StreamError("the provider sent a chunk that is no object", retryable=True), out)
            return
        usage = _usage(chunk.get("usage"))
        if usage is not None:
            self._usage = usage
        if self.finished:
            return
        if error := chunk if chunk.get("object") == "error" else chunk.get("error"):
            self._fail(from_error_object(error, self._scrub), out)
            return
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self._delta(delta, out)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason not in ("", "null") and not self.ended:
            self._finish(reason, out)

    def _delta(self, delta: dict[str, Any], out: list[ModelEvent]) -> None:
        self._say("reasoning", self._reasoning(delta), out)
        content = delta.get("content")
        if isinstance(content, str):
            self._say("text", content, out)
        elif isinstance(content, list):
            for part in content:
                if isinstance(part, dict):
                    self._say("reasoning", _joined(part.get("thinking")), out)
                    self._say("text", _joined(part.get("text")), out)
        if isinstance(refusal := delta.get("refusal"), str):
            self._refusal.append(refusal)
        if not self._calls.take(delta):
            self._fail(StreamError("the provider sent more tool arguments than can be kept"), out)

    def _reasoning(self, delta: dict[str, Any]) -> str:
        """Return the reasoning of a delta; of several names that mirror one text the first that spoke counts (B14)."""
        for name in (self._reasoning_name,) if self._reasoning_name else _REASONING_NAMES:
            if text := _joined(delta.get(name)):
                self._reasoning_name = name
                return text
        return ""

    def _say(self, kind: TextKind, text: str, out: list[ModelEvent]) -> None:
        if not text:
            return
        if self._open != kind:
            self._stop_block(out)
            self._open, self._index = kind, self._next_index
            self._next_index += 1
            out.append(BlockStart(self._index, kind))
        if self._half or not text.isascii():
            # An emoji cut between two deltas comes as two halves; the first one waits for the second.
            text = (self._half + text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
            self._half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
            text = text.removesuffix(self._half)
        if text:
            out.append(BlockDelta(self._index, kind, clean_text(text)))

    def _stop_block(self, out: list[ModelEvent]) -> None:
        if self._open is not None:
            if self._half:
                out.append(BlockDelta(self._index, self._open, clean_text(self._half)))
                self._half = ""
            out.append(BlockStop(self._index))
            self._open = None

    def _finish(self, reason: str, out: list[ModelEvent]) -> None:
        self.finished = True
        self._stop_block(out)
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
            call_id = ids.call_id()
            if call.provider_id:
                self._call_ids[call_id] = call.provider_id
            index, self._next_index = self._next_index, self._next_index + 1
            out += (
                BlockStart(index, "tool-call", call_id, self._prepared.names.original(call.name)),
                BlockDelta(index, "tool-call", call.arguments),
                BlockStop(index),
            )
            if self._stop_reason != "max-tokens":
                self._stop_reason = "tool-use"  # whatever the label said (B10)


def _is_json(payload: bytes) -> bool:
    try:
        orjson.loads(payload)
    except ValueError:
        return payload.strip() == b"[DONE]"
    return True


def _joined(value: Any) -> str:
    """Return the text of a member that may be a string or a list of parts with a text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        texts = (part.get("text") for part in value if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))
    return ""


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    given, made = _count(value.get("prompt_tokens")), _count(value.get("completion_tokens"))
    if given is None and made is None:
        return None
    total = _count(value.get("total_tokens"))
    sum_of_both = (given or 0) + (made or 0)
    return Usage(
        input_tokens=given or 0,
        output_tokens=made or 0,
        total_tokens=total if total is not None else min(sum_of_both, MAX_SAFE_INTEGER),
    )


def _count(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= MAX_SAFE_INTEGER else None
