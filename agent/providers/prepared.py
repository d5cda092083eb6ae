"""A request that is ready to be sent, and the tools in it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from agent.providers.names import ToolNames
from agent.providers.schemas import object_schema
from agent.providers.state import ProviderState
from agent.runtime.tools import ToolDefinition

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request as it goes out; `names` and `state` read its answer, `message_id` is what the answer will be.

    It is `empty` where there is nothing to send.
    """

    body: bytes
    names: ToolNames
    state: ProviderState
    message_id: str
    empty: bool


@dataclass(frozen=True, slots=True)
class EncodedTools:
    """The tools of a request; `encoded` is their JSON list, nothing where there are none."""

    definitions: tuple[ToolDefinition, ...]
    names: ToolNames
    encoded: bytes


class ToolEncoder:
    """Encodes tools with `encode(definition, name, schema)`; those of the last request are remembered."""

    def __init__(self, encode: Callable[[ToolDefinition, str, Mapping[str, Any]], dict[str, Any]]) -> None:
        self._encode = encode
        self._last = self._encoded(())

    def encode(self, definitions: tuple[ToolDefinition, ...]) -> EncodedTools:
        last = self._last.definitions
        if len(last) != len(definitions) or any(one is not other for one, other in zip(last, definitions, strict=True)):
            self._last = self._encoded(definitions)
        return self._last

    def _encoded(self, definitions: tuple[ToolDefinition, ...]) -> EncodedTools:
        schemas = [(definition, object_schema(definition.input_schema)) for definition in definitions]
        names = ToolNames(definition.name for definition, schema in schemas if schema is not None)
        wire = []
        for definition, schema in schemas:
            if schema is None:
                logger.warning("tool %r is left out of the request: its input schema is no object", definition.name)
            else:
                wire.append(self._encode(definition, names.wire(definition.name), schema))
        return EncodedTools(definitions, names, orjson.dumps(wire) if wire else b"")
