"""What the decoders of all protocols share: from payloads to events, and how an answer ends.

Nearly every payload is one more piece of the text that is being written, so that path is short; everything else, and
everything odd, takes the long one. What a payload means is for the protocol to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import orjson

from agent.providers.decoding import Blocks, is_json, tolerant_json
from agent.providers.failures import Scrubber, from_garbage
from agent.providers.prepared import PreparedRequest
from agent.runtime.messages import Usage
from agent.runtime.model import BlockDelta, ModelEvent, StreamError, UsageDetails
from agent.runtime.values import clean_text

DONE = b"[DONE]"

_UNREADABLE = "the provider sent {} that cannot be read"


class AnswerDecoder:
    """The state of one answer; `finished` once it has its finish reason, `ended` once nothing more is to be read."""

    __slots__ = ("_blocks", "_prepared", "_scrub", "counted", "ended", "finished")

    # What a payload is called in messages, and whether the mark of a stream's end means something.
    unit: ClassVar[str] = "an event"
    ends_with_mark: ClassVar[bool] = False

    def __init__(self, prepared: PreparedRequest, scrub: Scrubber) -> None:
        self._prepared = prepared
        self._scrub = scrub
        self._blocks = Blocks()
        self.finished = False
        self.ended = False
        self.counted = False  # something, since somebody last looked

    def decode(self, payloads: Sequence[bytes]) -> list[ModelEvent]:
        """Return the events of some payloads of the stream."""
        out: list[ModelEvent] = []
        loads, piece, blocks = orjson.loads, self._piece, self._blocks
        for payload in payloads:
            try:
                value = loads(payload)
                text = piece(value)
            except ValueError:
                self._odd(payload, out)
            except (LookupError, TypeError):
                self._value(value, out)
            else:
                if text:
                    out.append(BlockDelta(blocks.index, "text", text if "\x00" not in text else clean_text(text)))
                    continue
                self._value(value, out)
            if self.ended:
                break
        return out

    def decode_whole(self, body: bytes) -> list[ModelEvent]:
        """Return the events of an answer that came in one piece, from a server that does not stream."""
        out: list[ModelEvent] = []
        try:
            answer = tolerant_json(body)
        except ValueError:
            self._fail(from_garbage(body, "an answer", self._scrub), out)
        else:
            self._whole(answer, out)
        return out

    def close(self, payloads: Sequence[bytes] = ()) -> list[ModelEvent]:
        """Return the events that end the stream; `payloads` is an event whose end never came, used if it is whole."""
        out = self.decode([payload for payload in payloads if payload.strip() == DONE or is_json(payload)])
        if self.finished and not self.ended:
            self.ended = True
            try:
                self._end(out)
            except ValueError:  # what was kept is nested too deeply together
                self._fail(StreamError(_UNREADABLE.format("an answer")), out)
        elif not self.ended:
            message = "the provider's answer ended in the middle"
            self._fail(StreamError(message, kind="truncated-stream", retryable=True), out)
        return out

    def continuation(self) -> bytes | None:
        """Return the request that goes on with an answer that only paused, for protocols that know such a thing."""
        return None

    def failure(self, error: StreamError) -> StreamError:
        """Return an error with what was spent before it."""
        usage, details = self.spent()
        return replace(error, usage=usage, details=details)

    def spent(self) -> tuple[Usage | None, UsageDetails | None]:
        """Return what the provider has counted so far, None where it counted nothing."""
        return None, None

    def _piece(self, value: Any) -> str | None:
        """Return the text that `value` adds to the open text block, if it does nothing else.

        May raise `LookupError` and `TypeError` for what looks otherwise.
        """
        raise NotImplementedError

    def _take(self, value: dict[str, Any], out: list[ModelEvent]) -> None:
        """Take in any payload."""
        raise NotImplementedError

    def _whole(self, answer: Any, out: list[ModelEvent]) -> None:
        """Take in an answer that came in one piece."""
        self._value(answer, out)

    def _end(self, out: list[ModelEvent]) -> None:
        """Add the end of an answer that has its finish reason."""
        raise NotImplementedError

    def _value(self, value: Any, out: list[ModelEvent]) -> None:
        if not isinstance(value, dict):
            self._fail(StreamError(f"the provider sent {self.unit} that is no object", retryable=True), out)
            return
        try:
            self._take(value, out)
        except (ValueError, RecursionError):  # a number of too many digits, an object of too many levels
            self._fail(StreamError(_UNREADABLE.format(self.unit)), out)

    def _odd(self, payload: bytes, out: list[ModelEvent]) -> None:
        """Take in a payload that orjson refused: an end mark, a keep-alive, a cut emoji, or garbage."""
        payload = payload.strip()
        if payload == DONE:
            if self.ends_with_mark:
                out += self.close()
        elif payload and not payload.startswith(b":"):
            try:
                value = tolerant_json(payload)
            except ValueError:
                self._fail(from_garbage(payload, self.unit, self._scrub), out)
            else:
                self._value(value, out)

    def _fail(self, error: StreamError, out: list[ModelEvent]) -> None:
        self.ended = True
        if error.refusal:
            error = replace(error, refusal=self._scrub.hide(error.refusal))
        out.append(self.failure(error))
