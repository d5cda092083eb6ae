"""Servers and networks that misbehave, over real sockets."""

from __future__ import annotations

import asyncio
import gzip
import logging
import socket
from contextlib import closing

import pytest

from agent.providers.config import ProtocolName
from agent.providers.openai_chat import OpenAIChat
from agent.providers.registry import build_model
from agent.providers.transport import MAX_ERROR_BODY, Transport
from agent.runtime.cancellation import CancelSignal
from agent.runtime.model import BlockDelta
from agent.testing.chat_wire import chat_chunk, chat_stream
from agent.testing.http_provider import ScriptedAnswer, ScriptedProvider
from tests.agent.providers.reading import ask, config, read, text_of

KEY = "sk-TEST-123/+x"


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_a_refused_connection_is_said_to_be_one(transport: Transport) -> None:
    answer = await read(OpenAIChat(config(f"http://127.0.0.1:{free_port()}/v1"), transport))
    assert answer.error is not None
    assert (answer.error.kind, answer.error.retryable) == ("connection-lost", True)
    assert "is not reachable" in answer.error.message


async def test_a_name_that_does_not_exist_is_said_to_be_one(transport: Transport) -> None:
    answer = await read(OpenAIChat(config("http://nowhere.invalid/v1"), transport))
    assert answer.error is not None
    assert answer.error.kind == "connection-lost" and "name" in answer.error.message


async def test_a_connection_closed_before_any_header_is_lost(transport: Transport) -> None:
    async with ScriptedProvider(ScriptedAnswer(headers=None)) as provider:
        answer = await read(OpenAIChat(config(provider.url), transport))
    assert answer.error is not None
    assert (answer.error.kind, answer.error.retryable) == ("connection-lost", True)


async def test_a_server_that_never_answers_times_out() -> None:
    """P35."""
    impatient = Transport(idle_timeout=0.1)
    await impatient.start()
    async with ScriptedProvider(ScriptedAnswer(hold=asyncio.Event())) as provider:
        answer = await read(OpenAIChat(config(provider.url), impatient))
    await impatient.close()
    assert answer.error is not None
    assert (answer.error.kind, answer.error.retryable) == ("timeout", True)


async def test_silence_in_the_middle_times_out_and_keeps_the_text() -> None:
    """P35: the time counts from the last piece."""
    impatient = Transport(idle_timeout=0.1)
    await impatient.start()
    async with ScriptedProvider(ScriptedAnswer(chat_chunk({"content": "Half"}), end="hang")) as provider:
        answer = await read(OpenAIChat(config(provider.url), impatient))
    await impatient.close()
    assert text_of(answer) == "Half"
    assert answer.error is not None and answer.error.kind == "timeout"


@pytest.mark.parametrize("end", ["cut", "reset"])
async def test_a_connection_that_breaks_in_the_middle_keeps_the_text(end: str, transport: Transport) -> None:
    """B21."""
    scripted = ScriptedAnswer([chat_chunk({"content": "Half"})], end=end)  # type: ignore[arg-type]
    async with ScriptedProvider(scripted) as provider:
        answer = await read(OpenAIChat(config(provider.url), transport))
    assert text_of(answer) == "Half"
    assert answer.error is not None and answer.error.kind == "connection-lost"


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, "authentication"), (404, "not-found"), (429, "rate-limit"), (500, "provider-error")],
)
async def test_an_error_answer_is_quoted_without_the_key(status: int, kind: str, transport: Transport) -> None:
    """B83, P34."""
    body = b'{"error":{"message":"key sk-TEST-123/+x and sk-TEST-123%2f%2Bx are wrong"}}'
    async with ScriptedProvider(ScriptedAnswer(body, status, {"content-type": "application/json"})) as provider:
        answer = await read(OpenAIChat(config(provider.url), transport))
    assert answer.error is not None
    assert answer.error.kind == kind
    assert "key [secret] and [secret] are wrong" in answer.error.message


async def test_a_redirect_is_not_followed(transport: Transport) -> None:
    async with ScriptedProvider() as elsewhere:
        moved = ScriptedAnswer(b"", 302, {"location": f"{elsewhere.url}/chat/completions"})
        async with ScriptedProvider(moved) as provider:
            answer = await read(OpenAIChat(config(provider.url), transport))
        assert elsewhere.requests == []
    assert answer.error is not None
    assert "302" in answer.error.message and not answer.error.retryable


async def test_an_endless_error_body_is_not_read_to_its_end(transport: Transport) -> None:
    flood = ScriptedAnswer([b"x" * MAX_ERROR_BODY] * 200, 500, {"content-type": "text/plain"}, end="hang")
    async with ScriptedProvider(flood) as provider:
        answer = await read(OpenAIChat(config(provider.url), transport))
        await provider.wait_for_closed()
    assert answer.error is not None and len(answer.error.message) <= 1_000


async def test_an_event_that_never_ends_is_refused(transport: Transport) -> None:
    async with ScriptedProvider(ScriptedAnswer([b"data: ", *[b"x" * 50_000] * 50], end="hang")) as provider:
        answer = await read(OpenAIChat(config(provider.url), transport, limit=100_000))
    assert answer.error is not None
    assert "larger than 100,000 bytes" in answer.error.message


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]", "localhost.", "0.0.0.0"]
)
async def test_no_form_of_a_private_address_gets_through(host: str, transport: Transport) -> None:
    """B79."""
    async with ScriptedProvider() as provider:
        url = f"http://{host}:{provider.port}/v1"
        answer = await read(OpenAIChat(config(url, allow_private=False), transport))
        assert provider.connections == 0
    assert answer.error is not None
    assert answer.error.kind in ("permission", "invalid-request") or host == "localhost."  # which not all resolve


async def test_a_private_endpoint_does_not_open_its_connection_to_others(transport: Transport) -> None:
    """B79: a connection that was made with the right is not lent to a configuration without it."""
    async with ScriptedProvider(ScriptedAnswer(chat_stream("Yes")), repeat=True) as provider:
        assert text_of(await read(OpenAIChat(config(provider.url), transport))) == "Yes"
        refused = await read(OpenAIChat(config(provider.url, allow_private=False), transport))
        assert len(provider.requests) == 1
    assert refused.error is not None and refused.error.kind == "permission"


@pytest.mark.parametrize("url", ["ftp://host/v1", "nonsense", "http://", "http://user:pw@127.0.0.1/v1", "http://[::1"])
async def test_an_address_that_cannot_be_used_is_an_error_of_the_request(url: str, transport: Transport) -> None:
    answer = await read(OpenAIChat(config(url), transport))
    assert answer.error is not None
    assert answer.error.kind == "invalid-request" and "pw" not in answer.error.message


async def test_the_key_appears_in_no_log(transport: Transport, caplog: pytest.LogCaptureFixture) -> None:
    """B83: neither as header nor in the query, also with debugging on."""
    caplog.set_level(logging.DEBUG)
    async with ScriptedProvider(
        ScriptedAnswer(chat_stream("Yes")), ScriptedAnswer(KEY.encode(), 500), ScriptedAnswer(headers=None)
    ) as provider:
        model = OpenAIChat(config(f"{provider.url}?key=sk-in-query"), transport)
        for _ in range(3):
            await read(model)
    logged = caplog.text + "".join(str(record.__dict__) for record in caplog.records)
    assert KEY not in logged and "sk-TEST-123%2F%2Bx" not in logged and "sk-in-query" not in logged


@pytest.mark.parametrize("key", ["sk-“pasted”", "sk-two\nlines: x", "sk-nul\x00"])
async def test_a_key_that_no_header_can_carry_is_an_error(key: str, transport: Transport) -> None:
    async with ScriptedProvider() as provider:
        answer = await read(OpenAIChat(config(provider.url, api_key=key), transport))
        assert provider.requests == []
    assert answer.error is not None and key not in answer.error.message


async def test_only_what_was_configured_is_sent(transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "ambient-secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Ambient: ambient-secret\nAuthorization: Bearer ambient-secret")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with ScriptedProvider(ScriptedAnswer(chat_stream("Yes")), repeat=True) as provider:
        await read(OpenAIChat(config(provider.url, organization="ours"), transport))
        await read(OpenAIChat(config(provider.url, api_key=""), transport))
        with_key, without_key = (request.headers for request in provider.requests)
    assert with_key["authorization"] == f"Bearer {KEY}"
    assert with_key["openai-organization"] == "ours"
    assert "authorization" not in without_key and "openai-organization" not in without_key
    assert "ambient" not in str(with_key) + str(without_key)


@pytest.mark.parametrize("protocol", ["openai-chat", "openai-responses", "anthropic-messages", "ollama-chat"])
@pytest.mark.parametrize("key", ["", KEY])
@pytest.mark.parametrize(
    "name", ["authorization", "AUTHORIZATION", "x-API-key", "user-agent", "ACCEPT", "openai-organization", "X-Team"]
)
async def test_a_header_of_the_operator_replaces_ours_however_it_is_spelled(
    transport: Transport, protocol: ProtocolName, key: str, name: str
) -> None:
    async with ScriptedProvider(ScriptedAnswer()) as provider:
        endpoint = config(provider.url, protocol=protocol, api_key=key, headers=((name, "the operator's"),))
        await read(build_model(endpoint, transport))
        received = provider.requests[0].headers
    assert received[name.lower()] == "the operator's"
    assert (KEY in str(received)) == (key == KEY and not _carries_the_key(protocol, name))


def _carries_the_key(protocol: ProtocolName, name: str) -> bool:
    return name.lower() == ("x-api-key" if protocol == "anthropic-messages" else "authorization")


async def test_calls_that_were_read_to_the_end_share_a_connection(transport: Transport) -> None:
    async with ScriptedProvider(ScriptedAnswer(chat_stream("Yes")), repeat=True) as provider:
        for _ in range(3):
            await read(OpenAIChat(config(provider.url), transport))
        assert provider.connections == 1


async def test_leaving_an_answer_closes_its_connection(transport: Transport) -> None:
    async with ScriptedProvider(ScriptedAnswer([chat_chunk({"content": "Half"})], end="hang")) as provider:
        stream = OpenAIChat(config(provider.url), transport).stream(ask(), CancelSignal())
        batch = await anext(stream)
        assert any(isinstance(event, BlockDelta) for event in batch)
        await stream.aclose()
        await provider.wait_for_closed()


async def test_cancelling_the_reading_task_closes_the_connection(transport: Transport) -> None:
    async with ScriptedProvider(ScriptedAnswer(hold=asyncio.Event())) as provider:
        reading = asyncio.ensure_future(read(OpenAIChat(config(provider.url), transport)))
        await provider.wait_for_requests()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await provider.wait_for_closed()


async def test_closing_the_transport_ends_a_running_answer_with_an_error() -> None:
    made = Transport()
    await made.start()
    async with ScriptedProvider(ScriptedAnswer([chat_chunk({"content": "Half"})], end="hang")) as provider:
        reading = asyncio.ensure_future(read(OpenAIChat(config(provider.url), made)))
        await provider.wait_for_requests()
        await made.close()
        assert (await reading).error is not None


async def test_a_transport_that_was_not_started_says_so() -> None:
    with pytest.raises(RuntimeError, match="not started"):
        await read(OpenAIChat(config("http://127.0.0.1:9/v1"), Transport()))


async def test_a_compressed_answer_is_read_all_the_same(transport: Transport) -> None:
    body = gzip.compress(b"".join(chat_stream("Yes")))
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    async with ScriptedProvider(ScriptedAnswer(body, headers=headers)) as provider:
        assert text_of(await read(OpenAIChat(config(provider.url), transport))) == "Yes"
        assert provider.requests[0].headers["accept-encoding"] == "identity"
