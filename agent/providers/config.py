"""What an adapter needs to know to reach one model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

ProtocolName: TypeAlias = Literal["demo", "openai-chat", "openai-responses", "anthropic-messages", "ollama-chat"]

# Whether the reasoning of earlier answers goes back to a chat completions server (R34): `auto` knows some vendors.
ReasoningReplay: TypeAlias = Literal["auto", "never", "always"]

# Whether stable prefixes are marked for the provider's cache, and for how long (P170).
CacheTtl: TypeAlias = Literal["", "five_min", "one_hour"]

# How much a model thinks before it answers; empty leaves it to the provider.
ReasoningEffort: TypeAlias = Literal["", "low", "medium", "high"]

OLLAMA_URL = "http://127.0.0.1:11434"


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """One model at one endpoint (P30, P31).

    `base_url` is empty where the provider's own is wanted (P32), and for protocols that need no network. Settings that
    are None are left to the provider. `headers` are sent with each call, last; their values are secrets.
    `allow_private` admits loopback and private addresses, for local model servers.
    """

    protocol: ProtocolName
    model: str
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    organization: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    stop_sequences: tuple[str, ...] = ()
    prompt_cache_key: str = ""
    embedding_model: str = ""
    reasoning_replay: ReasoningReplay = "auto"
    cache_ttl: CacheTtl = ""
    reasoning_effort: ReasoningEffort = ""
    context_window: int | None = None
    allow_private: bool = False
