"""A deterministic model without key and network that shows the product."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from agent.providers import demo_texts as texts
from agent.providers.config import ModelConfig
from agent.runtime import ids
from agent.runtime.cancellation import CancelSignal
from agent.runtime.messages import AgentMessage, TextBlock, ToolCallBlock, ToolResultBlock, Usage
from agent.runtime.model import (
    BlockDelta,
    BlockStart,
    BlockStop,
    BlockType,
    MessageStop,
    ModelEvent,
    ModelRequest,
    StreamError,
)

TIME_TOOL = "local.current_time"
CALCULATE_TOOL = "local.calculate"
POSTCARD_TOOL = "local.send_postcard"
NIGHTS = 40
MAX_QUESTION = 2_000

_TIME = re.compile(r"\btime\b|\bdate\b|\bclock\b|\btoday\b", re.IGNORECASE)
_CALCULATE = re.compile(r"\bcalculat|\bcomput|\barithmetic\b|\bmaths?\b", re.IGNORECASE)
_EXPRESSION = re.compile(r"\(*\d[\d.()\s]*(?:[-+*/%^×÷][-+*/%^×÷\d.()\s]*\d[\d.]*\)*)+")
_STORY = re.compile(r"\blong\b|\bstory\b", re.IGNORECASE)
_USE = re.compile(r"\s*use `?(?P<name>[A-Za-z0-9_.-]+)`?(?P<arguments>(\s+\w+=\S+)*)\s*[.!]?\s*", re.IGNORECASE)
_POSTCARD = re.compile(r"\bpostcard\b", re.IGNORECASE)
_RECIPIENT = re.compile(r"\bpostcard\s+to\s+([^.,;:!?\n]{1,100})", re.IGNORECASE)
_ZONE = re.compile(r"\b[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+\b")
_FILE = "<attachment "  # how the text of a file begins
_PIECE = re.compile(r"\s*\S+\s*?(?=\s|$)|\s+")


@dataclass(slots=True)
class _Plan:
    """One answer: reasoning, text, calls."""

    reasoning: str = ""
    text: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


class Demo:
    """The model of the demo agent; it writes a piece every `pace` seconds, all at once with 0."""

    def __init__(self, config: ModelConfig, *, pace: float = 0.02) -> None:
        self._config = config
        self._pace = pace

    async def stream(self, request: ModelRequest, signal: CancelSignal) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """Answer the last user message; see `agent.runtime.model.Model`."""
        if request.model_state is not None:
            message = f"the model state has the format {request.model_state.format!r}, the demo model has none"
            yield [StreamError(message, kind="invalid-request")]  # R27
            return
        plan = _plan(request)
        left = request.max_tokens or self._config.max_tokens
        pieces = 0
        for index, (kind, text) in enumerate(_spoken(plan)):
            yield [BlockStart(index, kind)]
            for piece in _PIECE.findall(text):
                if pieces == left:
                    yield [BlockStop(index), MessageStop("max-tokens", _usage(request, pieces))]
                    return
                if self._pace:
                    await asyncio.sleep(self._pace)
                pieces += 1
                yield [BlockDelta(index, kind, piece)]
            yield [BlockStop(index)]
        first = len(list(_spoken(plan)))
        for index, (name, arguments) in enumerate(plan.calls, start=first):
            pieces += 1
            yield [
                BlockStart(index, "tool-call", ids.call_id(), name),
                BlockDelta(index, "tool-call", orjson.dumps(arguments).decode()),
                BlockStop(index),
            ]
        yield [MessageStop("tool-use" if plan.calls else "end-turn", _usage(request, pieces))]


def _spoken(plan: _Plan) -> Iterator[tuple[BlockType, str]]:
    if plan.reasoning:
        yield "reasoning", plan.reasoning
    if plan.text:
        yield "text", plan.text


def _usage(request: ModelRequest, pieces: int) -> Usage:
    given = sum(len(message.text) for message in request.messages) // 4 + 1
    return Usage(input_tokens=given, output_tokens=pieces, total_tokens=given + pieces)


def _plan(request: ModelRequest) -> _Plan:
    messages = request.messages
    asked = max((at for at, message in enumerate(messages) if message.role == "user"), default=-1)
    question, has_files = _question(messages[asked]) if asked >= 0 else ("", False)
    answered = list(_results(messages[asked + 1 :]))
    if answered:
        return _Plan(text="\n\n".join(_comment(call, result) for call, result in answered))
    available = {tool.name for tool in request.tools}
    if use := _USE.fullmatch(question):
        return _use(use, available)
    if _POSTCARD.search(question):
        return _postcard(question, available)
    if _STORY.search(question):
        return _Plan(texts.STORY_REASONING, "".join(texts.story(NIGHTS)))
    wanted = list(_wanted(question))
    if not wanted and has_files:
        return _Plan(texts.FILES_REASONING, texts.FILES)
    if not wanted:
        return _Plan(texts.TOUR_REASONING, texts.TOUR)
    calls = [(name, arguments) for name, arguments in wanted if name in available]
    missing = [name for name, _ in wanted if name not in available]
    plan = _Plan(texts.TOOLS_REASONING if calls else "", calls=calls)
    if missing:
        plan.text = f"I cannot use {_listed(missing)} here: it is not among my tools.\n\n"
    return plan


def _question(message: AgentMessage) -> tuple[str, bool]:
    """Return what somebody wrote, and whether there are pictures or other files with it."""
    written = [
        block.text for block in message.blocks if isinstance(block, TextBlock) and not block.text.startswith(_FILE)
    ]
    return "".join(written)[:MAX_QUESTION], len(written) < len(message.blocks)


def _use(use: re.Match[str], available: set[str]) -> _Plan:
    """Call any tool by its name, with or without the part before the last dot: “Use double number=21”."""
    name = next((each for each in sorted(available) if use["name"] in (each, each.rpartition(".")[2])), None)
    if name is None:
        return _Plan(text=f"I cannot use {_listed([use['name']])} here: it is not among my tools.")
    arguments: dict[str, Any] = {}
    for key, value in re.findall(r"(\w+)=(\S+)", use["arguments"]):
        try:
            arguments[key] = orjson.loads(value)
        except orjson.JSONDecodeError:
            arguments[key] = value
    return _Plan(calls=[(name, arguments)])


def _postcard(question: str, available: set[str]) -> _Plan:
    if POSTCARD_TOOL not in available:
        return _Plan(text=f"I cannot use {_listed([POSTCARD_TOOL])} here: it is not among my tools.")
    recipient = _RECIPIENT.search(question)
    to = recipient.group(1).strip() if recipient else "a friend"
    return _Plan(texts.POSTCARD_REASONING, texts.POSTCARD, [(POSTCARD_TOOL, {"to": to, "text": texts.POSTCARD_TEXT})])


def _wanted(question: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the calls that answer a question about time or numbers."""
    if _TIME.search(question):
        zone = _ZONE.search(question)
        yield TIME_TOOL, {"zone": zone.group() if zone else "UTC"}
    expression = _EXPRESSION.search(question)
    if expression:
        plain = expression.group().strip().replace("^", "**").replace("×", "*").replace("÷", "/")
        yield CALCULATE_TOOL, {"expression": plain}
    elif _CALCULATE.search(question):
        yield CALCULATE_TOOL, {"expression": "17 * 23"}


def _results(messages: Iterable[AgentMessage]) -> Iterator[tuple[ToolCallBlock, ToolResultBlock]]:
    calls: dict[str, ToolCallBlock] = {}
    for message in messages:
        for block in message.blocks:
            if isinstance(block, ToolCallBlock):
                calls[block.call_id] = block
            elif isinstance(block, ToolResultBlock) and block.call_id in calls:
                yield calls[block.call_id], block


def _comment(call: ToolCallBlock, result: ToolResultBlock) -> str:
    said = "".join(block.text for block in result.content)
    if result.status == "error":
        if call.name == POSTCARD_TOOL and result.execution == "not-executed":
            return f"All right, **no postcard was sent** to {call.input.get('to', 'anybody')}. Ask me again any time."
        return f"`{call.name}` did not work:\n\n> {said or 'it gave no reason'}"
    match call.name:
        case "local.current_time":
            return f"It is **{said}**."
        case "local.calculate":
            return f"`{call.input.get('expression', '')}` is **{said}**."
        case "local.send_postcard":
            return f"Done, with your approval:\n\n> {call.input.get('text', '')}\n\n{said}"
        case _:
            return f"`{call.name}` says:\n\n> {said}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)
