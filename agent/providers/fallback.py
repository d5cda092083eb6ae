"""Other models take over where one fails (P37): in order, before anything was seen, never after a cancel.

Only failures of the provider fall through: a rate limit, a used up quota, a timeout, a server that fails or cannot be
reached, a model that is not there. The model that answered is asked again for the rest of the run. A model state is of
use only to the model that made it; whoever takes over starts without it, and whoever listens is told so.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TypeAlias

from agent.providers.config import ModelConfig
from agent.providers.registry import fits
from agent.providers.retry import HeldBack
from agent.runtime.cancellation import CancelSignal
from agent.runtime.exceptions import InvalidArgument
from agent.runtime.model import ErrorKind, Model, ModelEvent, ModelRequest

FALLS_THROUGH: frozenset[ErrorKind] = frozenset(
    {
        "rate-limit",
        "quota",
        "overloaded",
        "provider-error",
        "not-found",
        "timeout",
        "connection-lost",
        "truncated-stream",
    }
)


@dataclass(frozen=True, slots=True)
class Ordered:
    """The providers that take over, in this order."""

    ids: tuple[str, ...]

    @property
    def chain(self) -> tuple[str, ...]:
        return self.ids


@dataclass(frozen=True, slots=True)
class Tagged:
    """A provider that takes over, and another for where that fails as well."""

    primary: str
    backup: str

    @property
    def chain(self) -> tuple[str, ...]:
        return self.primary, self.backup


FallbackPolicy: TypeAlias = Ordered | Tagged | None


def asked_in_order(default: str, policy: FallbackPolicy, known: Collection[str]) -> tuple[str, ...]:
    """Return whom to ask (P37): the default, then the chain, each once; who is not `known` is skipped."""
    chain = () if policy is None else policy.chain
    return tuple(id for id in dict.fromkeys((default, *chain)) if id in known)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model under the name of its endpoint."""

    name: str
    model: Model
    config: ModelConfig


@dataclass(frozen=True, slots=True)
class FallbackAttempted:
    """Told when one model takes over from another (P37)."""

    from_provider: str
    to_provider: str
    error: str
    state_dropped: bool


class FallbackModel:
    """Asks the candidates in order until one answers; lives for one run."""

    def __init__(
        self, candidates: Sequence[Candidate], on_fallback: Callable[[FallbackAttempted], None] | None = None
    ) -> None:
        if not candidates:
            raise InvalidArgument("No default LLM provider configured.")  # P37
        self._left = list(candidates)
        self._on_fallback = on_fallback

    async def stream(self, request: ModelRequest, signal: CancelSignal) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """Make the call; see `agent.runtime.model.Model`."""
        while True:
            held = HeldBack()
            async with aclosing(self._left[0].model.stream(request, signal)) as batches:
                async for batch in batches:
                    if out := held.take(batch):
                        yield out
            error = held.failure
            if error is None or len(self._left) == 1 or error.kind not in FALLS_THROUGH or signal.cancelled:
                if held.events:
                    yield held.events
                return
            failed = self._left.pop(0)
            request, dropped = _for(self._left[0], request)
            if self._on_fallback is not None:
                self._on_fallback(FallbackAttempted(failed.name, self._left[0].name, error.message, dropped))


def _for(candidate: Candidate, request: ModelRequest) -> tuple[ModelRequest, bool]:
    """Return the request as a candidate can be asked it, and whether it lost its model state."""
    state = request.model_state
    if state is None or fits(state, candidate.config):
        return request, False
    return replace(request, model_state=None), True
