"""The HTTP side of all adapters: official SDK clients over guarded aiohttp sessions, raw bytes out.

The SDK keeps base URL, authentication and headers; it is given a ready body and asked for the open response. Below it
lies `SessionTransport`, which hands the answer of aiohttp through, so that a read of the adapter is a read of aiohttp's
buffer: one wake-up for each piece that the network brought. Everything that goes wrong leaves as a `ProviderFault`.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import aiohttp
import httpx2

from agent.providers.config import ModelConfig
from agent.providers.failures import InvalidEndpoint, ProviderFault, Scrubber, from_answer, from_exception
from agent.providers.guard import socket_factory

MAX_ERROR_BODY = 64 * 1024
MAX_CLIENTS = 256
END_WAIT = 0.05
OPENAI_BASE_URL = "https://api.openai.com/v1"  # P32

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

    __slots__ = ("_content", "_scrub", "content_type")

    def __init__(self, answer: aiohttp.ClientResponse, scrub: Scrubber) -> None:
        self._content = answer.content
        self._scrub = scrub
        self.content_type = answer.content_type

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
    """An SDK client with what belongs to its endpoint."""

    client: Any
    scrub: Scrubber
    options: dict[str, Any]


class Transport:
    """The HTTP clients of one event loop; adapters share it.

    `idle_timeout` bounds the wait for an answer to begin and each silence in it (P35), both in seconds. `start` and
    `close` belong to the loop that makes the calls.
    """

    def __init__(self, *, idle_timeout: float = 60.0, connect_timeout: float = 10.0) -> None:
        self._timeout = httpx2.Timeout(idle_timeout, connect=connect_timeout, pool=None)
        self._openai: Any = None
        self._tls: ssl.SSLContext | None = None
        self._loading = asyncio.Lock()
        self._http: dict[bool, httpx2.AsyncClient] = {}
        self._sessions: list[aiohttp.ClientSession] = []
        self._endpoints: dict[tuple[str, str, str, bool], _Endpoint] = {}
        self._started = False

    async def start(self, *, preload: bool = False) -> None:
        """Get ready; `preload` loads the SDK now, in a thread, instead of with the first call."""
        self._started = True
        if preload:
            await self._load()

    async def close(self) -> None:
        """Close all connections; the transport can be started again."""
        self._started = False
        self._endpoints.clear()
        self._http.clear()
        sessions, self._sessions = self._sessions, []
        for session in sessions:
            await session.close()

    @asynccontextmanager
    async def opened(self, config: ModelConfig, path: str, body: bytes) -> AsyncIterator[Answer]:
        """POST `body`, which is JSON, to `path` of an endpoint and yield the open answer; raises `ProviderFault`.

        Leaving the block closes the answer; an answer that was read to its end leaves its connection for the next call.
        """
        if not self._started:
            raise RuntimeError("the transport is not started")
        endpoint = await self._endpoint(config)
        try:
            response = await endpoint.client.post(
                path,
                content=body,
                options=endpoint.options,
                cast_to=httpx2.Response,
                stream=True,
                stream_cls=self._openai.AsyncStream[Any],
            )
        except self._openai.APIStatusError as error:
            refused = error.response
            failure = from_answer(refused.status_code, refused.headers, refused.content, endpoint.scrub)
            raise ProviderFault(failure) from None  # the SDK's error shows the body unscrubbed
        except (self._openai.OpenAIError, *_CALL_ERRORS) as error:
            raise ProviderFault(from_exception(error, endpoint.scrub)) from None
        try:
            yield Answer(response.extensions["answer"], endpoint.scrub)
        finally:
            await response.aclose()

    async def _load(self) -> None:
        # Importing the SDK takes about a second and TLS roots 20 ms: not on the loop.
        async with self._loading:
            if self._openai is None:
                self._tls = await asyncio.to_thread(httpx2.create_ssl_context, trust_env=False)
                self._openai = await asyncio.to_thread(import_module, "openai")

    async def _endpoint(self, config: ModelConfig) -> _Endpoint:
        key = (config.base_url, config.api_key, config.organization, config.allow_private)
        endpoint = self._endpoints.get(key)
        if endpoint is None:
            if self._openai is None:
                await self._load()
            while len(self._endpoints) >= MAX_CLIENTS:
                del self._endpoints[next(iter(self._endpoints))]
            endpoint = self._endpoints[key] = self._make_endpoint(config)
        return endpoint

    def _make_endpoint(self, config: ModelConfig) -> _Endpoint:
        scrub = Scrubber.of(config)
        base_url = config.base_url or OPENAI_BASE_URL
        try:
            check_base_url(base_url)
            client = self._openai.AsyncOpenAI(
                api_key=config.api_key or "none",
                base_url=base_url,
                max_retries=0,
                timeout=self._timeout,
                http_client=self._http_client(config.allow_private),
                default_headers=self._headers(config),
            )
        except (ValueError, httpx2.InvalidURL) as error:
            raise ProviderFault(from_exception(InvalidEndpoint(str(error)), scrub)) from None
        options = {} if config.api_key else {"headers": {"Authorization": self._openai.Omit()}}
        return _Endpoint(client, scrub, options)

    def _headers(self, config: ModelConfig) -> dict[str, Any]:
        # The SDK adds to every client what it finds in the environment; an endpoint gets what it was configured with.
        omit = self._openai.Omit()
        ambient = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
        headers: dict[str, Any] = {line.partition(":")[0].strip(): omit for line in ambient if ":" in line}
        return headers | {
            "Authorization": f"Bearer {config.api_key}" if config.api_key else omit,
            "OpenAI-Organization": config.organization or omit,
            "OpenAI-Project": omit,
            "Content-Type": "application/json",
            "Accept": "text/event-stream, application/json",
            "Accept-Encoding": "identity",
        }

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


def check_base_url(base_url: str) -> None:
    """Check the address of an endpoint; raises `InvalidEndpoint`."""
    url = httpx2.URL(base_url)
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidEndpoint("it does not begin with http:// or https:// and a host")
    if url.userinfo:
        raise InvalidEndpoint("it holds a user name or password")
