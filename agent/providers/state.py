"""The model state of our adapters: what a provider wants back of earlier turns, beyond what all can see (R25-R28).

`call_ids` are the provider's ids of tool calls by ours. `extras` hold, by message id, what goes back with that message
unchanged: signed or encrypted reasoning, items of the provider's own. Nobody but the adapter looks into it. Signatures
are bound to the model that made them, so a state belongs to its `issuer`: one model at one server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self
from urllib.parse import urlsplit

from agent.providers.clients import BASE_URLS, FAMILIES
from agent.providers.config import ModelConfig
from agent.runtime.messages import AgentMessage, ModelState


class StateMismatch(ValueError):
    """Raised when a request carries a model state of another provider or model (R27)."""


def issuer_of(config: ModelConfig) -> str:
    """Return whose states an adapter makes and takes: the host of its server, and the model."""
    family = FAMILIES.get(config.protocol)
    try:
        server = urlsplit(config.base_url or BASE_URLS[family] if family else "").netloc.rpartition("@")[2].lower()
    except ValueError:
        server = ""
    return f"{server}/{config.model}"


@dataclass(frozen=True, slots=True)
class ProviderState:
    """What one adapter knows of a conversation; an extra is any JSON value."""

    call_ids: Mapping[str, str] = field(default_factory=dict)
    extras: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    issuer: str = ""

    @classmethod
    def read(cls, state: ModelState | None, format: str, issuer: str) -> Self:
        """Return what `state` holds; raises `StateMismatch`, also for one of another issuer."""
        if state is None:
            return cls(issuer=issuer)
        if state.format != format:
            raise StateMismatch(f"the model state has the format {state.format!r}, {format!r} is needed")
        data = state.data if isinstance(state.data, Mapping) else {"": None}
        if data.get("issuer") != issuer:
            raise StateMismatch("the model state was made by another model or at another server")
        ids, extras = data.get("callIds", {}), data.get("extras", {})
        if not (
            data.keys() <= {"callIds", "extras", "issuer"}
            and isinstance(ids, Mapping)
            and all(isinstance(value, str) for value in ids.values())
            and isinstance(extras, Mapping)
            and all(isinstance(value, list | tuple) for value in extras.values())
        ):
            raise StateMismatch(f"the model state does not hold what {format!r} promises")
        return cls(ids, extras, issuer)

    def only(self, messages: Iterable[AgentMessage], calls: Iterable[str]) -> Self:
        """Return what belongs to these messages and calls."""
        extras = self.extras and {m.id: self.extras[m.id] for m in messages if m.id in self.extras}
        return replace(self, call_ids={id: self.call_ids[id] for id in calls if id in self.call_ids}, extras=extras)

    def plus(self, call_ids: Mapping[str, str], message_id: str, extras: Sequence[Any]) -> Self:
        """Return the state after an answer."""
        more = {message_id: list(extras)} if extras else {}
        return replace(self, call_ids={**self.call_ids, **call_ids}, extras={**self.extras, **more})

    def to_model_state(self, format: str) -> ModelState | None:
        """Return the complete next state (R28), None where there is nothing to keep."""
        parts = {"callIds": self.call_ids, "extras": self.extras}
        data: dict[str, Any] = {name: dict(part) for name, part in parts.items() if part}
        return ModelState(format=format, data={"issuer": self.issuer, **data}) if data else None
