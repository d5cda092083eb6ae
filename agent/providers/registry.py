"""Which adapter speaks which protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from agent.providers.anthropic import AnthropicMessages
from agent.providers.config import ModelConfig, ProtocolName
from agent.providers.demo import Demo
from agent.providers.ollama import OllamaChat
from agent.providers.openai_chat import OpenAIChat
from agent.providers.openai_responses import OpenAIResponses
from agent.providers.state import issuer_of
from agent.providers.transport import Transport
from agent.runtime.messages import ModelState
from agent.runtime.model import Model


def build_model(config: ModelConfig, transport: Transport, *, demo_pace: float = 0.0) -> Model:
    """Return the adapter for `config`; the adapters of one event loop share its transport.

    `demo_pace` is in seconds between two pieces of what the demo model writes.
    """
    match config.protocol:
        case "demo":
            return Demo(config, pace=demo_pace)
        case "openai-chat":
            return OpenAIChat(config, transport)
        case "openai-responses":
            return OpenAIResponses(config, transport)
        case "anthropic-messages":
            return AnthropicMessages(config, transport)
        case "ollama-chat":
            return OllamaChat(config, transport)
        case _:
            assert_never(config.protocol)


def state_format(protocol: ProtocolName) -> str:
    """Return the format of the model states that the adapter of a protocol makes and takes (R25)."""
    return f"{protocol}/v1"


def fits(state: ModelState, config: ModelConfig) -> bool:
    """Return whether a model state is of use to a model: of its protocol, and made by the same model and server."""
    issuer = state.data.get("issuer") if isinstance(state.data, Mapping) else None
    return state.format == state_format(config.protocol) and issuer == issuer_of(config)
