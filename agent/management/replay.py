"""Replays recorded model answers through their adapters over real sockets, and says what differs from what is right.

A case file holds one JSON object a line: which body to serve and how, and what a correct reader makes of it. Every body
is delivered in one piece, byte by byte, and as the case describes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from time import time
from typing import Any, Literal

import orjson

from agent.management.wire_forms import FORMS, WireForm, replay_differences
from agent.providers.config import ModelConfig
from agent.providers.failures import MAX_RETRY_AFTER
from agent.providers.registry import build_model
from agent.providers.transport import Transport
from agent.runtime.assembly import AssembledCall, MessageAssembler
from agent.runtime.cancellation import CancelSignal
from agent.runtime.limits import DEFAULT_LIMITS
from agent.runtime.messages import AgentMessage, ModelState, ReasoningBlock, TextBlock, ToolCallBlock, tool_result
from agent.runtime.model import Model, ModelRequest
from agent.runtime.preflight import check_stop
from agent.runtime.tools import ToolDefinition
from agent.testing.http_provider import ReceivedRequest, ScriptedAnswer, ScriptedProvider

_QUESTION = AgentMessage(id="message-question", role="user", blocks=(TextBlock(text="Please."),))
_MEANWHILE = TextBlock(text="And hurry.")


@dataclass(frozen=True, slots=True)
class Case:
    """One recorded answer with what is right."""

    id: str
    api: str
    body: bytes
    status: int
    headers: dict[str, str]
    expect: dict[str, Any]
    transport: dict[str, Any]

    def answers(self) -> Iterator[tuple[str, ScriptedAnswer]]:
        """Yield each way of delivery with its name."""
        end: Literal["reset", "close"] = "reset" if self.transport.get("end") == "reset" else "close"
        whole = ScriptedAnswer(self.body, self.status, self.headers, end=end)
        yield "whole", whole
        yield "byte by byte", whole.bytewise()
        if offsets := self.transport.get("split_at"):
            yield "split as given", whole.split(offsets)


def load_cases(path: Path) -> list[Case]:
    """Return the cases of a file, or of `cases.jsonl` in a folder; raises `OSError` and `ValueError`."""
    index = path / "cases.jsonl" if path.is_dir() else path
    cases = []
    for line in filter(str.strip, index.read_text("utf-8").splitlines()):
        data = json.loads(line)
        cases.append(
            Case(
                id=data["id"],
                api=data["api"],
                body=(index.parent / data["file"]).read_bytes(),
                status=data["status"],
                headers=data["headers"],
                expect=data["expect"],
                transport=data.get("transport", {}),
            )
        )
    return cases


async def replay(case: Case, transport: Transport) -> list[str]:
    """Return what differs, in words; nothing if the adapter reads the case as it should.

    What raises, in the adapter or because the case itself is wrong, is a difference too.
    """
    differences: list[str] = []
    name = "delivery"
    form = FORMS[case.api]
    try:
        deliveries = list(case.answers())
        whole = deliveries[0][1]
        # The requests that follow get the same answer, so that its call ids come once more (B09).
        following = [ScriptedAnswer(form.ending), whole] if case.expect.get("continue") else [whole]
        for name, answer in deliveries:
            async with ScriptedProvider(answer, *following, repeat=True) as provider:
                config = ModelConfig(form.protocol, "scripted", provider.url, "sk-replay", allow_private=True)
                found = await _Reading(case, form, build_model(config, transport)).check(provider)
            differences += [f"{name}: {difference}" for difference in found]
    except Exception as error:
        differences.append(" ".join(f"{name}: {type(error).__name__}: {error}".split()))
    return differences


class _Reading:
    """Reads one case once and compares."""

    def __init__(self, case: Case, form: WireForm, model: Model) -> None:
        self._case = case
        self._form = form
        self._model = model
        self._tools = tuple(
            ToolDefinition(name=name, description="A tool of the case.", input_schema={"type": "object"})
            for name in dict.fromkeys(call["name"] for call in case.expect["tool_calls"])
        )

    async def check(self, provider: ScriptedProvider) -> list[str]:
        history = [_QUESTION]
        first = await self._read(ModelRequest("message-1", tuple(history), self._tools))
        found = self._differences(first)
        if found or first.stop is None:
            return found
        answered = len(provider.requests)
        history += self._turn("message-1", first)
        second = await self._read(ModelRequest("message-2", tuple(history), self._tools, _state(first)))
        if second.stop is not None:
            history += self._turn("message-2", second)
            await self._read(ModelRequest("message-3", tuple(history), self._tools, _state(second)))
        if self._case.expect.get("continue"):
            found += self._replay_differences(provider.requests[1:answered])
            return found
        for round_, received in enumerate(provider.requests[answered:], start=1):
            found += self._broken_rules(received.json, len(_calls(first)) * round_)
        return found + self._replay_differences(provider.requests[answered : answered + 1])

    def _broken_rules(self, request: dict[str, Any], calls: int) -> list[str]:
        called, answered = self._form.call_ids(request), self._form.answered_ids(request)
        rules: list[tuple[str, Callable[[], bool]]] = [
            (f"{calls} calls in the next request", lambda: len(called) == calls),
            ("distinct call ids", lambda: len(set(called)) == len(called) and all(called)),
            ("one result for each call, in order", lambda: answered == called),
        ]
        broken = [rule for rule, holds in rules if not holds()] + self._form.broken_rules(request)
        return [f"broken rule: {rule}" for rule in broken]

    def _replay_differences(self, requests: Sequence[ReceivedRequest]) -> list[str]:
        """Return how the request that follows the answer differs from what it must say of that answer."""
        if not requests:
            return ["no request went on with the answer"]
        expect, request = self._case.expect, requests[0].json
        found = replay_differences(self._form.said(request), expect["replay"]) if "replay" in expect else []
        for call, id in zip(expect["tool_calls"], self._form.call_ids(request), strict=True):
            if call.get("provider_id", id) != id:
                found.append(f"provider id {id!r} instead of {call['provider_id']!r}")
        return found

    async def _read(self, request: ModelRequest) -> MessageAssembler:
        assembler = MessageAssembler(DEFAULT_LIMITS.max_model_output_characters)
        async for batch in self._model.stream(request, CancelSignal()):
            assembler.feed(batch)
        assembler.close()
        return assembler

    def _turn(self, message_id: str, read: MessageAssembler) -> list[AgentMessage]:
        """Return what follows: the answer, its results with the last call first, and a word of the user."""
        blocks: list[Any] = []
        for block in read.blocks():
            if isinstance(block, AssembledCall):
                blocks.append(ToolCallBlock(call_id=block.call_id, name=block.name, input=block.arguments or {}))
            else:
                blocks.append(block)
        meanwhile = AgentMessage(id=f"{message_id}-meanwhile", role="user", blocks=(_MEANWHILE,))
        if not blocks:
            return [meanwhile]
        answer = AgentMessage(id=message_id, role="assistant", blocks=tuple(blocks))
        results = [tool_result(call, "Done.", status="success", execution="completed") for call in answer.tool_calls]
        messages = [
            AgentMessage(id=f"{message_id}-{result.call_id}", role="tool", blocks=(result,))
            for result in reversed(results)
        ]
        return [_stored(message) for message in (answer, *messages, meanwhile)]

    def _differences(self, read: MessageAssembler) -> list[str]:
        found: list[str] = []

        def compare(what: str, actual: object, expected: object) -> None:
            if actual != expected:
                found.append(f"{what} is {actual!r} instead of {expected!r}")

        expect, error = self._case.expect, read.error
        blocks = read.blocks()
        compare("outcome", _outcome(read), expect["outcome"])
        compare("text", "".join(block.text for block in blocks if isinstance(block, TextBlock)), expect["text"])
        reasoning = "".join(block.text for block in blocks if isinstance(block, ReasoningBlock))
        compare("reasoning", reasoning, expect["reasoning"])
        calls = [{"name": call.name, "input": _plain(call.arguments)} for call in _calls(read)]
        compare("tool calls", calls, [{"name": call["name"], "input": call["input"]} for call in expect["tool_calls"]])
        if read.stop is not None:
            check_stop(read.stop.stop_reason, len(calls), len(blocks))
        end = read.stop or error
        usage = self._form.usage(end) if end is not None else {}
        for name, count in expect.get("usage", {}).items():
            compare(name, usage.get(name), count)
        compare("error kind", error.kind if error else None, expect.get("error_kind"))
        if "retryable" in expect:  # a text is the rule of who makes calls again, for errors that allow it
            wanted = expect["retryable"] if isinstance(expect["retryable"], bool) else True
            compare("retryable", error is not None and error.retryable, wanted)
        if "refusal" in expect:
            compare("refusal", error.refusal if error else None, expect["refusal"])
        if "retry_after_s" in expect:
            seconds, actual = self._wait(), error.retry_after if error else None
            if actual is None or abs(actual - seconds) > 2:
                found.append(f"retry after {actual!r} instead of {seconds!r} seconds")
        return found

    def _wait(self) -> float:
        value = self._case.expect["retry_after_s"]
        if isinstance(value, str):  # the rule: max(0, date - now), capped
            date = parsedate_to_datetime(self._case.headers["retry-after"])
            return min(max(0.0, date.timestamp() - time()), MAX_RETRY_AFTER)
        return float(value)


def _plain(value: object) -> object:
    """Return frozen JSON data with lists and dicts, as a parser would give it."""
    return json.loads(orjson.dumps(value))


def _outcome(read: MessageAssembler) -> str:
    if read.stop is None:
        return "error"
    return "max-tokens" if read.stop.stop_reason == "max-tokens" else "completed"


def _calls(read: MessageAssembler) -> list[AssembledCall]:
    return [block for block in read.blocks() if isinstance(block, AssembledCall)] if read.stop is not None else []


def _stored(message: AgentMessage) -> AgentMessage:
    """Return a message as it comes back from a database."""
    return AgentMessage.from_wire(orjson.loads(orjson.dumps(message.to_wire(), option=orjson.OPT_SORT_KEYS)))


def _state(read: MessageAssembler) -> ModelState | None:
    """Return the model state after an answer as it comes back from a database."""
    state = read.stop.model_state if read.stop is not None else None
    return state and ModelState.from_wire(orjson.loads(orjson.dumps(state.to_wire(), option=orjson.OPT_SORT_KEYS)))
