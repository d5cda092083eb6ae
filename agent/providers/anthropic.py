"""Anthropic's Messages API."""

from __future__ import annotations

from typing import Any

from agent.providers.anthropic_decode import MessagesDecoder
from agent.providers.anthropic_request import MessagesRequests
from agent.providers.config import ModelConfig
from agent.providers.failures import Scrubber
from agent.providers.framing import SSESplitter
from agent.providers.http_model import HTTPModel
from agent.providers.prepared import PreparedRequest
from agent.providers.transport import Transport


class MessagesWire(MessagesRequests):
    """The Messages protocol at one endpoint."""

    path = "/v1/messages"

    def splitter(self, limit: int) -> SSESplitter:
        return SSESplitter(limit)

    def decoder(self, prepared: PreparedRequest, scrub: Scrubber, limit: int) -> MessagesDecoder:
        return MessagesDecoder(prepared, scrub, limit=limit)


class AnthropicMessages(HTTPModel):
    """A model behind a Messages server."""

    def __init__(self, config: ModelConfig, transport: Transport, **options: Any) -> None:
        super().__init__(config, transport, MessagesWire(config), **options)
