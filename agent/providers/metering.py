"""What each model call used, told to whoever counts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from agent.runtime.cancellation import CancelSignal
from agent.runtime.messages import Usage
from agent.runtime.model import MessageStop, Model, ModelEvent, ModelRequest, StreamError, UsageDetails


@dataclass(frozen=True, slots=True)
class CallUsage:
    """The tokens of one call to a model at an endpoint, by its slug."""

    endpoint: str
    model: str
    usage: Usage
    details: UsageDetails


class MeteredModel:
    """A model that tells `on_usage` what each of its calls used, failed ones too, as far as the provider says so."""

    def __init__(self, model: Model, endpoint: str, name: str, on_usage: Callable[[CallUsage], None]) -> None:
        self._model = model
        self._endpoint = endpoint
        self._name = name
        self._on_usage = on_usage

    async def stream(self, request: ModelRequest, signal: CancelSignal) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """Make the call; see `agent.runtime.model.Model`."""
        async with aclosing(self._model.stream(request, signal)) as batches:
            async for batch in batches:
                last = batch[-1]
                if isinstance(last, MessageStop | StreamError) and last.usage is not None:
                    details = last.details or UsageDetails()
                    self._on_usage(CallUsage(self._endpoint, self._name, last.usage, details))
                yield batch
