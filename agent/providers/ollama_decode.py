"""Reads the lines of an Ollama answer (B25, B26)."""

from __future__ import annotations

from typing import Any

from agent.providers.calls import MAX_CALLS, MAX_NAME, arguments_text, settled_arguments
from agent.providers.decoder import AnswerDecoder
from agent.providers.decoding import usage_of
from agent.providers.failures import Scrubber, from_error_object
from agent.providers.framing import DEFAULT_LIMIT
from agent.providers.ollama_request import STATE_FORMAT
from agent.providers.prepared import PreparedRequest
from agent.runtime.messages import StopReason
from agent.runtime.model import MessageStop, ModelEvent, StreamError
from agent.runtime.values import clean_text

_STOP_REASONS: dict[str, StopReason] = {"stop": "end-turn", "length": "max-tokens"}


class OllamaDecoder(AnswerDecoder):
    """The state of one answer; `finished` and `ended` once its last line has come."""

    __slots__ = ("_calls", "_room")
    unit = "a line"

    def __init__(self, prepared: PreparedRequest, scrub: Scrubber, *, limit: int = DEFAULT_LIMIT) -> None:
        super().__init__(prepared, scrub)
        self._calls: list[tuple[str, str]] = []  # held back until the end: name and arguments
        self._room = limit

    def _piece(self, value: Any) -> str | None:
        message = value["message"]
        if (
            len(message) == 2
            and type(text := message["content"]) is str
            and value["done"] is False
            and self._blocks.kind == "text"
            and not self._blocks.half
            and "error" not in value
        ):
            return text
        return None

    def _take(self, line: dict[str, Any], out: list[ModelEvent]) -> None:
        if error := line.get("error"):
            self._fail(from_error_object(error, self._scrub), out)
            return
        message = line.get("message")
        if isinstance(message, dict):
            self._message(message, out)
        if line.get("done") is True and not self.ended:
            self._finish(line, out)

    def _message(self, message: dict[str, Any], out: list[ModelEvent]) -> None:
        if isinstance(thinking := message.get("thinking"), str):
            self._blocks.say("reasoning", thinking, out)
        if isinstance(content := message.get("content"), str):
            self._blocks.say("text", content, out)
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict) and not self.ended:
                self._hold(function, out)

    def _hold(self, function: dict[str, Any], out: list[ModelEvent]) -> None:
        name, given = function.get("name"), function.get("arguments")
        arguments = arguments_text(given)
        self._room -= len(arguments) + len(name if isinstance(name, str) else "")
        if self._room < 0 or len(self._calls) >= MAX_CALLS:
            self._fail(StreamError("the provider sent more tool calls than can be kept"), out)
        elif not isinstance(name, str) or not name.strip():
            self._fail(StreamError("the provider sent a tool call without a name", retryable=True), out)
        else:
            self._calls.append((name[:MAX_NAME], settled_arguments(arguments)))

    def _finish(self, line: dict[str, Any], out: list[ModelEvent]) -> None:
        self.finished = self.ended = True
        reason = _stop_reason(line.get("done_reason"))
        for name, arguments in self._calls:
            self._blocks.call(clean_text(self._prepared.names.original(name)), clean_text(arguments), out)
        self._blocks.close(out)
        if self._calls and reason != "max-tokens":
            reason = "tool-use"  # the label says stop
        usage = usage_of(line.get("prompt_eval_count"), line.get("eval_count"), None)
        out.append(MessageStop(reason, usage, self._prepared.state.to_model_state(STATE_FORMAT)))


def _stop_reason(label: Any) -> StopReason:
    return _STOP_REASONS.get(label or "stop", "other") if isinstance(label, str | None) else "other"
