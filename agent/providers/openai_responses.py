"""OpenAI's Responses API, with nothing kept on the server."""

from __future__ import annotations

from typing import Any

from agent.providers.config import ModelConfig
from agent.providers.failures import Scrubber
from agent.providers.framing import SSESplitter
from agent.providers.http_model import HTTPModel
from agent.providers.openai_responses_decode import ResponsesDecoder
from agent.providers.openai_responses_request import ResponsesRequests
from agent.providers.prepared import PreparedRequest
from agent.providers.transport import Transport


class ResponsesWire(ResponsesRequests):
    """The Responses API at one endpoint."""

    path = "/responses"

    def splitter(self, limit: int) -> SSESplitter:
        return SSESplitter(limit)

    def decoder(self, prepared: PreparedRequest, scrub: Scrubber, limit: int) -> ResponsesDecoder:
        return ResponsesDecoder(prepared, scrub, limit=limit)


class OpenAIResponses(HTTPModel):
    """A model behind a Responses server."""

    def __init__(self, config: ModelConfig, transport: Transport, **options: Any) -> None:
        super().__init__(config, transport, ResponsesWire(config), **options)
