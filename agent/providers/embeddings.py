"""Vectors for texts, where an endpoint makes them (P10, P32)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import orjson

from agent.providers.config import ModelConfig
from agent.providers.discovery import parsed
from agent.providers.failures import ProviderFault
from agent.providers.transport import Transport
from agent.runtime.model import StreamError

OPENAI_EMBEDDING_MODEL = "text-embedding-3-small"  # P32


class EmbeddingUnsupported(Exception):
    """Raised where the protocol of an endpoint knows no embeddings (`embedding_unsupported`)."""

    code = "EMBEDDING_UNSUPPORTED"


async def embed(config: ModelConfig, transport: Transport, texts: Sequence[str]) -> list[list[float]]:
    """Return a vector for each text, in order; all have one length.

    Raises `EmbeddingUnsupported`, and `ProviderFault` for what the endpoint does wrong.
    """
    match config.protocol:
        case "openai-chat" | "openai-responses":
            path, model = "/embeddings", config.embedding_model or OPENAI_EMBEDDING_MODEL
            body: dict[str, Any] = {"model": model, "input": list(texts), "encoding_format": "float"}
        case "ollama-chat":
            path = "/api/embed"
            body = {"model": config.embedding_model or config.model, "input": list(texts), "truncate": False}
        case protocol:
            raise EmbeddingUnsupported(f"{protocol} knows no embeddings")
    if not texts:
        return []
    answer = parsed(await transport.fetch(config, path, orjson.dumps(body)))
    vectors = _vectors(answer)
    sizes = {len(vector) for vector in vectors}
    if len(vectors) != len(texts) or len(sizes) != 1 or 0 in sizes:
        raise ProviderFault(StreamError("the provider did not give a vector for each text"))
    return vectors


def _vectors(answer: Any) -> list[list[float]]:
    """Return the vectors of an answer of either form, none where it cannot be read."""
    if not isinstance(answer, dict):
        return []
    if isinstance(rows := answer.get("data"), list):  # OpenAI: each with its index
        found = [row for row in rows if isinstance(row, dict)]
        if all(type(row.get("index")) is int for row in found):
            found.sort(key=lambda row: row["index"])
        candidates = [row.get("embedding") for row in found]
    else:
        listed = answer.get("embeddings")
        candidates = listed if isinstance(listed, list) else []
    return [list(map(float, vector)) for vector in candidates if _is_vector(vector)]


def _is_vector(value: Any) -> TypeGuard[list[int | float]]:
    return isinstance(value, list) and all(type(number) in (int, float) for number in value)
