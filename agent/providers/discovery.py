"""What an endpoint offers: the models it serves, and whether an Ollama server runs on this machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, assert_never

import orjson

from agent.providers.config import OLLAMA_URL, ModelConfig
from agent.providers.failures import ProviderFault
from agent.providers.transport import Transport
from agent.runtime.model import StreamError

MAX_LIST = 8 * 1024 * 1024  # bytes
MAX_MODELS = 5_000


async def list_models(config: ModelConfig, transport: Transport) -> list[str]:
    """Return the names of the models at an endpoint, sorted; raises `ProviderFault`."""
    match config.protocol:
        case "demo":
            return ["demo"]
        case "openai-chat" | "openai-responses":
            path, members, name = "/models", "data", "id"
        case "anthropic-messages":
            path, members, name = "/v1/models?limit=1000", "data", "id"
        case "ollama-chat":
            path, members, name = "/api/tags", "models", "name"
        case _:
            assert_never(config.protocol)
    found = parsed(await transport.fetch(config, path, limit=MAX_LIST))
    rows = found.get(members) if isinstance(found, dict) else None
    if not isinstance(rows, list):
        raise ProviderFault(StreamError("the provider's list of models cannot be read"))
    return sorted(set(_names(rows[:MAX_MODELS], name)))


async def find_ollama(transport: Transport, url: str = OLLAMA_URL) -> ModelConfig | None:
    """Return where an Ollama server runs, None if there is none at `url`; its `model` is left empty."""
    config = ModelConfig("ollama-chat", "", url, allow_private=True)
    try:
        version = parsed(await transport.fetch(config, "/api/version", limit=1024))
    except ProviderFault:
        return None
    return config if isinstance(version, dict) and "version" in version else None


async def local_models(transport: Transport, url: str = OLLAMA_URL) -> list[ModelConfig]:
    """Return the models of the Ollama server at `url`, by default on this machine; none if there is no server."""
    server = await find_ollama(transport, url)
    return [] if server is None else [replace(server, model=name) for name in await list_models(server, transport)]


def parsed(body: bytes) -> Any:
    """Return the JSON of a plain answer; raises `ProviderFault`."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        raise ProviderFault(StreamError("the provider answered with something that is no JSON")) from None


def _names(rows: Iterable[Any], member: str) -> Iterable[str]:
    for row in rows:
        name = row.get(member) if isinstance(row, dict) else None
        if isinstance(name, str) and name:
            yield name
