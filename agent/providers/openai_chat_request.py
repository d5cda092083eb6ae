"""Requests to a chat completions server: ready bytes, joined from parts that are encoded once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from agent.providers.clients import OPENAI_HOSTS, is_host
from agent.providers.config import ModelConfig
from agent.providers.history import History, checked
from agent.providers.openai_chat_history import ChatEncoder, StrictReasoningEncoder, is_extra
from agent.providers.openai_chat_reasoning import reasoning_rule
from agent.providers.prepared import EncodedTools, PreparedRequest, ToolEncoder, members, sampling
from agent.providers.schemas import is_strict, structured_output
from agent.providers.state import ProviderState, issuer_of
from agent.runtime.model import ModelRequest
from agent.runtime.tools import ToolDefinition

STATE_FORMAT = "openai-chat/v1"


class ChatRequests:
    """Builds the requests of one adapter."""

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        self._issuer = issuer_of(config)
        head = {"model": config.model, "stream": True, "stream_options": {"include_usage": True}}  # P36
        self._head = orjson.dumps(head)[:-1]
        # OpenAI's newer models refuse max_tokens, and other servers do not know its successor or strict tools.
        self._official = not config.base_url or is_host(config, *OPENAI_HOSTS)
        self._rule = reasoning_rule(config)
        self._tools = ToolEncoder(self._encode_tool)
        demanded = self._rule is not None and self._rule.demanded
        self._history = History(StrictReasoningEncoder() if demanded else ChatEncoder())

    @property
    def keeps_reasoning(self) -> bool:
        """Whether the server wants its reasoning back."""
        return self._rule is not None

    def prepare(self, request: ModelRequest) -> PreparedRequest:
        """Return the request; raises `StateMismatch`."""
        tools = self._tools.encode(request.tools)
        state = checked(ProviderState.read(request.model_state, STATE_FORMAT, self._issuer), is_extra)
        due = self._rule.due(request.messages, state.extras) if self._rule is not None else {}
        messages = self._history.encode(request.messages, tools.names, replace(state, extras=due))
        parts = [self._head, self._settings(request)]
        if tools.encoded:
            parts += (b',"tools":', tools.encoded, members(tool_choice=_tool_choice(request.tool_choice, tools)))
        parts += (b',"messages":[', b",".join(messages), b"]}")
        kept = state.only(request.messages, self._history.calls)
        answer_id = request.response_message_id
        return PreparedRequest(b"".join(parts), tools.names, kept, answer_id, not messages, tools.left_out)

    def _settings(self, request: ModelRequest) -> bytes:
        config, settings = self._config, sampling(self._config, request)
        if self._official:
            settings["max_completion_tokens"] = settings.pop("max_tokens")
        schema = request.response_schema
        output = None if schema is None else structured_output(schema)
        return members(
            **settings,
            reasoning_effort=config.reasoning_effort or None,
            stop=config.stop_sequences or None,
            prompt_cache_key=config.prompt_cache_key or None,
            response_format=output and {"type": "json_schema", "json_schema": output},
        )

    def _encode_tool(self, definition: ToolDefinition, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        function = {"name": name, "description": definition.description, "parameters": schema}
        strict = {"strict": True} if self._official and is_strict(schema) else {}
        return {"type": "function", "function": function | strict}


def _tool_choice(choice: str | None, tools: EncodedTools) -> Any:
    if choice is None or choice in ("auto", "required", "none"):
        return choice
    if choice not in tools.sent:
        return None  # the server would refuse the whole request for a tool that it was not told about
    return {"type": "function", "function": {"name": tools.names.wire(choice)}}
