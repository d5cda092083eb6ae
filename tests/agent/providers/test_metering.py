"""What model calls used."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from agent.providers.anthropic import AnthropicMessages
from agent.providers.metering import CallUsage, MeteredModel, total_usage
from agent.providers.transport import Transport
from agent.runtime import create_runtime
from agent.runtime.exceptions import AgentError
from agent.runtime.messages import Usage
from agent.runtime.model import BlockDelta, BlockStart, BlockStop, MessageStop, StreamError, UsageDetails
from agent.testing import ScriptedModel
from agent.testing.http_provider import ScriptedAnswer, ScriptedProvider
from agent.testing.messages_wire import messages_start, messages_stream, text_block
from tests.agent.providers.reading import ask, config, read, tool

USAGE = Usage(input_tokens=3, output_tokens=2, total_tokens=5)
TEXT = (BlockStart(0, "text"), BlockDelta(0, "text", "x"), BlockStop(0))
DETAILS = UsageDetails(cached_tokens=1)


@pytest.mark.parametrize(
    "end",
    [
        MessageStop("end-turn", USAGE, details=DETAILS),
        StreamError("no", code="MODEL_REFUSED", kind="refusal", usage=USAGE, details=DETAILS),
    ],
)
async def test_a_call_is_counted_however_it_ends(end: Any) -> None:
    """P14; B46: what was spent on a refusal was spent."""
    counted: list[CallUsage] = []
    with ScriptedModel([(*TEXT, end)]) as model:
        execution = create_runtime(MeteredModel(model, "server", "a-model", counted.append)).start("Go")
        if isinstance(end, StreamError):
            with pytest.raises(AgentError):
                await execution.result
        else:
            await execution.result
    assert counted == [CallUsage("server", "a-model", USAGE, DETAILS)]
    assert execution.usage == USAGE


async def test_a_call_without_counts_has_an_account_without_counts() -> None:
    counted: list[CallUsage] = []
    with ScriptedModel([(*TEXT, MessageStop("end-turn"))]) as model:
        await create_runtime(MeteredModel(model, "server", "a-model", counted.append)).start("Go").result
    assert counted == [CallUsage("server", "a-model")]
    assert total_usage(counted) is None


async def test_what_was_counted_before_a_stop_is_in_the_account(transport: Transport) -> None:
    """P14: a call that is stopped costs its input all the same, and its account is there at once."""
    counted: list[CallUsage] = []
    begun = messages_start(input_tokens=5_000, cache_read_input_tokens=100_000)
    async with ScriptedProvider(ScriptedAnswer([begun, *text_block(0, "Hello")], end="hang")) as provider:
        endpoint = config(provider.url, protocol="anthropic-messages")
        model = MeteredModel(AnthropicMessages(endpoint, transport), "server", "a-model", counted.append)
        seen = asyncio.Event()
        execution = create_runtime(model).start(
            "Go", observer=lambda events: seen.set() if any(each.type == "block-delta" for each in events) else None
        )
        await seen.wait()
        execution.cancel()
        assert counted[0].usage == Usage(input_tokens=105_000, output_tokens=1, total_tokens=105_001)
        assert counted[0].details == UsageDetails(cached_tokens=100_000)
        await execution.result


async def test_absurd_counts_end_no_run() -> None:
    most = Usage(input_tokens=2**53 - 1, output_tokens=2**53 - 1, total_tokens=2**53 - 1)
    asks = (BlockStart(0, "tool-call", "c", "no.such"), BlockDelta(0, "tool-call", "{}"), BlockStop(0))
    counted: list[CallUsage] = []
    with ScriptedModel([(*asks, MessageStop("tool-use", most))], [(*TEXT, MessageStop("end-turn", most))]) as model:
        metered = MeteredModel(model, "server", "a-model", counted.append)
        execution = create_runtime(metered, tool_call_errors="report").start("Go")
        await execution.result
    assert execution.usage == total_usage(counted) == most


async def test_tools_that_a_provider_would_refuse_are_told(transport: Transport) -> None:
    told: list[Sequence[str]] = []
    odd = tool("odd", {"type": "object", "properties": {"a b": {"type": "string"}}})
    async with ScriptedProvider(ScriptedAnswer(messages_stream("Hi"))) as provider:
        adapter = AnthropicMessages(config(provider.url, protocol="anthropic-messages"), transport)
        model = MeteredModel(adapter, "server", "a-model", lambda _: None, told.append)
        await read(model, ask(tools=(tool("even"), odd)))
    assert told == [("odd",)]
