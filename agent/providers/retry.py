"""A model call that failed is made again, where its policy says so and nobody has seen anything of it (P19, P29, B22).

Until the first text, reasoning or piece of arguments has come, the events of an attempt are held back; from then on a
failure is final. A wait that the provider asks for is kept; one that is longer than `max_wait` ends in its error. The
wait ends at once when the reading task is cancelled.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from agent.runtime.cancellation import CancelSignal
from agent.runtime.messages import Value
from agent.runtime.model import BlockDelta, ErrorKind, MessageStop, Model, ModelEvent, ModelRequest, StreamError
from agent.runtime.ports import Clock, MonotonicClock

Seconds: TypeAlias = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
RetryOn: TypeAlias = Literal["timeout", "rate_limited", "external_failure", "connection_error", "any_retryable"]

MAX_WAIT = 120.0

_MATCHES: dict[ErrorKind, frozenset[RetryOn]] = {
    "timeout": frozenset({"timeout"}),
    "rate-limit": frozenset({"rate_limited"}),
    "overloaded": frozenset({"external_failure"}),
    "provider-error": frozenset({"external_failure"}),
    "connection-lost": frozenset({"external_failure", "connection_error"}),
    "truncated-stream": frozenset({"external_failure", "connection_error"}),
}


class Exponential(Value):
    """Delays that double: base, 2 base, 4 base …, at most `max_delay` seconds."""

    type: Literal["exponential"] = "exponential"
    base: Seconds = 1.0
    max_delay: Seconds = 30.0

    def delay(self, failures: int) -> float:
        return min(self.max_delay, self.base * 2.0 ** min(failures - 1, 60))


class Fixed(Value):
    """One delay, always the same."""

    type: Literal["fixed"] = "fixed"
    delay_seconds: Seconds = 1.0

    def delay(self, failures: int) -> float:
        return self.delay_seconds


class Linear(Value):
    """Delays that grow by `increment`, at most `max_delay` seconds."""

    type: Literal["linear"] = "linear"
    increment: Seconds = 1.0
    max_delay: Seconds = 30.0

    def delay(self, failures: int) -> float:
        return min(self.max_delay, self.increment * failures)


class RetryPolicy(Value):
    """How often a failed call is made, and how long to wait between (P19).

    `max_attempts` counts all calls. The first wait is `initial_delay` where that is longer than what `backoff` says;
    `jitter` lengthens each wait by a random share of up to so much.
    """

    max_attempts: Annotated[int, Field(strict=True, ge=1, le=100)] = 3
    initial_delay: Seconds = 0.0
    backoff: Annotated[Exponential | Fixed | Linear, Field(discriminator="type")] = Exponential()
    retry_on: tuple[RetryOn, ...] = ("any_retryable",)
    jitter: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.0

    def covers(self, error: StreamError) -> bool:
        """Return whether a call that failed so is worth another; what the provider declined never is."""
        if not error.retryable:
            return False
        return "any_retryable" in self.retry_on or not _MATCHES.get(error.kind, frozenset()).isdisjoint(self.retry_on)

    def wait(self, failures: int, chance: float = 0.0) -> float:
        """Return the seconds to wait after so many failures; `chance` from 0 to 1 decides about the jitter."""
        delay = self.backoff.delay(failures)
        if failures == 1:
            delay = max(delay, self.initial_delay)
        return delay * (1 + self.jitter * chance)


Told: TypeAlias = Callable[[StreamError, float], None]


class RetryingModel:
    """A model whose failed calls are made again; `on_retry` is told of each failure and of the wait that follows."""

    def __init__(
        self,
        model: Model,
        policy: RetryPolicy,
        *,
        clock: Clock | None = None,
        max_wait: float = MAX_WAIT,
        on_retry: Told | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._model = model
        self._policy = policy
        self._clock = clock or MonotonicClock()
        self._max_wait = max_wait
        self._on_retry = on_retry
        self._chance = chance

    async def stream(self, request: ModelRequest, signal: CancelSignal) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """Make the call, again if need be; see `agent.runtime.model.Model`."""
        for attempt in range(1, self._policy.max_attempts + 1):
            held = HeldBack()
            async with aclosing(self._model.stream(request, signal)) as batches:
                async for batch in batches:
                    if out := held.take(batch):
                        yield out
            error = held.failure
            wait = self._wait(error, attempt)
            if wait is None or signal.cancelled:
                if held.events:
                    yield held.events
                return
            assert error is not None
            if self._on_retry is not None:
                self._on_retry(error, wait)
            await pause(self._clock, wait)

    def _wait(self, error: StreamError | None, attempt: int) -> float | None:
        """Return the seconds until the next attempt, None if there is to be none."""
        if error is None or attempt >= self._policy.max_attempts or not self._policy.covers(error):
            return None
        asked = error.retry_after or 0.0
        return None if asked > self._max_wait else max(asked, self._policy.wait(attempt, self._chance()))


class HeldBack:
    """What an attempt has brought and nobody has seen; `failure` is its error, as long as it can be undone."""

    def __init__(self) -> None:
        self.events: list[ModelEvent] = []
        self.failure: StreamError | None = None
        self._seen = False

    def take(self, batch: Sequence[ModelEvent]) -> Sequence[ModelEvent]:
        """Return what may be shown now."""
        if self._seen:
            return batch
        self.events += batch
        for event in batch:
            if isinstance(event, MessageStop) or (type(event) is BlockDelta and event.text):
                self._seen = True
                out, self.events = self.events, []
                return out
        last = batch[-1] if batch else None
        if isinstance(last, StreamError):
            self.failure = last
        return ()


async def pause(clock: Clock, seconds: float) -> None:
    """Wait on a clock; ends at once when the task is cancelled."""
    over = asyncio.Event()
    timer = clock.call_later(seconds, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()
