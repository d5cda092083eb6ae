"""Requests to an Ollama server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import orjson

from agent.providers.config import ModelConfig
from agent.providers.history import History, Result, WireCall, checked, kept_result
from agent.providers.images import NO_IMAGE, shown
from agent.providers.prepared import PreparedRequest, ToolEncoder, members, sampling
from agent.providers.schemas import object_schema
from agent.providers.state import ProviderState, issuer_of
from agent.runtime.messages import AgentMessage, ImageBlock
from agent.runtime.model import ModelRequest
from agent.runtime.tools import ToolDefinition

STATE_FORMAT = "ollama-chat/v1"


class OllamaRequests:
    """Builds the requests of one adapter."""

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        self._issuer = issuer_of(config)
        self._head = orjson.dumps({"model": config.model, "stream": True})[:-1]
        self._tools = ToolEncoder(_encode_tool)
        self._history = History(OllamaEncoder())

    def prepare(self, request: ModelRequest) -> PreparedRequest:
        """Return the request; raises `StateMismatch`."""
        tools = self._tools.encode(request.tools)
        state = checked(ProviderState.read(request.model_state, STATE_FORMAT, self._issuer), lambda extra: False)
        messages = self._history.encode(request.messages, tools.names, state)
        schema = None if request.response_schema is None else object_schema(request.response_schema)
        parts = [
            self._head,
            members(options=self._options(request), format=schema, think=self._config.reasoning_effort or None),
        ]
        if tools.encoded and request.tool_choice != "none":  # the only choice that can be expressed
            parts += (b',"tools":', tools.encoded)
        parts += (b',"messages":[', b",".join(messages), b"]}")
        answer_id = request.response_message_id
        return PreparedRequest(b"".join(parts), tools.names, state, answer_id, not messages, tools.left_out)

    def _options(self, request: ModelRequest) -> dict[str, Any] | None:
        settings = sampling(self._config, request)
        settings["num_predict"] = settings.pop("max_tokens")
        settings["num_ctx"] = self._config.context_window  # the server's own default is small
        settings["stop"] = list(self._config.stop_sequences) or None
        return {name: value for name, value in settings.items() if value is not None} or None


class OllamaEncoder:
    """Writes Ollama's messages; a result names its tool, since there are no ids."""

    protocol: ClassVar[str] = "ollama-chat"
    results_open_user_message: ClassVar[bool] = False

    def message(
        self, neighbours: Sequence[AgentMessage], calls: Sequence[WireCall], extras: Sequence[Sequence[Any]]
    ) -> bytes:
        role = neighbours[0].role
        texts = [text for message in neighbours if (text := message.text).strip()]
        pictures = [block for message in neighbours for block in message.blocks if isinstance(block, ImageBlock)]
        sources = [shown(block) if role == "user" else NO_IMAGE for block in pictures]
        texts += [source for source in sources if isinstance(source, str)]
        images = [source.data for source in sources if not isinstance(source, str)]
        if not (texts or images or calls):
            return b""
        wire: dict[str, Any] = {"role": role, "content": "\n\n".join(texts)}
        if images:
            wire["images"] = images
        if calls:
            wire["tool_calls"] = [
                {"function": {"name": call.name, "arguments": block.input}}
                for block, call in zip(neighbours[-1].tool_calls, calls, strict=True)
            ]
        return orjson.dumps(wire, option=orjson.OPT_SORT_KEYS)

    def results(self, results: Sequence[Result], following: Sequence[AgentMessage]) -> list[bytes]:
        return [kept_result(self.protocol, result, _result) for result in results]


def _result(result: Result) -> bytes:
    return orjson.dumps({"role": "tool", "tool_name": result.call.name, "content": result.text})


def _encode_tool(definition: ToolDefinition, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": name, "description": definition.description, "parameters": schema}
    return {"type": "function", "function": function}
