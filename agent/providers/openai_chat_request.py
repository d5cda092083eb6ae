"""Requests to a chat completions server: ready bytes, joined from parts that are encoded once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from agent.providers.clients import is_host
from agent.providers.config import ModelConfig
from agent.providers.history import History
from agent.providers.openai_chat_history import ChatEncoder
from agent.providers.prepared import PreparedRequest, ToolEncoder
from agent.providers.state import ProviderState
from agent.runtime.model import ModelRequest
from agent.runtime.tools import ToolDefinition

STATE_FORMAT = "openai-chat/v1"


class ChatRequests:
    """Builds the requests of one adapter."""

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        head = {"model": config.model, "stream": True, "stream_options": {"include_usage": True}}  # P36
        self._head = orjson.dumps(head)[:-1]
        # OpenAI's own newer models refuse max_tokens, other servers do not know its successor.
        official = not config.base_url or is_host(config, "openai.com")
        self._max_tokens = b"max_completion_tokens" if official else b"max_tokens"
        self._tools = ToolEncoder(_encode_tool)
        self._history = History(ChatEncoder())

    def prepare(self, request: ModelRequest) -> PreparedRequest:
        """Return the request; raises `StateMismatch`."""
        tools = self._tools.encode(request.tools)
        state = ProviderState.read(request.model_state, STATE_FORMAT)
        messages = self._history.encode(request.messages, tools.names, state)
        parts = [self._head]
        max_tokens = request.max_tokens or self._config.max_tokens
        if max_tokens is not None:
            parts.append(b',"%b":%d' % (self._max_tokens, max_tokens))
        temperature = self._config.temperature if request.temperature is None else request.temperature
        if temperature is not None:
            parts.append(b',"temperature":' + orjson.dumps(temperature))
        if tools.encoded:
            parts.append(b',"tools":' + tools.encoded)
        parts += (b',"messages":[', b",".join(messages), b"]}")
        kept = state.only(request.messages, self._history.calls)
        return PreparedRequest(b"".join(parts), tools.names, kept, request.response_message_id, not messages)


def _encode_tool(definition: ToolDefinition, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "description": definition.description, "parameters": schema},
    }
