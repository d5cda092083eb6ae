"""Reads the events of a Messages stream, with all that real servers do to them.

Text and reasoning are passed on as they come, a call once its block is complete. Reasoning with its signature and what
tools of the provider did are kept for the model state. An answer that only paused is not at its end: `continuation`
gives the request that goes on with it, and the same decoder reads on (B32).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import orjson

from agent.providers.anthropic_history import ASSISTANT, END, dumps, is_legal_id
from agent.providers.anthropic_parts import Part, kept, streamed
from agent.providers.anthropic_request import STATE_FORMAT
from agent.providers.anthropic_usage import Tokens
from agent.providers.calls import MAX_CALLS, MAX_NAME, kept_id
from agent.providers.decoder import AnswerDecoder
from agent.providers.decoding import member
from agent.providers.failures import Scrubber, from_error_object
from agent.providers.framing import DEFAULT_LIMIT
from agent.providers.prepared import PreparedRequest
from agent.runtime.messages import StopReason, Usage
from agent.runtime.model import MessageStop, ModelEvent, StreamError, UsageDetails
from agent.runtime.values import clean_text, freeze

logger = logging.getLogger(__name__)

MAX_CONTINUATIONS = 8
MAX_BLOCKS = 10_000

_NO_INDEX = object()
_STOP_REASONS: dict[str, StopReason] = {
    "end_turn": "end-turn",
    "tool_use": "tool-use",
    "max_tokens": "max-tokens",
    "model_context_window_exceeded": "max-tokens",
    "pause_turn": "max-tokens",  # one that has paused too often
    "stop_sequence": "stop-sequence",
}


class MessagesDecoder(AnswerDecoder):
    """The state of one answer; `finished` once it has its stop reason, `ended` once nothing more is to be read.

    `limit` bounds what is kept until the end, in characters.
    """

    def __init__(self, prepared: PreparedRequest, scrub: Scrubber, *, limit: int = DEFAULT_LIMIT) -> None:
        super().__init__(prepared, scrub)
        self._room = limit
        self._parts: list[Part] = []
        self._by_index: dict[Any, Part] = {}
        self._fast: Any = _NO_INDEX  # of the text block that is open
        self._fast_pieces: list[str] = []
        self._place = 0
        self._call_ids: dict[str, str] = {}
        self._held: list[Part] = []
        self._calls = 0
        self._tokens = Tokens()
        self._stop_reason: StopReason = "other"
        self._paused: bytes | None = None  # the request that goes on
        self._continuations = 0

    def _piece(self, value: Any) -> str | None:
        delta = value["delta"]
        if (
            value["index"] == self._fast
            and delta["type"] == "text_delta"
            and type(text := delta["text"]) is str
            and text
            and not self._blocks.half
        ):
            self._fast_pieces.append(text)
            return text
        return None

    def _whole(self, answer: Any, out: list[ModelEvent]) -> None:
        for event in streamed(answer) if member(answer, "type") == "message" else (answer,):
            if not self.ended:
                self._value(event, out)

    def _end(self, out: list[ModelEvent]) -> None:
        if self._paused is None:
            prepared = self._prepared
            state = prepared.state.plus(self._call_ids, prepared.message_id, kept(self._parts))
            usage, details = self._tokens.total()
            out.append(MessageStop(self._stop_reason, usage, state.to_model_state(STATE_FORMAT), details))

    def continuation(self) -> bytes | None:
        """Return the request that goes on with an answer that paused, and get ready for what follows."""
        body, self._paused = self._paused, None
        if body is not None:
            self.finished = self.ended = False
            self._continuations += 1
            self._by_index.clear()
            self._tokens.next_call()
        return body

    def spent(self) -> tuple[Usage | None, UsageDetails | None]:
        return self._tokens.total()

    def _take(self, event: dict[str, Any], out: list[ModelEvent]) -> None:
        kind = event.get("type")
        if kind == "message_stop":
            if not self.finished:
                self._finish("end_turn", event, out)
            out += self.close()
        elif kind == "message_delta":
            self._count(event.get("usage"))
            delta = event.get("delta")
            reason = member(delta, "stop_reason")
            if isinstance(reason, str) and reason and not self.finished:
                self._finish(reason, delta, out)
        elif self.finished:
            return
        elif kind == "error" or (kind is None and "error" in event):
            self._fail(from_error_object(event.get("error"), self._scrub), out)
        elif kind == "message_start":
            self._count(member(event, "message", "usage"))
        elif kind == "content_block_start":
            self._start(event.get("index"), event.get("content_block"), out)
        elif kind in ("content_block_delta", "content_block_stop"):
            index = event.get("index")
            part = self._by_index.get(index) if isinstance(index, int) else None
            if part is not None and not part.stopped:
                if kind == "content_block_stop":
                    self._stop(part, out)
                else:
                    self._grow(part, event.get("delta"), out)
        elif kind != "ping":
            logger.debug("skipped an event of the unknown type %.64r", kind)

    def _count(self, usage: Any) -> None:
        self._tokens.count(usage)
        self.counted = True

    def _start(self, index: Any, block: Any, out: list[ModelEvent]) -> None:
        if not isinstance(block, dict) or not isinstance(index, int):
            return
        part = self._by_index[index] = Part(index, freeze(block), self._place)
        self._parts.append(part)
        self._fast = _NO_INDEX
        if len(self._parts) > MAX_BLOCKS or not self._keep(len(orjson.dumps(part.block)), out):
            self._refuse_more(out)
        elif part.kind == "tool_use":
            self._held.append(part)
        else:
            self._add(part, part.block, out)

    def _grow(self, part: Part, delta: Any, out: list[ModelEvent]) -> None:
        if isinstance(delta, dict):
            self._add(part, delta, out)
            if isinstance(piece := delta.get("partial_json"), str) and self._keep(len(piece) + 1, out):
                part.pieces.append(piece)

    def _add(self, part: Part, source: Mapping[str, Any], out: list[ModelEvent]) -> None:
        """Add what the start of a block or a delta says."""
        if part.kind == "text" and isinstance(text := source.get("text"), str) and text:
            part.pieces.append(text)
            self._place += self._blocks.say("text", text, out, part)
            if self._blocks.part is part:
                self._fast, self._fast_pieces = part.index, part.pieces
        elif part.kind == "thinking":
            text, signature = source.get("thinking"), source.get("signature")
            if isinstance(text, str) and text and self._keep(len(text), out):
                part.pieces.append(text)
                self._blocks.say("reasoning", text, out, part)
            if isinstance(signature, str) and signature and self._keep(len(signature), out):
                part.signature = signature

    def _stop(self, part: Part, out: list[ModelEvent]) -> None:
        part.stopped = True
        self._fast = _NO_INDEX
        if self._blocks.part is part:
            self._blocks.close(out)
        # A call may be cut although its block is complete: then the stop reason says so. The order stays.
        elif self._held[:1] == [part] and part.whole:
            self._call(self._held.pop(0), out)

    def _keep(self, characters: int, out: list[ModelEvent]) -> bool:
        """Return whether there is room for so much that is kept until the end; fails if there is not."""
        self._room -= characters
        if self._room < 0:
            self._refuse_more(out)
        return self._room >= 0

    def _refuse_more(self, out: list[ModelEvent]) -> None:
        if not self.ended:
            self._fail(StreamError("the provider sent more than can be kept"), out)

    def _call(self, part: Part, out: list[ModelEvent]) -> None:
        name, provider_id = part.block.get("name"), kept_id(part.block.get("id"))
        self._calls += 1
        if not isinstance(name, str) or not name:
            self._fail(StreamError("the provider sent a tool call without a name", retryable=True), out)
        elif self._calls > MAX_CALLS:
            self._refuse_more(out)
        else:
            call_id = self._blocks.call(self._prepared.names.original(name[:MAX_NAME]), part.arguments, out)
            self._place += 1
            if is_legal_id(provider_id):
                self._call_ids[call_id] = provider_id

    def _finish(self, reason: str, delta: Any, out: list[ModelEvent]) -> None:
        self.finished = True
        self._fast = _NO_INDEX
        self._blocks.close(out)
        if reason == "refusal":
            said = member(delta, "stop_details", "explanation")
            refusal = said if isinstance(said, str) else ""
            message = self._scrub(f"the model refused: {refusal}" if refusal else "the model refused to answer")
            error = StreamError(message, code="MODEL_REFUSED", kind="refusal", refusal=clean_text(refusal))
            self._fail(error, out)
        elif reason == "pause_turn" and (answer := self._answer_so_far()):
            self._paused = self._prepared.body.removesuffix(b"]}") + b"," + answer + b"]}"
        else:
            self._stop_reason = _STOP_REASONS.get(reason, "other")
            self._finish_calls(out)

    def _answer_so_far(self) -> bytes:
        """Return the message that the provider can go on from, nothing where it cannot."""
        if self._continuations >= MAX_CONTINUATIONS or self._calls or self._held:
            return b""
        blocks = [dumps(block) for part in self._parts if (block := part.wire()) is not None]
        return ASSISTANT + b",".join(blocks) + END if blocks else b""

    def _finish_calls(self, out: list[ModelEvent]) -> None:
        cut = self._stop_reason == "max-tokens"
        for part in self._held:
            if not self.ended and not (cut and not (part.stopped and part.whole)):
                self._call(part, out)
        if self._calls and not cut:
            self._stop_reason = "tool-use"  # whatever the label said (B10)
