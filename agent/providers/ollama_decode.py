"""Reads the lines of an Ollama answer (B25, B26)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from agent.providers.decoding import Blocks, is_json, tolerant_json, usage_of
from agent.providers.failures import Scrubber, from_error_object
from agent.providers.framing import DEFAULT_LIMIT
from agent.providers.ollama_request import STATE_FORMAT
from agent.providers.openai_chat_calls import settled_arguments
from agent.providers.prepared import PreparedRequest
from agent.runtime.messages import StopReason
from agent.runtime.model import BlockDelta, MessageStop, ModelEvent, StreamError
from agent.runtime.values import clean_text

MAX_CALLS = 256

_STOP_REASONS: dict[str, StopReason] = {"stop": "end-turn", "length": "max-tokens"}


class OllamaDecoder:
    """The state of one answer; `finished` and `ended` once its last line has come."""

    __slots__ = ("_blocks", "_calls", "_prepared", "_room", "_scrub", "ended", "finished")

    def __init__(self, prepared: PreparedRequest, scrub: Scrubber, *, limit: int = DEFAULT_LIMIT) -> None:
        self._prepared = prepared
        self._scrub = scrub
        self._blocks = Blocks()
        self._calls: list[tuple[str, str]] = []  # held back until the end: name and arguments
        self._room = limit
        self.finished = False
        self.ended = False

    def decode(self, payloads: Sequence[bytes]) -> list[ModelEvent]:
        """Return the events of some lines."""
        out: list[ModelEvent] = []
        loads, blocks = orjson.loads, self._blocks
        for payload in payloads:
            try:
                line = loads(payload)
                message = line["message"]
                if (
                    len(message) == 2
                    and type(text := message["content"]) is str
                    and text
                    and line["done"] is False
                    and blocks.kind == "text"
                    and not blocks.half
                    and "error" not in line
                ):
                    # Nearly all lines are these.
                    out.append(BlockDelta(blocks.index, "text", text if "\x00" not in text else clean_text(text)))
                    continue
            except ValueError:
                line = self._odd(payload)
            except (LookupError, TypeError):
                pass
            self._line(line, out)
            if self.ended:
                break
        return out

    def decode_whole(self, body: bytes) -> list[ModelEvent]:
        """Return the events of an answer that is no stream of lines."""
        return self.decode([body])

    def close(self, payloads: Sequence[bytes] = ()) -> list[ModelEvent]:
        """Return the events that end the stream; `payloads` is a line whose end never came, used if it is whole."""
        out = self.decode([payload for payload in payloads if is_json(payload)])
        if not self.ended:
            message = "the provider's answer ended in the middle"
            self._fail(StreamError(message, kind="truncated-stream", retryable=True), out)
        return out

    def _odd(self, payload: bytes) -> Any:
        try:
            return tolerant_json(payload)
        except ValueError:
            return None

    def _line(self, line: Any, out: list[ModelEvent]) -> None:
        if not isinstance(line, dict):
            self._fail(StreamError("the provider sent a line that is no JSON object", retryable=True), out)
        elif error := line.get("error"):
            self._fail(from_error_object(error, self._scrub), out)
        else:
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
            if isinstance(function, dict):
                self._hold(function, out)

    def _hold(self, function: dict[str, Any], out: list[ModelEvent]) -> None:
        name, given = function.get("name"), function.get("arguments")
        arguments = given if isinstance(given, str) else orjson.dumps(given).decode()
        self._room -= len(arguments)
        if self._room < 0 or len(self._calls) >= MAX_CALLS:
            self._fail(StreamError("the provider sent more tool calls than can be kept"), out)
        elif not isinstance(name, str) or not name.strip():
            self._fail(StreamError("the provider sent a tool call without a name", retryable=True), out)
        else:
            self._calls.append((name, settled_arguments(arguments)))

    def _finish(self, line: dict[str, Any], out: list[ModelEvent]) -> None:
        self.finished = self.ended = True
        reason = _STOP_REASONS.get(str(line.get("done_reason") or "stop"), "other")
        for name, arguments in self._calls:
            self._blocks.call(clean_text(self._prepared.names.original(name)), clean_text(arguments), out)
        self._blocks.close(out)
        if self._calls and reason != "max-tokens":
            reason = "tool-use"  # the label says stop
        usage = usage_of(line.get("prompt_eval_count"), line.get("eval_count"), None)
        out.append(MessageStop(reason, usage, self._prepared.state.to_model_state(STATE_FORMAT)))

    def _fail(self, error: StreamError, out: list[ModelEvent]) -> None:
        if not self.ended:
            self.ended = True
            out.append(error)
