"""Reads the events of a Responses stream, with all that real servers do to them.

Text and reasoning are passed on as they come. Tool calls are held back until the response has ended: only then is it
sure that they are whole. What never came in pieces is read from the finished items, and what those lack from the
finished response.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, ClassVar

import orjson

from agent.providers.decoder import AnswerDecoder
from agent.providers.decoding import details_of, member, usage_of
from agent.providers.failures import Scrubber, from_error_object
from agent.providers.framing import DEFAULT_LIMIT
from agent.providers.openai_responses_items import MAX_ITEMS, OutputItem, OutputItems, opaque_form, text_of, texts_of
from agent.providers.openai_responses_request import STATE_FORMAT
from agent.providers.prepared import PreparedRequest
from agent.runtime.messages import StopReason, Usage
from agent.runtime.model import MessageStop, ModelEvent, StreamError, UsageDetails
from agent.runtime.values import clean_text

logger = logging.getLogger(__name__)

_TERMINAL = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
    "response.done": "completed",
}
_LIMITS = ("max_output_tokens", "max_tokens", "length")


class ResponsesDecoder(AnswerDecoder):
    """The state of one answer; `finished` and `ended` once its terminal event has come."""

    __slots__ = ("_details", "_items", "_refusal", "_room", "_texts", "_usage")
    ends_with_mark = True

    def __init__(self, prepared: PreparedRequest, scrub: Scrubber, *, limit: int = DEFAULT_LIMIT) -> None:
        super().__init__(prepared, scrub)
        self._items = OutputItems()
        self._texts = 0
        self._refusal: dict[int, list[str]] = {}
        self._room = limit  # for what is kept here and passed on later
        self._usage: Usage | None = None
        self._details: UsageDetails | None = None

    def _piece(self, value: Any) -> str | None:
        blocks = self._blocks
        if (
            value["type"] == "response.output_text.delta"
            and type(text := value["delta"]) is str
            and blocks.kind == "text"
            and blocks.part == value["output_index"]
            and not blocks.half
        ):
            return text
        return None

    def _whole(self, answer: Any, out: list[ModelEvent]) -> None:
        if not isinstance(answer, dict):
            self._fail(StreamError("the provider answered with something that is no object"), out)
        elif answer.get("error") and "output" not in answer:
            self._value({"type": "error", "error": answer["error"]}, out)
        else:
            self._value({"type": "response.done", "response": answer}, out)

    def spent(self) -> tuple[Usage | None, UsageDetails | None]:
        return self._usage, self._details

    def _take(self, event: dict[str, Any], out: list[ModelEvent]) -> None:
        kind = text_of(event, "type")
        if kind in _TERMINAL:
            self._terminal(_TERMINAL[kind], event.get("response"), out)
        elif kind == "error" or (not kind and event.get("error")):
            self._fail(from_error_object(event.get("error") or event, self._scrub), out)
        elif kind in self._HANDLERS:
            place, item = self._items.find(event)
            self._HANDLERS[kind](self, event, place, item, out)
        else:
            logger.debug("an event of the unknown type %.100r is skipped", kind)  # B47
        if not self.ended and (self._room < 0 or len(self._items) > MAX_ITEMS):
            self._fail(StreamError("the provider sent more than can be kept"), out)

    def _added(self, event: dict[str, Any], place: int, item: OutputItem, out: list[ModelEvent]) -> None:
        if isinstance(described := event.get("item"), dict):
            self._room -= item.describe(described)

    def _done(self, event: dict[str, Any], place: int, item: OutputItem, out: list[ModelEvent]) -> None:
        if isinstance(described := event.get("item"), dict):
            self._finish_item(described, place, item, out)

    def _text(self, event: dict[str, Any], place: int, item: OutputItem, out: list[ModelEvent]) -> None:
        if not item.done and isinstance(text := event.get("delta"), str):
            self._say(text, place, item, out)

    def _whole_text(self, event: dict[str, Any], place: int, item: OutputItem, out: list[ModelEvent]) -> None:
        if not item.texts and isinstance(text := event.get("text"), str):
            self._say(text, place, item, out)

    def _reasoning(self, event: dict[str, Any], place: int, item: OutputItem, out: list[ModelEvent]) -> None:
        """Show what was thought; of a summary and the thoughts themselves the one that spoke first counts (B14)."""
        kind, text = event["type"], event.get("delta")
        if item.done or not isinstance(text, str) or not text or item.said not in ("", kind):
            return
        part = event.get("summary_index", event.get("content_index"))
        part = part if isinstance(part, int) else None
        if item.said and part != item.part:
            text = f"\n\n{text}"
        item.said, item.part = kind, part
        self._blocks.say("reasoning", text, out, place)

    def _refused(self, event: dict[str, Any], place: int, item: OutputItem, out: list[ModelEvent]) -> None:
        if isinstance(text := event.get("delta"), str):
            self._room -= len(text)
            self._refusal.setdefault(place, []).append(text)

    def _arguments(self, event: dict[str, Any], place: int, item: OutputItem, out: list[ModelEvent]) -> None:
        item.type = item.type or "function_call"
        if not item.done and isinstance(text := event.get("delta"), str):
            self._room -= len(text) + 1
            item.pieces.append(text)

    def _whole_arguments(self, event: dict[str, Any], place: int, item: OutputItem, out: list[ModelEvent]) -> None:
        self._room -= item.describe({**event, "type": "function_call"})
        if not item.done:
            self._room -= item.settle(event.get("arguments"))

    def _say(self, text: str, place: int, item: OutputItem, out: list[ModelEvent]) -> None:
        if self._blocks.say("text", text, out, place):
            item.texts.append(self._texts)
            self._texts += 1
            self._room -= 1

    def _finish_item(self, described: dict[str, Any], place: int, item: OutputItem, out: list[ModelEvent]) -> None:
        """Take in an item as it was in the end: it counts, what came before may have been incomplete (B43)."""
        self._room -= item.describe(described)
        item.cut = described.get("status") == "incomplete"
        if item.type == "message":
            self._finish_message(described, place, item, out)
        elif item.type == "function_call":
            self._room -= item.settle(described.get("arguments"))
        else:
            if item.type == "reasoning" and not item.said:
                texts = texts_of(described.get("summary")) or texts_of(described.get("content"))
                self._blocks.say("reasoning", "\n\n".join(texts), out, place)
            item.opaque = opaque_form(described)
            self._room -= len(orjson.dumps(item.opaque)) if item.opaque else 0
        item.done = True
        if self._blocks.part == place:
            self._blocks.close(out)

    def _finish_message(self, described: dict[str, Any], place: int, item: OutputItem, out: list[ModelEvent]) -> None:
        if not item.texts:
            self._say("".join(texts_of(described.get("content"))), place, item, out)
        refusal = "".join(texts_of(described.get("content"), "refusal"))
        if refusal:
            self._room -= len(refusal)
            self._refusal[place] = [refusal]

    def _terminal(self, status: str, response: Any, out: list[ModelEvent]) -> None:
        response = response if isinstance(response, dict) else {}
        status = text_of(response, "status") or status
        self.finished = True
        self._count(response.get("usage"))
        for place, described in self._items.unseen(response.get("output")):
            _, item = self._items.find({"output_index": place})
            self._finish_item(described, place, item, out)
        self._blocks.close(out)
        error = self._error(status, response)
        if error is not None:
            self._fail(error, out)
            return
        reason = member(response, "incomplete_details", "reason")
        limit_hit = status == "incomplete" and (reason is None or reason in _LIMITS)
        stop: StopReason = "max-tokens" if limit_hit else "end-turn" if status == "completed" else "other"
        self._finish_calls(stop, out)

    def _error(self, status: str, response: dict[str, Any]) -> StreamError | None:
        refusal = "".join(text for place in sorted(self._refusal) for text in self._refusal[place])
        if status == "failed" or (status != "completed" and response.get("error")):
            return from_error_object(response.get("error"), self._scrub)
        if status == "cancelled":
            return StreamError("the provider cancelled the answer", retryable=True)
        if refusal.strip():
            message = self._scrub(f"the model refused: {refusal}")
            return StreamError(message, code="MODEL_REFUSED", kind="refusal", refusal=clean_text(refusal))
        if member(response, "incomplete_details", "reason") == "content_filter":
            message = "the provider's content filter stopped the answer"
            return StreamError(message, code="MODEL_CONTENT_FILTERED", kind="content-filter")
        return None

    def _finish_calls(self, stop: StopReason, out: list[ModelEvent]) -> None:
        call_ids: dict[str, str] = {}
        calls = 0
        for item in self._items:
            call = item.finished_call(limit_hit=stop != "end-turn") if item.type == "function_call" else None
            if call is None:
                continue
            if not call.name:
                self._fail(StreamError("the provider sent a tool call without a name", retryable=True), out)
                return
            call_id = self._blocks.call(self._prepared.names.original(call.name), call.arguments, out)
            item.call, calls = calls, calls + 1
            if call.provider_id:
                call_ids[call_id] = call.provider_id
        if calls and stop != "max-tokens":
            stop = "tool-use"
        self.ended = True
        prepared, extras = self._prepared, self._items.skeleton() if calls or self._texts else []
        state = prepared.state.plus(call_ids, prepared.message_id, extras).to_model_state(STATE_FORMAT)
        out.append(MessageStop(stop, self._usage, state, self._details))

    def _count(self, value: Any) -> None:
        usage = usage_of(*(member(value, name) for name in ("input_tokens", "output_tokens", "total_tokens")))
        if usage is not None:
            self._usage, self.counted = usage, True
            self._details = details_of(
                cached=member(value, "input_tokens_details", "cached_tokens"),
                written=member(value, "input_tokens_details", "cache_write_tokens"),
                reasoning=member(value, "output_tokens_details", "reasoning_tokens"),
            )

    _Handler = Callable[["ResponsesDecoder", dict[str, Any], int, OutputItem, list[ModelEvent]], None]
    _HANDLERS: ClassVar[dict[str, _Handler]] = {
        "response.output_item.added": _added,
        "response.output_item.done": _done,
        "response.output_text.delta": _text,
        "response.output_text.done": _whole_text,
        "response.reasoning_summary_text.delta": _reasoning,
        "response.reasoning_text.delta": _reasoning,
        "response.refusal.delta": _refused,
        "response.function_call_arguments.delta": _arguments,
        "response.function_call_arguments.done": _whole_arguments,
    }
