"""Turns one model stream into one message, to the letter of the contract (R40-R48, R52).

`feed` takes what one read brought and returns the block events that may be shown. It never raises: a stream that breaks
the contract sets `failure`, so that what came before it in the same batch is still shown.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

from agent.runtime.exceptions import AgentError, LimitExceeded, ModelFailed, ModelProtocolError
from agent.runtime.messages import ReasoningBlock, TextBlock
from agent.runtime.model import BlockDelta, BlockStart, BlockStop, MessageStop, ModelEvent, StreamError
from agent.runtime.values import FrozenDict, clean_text, freeze_object

BlockEvent: TypeAlias = BlockStart | BlockDelta | BlockStop


@dataclass(slots=True)
class OpenBlock:
    """A block of the stream; `pieces` are its deltas."""

    start: BlockStart
    pieces: list[str] = field(default_factory=list)
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class AssembledCall:
    """A tool call as it came: `arguments` is None where the text is no JSON object, and `problem` says why."""

    call_id: str
    name: str
    arguments: FrozenDict | None
    problem: str | None = None


AssembledBlock: TypeAlias = TextBlock | ReasoningBlock | AssembledCall


class MessageAssembler:
    """Collects one stream; `max_characters` bounds text, shown reasoning and tool arguments together (R48)."""

    __slots__ = ("_blocks", "_characters", "_max_characters", "error", "failure", "produced", "stop")

    def __init__(self, max_characters: int) -> None:
        self._blocks: dict[int, OpenBlock] = {}
        self._max_characters = max_characters
        self._characters = 0
        self.produced = False
        self.stop: MessageStop | None = None
        self.error: StreamError | None = None
        self.failure: AgentError | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more is to be read (R50)."""
        return self.stop is not None or self.failure is not None

    def feed(self, batch: Sequence[ModelEvent]) -> list[BlockEvent]:
        """Take in a batch and return its block events up to the first fault."""
        accepted: list[BlockEvent] = []
        blocks = self._blocks
        for event in batch:
            if type(event) is BlockDelta:
                block = blocks.get(event.index)
                if block is None or block.stopped:
                    return self._break(accepted, f"delta for block {event.index!r}, which is not open")
                if block.start.block_type != event.block_type:
                    return self._break(accepted, f"{event.block_type} delta in a {block.start.block_type} block")
                if event.text:
                    event.text = clean_text(event.text)
                    self._characters += len(event.text)
                    if self._characters > self._max_characters:
                        self.failure = self._too_long()
                        return accepted
                    self.produced = True
                    block.pieces.append(event.text)
                    accepted.append(event)
            elif isinstance(event, BlockStart):
                if event.index in blocks or event.index < 0:
                    return self._break(accepted, f"block {event.index!r} started twice or is no valid index")
                blocks[event.index] = OpenBlock(event)
                accepted.append(event)
            elif isinstance(event, BlockStop):
                block = blocks.get(event.index)
                if block is None or block.stopped:
                    return self._break(accepted, f"stop for block {event.index!r}, which is not open")
                block.stopped = True
                accepted.append(event)
            elif isinstance(event, MessageStop):
                still_open = [index for index, block in blocks.items() if not block.stopped]
                if still_open:
                    return self._break(accepted, f"message ended while block {still_open[0]!r} was open")
                self.stop = event
                return accepted
            elif isinstance(event, StreamError):
                self._characters += len(event.refusal)  # what a provider says instead of an answer is output too
                if self._characters > self._max_characters:
                    self.failure = self._too_long()
                    return accepted
                self.error = event
                self.failure = ModelFailed(
                    event.message,
                    code=event.code,
                    kind=event.kind,
                    retryable=event.retryable,
                    retry_after=event.retry_after,
                )
                return accepted
            else:
                return self._break(accepted, f"{type(event).__name__} is no model event")
        return accepted

    def close(self) -> None:
        """Say that the stream is over."""
        if not self.ended:
            self.failure = ModelProtocolError("the model stream ended without a message-stop")

    def _too_long(self) -> LimitExceeded:
        text = f"the model wrote more than {self._max_characters:,} characters"
        return LimitExceeded(text, code="MODEL_OUTPUT_LIMIT_EXCEEDED")

    def _break(self, accepted: list[BlockEvent], what: str) -> list[BlockEvent]:
        self.failure = ModelProtocolError(what)
        return accepted

    def blocks(self) -> list[AssembledBlock]:
        """Return the blocks in index order without empty text and reasoning (R45, R47); parses the arguments (R46)."""
        assembled: list[AssembledBlock] = []
        for _, block in sorted(self._blocks.items()):
            text = "".join(block.pieces)
            match block.start.block_type:
                case "text" if text:
                    assembled.append(TextBlock(text=text))
                case "reasoning" if text:
                    assembled.append(ReasoningBlock(text=text))
                case "tool-call":
                    assembled.append(parse_call(block.start, text))
        return assembled

    def visible_text(self) -> str:
        """Return the answer text so far, finished or not."""
        return "".join("".join(b.pieces) for _, b in sorted(self._blocks.items()) if b.start.block_type == "text")


def parse_call(start: BlockStart, text: str) -> AssembledCall:
    """Parse the joined arguments once, strictly: one JSON object, no NaN, no repair (R46)."""
    try:
        arguments = freeze_object(json.loads(text, parse_constant=_no_constant, parse_float=_finite))
    except RecursionError:
        return AssembledCall(start.call_id, start.name, None, "the arguments are nested too deeply")
    except ValueError as error:
        return AssembledCall(start.call_id, start.name, None, f"the arguments are no JSON object ({error})")
    return AssembledCall(start.call_id, start.name, arguments)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits} is larger than any number")
    return number


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
