"""What model calls used."""

from __future__ import annotations

from typing import Any

import pytest

from agent.providers.metering import CallUsage, MeteredModel
from agent.runtime import create_runtime
from agent.runtime.exceptions import AgentError
from agent.runtime.messages import Usage
from agent.runtime.model import BlockDelta, BlockStart, BlockStop, MessageStop, StreamError, UsageDetails
from agent.testing import ScriptedModel

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


async def test_a_call_without_counts_is_not_counted() -> None:
    counted: list[CallUsage] = []
    with ScriptedModel([(*TEXT, MessageStop("end-turn"))]) as model:
        await create_runtime(MeteredModel(model, "server", "a-model", counted.append)).start("Go").result
    assert counted == []
