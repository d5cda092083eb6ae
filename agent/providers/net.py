"""Fetching an address that a user or a model has a say in: pictures, pages, webhooks (B79, B84).

The address of each socket is checked when it is made (`guard`), so that neither a name that resolves differently the
second time nor a redirect gets past it. Each hop is judged anew; size, time, hops and ports are bounded. Compressed
bodies are not taken: what was sent is what is counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver

from agent.providers.failures import wire_fault
from agent.providers.guard import socket_factory

MAX_URL = 2_048
REDIRECTS = frozenset({301, 302, 303, 307, 308})


class FetchFailed(Exception):
    """Raised when an address was not fetched; the message says why and repeats no part of an answer."""


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """What one fetch may take: bytes of the body, seconds in all, redirects; `ports` of None admits any."""

    max_bytes: int = 10 * 1024 * 1024
    timeout: float = 15.0
    max_redirects: int = 3
    ports: Collection[int] | None = (80, 443)


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came from `url`, the last of the redirects; `content_type` is in lower case and without parameters."""

    url: str
    content_type: str
    body: bytes


class Fetcher:
    """Fetches with GET; belongs to one event loop, between `start` and `close` or as a context manager.

    `allow_private` admits loopback and private addresses. `resolver` takes the place of the system's.
    """

    def __init__(
        self,
        limits: FetchLimits | None = None,
        *,
        allow_private: bool = False,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self.limits = limits or FetchLimits()
        self._allow_private = allow_private
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Get ready, on the loop that will fetch."""
        connector = aiohttp.TCPConnector(
            limit=32,
            force_close=True,
            use_dns_cache=False,
            resolver=self._resolver,
            socket_factory=socket_factory(allow_private=self._allow_private),
        )
        self._session = aiohttp.ClientSession(
            connector=connector, trust_env=False, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
        )

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def fetch(self, url: str, *, accept: str = "*/*") -> Fetched:
        """Return what is at `url`; raises `FetchFailed`."""
        try:
            async with asyncio.timeout(self.limits.timeout):
                return await self._follow(url, accept)
        except TimeoutError:
            raise FetchFailed("the address did not answer in time") from None
        except (aiohttp.ClientError, ValueError, OSError) as error:
            raise FetchFailed(_words(error)) from None

    async def _follow(self, url: str, accept: str) -> Fetched:
        for _ in range(self.limits.max_redirects + 1):
            self._check(url)
            found = await self._once(url, accept)
            if isinstance(found, Fetched):
                return found
            url = found
        raise FetchFailed("the address redirects too often")

    async def _once(self, url: str, accept: str) -> Fetched | str:
        """Return what is at `url`, or where it redirects to."""
        assert self._session is not None, "started before"
        headers = {"Accept": accept, "Accept-Encoding": "identity", "User-Agent": "PAR"}
        async with self._session.get(url, headers=headers, allow_redirects=False) as answer:
            if answer.status in REDIRECTS:
                return urljoin(url, answer.headers.get("Location", ""))
            if answer.status != 200:
                raise FetchFailed(f"the address answered {answer.status}")
            if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
                raise FetchFailed("the address answered with a compressed body, which is not taken")
            if answer.content_length is not None and answer.content_length > self.limits.max_bytes:
                raise self._too_large()
            body = bytearray()
            while piece := await answer.content.readany():
                body += piece
                if len(body) > self.limits.max_bytes:
                    raise self._too_large()
            return Fetched(url, answer.content_type.lower(), bytes(body))

    def _check(self, url: str) -> None:
        if len(url) > MAX_URL:
            raise FetchFailed(f"the address is longer than {MAX_URL:,} characters")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise FetchFailed("the address does not begin with http:// or https:// and a host")
        if "@" in parts.netloc:
            raise FetchFailed("the address holds a user name")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        if self.limits.ports is not None and port not in self.limits.ports:
            raise FetchFailed(f"the port {port} is not allowed")

    def _too_large(self) -> FetchFailed:
        return FetchFailed(f"what is at the address is larger than {self.limits.max_bytes:,} bytes")


def _words(error: BaseException) -> str:
    match wire_fault(error):
        case "refused-address":
            return "the address is not allowed: it is local, private or reserved"
        case "dns":
            return "the name of the address could not be resolved"
        case "tls":
            return "no secure connection to the address was possible"
        case "cut":
            return "the connection broke in the middle"
        case None if isinstance(error, ValueError):
            return "the address cannot be read"
        case _:
            return "the address could not be reached"
