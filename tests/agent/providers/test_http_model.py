"""What all adapters over HTTP do alike: how an answer is told from a stream, and when it is over."""

from __future__ import annotations

import asyncio

import pytest

from agent.providers.anthropic import AnthropicMessages
from agent.providers.http_model import HTTPModel
from agent.providers.openai_chat import OpenAIChat
from agent.providers.registry import build_model
from agent.providers.transport import Transport
from agent.testing.chat_wire import DONE, chat_chunk
from agent.testing.http_provider import ScriptedAnswer, ScriptedProvider
from tests.agent.providers.reading import config, read, text_of

CHAT = [chat_chunk({"content": "Hi"}), chat_chunk({}, finish="stop")]
MESSAGES = [
    b'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi"}}\n\n',
    b'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n',
]
PINGS = [b": ping\n\n"] * 100_000


@pytest.mark.parametrize(("events", "adapter"), [(CHAT, OpenAIChat), (MESSAGES, AnthropicMessages)])
async def test_pings_after_the_finish_reason_do_not_keep_an_answer_open(
    transport: Transport, events: list[bytes], adapter: type[HTTPModel]
) -> None:
    """R45: what comes after the finish reason has one deadline, however often the server says that it still lives."""
    protocol = "openai-chat" if adapter is OpenAIChat else "anthropic-messages"
    async with ScriptedProvider(ScriptedAnswer([*events, *PINGS], pace=0.01)) as provider:
        model = adapter(config(provider.url, protocol=protocol), transport, usage_wait=0.2)
        async with asyncio.timeout(10):
            answer = await read(model)
        await provider.wait_for_closed()
    assert text_of(answer) == "Hi" and answer.stop is not None and answer.stop.stop_reason == "end-turn"


STREAM = b"".join(CHAT) + DONE


@pytest.mark.parametrize("label", ["application/json", "text/html", "text/plain", "text/event-stream"])
@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b": hello\n\n", b"event: message\n", b"\r\n\n", b"id: 1\n"])
async def test_a_stream_is_read_whatever_its_label_says(transport: Transport, label: str, before: bytes) -> None:
    served = ScriptedAnswer(before + STREAM, headers={"content-type": label})
    async with ScriptedProvider(served, served.bytewise()) as provider:
        for _ in range(2):
            answer = await read(OpenAIChat(config(provider.url), transport))
            assert text_of(answer) == "Hi" and answer.error is None


@pytest.mark.parametrize("label", ["application/json", "text/event-stream"])
async def test_an_error_body_is_read_whatever_its_label_says(transport: Transport, label: str) -> None:
    """B22: a failure that is announced as a stream is still what the provider says it is."""
    body = b' \n{"error": {\n"message": "too busy, try later", "code": 429}}'
    async with ScriptedProvider(ScriptedAnswer(body, headers={"content-type": label})) as provider:
        answer = await read(OpenAIChat(config(provider.url), transport))
    assert answer.error is not None
    assert (answer.error.message, answer.error.kind) == ("too busy, try later", "rate-limit")
    assert answer.error.retryable


@pytest.mark.parametrize(
    "body", [b"event: error\ndata: overloaded\n\n", b"overloaded", "\N{ZERO WIDTH NO-BREAK SPACE}Overloaded\n".encode()]
)
async def test_words_in_place_of_json_are_passed_on(transport: Transport, body: bytes) -> None:
    async with ScriptedProvider(ScriptedAnswer(body)) as provider:
        answer = await read(OpenAIChat(config(provider.url), transport))
    assert answer.error is not None and answer.error.message.lower().endswith("that is no json: overloaded")
    assert answer.error.kind == "overloaded" and answer.error.retryable


@pytest.mark.parametrize("protocol", ["openai-chat", "openai-responses", "anthropic-messages", "ollama-chat"])
async def test_a_page_is_no_answer_and_no_reason_to_try_again(transport: Transport, protocol: str) -> None:
    served = ScriptedAnswer(b"<html>Sign in, sk-TEST-123/+x</html>\n", headers={"content-type": "text/html"})
    async with ScriptedProvider(served) as provider:
        answer = await read(build_model(config(provider.url, protocol=protocol), transport))  # type: ignore[arg-type]
    assert answer.error is not None and answer.error.message == "the provider sent an answer that is no JSON"
    assert not answer.error.retryable


async def test_words_in_place_of_json_tell_no_secret(transport: Transport) -> None:
    async with ScriptedProvider(ScriptedAnswer(b"data: no such key: sk-TEST-123/+x\n\n")) as provider:
        answer = await read(OpenAIChat(config(provider.url), transport))
    assert answer.error is not None and answer.error.message.endswith("that is no JSON: no such key: [secret]")
