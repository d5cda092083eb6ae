"""The official SDK clients, made for one endpoint: authentication, headers and paths are theirs, everything else ours.

An SDK client is given a ready body and asked for the open response (`content`, `cast_to`, `stream`); retries,
redirects and what it finds in the environment are switched off. Ollama has no SDK that we use; its client is a few
lines.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType
from typing import Any, Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

import httpx2

from agent.providers.config import OLLAMA_URL, ModelConfig
from agent.providers.failures import InvalidEndpoint

Family: TypeAlias = Literal["openai", "anthropic", "plain"]

FAMILIES: dict[str, Family] = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "anthropic-messages": "anthropic",
    "ollama-chat": "plain",
}
BASE_URLS: dict[Family, str] = {  # P32
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "plain": OLLAMA_URL,
}
# Where OpenAI's models are served: by OpenAI, and by Azure under the addresses of its resources.
OPENAI_HOSTS = ("openai.com", "openai.azure.com", "cognitiveservices.azure.com", "services.ai.azure.com")
ANTHROPIC_VERSION = "2023-06-01"  # P32

_COMMON = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
_STREAM = "text/event-stream, application/json"


class Refused(Exception):
    """Raised when a server answered with an error status."""

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__(response.status_code)
        self.response = response


class Client(Protocol):
    """Sends requests to one endpoint."""

    async def send(self, method: str, path: str, body: bytes | None) -> httpx2.Response:
        """Return the open response; raises `Refused`, and what the SDK and the network raise."""
        ...


class SDKClient:
    """An official client; `sdk` is its module."""

    def __init__(self, sdk: ModuleType, client: Any, headers: dict[str, Any]) -> None:
        self._sdk = sdk
        self._client = client
        self._options = {"headers": headers} if headers else {}

    async def send(self, method: str, path: str, body: bytes | None) -> httpx2.Response:
        sdk = self._sdk
        raw = {"cast_to": httpx2.Response, "stream": True, "stream_cls": sdk.AsyncStream[Any]}
        try:
            if method == "GET":
                response = await self._client.get(path, options=self._options, **raw)
            else:
                response = await self._client.post(path, content=body, options=self._options, **raw)
        except sdk.APIStatusError as error:
            raise Refused(error.response) from None  # the SDK's error shows the body unscrubbed
        answer: httpx2.Response = response
        return answer


class PlainClient:
    """A client without an SDK."""

    def __init__(self, http: httpx2.AsyncClient, base_url: str, headers: dict[str, str]) -> None:
        self._http = http
        self._base_url = base_url.rstrip("/").removesuffix("/v1").removesuffix("/api")  # as people write it
        self._headers = headers

    async def send(self, method: str, path: str, body: bytes | None) -> httpx2.Response:
        request = self._http.build_request(method, self._base_url + path, headers=self._headers, content=body)
        response = await self._http.send(request, stream=True)
        if response.status_code >= 300:
            await response.aread()
            await response.aclose()
            raise Refused(response)
        return response


def load(family: Family) -> ModuleType | None:
    """Import the SDK of a family; takes a second or two, so not on the loop."""
    return None if family == "plain" else import_module(family)


def make_client(
    family: Family, sdk: ModuleType | None, config: ModelConfig, http: httpx2.AsyncClient, timeout: httpx2.Timeout
) -> Client:
    """Return the client for an endpoint; raises `InvalidEndpoint`."""
    base_url = config.base_url or BASE_URLS[family]
    try:
        check_base_url(base_url)
        if sdk is None:
            return PlainClient(http, base_url, _plain_headers(config))
        shared = {"max_retries": 0, "timeout": timeout, "http_client": http, "api_key": config.api_key or "none"}
        if family == "anthropic":
            headers = _anthropic_headers(config, sdk.Omit())
            base_url = base_url.rstrip("/").removesuffix("/v1")  # the SDK's paths begin with it
            client = sdk.AsyncAnthropic(base_url=base_url, default_headers=headers, open_telemetry=False, **shared)
        else:
            headers = _openai_headers(config, sdk.Omit())
            client = sdk.AsyncOpenAI(base_url=base_url, default_headers=headers, **shared)
    except (ValueError, httpx2.InvalidURL) as error:
        raise InvalidEndpoint(str(error)) from None
    # Said again with each call: only there does an omitted header of the SDK's own stay away.
    return SDKClient(sdk, client, {name: headers[name] for name in ("Authorization", "X-Api-Key") if name in headers})


def check_base_url(base_url: str) -> None:
    """Check the address of an endpoint; raises `InvalidEndpoint`."""
    url = httpx2.URL(base_url)
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidEndpoint("it does not begin with http:// or https:// and a host")
    if url.userinfo:
        raise InvalidEndpoint("it holds a user name or password")


def is_host(config: ModelConfig, *domains: str) -> bool:
    """Return whether an endpoint lies at one of these domains or below it."""
    try:
        host = (urlsplit(config.base_url).hostname or "").lower()
    except ValueError:
        return False
    return any(host == domain or host.endswith("." + domain) for domain in domains)


def _openai_headers(config: ModelConfig, omit: Any) -> dict[str, Any]:
    own = {
        "Authorization": f"Bearer {config.api_key}" if config.api_key else omit,
        "OpenAI-Organization": config.organization or omit,
        "OpenAI-Project": omit,
        "Accept": _STREAM,
        **_COMMON,
    }
    return _merged(_ambient("OPENAI_CUSTOM_HEADERS", omit), own, config)


def _anthropic_headers(config: ModelConfig, omit: Any) -> dict[str, Any]:
    own = {
        "Authorization": omit,
        "X-Api-Key": config.api_key or omit,
        "anthropic-version": ANTHROPIC_VERSION,
        "Accept": _STREAM,
        **_COMMON,
    }
    return _merged(_ambient("ANTHROPIC_CUSTOM_HEADERS", omit), own, config)


def _plain_headers(config: ModelConfig) -> dict[str, str]:
    key = {"Authorization": f"Bearer {config.api_key}"} if config.api_key else {}
    return _merged({}, {**key, "Accept": "application/x-ndjson, application/json", **_COMMON}, config)


def _merged(ambient: dict[str, Any], own: dict[str, Any], config: ModelConfig) -> dict[str, Any]:
    """Return the headers of an endpoint: its own ones replace ours however they are spelled, in our spelling."""
    spelling = {name.lower(): name for name in (*ambient, *own)}
    headers: dict[str, Any] = {}
    for name, value in (*ambient.items(), *own.items(), *config.headers):
        headers[spelling.setdefault(name.lower(), name)] = value
    return headers


def _ambient(variable: str, omit: Any) -> dict[str, Any]:
    """Return what keeps away headers that the SDK finds in the environment: an endpoint gets what it was given."""
    lines = os.environ.get(variable, "").split("\n")
    return {line.partition(":")[0].strip(): omit for line in lines if ":" in line}
