"""The model of one run: metered, made again and replaced where the agent says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from agent.providers.config import ModelConfig
from agent.providers.fallback import Candidate, FallbackAttempted, FallbackModel
from agent.providers.metering import CallUsage, MeteredModel
from agent.providers.retry import RetryingModel
from agent.runtime.model import Model, StreamError

if TYPE_CHECKING:
    from conversations.hosting.setup import RunSetup

Note = Callable[[str, dict[str, Any]], None]


def model_of_run(
    setup: RunSetup, make: Callable[[ModelConfig], Model], on_call: Callable[[CallUsage], None], note: Note
) -> Model:
    """Return the model that answers a run; `note(event, payload)` is told what happened beside it."""

    noted: set[str] = set()

    def left_out(tools: Sequence[str]) -> None:
        for tool in tools:
            if tool not in noted:
                noted.add(tool)
                note("tool-left-out", {"toolName": tool})

    def candidate(endpoint: str, config: ModelConfig) -> Candidate:
        model: Model = MeteredModel(make(config), endpoint, config.model, on_call, left_out)
        if setup.retries is not None:
            model = RetryingModel(model, setup.retries, on_retry=lambda error, wait: retried(endpoint, error, wait))
        return Candidate(endpoint, model, config)

    def retried(endpoint: str, error: StreamError, wait: float) -> None:
        note("provider-retry", {"provider": endpoint, "errorCode": error.code, "kind": error.kind, "waitSeconds": wait})

    def replaced(attempt: FallbackAttempted) -> None:
        payload = {"fromProvider": attempt.from_provider, "toProvider": attempt.to_provider}
        note("provider-fallback-attempted", payload | {"stateDropped": attempt.state_dropped})

    for endpoint, config in setup.models:
        if config.cache_ttl and config.protocol != "anthropic-messages":  # P170
            note("cache-mark-dropped", {"provider": endpoint, "dropReason": "unsupported_by_provider"})
    candidates = [candidate(endpoint, config) for endpoint, config in setup.models]
    return candidates[0].model if len(candidates) == 1 else FallbackModel(candidates, replaced)
