"""Requests to a chat completions server: ready bytes, joined from messages that are encoded once.

What is sent is valid for every history (B08, B09, B35, B40, B53): neighbours of one role are joined, empty text is left
out, each call is followed by exactly one result, in call order.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import orjson

from agent.providers.config import ModelConfig
from agent.providers.openai_chat_tools import ToolNames, encode_tool, object_schema
from agent.runtime.messages import (
    AgentMessage,
    ImageBlock,
    ModelState,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UrlSource,
)
from agent.runtime.model import ModelRequest
from agent.runtime.tools import ToolDefinition

STATE_FORMAT = "openai-chat/v1"
NO_OUTPUT = "(no output)"
NO_RESULT = "There is no result: it is not known whether this tool was run."

_LEGAL_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")

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
        official = not config.base_url or (urlsplit(config.base_url).hostname or "").endswith(".openai.com")
        self._max_tokens = b"max_completion_tokens" if official else b"max_tokens"
        self._tools = _encode_tools(())

    def prepare(self, request: ModelRequest) -> PreparedRequest:
        """Return the request; raises `StateMismatch`."""
        tools = self._tools
        if len(tools.definitions) != len(request.tools) or any(
            one is not other for one, other in zip(tools.definitions, request.tools, strict=True)
        ):
            tools = self._tools = _encode_tools(request.tools)
        provider_ids = _known_ids(request.model_state)
        call_ids = {
            block.call_id: provider_ids[block.call_id]
            for message in request.messages
            if message.role == "assistant" and provider_ids
            for block in message.blocks
            if block.type == "tool-call" and block.call_id in provider_ids
        }
        messages = encode_messages(request.messages, tools.names, call_ids)
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


def wire_ids(messages: Sequence[AgentMessage], call_ids: Mapping[str, str]) -> dict[str, str]:
    """Return the id to send for each call: the provider's where it is unique in the request, else ours."""
    ours = [block.call_id for message in messages for block in message.blocks if block.type == "tool-call"]
    legal = {call_id: call_id if _LEGAL_ID.fullmatch(call_id) else _digest_id(call_id) for call_id in ours}
    taken = Counter(call_ids.get(call_id, "") for call_id in ours)
    taken.update(legal.values())
    return {
        call_id: theirs if (theirs := call_ids.get(call_id)) and taken[theirs] == 1 else legal[call_id]
        for call_id in ours
    }


def _digest_id(call_id: str) -> str:
    return f"call_{hashlib.sha256(call_id.encode()).hexdigest()[:24]}"


def encode_messages(messages: Sequence[AgentMessage], names: ToolNames, call_ids: Mapping[str, str]) -> list[bytes]:
    """Return the wire messages of a history; each message is encoded once and kept with it."""
    ids = wire_ids(messages, call_ids)
    results: dict[str, tuple[AgentMessage, ToolResultBlock]] = {}
    for message in messages:
        if message.role == "tool":
            for block in message.blocks:
                if isinstance(block, ToolResultBlock):
                    results.setdefault(block.call_id, (message, block))
    encoded: list[bytes] = []
    neighbours: list[AgentMessage] = []
    for message in messages:
        if message.role == "tool":
            continue
        calls = message.tool_calls if message.role == "assistant" and ids else ()
        wire_calls = tuple((ids[call.call_id], names.wire(call.name)) for call in calls)
        piece = _kept(message, wire_calls)
        if not piece:
            continue
        if neighbours and neighbours[-1].role == message.role:
            neighbours.append(message)
            encoded[-1] = _encode(neighbours, wire_calls)
        else:
            neighbours = [message]
            encoded.append(piece)
        if calls:
            encoded.extend(_result(results.get(call.call_id), ids[call.call_id]) for call in calls)
            neighbours = []
    return encoded


def _kept(message: AgentMessage, wire_calls: tuple[tuple[str, str], ...]) -> bytes:
    key = ("openai-chat", wire_calls)
    piece: bytes | None = message.encoded.get(key)
    if piece is None:
        piece = message.encoded[key] = _encode([message], wire_calls)
    return piece


def _encode(neighbours: Sequence[AgentMessage], wire_calls: Sequence[tuple[str, str]]) -> bytes:
    """Return one wire message for neighbours of one role, nothing if there is nothing to say."""
    role = neighbours[0].role
    parts = [part for message in neighbours for part in _parts(message)]
    texts = [part for part in parts if isinstance(part, str)]
    content: Any = None
    if len(texts) < len(parts):
        content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    elif texts:
        content = "\n\n".join(texts)
    calls = [block for block in neighbours[-1].blocks if isinstance(block, ToolCallBlock)] if wire_calls else []
    if content is None and not calls:
        return b""
    wire: dict[str, Any] = {"role": role, "content": content}
    if calls:
        wire["tool_calls"] = [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": name, "arguments": orjson.dumps(call.input).decode()},
            }
            for call, (call_id, name) in zip(calls, wire_calls, strict=True)
        ]
    return orjson.dumps(wire)


def _parts(message: AgentMessage) -> list[str | dict[str, Any]]:
    """Return what a message says: its text, in pieces where pictures stand between; reasoning is not sent back."""
    if message.role != "user":
        return [text] if (text := message.text).strip() else []
    parts: list[str | dict[str, Any]] = []
    for block in message.blocks:
        match block:
            case TextBlock() if block.text.strip():
                parts.append(block.text)
            case ImageBlock():
                source = block.source
                url = source.url if isinstance(source, UrlSource) else f"data:{source.media_type};base64,{source.data}"
                parts.append({"type": "image_url", "image_url": {"url": url}})
            case _:
                pass
    return parts


def _result(found: tuple[AgentMessage, ToolResultBlock] | None, call_id: str) -> bytes:
    if found is None:
        return orjson.dumps({"role": "tool", "tool_call_id": call_id, "content": NO_RESULT})
    message, block = found
    key = ("openai-chat", block.call_id, call_id)
    piece: bytes | None = message.encoded.get(key)
    if piece is None:
        text = "".join(part.text for part in block.content)
        wire = {"role": "tool", "tool_call_id": call_id, "content": text if text.strip() else NO_OUTPUT}
        piece = message.encoded[key] = orjson.dumps(wire)
    return piece
