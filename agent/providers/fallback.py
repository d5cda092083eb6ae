"""Other models take over where one fails (P37): in order, before anything was seen, never after a cancel.

Only failures of the provider fall through: a rate limit, a timeout, a server that fails or cannot be reached. A model
state is understood by one protocol only; a candidate of another starts without it, and whoever listens is told so.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from agent.providers.retry import HeldBack
from agent.runtime.cancellation import CancelSignal
from agent.runtime.exceptions import InvalidArgument
from agent.runtime.model import ErrorKind, Model, ModelEvent, ModelRequest

FALLS_THROUGH: frozenset[ErrorKind] = frozenset(
    {"rate-limit", "overloaded", "provider-error", "timeout", "connection-lost", "truncated-stream"}
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model under the name of its endpoint; `state_format` is the format of the states that it makes."""

    name: str
    model: Model
    state_format: str


@dataclass(frozen=True, slots=True)
class FallbackAttempted:
    """Told when one model takes over from another (P37)."""

    from_provider: str
    to_provider: str
    error: str
    state_dropped: bool


class FallbackModel:
    """Asks the candidates in order until one answers."""

    def __init__(
        self, candidates: Sequence[Candidate], on_fallback: Callable[[FallbackAttempted], None] | None = None
    ) -> None:
        if not candidates:
            raise InvalidArgument("No default LLM provider configured.")  # P37
        self._candidates = tuple(candidates)
        self._on_fallback = on_fallback

    async def stream(self, request: ModelRequest, signal: CancelSignal) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """Make the call; see `agent.runtime.model.Model`."""
        for candidate, following in zip(self._candidates, (*self._candidates[1:], None), strict=True):
            asked = _for(candidate, request)
            held = HeldBack()
            async with aclosing(candidate.model.stream(asked, signal)) as batches:
                async for batch in batches:
                    if out := held.take(batch):
                        yield out
            error = held.failure
            if error is None or following is None or error.kind not in FALLS_THROUGH or signal.cancelled:
                if held.events:
                    yield held.events
                return
            if self._on_fallback is not None:
                dropped = _for(following, request) is not request
                self._on_fallback(FallbackAttempted(candidate.name, following.name, error.message, dropped))


def _for(candidate: Candidate, request: ModelRequest) -> ModelRequest:
    state = request.model_state
    if state is None or state.format == candidate.state_format:
        return request
    return replace(request, model_state=None)
