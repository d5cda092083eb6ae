"""OpenAI-compatible chat completions."""

from __future__ import annotations

from typing import Any

from agent.providers.config import ModelConfig
from agent.providers.failures import Scrubber
from agent.providers.framing import SSESplitter
from agent.providers.http_model import HTTPModel
from agent.providers.openai_chat_decode import ChatDecoder
from agent.providers.openai_chat_request import ChatRequests
from agent.providers.prepared import PreparedRequest
from agent.providers.transport import Transport


class ChatWire(ChatRequests):
    """The chat completions protocol at one endpoint."""

    path = "/chat/completions"

    def splitter(self, limit: int) -> SSESplitter:
        return SSESplitter(limit)

    def decoder(self, prepared: PreparedRequest, scrub: Scrubber, limit: int) -> ChatDecoder:
        return ChatDecoder(prepared, scrub, limit=limit, keep_reasoning=self.keeps_reasoning)


class OpenAIChat(HTTPModel):
    """A model behind a chat completions server."""

    def __init__(self, config: ModelConfig, transport: Transport, **options: Any) -> None:
        super().__init__(config, transport, ChatWire(config), **options)
