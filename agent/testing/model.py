"""A model that says what the test wrote down for it, call by call."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

import orjson

from agent.runtime.cancellation import CancelSignal
from agent.runtime.ids import call_id
from agent.runtime.messages import ModelState, StopReason, Usage
from agent.runtime.model import (
    BlockDelta,
    BlockStart,
    BlockStop,
    BlockType,
    ErrorKind,
    MessageStop,
    ModelEvent,
    ModelRequest,
    StreamError,
)
from agent.testing.gate import Waitable

Piece: TypeAlias = ModelEvent | Sequence[ModelEvent] | Waitable
Step: TypeAlias = Iterable[Piece] | Callable[[ModelRequest], Iterable[Piece]]
Arguments: TypeAlias = Mapping[str, Any] | str


class ScriptedModel:
    """Implements the model port with one step for each model call.

    A step is what the call yields: events, batches of events, and gates to wait at; or a function that gets the request
    and returns these. A call without a step raises, and so does `assert_done` about it and about steps nobody asked
    for; used as a context manager the model checks itself. `requests` holds what it was asked, `reading` the number of
    streams that are open now.
    """

    def __init__(self, *steps: Step) -> None:
        self.requests: list[ModelRequest] = []
        self.reading = 0
        self._steps = steps
        self._fault: AssertionError | None = None

    async def stream(self, request: ModelRequest, signal: CancelSignal) -> AsyncGenerator[Sequence[ModelEvent], Any]:
        """Play the next step."""
        self.requests.append(request)
        if len(self.requests) > len(self._steps):
            self._fault = self._fault or AssertionError(
                f"model call {len(self.requests)} is not in the script, which has {len(self._steps)} steps"
            )
            raise self._fault
        step = self._steps[len(self.requests) - 1]
        self.reading += 1
        try:
            for piece in step(request) if callable(step) else step:
                if isinstance(piece, ModelEvent):
                    yield (replace(piece),)
                elif isinstance(piece, Sequence):
                    yield tuple(replace(event) for event in piece)
                else:
                    await piece.wait()
        except AssertionError as error:  # of a step that is a function
            self._fault = self._fault or error
            raise
        finally:
            self.reading -= 1

    def assert_done(self) -> None:
        """Fail unless each step was asked for, and nothing more, and no step that is a function failed."""
        if self._fault is not None:
            raise self._fault
        if len(self.requests) < len(self._steps):
            raise AssertionError(f"{len(self.requests)} model calls were made, the script has {len(self._steps)} steps")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        if error is None:
            self.assert_done()
        return False


def says(
    *pieces: str | Waitable,
    reasoning: str = "",
    stop_reason: StopReason = "end-turn",
    usage: Usage | None = None,
    model_state: ModelState | None = None,
) -> list[Piece]:
    """Return a step that answers with text, a delta for each string; a gate between them is waited at."""
    script = _block(0, "reasoning", reasoning) if reasoning else []
    if pieces:
        script += _block(len(script) and 1, "text", *pieces)
    return [*script, MessageStop(stop_reason, usage, model_state)]


def calls(
    *wanted: tuple[str, Arguments] | tuple[str, Arguments, str],
    text: str = "",
    stop_reason: StopReason = "tool-use",
    usage: Usage | None = None,
    model_state: ModelState | None = None,
) -> list[Piece]:
    """Return a step that asks for tools: (name, arguments) or (name, arguments, call id), after `text` if there is any.

    Arguments that are a string are sent as they are, well-formed or not.
    """
    script = _block(0, "text", text) if text else []
    for index, (name, arguments, *given) in enumerate(wanted, start=1 if text else 0):
        written = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
        start = BlockStart(index, "tool-call", given[0] if given else call_id(), name)
        script += [start, BlockDelta(index, "tool-call", written), BlockStop(index)]
    return [*script, MessageStop(stop_reason, usage, model_state)]


def fails(
    message: str = "the provider failed",
    *,
    after: str = "",
    code: Literal["MODEL_FAILED", "MODEL_REFUSED", "MODEL_CONTENT_FILTERED"] = "MODEL_FAILED",
    kind: ErrorKind = "provider-error",
    retryable: bool = False,
    refusal: str = "",
) -> list[Piece]:
    """Return a step that ends with an error, in the middle of the text `after` if there is any."""
    started = _block(0, "text", after)[:-1] if after else []
    return [*started, StreamError(message, code, kind, retryable, refusal=refusal)]


def _block(index: int, block_type: BlockType, *pieces: str | Waitable) -> list[Piece]:
    deltas = [BlockDelta(index, block_type, piece) if isinstance(piece, str) else piece for piece in pieces]
    return [BlockStart(index, block_type), *deltas, BlockStop(index)]
