"""Requests to a chat completions server: ready bytes, joined from parts that are encoded once."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from agent.providers.config import ModelConfig
from agent.providers.openai_chat_history import ChatHistory
from agent.providers.openai_chat_tools import ToolNames, encode_tool, object_schema
from agent.runtime.messages import ModelState
from agent.runtime.model import ModelRequest
from agent.runtime.tools import ToolDefinition

STATE_FORMAT = "openai-chat/v1"

_OPENAI = re.compile(r"https://([a-z-]+\.)*openai\.com(:443)?(/|$)")

logger = logging.getLogger(__name__)


class StateMismatch(ValueError):
    """Raised when a request carries a model state of another provider (R27)."""


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request as it goes out; `names` reads its answer, `call_ids` are the provider's ids of the calls in it."""

    body: bytes
    names: ToolNames
    call_ids: dict[str, str]
    empty: bool


@dataclass(frozen=True, slots=True)
class _Tools:
    definitions: tuple[ToolDefinition, ...]
    names: ToolNames
    encoded: bytes


class ChatRequests:
    """Builds the requests of one adapter."""

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        head = {"model": config.model, "stream": True, "stream_options": {"include_usage": True}}  # P36
        self._head = orjson.dumps(head)[:-1]
        # OpenAI's own newer models refuse max_tokens, other servers do not know its successor.
        official = not config.base_url or _OPENAI.match(config.base_url)
        self._max_tokens = b"max_completion_tokens" if official else b"max_tokens"
        self._tools = _encode_tools(())
        self._history = ChatHistory()

    def prepare(self, request: ModelRequest) -> PreparedRequest:
        """Return the request; raises `StateMismatch`."""
        tools = self._tools
        if len(tools.definitions) != len(request.tools) or any(
            one is not other for one, other in zip(tools.definitions, request.tools, strict=True)
        ):
            tools = self._tools = _encode_tools(request.tools)
        provider_ids = _known_ids(request.model_state)
        messages = self._history.encode(request.messages, tools.names, provider_ids)
        call_ids = {call_id: provider_ids[call_id] for call_id in self._history.calls if call_id in provider_ids}
        parts = [self._head]
        max_tokens = request.max_tokens or self._config.max_tokens
        if max_tokens is not None:
            parts.append(b',"%b":%d' % (self._max_tokens, max_tokens))
        temperature = self._config.temperature if request.temperature is None else request.temperature
        if temperature is not None:
            parts.append(b',"temperature":' + orjson.dumps(temperature))
        parts += (tools.encoded, b',"messages":[', b",".join(messages), b"]}")
        return PreparedRequest(b"".join(parts), tools.names, call_ids, not messages)


def _known_ids(state: ModelState | None) -> Mapping[str, str]:
    if state is None:
        return {}
    if state.format != STATE_FORMAT:
        raise StateMismatch(f"the model state has the format {state.format!r}, {STATE_FORMAT!r} is needed")
    ids = state.data.get("callIds") if isinstance(state.data, Mapping) else None
    if not isinstance(ids, Mapping) or not all(isinstance(value, str) for value in ids.values()):
        raise StateMismatch(f"the model state does not hold what {STATE_FORMAT!r} promises")
    return ids


def next_state(call_ids: Mapping[str, str]) -> ModelState | None:
    """Return the model state that keeps the provider's ids, None if there are none."""
    return ModelState(format=STATE_FORMAT, data={"callIds": call_ids}) if call_ids else None


def _encode_tools(definitions: tuple[ToolDefinition, ...]) -> _Tools:
    schemas = [(definition, object_schema(definition.input_schema)) for definition in definitions]
    names = ToolNames(definition.name for definition, schema in schemas if schema is not None)
    wire = []
    for definition, schema in schemas:
        if schema is None:
            logger.warning("tool %r is left out of the request: its input schema is no object", definition.name)
        else:
            wire.append(encode_tool(definition, names.wire(definition.name), schema))
    return _Tools(definitions, names, b',"tools":' + orjson.dumps(wire) if wire else b"")
