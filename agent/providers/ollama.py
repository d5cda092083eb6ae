"""Ollama's own protocol: newline-delimited JSON, whole tool calls, no call ids."""

from __future__ import annotations

from typing import Any

from agent.providers.config import ModelConfig
from agent.providers.failures import Scrubber
from agent.providers.framing import NDJSONSplitter
from agent.providers.http_model import HTTPModel
from agent.providers.ollama_decode import OllamaDecoder
from agent.providers.ollama_request import OllamaRequests
from agent.providers.prepared import PreparedRequest
from agent.providers.transport import Transport


class OllamaWire(OllamaRequests):
    """The chat protocol of one Ollama server."""

    path = "/api/chat"

    def splitter(self, limit: int) -> NDJSONSplitter:
        return NDJSONSplitter(limit)

    def decoder(self, prepared: PreparedRequest, scrub: Scrubber, limit: int) -> OllamaDecoder:
        return OllamaDecoder(prepared, scrub, limit=limit)


class OllamaChat(HTTPModel):
    """A model behind an Ollama server."""

    def __init__(self, config: ModelConfig, transport: Transport, **options: Any) -> None:
        super().__init__(config, transport, OllamaWire(config), **options)
