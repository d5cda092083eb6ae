"""Other models take over, in order and before anything was seen (P37)."""

from __future__ import annotations

import pytest

from agent.providers.fallback import Candidate, FallbackAttempted, FallbackModel
from agent.runtime.assembly import MessageAssembler
from agent.runtime.cancellation import CancelSignal
from agent.runtime.exceptions import InvalidArgument
from agent.runtime.messages import ModelState
from agent.runtime.model import BlockDelta, BlockStart, ErrorKind, StreamError
from agent.testing import ScriptedModel, says
from tests.agent.providers.reading import ask, text_of

STATE = ModelState(format="one/v1", data={})


async def read(model: FallbackModel, state: ModelState | None = None, *, cancelled: bool = False) -> MessageAssembler:
    signal = CancelSignal()
    if cancelled:
        signal.fire("user")
    assembler = MessageAssembler(1_000)
    async for batch in model.stream(ask(state=state), signal):
        assembler.feed(batch)
    assembler.close()
    return assembler


def failed(kind: ErrorKind) -> list[StreamError]:
    return [StreamError(f"failed: {kind}", kind=kind)]


@pytest.mark.parametrize("kind", ["rate-limit", "overloaded", "provider-error", "timeout", "connection-lost"])
async def test_a_failure_of_the_provider_falls_through(kind: ErrorKind) -> None:
    told: list[FallbackAttempted] = []
    with ScriptedModel(failed(kind)) as first, ScriptedModel(says("Hello")) as second:
        chain = [Candidate("a", first, "one/v1"), Candidate("b", second, "one/v1")]
        answer = await read(FallbackModel(chain, told.append), STATE)
    assert text_of(answer) == "Hello"
    assert told == [FallbackAttempted("a", "b", f"failed: {kind}", state_dropped=False)]
    assert second.requests[0].model_state == STATE


@pytest.mark.parametrize("kind", ["authentication", "invalid-request", "refusal", "content-filter", "quota"])
async def test_what_another_provider_would_not_mend_stays(kind: ErrorKind) -> None:
    with ScriptedModel(failed(kind)) as first, ScriptedModel() as second:
        answer = await read(FallbackModel([Candidate("a", first, "x"), Candidate("b", second, "x")]))
    assert answer.error is not None and answer.error.kind == kind


async def test_a_state_of_another_protocol_is_left_behind_and_that_is_told() -> None:
    """R27: never silently."""
    told: list[FallbackAttempted] = []
    with ScriptedModel(failed("timeout")) as first, ScriptedModel(says("Hello")) as second:
        chain = [Candidate("a", first, "one/v1"), Candidate("b", second, "two/v1")]
        await read(FallbackModel(chain, told.append), STATE)
    assert first.requests[0].model_state == STATE
    assert second.requests[0].model_state is None
    assert [each.state_dropped for each in told] == [True]


async def test_nothing_takes_over_after_something_was_seen_or_a_cancel() -> None:
    """P107."""
    seen = [BlockStart(0, "text"), BlockDelta(0, "text", "Half"), *failed("timeout")]
    with ScriptedModel(seen) as first, ScriptedModel() as second:
        answer = await read(FallbackModel([Candidate("a", first, "x"), Candidate("b", second, "x")]))
    assert answer.visible_text() == "Half"
    with ScriptedModel(failed("timeout")) as first, ScriptedModel() as second:
        await read(FallbackModel([Candidate("a", first, "x"), Candidate("b", second, "x")]), cancelled=True)


async def test_the_last_failure_is_the_one_that_is_told() -> None:
    with ScriptedModel(failed("timeout")) as first, ScriptedModel(failed("overloaded")) as second:
        answer = await read(FallbackModel([Candidate("a", first, "x"), Candidate("b", second, "x")]))
    assert answer.error is not None and answer.error.kind == "overloaded"


def test_without_a_model_there_is_nothing_to_ask() -> None:
    with pytest.raises(InvalidArgument, match="No default LLM provider configured"):
        FallbackModel([])
