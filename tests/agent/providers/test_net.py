"""Addresses that users and models have a say in, against hostile servers and names (B79, B84)."""

from __future__ import annotations

import gzip
import socket
from typing import Any

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from agent.providers.net import MAX_URL, Fetcher, FetchFailed, FetchLimits
from agent.testing.http_provider import ScriptedAnswer, ScriptedProvider

ANY_PORT = FetchLimits(ports=None, max_bytes=10_000, timeout=5)
REFUSED = "local, private or reserved"


class Resolver(AbstractResolver):
    """Answers each look-up with the next of these addresses, and keeps to the last."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = list(addresses)
        self.asked = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        address = self.addresses[min(self.asked, len(self.addresses) - 1)]
        self.asked += 1
        kind = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [ResolveResult(hostname=host, host=address, port=port, family=kind, proto=0, flags=0)]

    async def close(self) -> None:
        pass


def page(body: bytes = b"hello", **headers: str) -> ScriptedAnswer:
    return ScriptedAnswer(body, headers={"content-type": "Text/Plain; charset=x", **headers})


def moved(to: str, status: int = 302) -> ScriptedAnswer:
    return ScriptedAnswer(b"", status, {"location": to})


async def fetch(url: str, limits: FetchLimits = ANY_PORT, **options: Any) -> bytes:
    async with Fetcher(limits, **({"allow_private": True} | options)) as fetcher:
        return (await fetcher.fetch(url)).body


async def test_a_page_comes_whole_with_its_type_and_last_address() -> None:
    async with ScriptedProvider(moved("/other"), page()) as server, Fetcher(ANY_PORT, allow_private=True) as fetcher:
        fetched = await fetcher.fetch(server.url)
    assert (fetched.body, fetched.content_type) == (b"hello", "text/plain")
    assert fetched.url.endswith("/other")
    assert "authorization" not in server.requests[0].headers and "cookie" not in server.requests[1].headers


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[0:0:0:0:0:ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "0.0.0.0",
        "10.0.0.1",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "[fe80::1]",
    ],
)
async def test_no_spelling_of_a_private_address_is_connected_to(host: str) -> None:
    async with ScriptedProvider() as server:
        with pytest.raises(FetchFailed, match=f"{REFUSED}|not be reached|not be resolved|cannot be read"):
            await fetch(f"http://{host}:{server.port}/", allow_private=False)
        assert server.connections == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
async def test_the_refusal_of_an_address_is_said_to_be_one(host: str) -> None:
    with pytest.raises(FetchFailed, match=REFUSED):
        await fetch(f"http://{host}:9/", allow_private=False)


async def test_a_name_that_leads_inside_the_second_time_is_refused_then() -> None:
    """Nothing can change between the check and the use: the check is on the socket."""
    resolver = Resolver("127.0.0.1", "169.254.169.254")
    async with ScriptedProvider(moved("http://name.example:{port}/again")) as server:
        server._answers[0] = moved(f"http://name.example:{server.port}/again")
        with pytest.raises(FetchFailed, match=REFUSED):
            await fetch(f"http://name.example:{server.port}/", resolver=resolver)
        assert (server.connections, resolver.asked) == (1, 2)


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("http://169.254.169.254/latest/meta-data/", REFUSED),
        ("http://[::ffff:169.254.169.254]/", REFUSED),
        ("file:///etc/passwd", "does not begin with http"),
        ("gopher://127.0.0.1/", "does not begin with http"),
        ("javascript:alert(1)", "does not begin with http"),
        ("http://user:pass@127.0.0.1/", "user name"),
        ("", "redirects too often"),
        ("http://[", "cannot be read"),
    ],
)
async def test_a_redirect_is_judged_like_the_first_address(to: str, words: str) -> None:
    async with ScriptedProvider(moved(to), repeat=True) as server:
        with pytest.raises(FetchFailed, match=words):
            await fetch(server.url)


async def test_a_redirect_to_a_port_that_is_not_allowed_is_refused() -> None:
    async with ScriptedProvider() as server:
        allowed = FetchLimits(ports=(server.port,))
        server.queue(moved("http://127.0.0.1:22/"))
        with pytest.raises(FetchFailed, match="port 22 is not allowed"):
            await fetch(server.url, allowed)


@pytest.mark.parametrize(
    "url", ["", "ftp://example.org/", "//example.org/", "http://", "http://exa mple.org:99999/", "http://x:70000/"]
)
async def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(FetchFailed):
        await fetch(url)


async def test_an_address_may_be_so_long_and_no_longer() -> None:
    with pytest.raises(FetchFailed, match="longer than"):
        await fetch("http://example.org/" + "x" * MAX_URL)


async def test_a_body_over_the_limit_is_not_kept() -> None:
    async with ScriptedProvider(page(b"x" * 20_000)) as server:
        with pytest.raises(FetchFailed, match="larger than 10,000 bytes"):
            await fetch(server.url)


async def test_a_compressed_bomb_is_not_unpacked() -> None:
    async with ScriptedProvider(page(gzip.compress(b"0" * 50_000_000), **{"content-encoding": "gzip"})) as server:
        with pytest.raises(FetchFailed, match="compressed"):
            await fetch(server.url)


async def test_a_slow_body_ends_at_the_time_limit() -> None:
    drip = ScriptedAnswer([b"x"] * 1_000, pace=0.05, headers={"content-type": "text/plain"})
    async with ScriptedProvider(drip) as server:
        with pytest.raises(FetchFailed, match="in time"):
            await fetch(server.url, FetchLimits(ports=None, timeout=0.2))
        await server.wait_for_closed()


@pytest.mark.parametrize("end", ["cut", "reset"])
async def test_a_body_that_breaks_off_is_no_body(end: Any) -> None:
    async with ScriptedProvider(ScriptedAnswer(b"half", end=end)) as server:
        with pytest.raises(FetchFailed, match=r"broke|reached"):
            await fetch(server.url)


async def test_an_error_status_is_told_without_what_the_server_said() -> None:
    async with ScriptedProvider(ScriptedAnswer(b"secret detail", 500)) as server:
        with pytest.raises(FetchFailed) as caught:
            await fetch(server.url)
    assert str(caught.value) == "the address answered 500"
