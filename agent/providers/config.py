"""What an adapter needs to know to reach one model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

ProtocolName: TypeAlias = Literal["demo", "openai-chat"]


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """One model at one endpoint (P30, P31).

    `base_url` is empty for protocols that need no network. `temperature` and `max_tokens` are None where the
    provider's default is wanted. `allow_private` admits loopback and private addresses, for local model servers.
    """

    protocol: ProtocolName
    model: str
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    organization: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    allow_private: bool = False
