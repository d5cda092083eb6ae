"""Lists of models, a local Ollama server, and vectors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.providers.config import ModelConfig, ProtocolName
from agent.providers.discovery import find_ollama, list_models, local_models
from agent.providers.embeddings import EmbeddingUnsupported, embed
from agent.providers.failures import ProviderFault
from agent.providers.transport import Transport
from agent.testing.http_provider import ScriptedAnswer, ScriptedProvider


def answer(data: Any, status: int = 200) -> ScriptedAnswer:
    return ScriptedAnswer(json.dumps(data).encode(), status, {"content-type": "application/json"})


def at(provider: ScriptedProvider, protocol: ProtocolName, **more: Any) -> ModelConfig:
    return ModelConfig(protocol, "m", provider.url, "sk-TEST", allow_private=True, **more)


@pytest.mark.parametrize(
    ("protocol", "listed", "path"),
    [
        ("openai-chat", {"data": [{"id": "b"}, {"id": "a"}, {"id": "a"}, {"id": None}, 5]}, "/v1/models"),
        ("openai-responses", {"data": [{"id": "b"}, {"id": "a"}]}, "/v1/models"),
        ("anthropic-messages", {"data": [{"id": "b"}, {"id": "a"}]}, "/v1/models?limit=1000"),
        ("ollama-chat", {"models": [{"name": "b"}, {"name": "a"}]}, "/api/tags"),
    ],
)
async def test_the_models_of_an_endpoint(transport: Transport, protocol: Any, listed: Any, path: str) -> None:
    async with ScriptedProvider(answer(listed)) as provider:
        assert await list_models(at(provider, protocol), transport) == ["a", "b"]
        (request,) = provider.requests
    assert (request.method, request.path) == ("GET", path)
    sent = request.headers.get("authorization", "") + request.headers.get("x-api-key", "")
    assert "sk-TEST" in sent


@pytest.mark.parametrize(
    "wrong", [answer([]), answer({"data": 5}), ScriptedAnswer(b"<html>"), answer({"error": "no"}, 401)]
)
async def test_a_list_that_cannot_be_read_is_an_error_in_words(transport: Transport, wrong: ScriptedAnswer) -> None:
    async with ScriptedProvider(wrong) as provider:
        with pytest.raises(ProviderFault) as caught:
            await list_models(at(provider, "openai-chat"), transport)
    assert "sk-TEST" not in str(caught.value)


async def test_an_ollama_server_is_found_with_its_models(transport: Transport) -> None:
    tags = {"models": [{"name": "small"}, {"name": "large"}]}
    async with ScriptedProvider(answer({"version": "0.9"}), answer(tags)) as provider:
        found = await local_models(transport, provider.url)
    assert [config.model for config in found] == ["large", "small"]
    assert {config.protocol for config in found} == {"ollama-chat"}


async def test_where_no_ollama_server_runs_none_is_found(transport: Transport) -> None:
    assert await find_ollama(transport, "http://127.0.0.1:9") is None
    assert await local_models(transport, "http://127.0.0.1:9") == []


async def test_vectors_come_in_the_order_of_the_texts(transport: Transport) -> None:
    """P32."""
    rows = [{"index": 1, "embedding": [3, 4.5]}, {"index": 0, "embedding": [1.0, 2.0]}]
    async with ScriptedProvider(answer({"data": rows})) as provider:
        vectors = await embed(at(provider, "openai-chat"), transport, ["a", "b"])
        (request,) = provider.requests
    assert vectors == [[1.0, 2.0], [3.0, 4.5]]
    assert request.path == "/v1/embeddings"
    assert (request.json["model"], request.json["input"]) == ("text-embedding-3-small", ["a", "b"])


async def test_ollama_makes_vectors_too(transport: Transport) -> None:
    async with ScriptedProvider(answer({"embeddings": [[1, 2]]})) as provider:
        vectors = await embed(at(provider, "ollama-chat", embedding_model="e"), transport, ["a"])
        (request,) = provider.requests
    assert (vectors, request.path, request.json["model"]) == ([[1.0, 2.0]], "/api/embed", "e")


@pytest.mark.parametrize(
    "rows",
    [
        {"data": [{"index": 0, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}]},
        {"data": [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]},
        {"data": [{"index": 0, "embedding": "x"}, {"index": 1, "embedding": [None]}]},
        {"data": None},
        [],
    ],
    ids=["missing", "lengths", "empty", "no numbers", "null", "list"],
)
async def test_vectors_that_are_none_are_an_error(transport: Transport, rows: Any) -> None:
    async with ScriptedProvider(answer(rows)) as provider:
        with pytest.raises(ProviderFault):
            await embed(at(provider, "openai-chat"), transport, ["a", "b"])


async def test_anthropic_knows_no_embeddings(transport: Transport) -> None:
    """P10."""
    with pytest.raises(EmbeddingUnsupported):
        await embed(ModelConfig("anthropic-messages", "m"), transport, ["a"])
    assert await embed(ModelConfig("openai-chat", "m"), transport, []) == []
