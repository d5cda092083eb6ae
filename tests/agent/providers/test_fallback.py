"""Other models take over, in order and before anything was seen (P37)."""

from __future__ import annotations

import pytest

from agent.providers.config import ModelConfig
from agent.providers.fallback import (
    Candidate,
    FallbackAttempted,
    FallbackModel,
    FallbackPolicy,
    Ordered,
    Tagged,
    asked_in_order,
)
from agent.runtime.assembly import MessageAssembler
from agent.runtime.cancellation import CancelSignal
from agent.runtime.exceptions import InvalidArgument
from agent.runtime.messages import ModelState
from agent.runtime.model import BlockDelta, BlockStart, ErrorKind, StreamError
from agent.testing import ScriptedModel, says
from tests.agent.providers.reading import ask, kept_state, text_of

ONE = ModelConfig("anthropic-messages", "one")
TWO = ModelConfig("anthropic-messages", "two")
STATE = kept_state(ONE, callIds={"a": "b"})


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


@pytest.mark.parametrize(
    "kind", ["rate-limit", "overloaded", "provider-error", "timeout", "connection-lost", "quota", "not-found"]
)
async def test_a_failure_of_the_provider_falls_through(kind: ErrorKind) -> None:
    """P34, P37."""
    told: list[FallbackAttempted] = []
    with ScriptedModel(failed(kind)) as first, ScriptedModel(says("Hello")) as second:
        chain = [Candidate("a", first, ONE), Candidate("b", second, ONE)]
        answer = await read(FallbackModel(chain, told.append), STATE)
    assert text_of(answer) == "Hello"
    assert told == [FallbackAttempted("a", "b", f"failed: {kind}", state_dropped=False)]
    assert second.requests[0].model_state == STATE


@pytest.mark.parametrize("kind", ["authentication", "invalid-request", "refusal", "content-filter"])
async def test_what_another_provider_would_not_mend_stays(kind: ErrorKind) -> None:
    with ScriptedModel(failed(kind)) as first, ScriptedModel() as second:
        answer = await read(FallbackModel([Candidate("a", first, ONE), Candidate("b", second, ONE)]))
    assert answer.error is not None and answer.error.kind == kind


async def test_a_state_of_another_model_is_left_behind_and_that_is_told() -> None:
    """R27: never silently, also where the protocol is the same."""
    told: list[FallbackAttempted] = []
    with ScriptedModel(failed("timeout")) as first, ScriptedModel(says("Hello")) as second:
        chain = [Candidate("a", first, ONE), Candidate("b", second, TWO)]
        await read(FallbackModel(chain, told.append), STATE)
    assert first.requests[0].model_state == STATE
    assert second.requests[0].model_state is None
    assert [each.state_dropped for each in told] == [True]


async def test_the_model_that_answered_is_asked_for_the_rest_of_the_run() -> None:
    """R27: it gets its own state back, and each change is told."""
    told: list[FallbackAttempted] = []
    made = kept_state(TWO, callIds={"c": "d"})
    with (
        ScriptedModel(failed("timeout")) as first,
        ScriptedModel(says("Hello", model_state=made), failed("quota")) as second,
        ScriptedModel(says("Hi")) as third,
    ):
        chain = [Candidate("a", first, ONE), Candidate("b", second, TWO), Candidate("c", third, ONE)]
        model = FallbackModel(chain, told.append)
        await read(model, STATE)
        assert text_of(await read(model, made)) == "Hi"
    assert [request.model_state for request in second.requests] == [None, made]
    assert [request.model_state for request in third.requests] == [None]
    assert [(each.from_provider, each.to_provider, each.state_dropped) for each in told] == [
        ("a", "b", True),
        ("b", "c", True),
    ]


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        (None, ("own",)),
        (Ordered(("b", "gone", "a", "own", "b")), ("own", "b", "a")),
        (Tagged(primary="a", backup="b"), ("own", "a", "b")),
        (Tagged(primary="gone", backup="b"), ("own", "b")),
    ],
)
def test_the_default_is_asked_first_and_the_unknown_never(policy: FallbackPolicy, order: tuple[str, ...]) -> None:
    """P37."""
    assert asked_in_order("own", policy, {"own", "a", "b"}) == order
    assert "own" not in asked_in_order("own", policy, {"a", "b"})


async def test_nothing_takes_over_after_something_was_seen_or_a_cancel() -> None:
    """P107."""
    seen = [BlockStart(0, "text"), BlockDelta(0, "text", "Half"), *failed("timeout")]
    with ScriptedModel(seen) as first, ScriptedModel() as second:
        answer = await read(FallbackModel([Candidate("a", first, ONE), Candidate("b", second, ONE)]))
    assert answer.visible_text() == "Half"
    with ScriptedModel(failed("timeout")) as first, ScriptedModel() as second:
        await read(FallbackModel([Candidate("a", first, ONE), Candidate("b", second, ONE)]), cancelled=True)


async def test_the_last_failure_is_the_one_that_is_told() -> None:
    with ScriptedModel(failed("timeout")) as first, ScriptedModel(failed("overloaded")) as second:
        answer = await read(FallbackModel([Candidate("a", first, ONE), Candidate("b", second, ONE)]))
    assert answer.error is not None and answer.error.kind == "overloaded"


def test_without_a_model_there_is_nothing_to_ask() -> None:
    with pytest.raises(InvalidArgument, match="No default LLM provider configured"):
        FallbackModel([])
