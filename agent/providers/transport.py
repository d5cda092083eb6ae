"""The HTTP side of all adapters: official SDK clients over guarded aiohttp sessions, raw bytes out.

Below the clients lies `SessionTransport`, which hands the answer of aiohttp through, so that a read of the adapter is a
read of aiohttp's buffer: one wake-up for each piece that the network brought. Everything that goes wrong leaves as a
`ProviderFault`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import aiohttp
import httpx2

from agent.providers.clients import FAMILIES, Client, Family, Refused, load, make_client
from agent.providers.config import ModelConfig, ProtocolName
from agent.providers.failures import InvalidEndpoint, ProviderFault, Scrubber, from_answer, from_exception
from agent.providers.guard import socket_factory
from agent.runtime.model import StreamError

MAX_ERROR_BODY = 64 * 1024
MAX_BODY = 100 * 1024 * 1024  # P35
MAX_CLIENTS = 256
END_WAIT = 0.05

# Besides the network's own: what clients make of headers and addresses that cannot be sent.
_CALL_ERRORS = (aiohttp.ClientError, httpx2.HTTPError, httpx2.InvalidURL, ValueError, RuntimeError, OSError)


class SessionTransport(httpx2.AsyncBaseTransport):
    """Sends requests over one aiohttp session; aiohttp's errors pass as they are.

    The answer stands in `response.extensions["answer"]`. Its body is read from there where it streams; `response`
    itself gives at most `MAX_ERROR_BODY` bytes of it, which is what an error message may need.
    """

    def __init__(self, session: aiohttp.ClientSession, *, error_timeout: float) -> None:
        self._session = session
        self._error_timeout = error_timeout

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        timeout = request.extensions.get("timeout", {})
        answer = await self._session.request(
            request.method,
            str(request.url),
            headers=request.headers.multi_items(),
            data=request.content,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(sock_connect=timeout.get("connect"), sock_read=timeout.get("read")),
        )
        # aiohttp has undone a content encoding already.
        headers = [(name, value) for name, value in answer.raw_headers if name.lower() != b"content-encoding"]
        return httpx2.Response(
            answer.status,
            headers=headers,
            stream=_ErrorBody(answer, self._error_timeout),
            extensions={"http_version": b"HTTP/1.1", "answer": answer},
        )


class _DirectClient(httpx2.AsyncClient):
    """Hands requests straight to the transport: no redirects, cookies or hooks, and no address in the log (B83)."""

    def __init__(self, transport: SessionTransport, timeout: httpx2.Timeout) -> None:
        super().__init__(transport=transport, timeout=timeout, trust_env=False)
        self._direct = transport

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, auth: Any = None, follow_redirects: Any = False
    ) -> httpx2.Response:
        response = await self._direct.handle_async_request(request)
        response.request = request
        if not stream:
            await response.aread()
        return response


class _ErrorBody(httpx2.AsyncByteStream):
    def __init__(self, answer: aiohttp.ClientResponse, timeout: float) -> None:
        self._answer = answer
        self._timeout = timeout

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield await self._read()

    async def _read(self) -> bytes:
        body = bytearray()
        try:
            async with asyncio.timeout(self._timeout):
                while len(body) < MAX_ERROR_BODY and (piece := await self._answer.content.readany()):
                    body += piece
        except (TimeoutError, aiohttp.ClientError):
            pass  # the status says what matters
        return bytes(body[:MAX_ERROR_BODY])

    async def aclose(self) -> None:
        self._answer.release()


class Answer:
    """The open answer of a provider to one call."""

    __slots__ = ("_content", "_scrub")

    def __init__(self, answer: aiohttp.ClientResponse, scrub: Scrubber) -> None:
        self._content = answer.content
        self._scrub = scrub

    @property
    def over(self) -> bool:
        """Whether the end of the answer has been read."""
        return self._content.at_eof()

    async def read(self) -> bytes:
        """Return what has arrived, at least one byte, or nothing at the end; raises `ProviderFault`."""
        try:
            return await self._content.readany()
        except (aiohttp.ClientError, RuntimeError) as error:  # RuntimeError: the transport was closed
            raise ProviderFault(from_exception(error, self._scrub)) from None

    async def finish(self) -> None:
        """Take the end of an answer that has said all, so that its connection can be used again; waits a moment."""
        try:
            async with asyncio.timeout(END_WAIT):
                while await self._content.readany():
                    pass
        except (TimeoutError, aiohttp.ClientError, RuntimeError):
            pass


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """A client with what takes the secrets of its endpoint out of texts."""

    client: Client
    scrub: Scrubber


class Transport:
    """The HTTP clients of one event loop; adapters share it.

    `idle_timeout` bounds the wait for an answer to begin and each silence in it, `total_timeout` a plain call as a
    whole (P35), all in seconds. `start` and `close` belong to the loop that makes the calls.
    """

    def __init__(
        self, *, idle_timeout: float = 60.0, connect_timeout: float = 10.0, total_timeout: float = 60.0
    ) -> None:
        self._timeout = httpx2.Timeout(idle_timeout, connect=connect_timeout, pool=None)
        self._total_timeout = total_timeout
        self._tls: ssl.SSLContext | None = None
        self._sdks: dict[Family, ModuleType | None] = {}
        self._loading = asyncio.Lock()
        self._http: dict[bool, httpx2.AsyncClient] = {}
        self._sessions: list[aiohttp.ClientSession] = []
        self._endpoints: dict[tuple[Any, ...], _Endpoint] = {}
        self._started = False

    async def start(self, *, preload: Iterable[ProtocolName] = ()) -> None:
        """Get ready; the SDKs of the protocols in `preload` are loaded now, in a thread, not with the first call."""
        self._started = True
        for protocol in preload:
            if protocol in FAMILIES:
                await self._load(FAMILIES[protocol])

    async def close(self) -> None:
        """Close all connections; the transport can be started again."""
        self._started = False
        self._endpoints.clear()
        self._http.clear()
        sessions, self._sessions = self._sessions, []
        for session in sessions:
            await session.close()

    @asynccontextmanager
    async def opened(
        self, config: ModelConfig, path: str, body: bytes | None, *, method: str = "POST"
    ) -> AsyncIterator[Answer]:
        """Send `body`, which is JSON, to `path` of an endpoint and yield the open answer; raises `ProviderFault`.

        Leaving the block closes the answer; an answer that was read to its end leaves its connection for the next call.
        """
        if not self._started:
            raise RuntimeError("the transport is not started")
        endpoint = await self._endpoint(config)
        try:
            response = await endpoint.client.send(method, path, body)
        except Refused as error:
            refused = error.response
            failure = from_answer(refused.status_code, refused.headers, refused.content, endpoint.scrub)
            raise ProviderFault(failure) from None
        except Exception as error:
            if not isinstance(error, (*_CALL_ERRORS, *self._sdk_errors())):
                raise
            raise ProviderFault(from_exception(error, endpoint.scrub)) from None
        try:
            yield Answer(response.extensions["answer"], endpoint.scrub)
        finally:
            await response.aclose()

    async def fetch(self, config: ModelConfig, path: str, body: bytes | None = None, *, limit: int = MAX_BODY) -> bytes:
        """Make a plain call and return the whole body: GET, or POST where there is a `body`.

        Raises `ProviderFault`, also for more than `limit` bytes and when it takes longer than the total timeout (P35).
        """
        received = bytearray()
        try:
            async with (
                asyncio.timeout(self._total_timeout),
                self.opened(config, path, body, method="GET" if body is None else "POST") as answer,
            ):
                while piece := await answer.read():
                    received += piece
                    if len(received) > limit:
                        raise ProviderFault(StreamError(f"the provider's answer is larger than {limit:,} bytes"))
        except TimeoutError:
            message = "the provider did not answer in time"
            raise ProviderFault(StreamError(message, kind="timeout", retryable=True)) from None
        return bytes(received)

    def _sdk_errors(self) -> tuple[type[Exception], ...]:
        names = {"openai": "OpenAIError", "anthropic": "AnthropicError"}
        return tuple(getattr(sdk, names[family]) for family, sdk in self._sdks.items() if sdk is not None)

    async def _load(self, family: Family) -> None:
        # Importing an SDK takes a second or two and TLS roots 20 ms: not on the loop.
        async with self._loading:
            if self._tls is None:
                self._tls = await asyncio.to_thread(httpx2.create_ssl_context, trust_env=False)
            if family not in self._sdks:
                self._sdks[family] = await asyncio.to_thread(load, family)

    async def _endpoint(self, config: ModelConfig) -> _Endpoint:
        family = FAMILIES[config.protocol]
        key = (family, config.base_url, config.api_key, config.organization, config.headers, config.allow_private)
        endpoint = self._endpoints.get(key)
        if endpoint is None:
            if family not in self._sdks:
                await self._load(family)
            while len(self._endpoints) >= MAX_CLIENTS:
                del self._endpoints[next(iter(self._endpoints))]
            scrub = Scrubber.of(config)
            http = self._http_client(config.allow_private)
            try:
                client = make_client(family, self._sdks[family], config, http, self._timeout)
            except InvalidEndpoint as error:
                raise ProviderFault(from_exception(error, scrub)) from None
            endpoint = self._endpoints[key] = _Endpoint(client, scrub)
        return endpoint

    def _http_client(self, allow_private: bool) -> httpx2.AsyncClient:
        client = self._http.get(allow_private)
        if client is None:
            assert self._tls is not None, "loaded with the SDK"
            connector = aiohttp.TCPConnector(
                limit=0, ssl=self._tls, socket_factory=socket_factory(allow_private=allow_private)
            )
            session = aiohttp.ClientSession(
                connector=connector, trust_env=False, cookie_jar=aiohttp.DummyCookieJar(), requote_redirect_url=False
            )
            self._sessions.append(session)
            assert self._timeout.read is not None, "set in the constructor"
            transport = SessionTransport(session, error_timeout=min(10.0, self._timeout.read))
            client = self._http[allow_private] = _DirectClient(transport, self._timeout)
        return client
