"""A request that is ready to be sent, and the tools in it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from agent.providers.config import ModelConfig
from agent.providers.names import ToolNames
from agent.providers.schemas import object_schema
from agent.providers.state import ProviderState
from agent.runtime.model import ModelRequest
from agent.runtime.tools import ToolDefinition

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request as it goes out; `names` and `state` read its answer, `message_id` is what the answer will be.

    It is `empty` where there is nothing to send. `left_out` are the tools that the provider would refuse.
    """

    body: bytes
    names: ToolNames
    state: ProviderState
    message_id: str
    empty: bool
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EncodedTools:
    """The tools of a request; `encoded` is the JSON list of those that are `sent`, nothing where there are none."""

    definitions: tuple[ToolDefinition, ...]
    names: ToolNames
    sent: frozenset[str]
    encoded: bytes

    @property
    def left_out(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.definitions if each.name not in self.sent)


class ToolEncoder:
    """Encodes tools with `encode(definition, name, schema)`, which gives None for one that its protocol refuses.

    The tools of the last request are remembered.
    """

    def __init__(self, encode: Callable[[ToolDefinition, str, Mapping[str, Any]], dict[str, Any] | None]) -> None:
        self._encode = encode
        self._last = self._encoded(())

    def encode(self, definitions: tuple[ToolDefinition, ...]) -> EncodedTools:
        last = self._last.definitions
        if len(last) != len(definitions) or any(one is not other for one, other in zip(last, definitions, strict=True)):
            self._last = self._encoded(definitions)
        return self._last

    def _encoded(self, definitions: tuple[ToolDefinition, ...]) -> EncodedTools:
        names = ToolNames(definition.name for definition in definitions)
        wire: dict[str, dict[str, Any]] = {}
        for definition in definitions:
            schema = object_schema(definition.input_schema)
            tool = None if schema is None else self._encode(definition, names.wire(definition.name), schema)
            if tool is None:
                logger.warning("tool %r is left out of the request: its schema cannot be expressed", definition.name)
            else:
                wire[definition.name] = tool
        encoded = orjson.dumps(list(wire.values())) if wire else b""
        return EncodedTools(definitions, names, frozenset(wire), encoded)


def members(**values: Any) -> bytes:
    """Return the members of a JSON object that are not None, each with a comma before it."""
    parts = [
        b",%b:%b" % (orjson.dumps(name), orjson.dumps(value)) for name, value in values.items() if value is not None
    ]
    return b"".join(parts)


def sampling(config: ModelConfig, request: ModelRequest) -> dict[str, Any]:
    """Return what a request says about sampling; what it leaves open is said by the configuration."""
    return {
        "max_tokens": config.max_tokens if request.max_tokens is None else request.max_tokens,
        "temperature": config.temperature if request.temperature is None else request.temperature,
        "top_p": config.top_p,
    }
