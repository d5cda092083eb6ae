"""The scripted provider keeps its word."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from agent.testing.chat_wire import chat_stream
from agent.testing.http_provider import ScriptedAnswer, ScriptedProvider

BODY = b"".join(chat_stream("Hello", " there"))


class Reads(asyncio.Protocol):
    """Sends one request and keeps what each read brought."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.over = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(b"POST /v1/x HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")

    def data_received(self, data: bytes) -> None:
        self.pieces.append(data)
        if data.endswith(b"0\r\n\r\n"):
            self.over.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(exc)


async def reads(provider: ScriptedProvider) -> tuple[list[bytes], Exception | None]:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_connection(Reads, "127.0.0.1", provider.port)
    try:
        failure = await protocol.over
    finally:
        transport.close()
    return protocol.pieces, failure


@pytest.mark.parametrize("offsets", [[5], [1, 2, 3], [100, 101, 400]])
async def test_reads_end_at_the_offsets(offsets: list[int]) -> None:
    async with ScriptedProvider(ScriptedAnswer(BODY).split(offsets)) as provider:
        pieces, _ = await reads(provider)
    head, *chunks = pieces
    assert head.startswith(b"HTTP/1.1 200 ") and head.endswith(b"\r\n\r\n")
    ends = [*offsets, len(BODY)]
    expected = [BODY[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    assert [chunk.split(b"\r\n", 1)[1].removesuffix(b"\r\n") for chunk in chunks[: len(expected)]] == expected


async def test_each_byte_can_have_a_read_of_its_own() -> None:
    body = b"data: \xe4\xbd\xa0\r\n\r\n"
    async with ScriptedProvider(ScriptedAnswer(body).bytewise()) as provider:
        pieces, _ = await reads(provider)
    assert pieces[1 : len(body) + 1] == [b"1\r\n%b\r\n" % body[at : at + 1] for at in range(len(body))]


async def test_a_burst_is_one_write() -> None:
    async with ScriptedProvider(ScriptedAnswer([b"a" * 10] * 50, pace=None)) as provider:
        pieces, _ = await reads(provider)
    assert len(pieces) == 1


async def test_a_reset_is_a_reset_after_the_last_byte() -> None:
    async with ScriptedProvider(ScriptedAnswer(b"half", end="reset")) as provider:
        pieces, failure = await reads(provider)
    assert pieces[-1] == b"4\r\nhalf\r\n"
    assert isinstance(failure, ConnectionResetError)


async def test_requests_are_kept_in_order_over_one_connection() -> None:
    answers = [ScriptedAnswer(b"1", headers={"x-n": "one"}), ScriptedAnswer(b"2", 429)]
    async with ScriptedProvider(*answers) as provider, httpx.AsyncClient(trust_env=False) as client:
        first = await client.post(f"{provider.url}/a", json={"n": 1}, headers={"X-Key": "k"})
        second = await client.post(f"{provider.url}/b", json={"n": 2})
    assert (first.text, first.headers["x-n"]) == ("1", "one")
    assert (second.text, second.status_code) == ("2", 429)
    assert [(each.method, each.path, each.json) for each in provider.requests] == [
        ("POST", "/v1/a", {"n": 1}),
        ("POST", "/v1/b", {"n": 2}),
    ]
    assert provider.requests[0].headers["x-key"] == "k"
    assert provider.connections == 1


async def test_a_held_answer_waits_and_a_hanging_one_stays_open() -> None:
    hold = asyncio.Event()
    answer = ScriptedAnswer(b"x", hold=hold, end="hang")
    async with ScriptedProvider(answer) as provider:
        reading = asyncio.ensure_future(reads(provider))
        await provider.wait_for_requests()
        hold.set()
        assert not reading.done()
        answer.release.set()
        pieces, _ = await reading
    assert pieces[-1] == b"1\r\nx\r\n"


async def test_a_client_that_leaves_is_noticed() -> None:
    async with ScriptedProvider(ScriptedAnswer(b"x", end="hang")) as provider:
        reading = asyncio.ensure_future(reads(provider))
        await provider.wait_for_requests()
        reading.cancel()
        await provider.wait_for_closed()


async def test_a_request_too_many_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="1 requests came"):
        async with ScriptedProvider() as provider, httpx.AsyncClient(trust_env=False) as client:
            assert (await client.post(provider.url)).status_code == 599
