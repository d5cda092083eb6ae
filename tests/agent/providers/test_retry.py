"""Calls that are made again: by the policy, before anything was seen, never in spite of a cancel (P19, P29, B22)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agent.providers.retry import Exponential, Fixed, Linear, RetryingModel, RetryPolicy
from agent.runtime.assembly import MessageAssembler
from agent.runtime.cancellation import CancelSignal
from agent.runtime.model import BlockDelta, BlockStart, BlockStop, StreamError
from agent.testing import FakeClock, ScriptedModel, says
from tests.agent.providers.reading import ask, text_of

LOST = StreamError("lost", kind="connection-lost", retryable=True)


class Waits:
    """A clock on which every wait is over at once, and written down."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def now(self) -> float:
        return 0.0

    def call_later(self, delay: float, callback: Any) -> Any:
        self.seconds.append(delay)
        return asyncio.get_running_loop().call_soon(callback)


async def read(model: RetryingModel, signal: CancelSignal | None = None) -> MessageAssembler:
    assembler = MessageAssembler(1_000)
    async for batch in model.stream(ask(), signal or CancelSignal()):
        assert batch
        assembler.feed(batch)
    assembler.close()
    return assembler


async def test_a_call_that_failed_unseen_is_made_again_with_the_waits_of_the_policy() -> None:
    clock, told = Waits(), []
    half = [BlockStart(0, "text"), BlockDelta(0, "text", ""), LOST]
    with ScriptedModel([LOST], half, says("Hello")) as scripted:
        policy = RetryPolicy(max_attempts=3, backoff=Exponential(base=2.0))
        model = RetryingModel(scripted, policy, clock=clock, on_retry=lambda error, wait: told.append((error, wait)))
        assert text_of(await read(model)) == "Hello"
    assert clock.seconds == [2.0, 4.0]
    assert told == [(LOST, 2.0), (LOST, 4.0)]


async def test_what_was_seen_is_never_asked_for_again() -> None:
    """A provider is not billed twice for what somebody has read."""
    with ScriptedModel([BlockStart(0, "text"), BlockDelta(0, "text", "Half"), LOST]) as scripted:
        answer = await read(RetryingModel(scripted, RetryPolicy(), clock=Waits()))
    assert answer.visible_text() == "Half"
    assert answer.error is not None and answer.error.message == "lost"


async def test_the_last_attempt_fails_visibly() -> None:
    with ScriptedModel([LOST], [LOST]) as scripted:
        answer = await read(RetryingModel(scripted, RetryPolicy(max_attempts=2), clock=Waits()))
    assert answer.error is not None and answer.error.kind == "connection-lost"


@pytest.mark.parametrize(
    ("asked", "waited"),
    [(7.0, [7.0]), (0.5, [1.0]), (120.0, [120.0]), (121.0, [])],
    ids=["longer", "shorter", "most", "too long"],
)
async def test_the_provider_is_given_the_time_it_asks_for_or_the_call_fails(asked: float, waited: list[float]) -> None:
    """B22: at least the given time; what is too long fails visibly."""
    clock = Waits()
    limited = StreamError("slow down", kind="rate-limit", retryable=True, retry_after=asked)
    scripted = ScriptedModel([limited], says("Hello"))
    answer = await read(RetryingModel(scripted, RetryPolicy(), clock=clock))
    assert clock.seconds == waited
    assert (text_of(answer) == "Hello") is bool(waited)


@pytest.mark.parametrize(
    "error",
    [
        StreamError("no", kind="quota"),
        StreamError("no", kind="authentication"),
        StreamError("no", kind="invalid-request"),
        StreamError("no", code="MODEL_REFUSED", kind="refusal"),
        StreamError("no", code="MODEL_CONTENT_FILTERED", kind="content-filter"),
    ],
    ids=lambda error: error.kind,
)
async def test_what_would_fail_again_is_not_repeated(error: StreamError) -> None:
    """P22, B22, B23."""
    with ScriptedModel([error]) as scripted:
        answer = await read(RetryingModel(scripted, RetryPolicy(), clock=Waits()))
    assert answer.error is not None and answer.error.kind == error.kind


@pytest.mark.parametrize(
    ("kind", "retry_on", "expected"),
    [
        ("timeout", ("timeout",), True),
        ("timeout", ("external_failure",), False),
        ("rate-limit", ("rate_limited",), True),
        ("overloaded", ("external_failure",), True),
        ("overloaded", ("connection_error",), False),
        ("connection-lost", ("connection_error",), True),
        ("connection-lost", ("external_failure",), True),
        ("truncated-stream", ("connection_error",), True),
        ("provider-error", ("any_retryable",), True),
        ("provider-error", (), False),
    ],
)
def test_the_policy_names_what_it_repeats(kind: Any, retry_on: Sequence[Any], expected: bool) -> None:
    """P19."""
    error = StreamError("x", kind=kind, retryable=True)
    assert RetryPolicy(retry_on=tuple(retry_on)).covers(error) is expected


def test_the_backoffs() -> None:
    """P19."""
    assert [Exponential(base=1.0, max_delay=5.0).delay(n) for n in (1, 2, 3, 4, 9_999)] == [1, 2, 4, 5, 5]
    assert [Fixed(delay_seconds=3.0).delay(n) for n in (1, 2)] == [3, 3]
    assert [Linear(increment=2.0, max_delay=5.0).delay(n) for n in (1, 2, 3)] == [2, 4, 5]
    assert RetryPolicy(initial_delay=9.0).wait(1) == 9.0
    assert RetryPolicy(initial_delay=9.0).wait(2) == 2.0


@given(failures=st.integers(1, 100), chance=st.floats(0, 1), jitter=st.floats(0, 1))
def test_jitter_only_ever_lengthens_a_wait(failures: int, chance: float, jitter: float) -> None:
    plain, mixed = RetryPolicy().wait(failures), RetryPolicy(jitter=jitter).wait(failures, chance)
    assert plain <= mixed <= plain * 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"maxAttempts": 0},
        {"maxAttempts": True},
        {"jitter": 2},
        {"jitter": "NaN"},
        {"retryOn": ["everything"]},
        {"backoff": {"type": "linear", "increment": -1}},
        {"backoff": {"type": "none"}},
        {"more": 1},
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RetryPolicy.from_wire(wrong)


async def test_a_cancel_ends_the_wait_at_once() -> None:
    """P29, P107."""
    clock, failed = FakeClock(), asyncio.Event()
    with ScriptedModel([LOST]) as scripted:
        model = RetryingModel(scripted, RetryPolicy(), clock=clock, on_retry=lambda error, wait: failed.set())
        reading = asyncio.create_task(read(model))
        await failed.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        clock.advance(1_000)


async def test_no_attempt_follows_a_signal_that_has_fired() -> None:
    signal = CancelSignal()
    signal.fire("user")
    with ScriptedModel([LOST]) as scripted:
        answer = await read(RetryingModel(scripted, RetryPolicy(), clock=Waits()), signal)
    assert answer.error is not None


async def test_an_attempt_is_closed_before_the_next_begins() -> None:
    seen: list[int] = []
    scripted = ScriptedModel([LOST, BlockStop(0)], says("Hello"))
    model = RetryingModel(scripted, RetryPolicy(), clock=Waits(), on_retry=lambda *_: seen.append(scripted.reading))
    await read(model)
    assert seen == [0]
