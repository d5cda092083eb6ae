"""Turns whatever a provider or the network did wrong into one `StreamError`, without the secrets of the endpoint.

HTTP answers are judged by status and error object (P34, B22), broken connections by aiohttp's exception.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypeAlias
from urllib.parse import parse_qsl, urlsplit

import aiohttp
import orjson

from agent.providers.config import ModelConfig
from agent.providers.framing import EventTooLarge
from agent.providers.guard import AddressRefused
from agent.runtime.model import ErrorKind, StreamError
from agent.runtime.values import clean_text

MAX_MESSAGE = 1_000
MIN_SECRET = 6  # characters
MAX_RETRY_AFTER = 300.0

WireFault: TypeAlias = Literal[
    "refused-address", "connect-timeout", "read-timeout", "dns", "tls", "connect", "cut", "disconnected"
]

_QUOTA = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "quota_exceeded"}
_RATE_LIMIT = {"rate_limit_exceeded", "rate_limit_error"}
_OVERLOADED = {"overloaded_error", "overloaded", "engine_overloaded", "server_is_overloaded", "slow_down"}
_FILTERED = {
    "content_filter",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "image_content_policy_violation",
    "bio_policy",
    "cyber_policy",
    "misalignment_policy_violation",
}
_STATUSES = {  # of error objects that come without a status, by their code or type
    **dict.fromkeys(
        """invalid_prompt context_length_exceeded invalid_image invalid_image_format invalid_base64_image
        invalid_image_url invalid_image_mode image_too_large image_too_small image_parse_error image_file_too_large
        unsupported_image_media_type empty_image_file failed_to_download_image image_file_not_found""".split(),
        400,
    ),
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "timeout_error": 504,
}
_STATUS_KINDS: dict[int, ErrorKind] = {
    400: "invalid-request",
    401: "authentication",
    402: "quota",
    403: "permission",
    404: "not-found",
    408: "timeout",
    413: "invalid-request",
    415: "invalid-request",
    422: "invalid-request",
    429: "rate-limit",
    504: "timeout",
    529: "overloaded",
}
_RETRYABLE: frozenset[ErrorKind] = frozenset(
    ("overloaded", "rate-limit", "timeout", "connection-lost", "truncated-stream")
)
_WIRE_FAULTS: dict[WireFault, tuple[ErrorKind, str]] = {
    "refused-address": ("permission", "the address of the provider is not allowed: it is local, private or reserved"),
    "connect-timeout": ("timeout", "the provider could not be reached in time"),
    "read-timeout": ("timeout", "the provider was silent for too long"),
    "dns": ("connection-lost", "the name of the provider could not be resolved"),
    "tls": ("provider-error", "no secure connection to the provider was possible"),
    "connect": ("connection-lost", "the model server is not reachable"),
    "cut": ("connection-lost", "the connection to the provider broke in the middle of the answer"),
    "disconnected": ("connection-lost", "the provider closed the connection without an answer"),
}


class ProviderFault(Exception):
    """Raised by the transport when a call failed; `error` says it in neutral words."""

    def __init__(self, error: StreamError) -> None:
        super().__init__(error.message)
        self.error = error


class InvalidEndpoint(ValueError):
    """Raised when the address of an endpoint is none that can be called."""


class Scrubber:
    """Takes the secrets of one endpoint out of texts, percent-encoded or not, and cuts the texts (B83).

    What is shorter than `MIN_SECRET` is no secret: taking it out would only spoil the words.
    """

    __slots__ = ("_pattern",)

    def __init__(self, secrets: Iterable[str]) -> None:
        found = sorted({secret for secret in secrets if len(secret) >= MIN_SECRET}, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_any_form, found))) if found else None

    @classmethod
    def of(cls, config: ModelConfig) -> Scrubber:
        """Return the scrubber for the key of an endpoint and for what its address may hide."""
        secrets = [config.api_key, *(value for _, value in config.headers)]
        try:
            parts = urlsplit(config.base_url)
            secrets += [parts.password or "", *(value for _, value in parse_qsl(parts.query))]
        except ValueError:
            secrets.append(config.base_url)
        return cls(secrets)

    def hide(self, text: str) -> str:
        """Return a text of any length without the secrets."""
        return text if self._pattern is None else self._pattern.sub("[secret]", text)

    def __call__(self, text: str) -> str:
        """Return a text for a message: without secrets, clean and cut."""
        text = clean_text(self.hide(text)).strip()
        return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"


def _any_form(secret: str) -> str:
    """Return a pattern for `secret` in which each character may be percent-encoded or JSON-escaped."""
    forms = []
    for character in secret:
        percent = "".join(f"%{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
        escaped = json.dumps(character)[1:-1]
        # The longer forms first: "%" begins its own encoding, "%25".
        forms.append(rf"(?:(?i:{re.escape(percent)}|{re.escape(escaped)})|\\?{re.escape(character)})")
    return "".join(forms)


def wire_fault(error: BaseException) -> WireFault | None:
    """Return what happened to the connection, None where `error` is about something else."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, aiohttp.ClientError):
        if isinstance(cause, AddressRefused):
            return "refused-address"
        cause = cause.__cause__
    match cause:
        case None:
            return None
        case aiohttp.ConnectionTimeoutError():
            return "connect-timeout"
        case aiohttp.ServerTimeoutError():
            return "read-timeout"
        case aiohttp.ClientConnectorDNSError():
            return "dns"
        case aiohttp.ClientSSLError():
            return "tls"
        case aiohttp.ClientConnectorError():
            return "refused-address" if isinstance(cause.os_error, AddressRefused) else "connect"
        case aiohttp.ClientPayloadError():
            return "cut"
        case aiohttp.ClientConnectionError():
            return "disconnected"
        case _:
            return None


def from_exception(error: BaseException, scrub: Scrubber) -> StreamError:
    """Return the neutral form of an exception that was raised while calling a provider or reading its answer."""
    fault = wire_fault(error)
    if fault is not None:
        kind, text = _WIRE_FAULTS[fault]
        return StreamError(scrub(text), kind=kind, retryable=kind in _RETRYABLE)
    if isinstance(error, EventTooLarge):
        return StreamError(str(error))
    if isinstance(error, aiohttp.InvalidURL | InvalidEndpoint):
        return StreamError(scrub(f"the address of the provider cannot be used: {error}"), kind="invalid-request")
    if isinstance(error, aiohttp.ClientResponseError):
        return StreamError(scrub(f"the provider's answer is no valid HTTP: {error.message}"))
    return StreamError(scrub(f"calling the provider failed: {type(error).__name__}: {error}"))


def from_answer(status: int, headers: Mapping[str, str], body: bytes, scrub: Scrubber) -> StreamError:
    """Return the neutral form of an HTTP answer that is no success."""
    try:
        parsed = orjson.loads(body)
    except ValueError:
        parsed = body.decode("utf-8", "replace")
    error = parsed.get("error", parsed) if isinstance(parsed, dict) else parsed
    detail = scrub(_detail(error))
    if 300 <= status < 400:
        text = f"the provider redirected the call ({status}); redirects are not followed"
    elif status == 401:
        text = "Invalid API key"
    else:
        text = f"the provider answered with status {status}"
    return _judged(status, error, f"{text}: {detail}" if detail else text, scrub, retry_after(headers))


def from_error_object(error: Any, scrub: Scrubber) -> StreamError:
    """Return the neutral form of an error object that came inside a successful answer (B19)."""
    code, kind = (error.get("code"), error.get("type")) if isinstance(error, dict) else (None, None)
    if isinstance(code, int):
        status = code
    elif isinstance(code, str) and code.isdecimal() and len(code) == 3:
        status = int(code)
    else:
        status = next((_STATUSES[word] for word in (code, kind) if isinstance(word, str) and word in _STATUSES), 500)
    return _judged(status, error, _detail(error) or "the provider reported an error without a text", scrub, None)


def from_garbage(payload: bytes, unit: str, scrub: Scrubber) -> StreamError:
    """Return the neutral form of what came in place of JSON: the words of a proxy or of a server that gave up (B22)."""
    text = payload[: 4 * MAX_MESSAGE].decode("utf-8", "replace").strip()
    message = f"the provider sent {unit} that is no JSON"
    if text.startswith("<"):
        return StreamError(message)  # a page; it stays one
    message = message if text.startswith(("{", "[", '"')) else f"{message}: {text}"
    return _judged(500, {"code": text}, message, scrub, None)


def _judged(status: int, error: Any, text: str, scrub: Scrubber, wait: float | None) -> StreamError:
    said = [error.get(key) for key in ("code", "type")] if isinstance(error, dict) else []
    codes = {code.lower() for code in said if isinstance(code, str)}
    if codes & _FILTERED:
        return StreamError(scrub(text), code="MODEL_CONTENT_FILTERED", kind="content-filter")
    kind = _STATUS_KINDS.get(status, "provider-error")
    if codes & _QUOTA:
        kind = "quota"
    elif codes & _RATE_LIMIT:
        kind = "rate-limit"
    elif codes & _OVERLOADED:
        kind = "overloaded"
    retryable = kind in _RETRYABLE or (kind == "provider-error" and status >= 500)
    return StreamError(scrub(text), kind=kind, retryable=retryable, retry_after=wait if retryable else None)


def _detail(error: Any) -> str:
    if isinstance(error, dict):
        for key in ("message", "msg", "detail", "error"):
            if isinstance(text := error.get(key), str) and text:
                return text
        return quoted(error) if error else ""
    if isinstance(error, str):
        return "" if error.lstrip().startswith("<") else error
    return "" if error is None else quoted(error)


def quoted(value: Any) -> str:
    """Return JSON data as a short text for messages."""
    try:
        return orjson.dumps(value).decode()[: 4 * MAX_MESSAGE]
    except (TypeError, ValueError):
        return type(value).__name__


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait that a provider asks for, from 0 to `MAX_RETRY_AFTER`; None if it does not say."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return _bounded(milliseconds / 1000)
    value = headers.get("retry-after")
    if value is None:
        return None
    seconds = _number(value)
    if seconds is not None:
        return _bounded(seconds)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return _bounded((moment - datetime.now(UTC)).total_seconds())


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _bounded(seconds: float) -> float:
    return min(max(0.0, seconds), MAX_RETRY_AFTER)
