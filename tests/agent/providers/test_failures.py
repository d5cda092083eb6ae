"""Failures in neutral words, without secrets."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.providers.config import ModelConfig
from agent.providers.failures import (
    MAX_MESSAGE,
    InvalidEndpoint,
    Scrubber,
    from_answer,
    from_error_object,
    from_exception,
    retry_after,
)

PLAIN = Scrubber([])


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (302, "provider-error", False),
        (400, "invalid-request", False),
        (401, "authentication", False),
        (402, "quota", False),
        (403, "permission", False),
        (404, "not-found", False),
        (408, "timeout", True),
        (418, "provider-error", False),
        (429, "rate-limit", True),
        (500, "provider-error", True),
        (503, "provider-error", True),
        (504, "timeout", True),
        (529, "overloaded", True),
    ],
)
def test_a_status_decides_the_kind_and_whether_a_retry_is_right(status: int, kind: str, retryable: bool) -> None:
    """P34, B22, B39."""
    error = from_answer(status, {"retry-after": "7"}, b"", PLAIN)
    assert (error.kind, error.retryable) == (kind, retryable)
    assert error.retry_after == (7.0 if retryable else None)


def test_the_code_of_the_error_object_beats_the_status() -> None:
    quota = {"error": {"message": "no money", "code": "insufficient_quota"}}
    filtered = {"error": {"message": "no", "code": "content_filter"}}
    assert from_answer(429, {}, json.dumps(quota).encode(), PLAIN).kind == "quota"
    error = from_answer(400, {}, json.dumps(filtered).encode(), PLAIN)
    assert (error.kind, error.code, error.retryable) == ("content-filter", "MODEL_CONTENT_FILTERED", False)
    assert from_error_object({"type": "overloaded_error"}, PLAIN).kind == "overloaded"
    assert from_error_object({"code": "429", "message": "slow"}, PLAIN).kind == "rate-limit"


@pytest.mark.parametrize(
    "body",
    [
        b'{"error":{"message":"the reason"}}',
        b'{"error":"the reason"}',
        b'{"message":"the reason"}',
        b'{"detail":"the reason"}',
        b"the reason",
        b'"the reason"',
    ],
)
def test_the_provider_is_quoted_whatever_form_its_error_has(body: bytes) -> None:
    assert "the reason" in from_answer(500, {}, body, PLAIN).message


@pytest.mark.parametrize("body", [b"<html>busy</html>", b"", b"null", b"\xff\xfe", b"[" * 100_000, b"{}"])
def test_an_odd_body_is_no_trouble(body: bytes) -> None:
    assert from_answer(500, {}, body, PLAIN).message.startswith("the provider answered with status 500")


def test_retry_after_is_read_in_all_forms_and_bounded() -> None:
    """B22: seconds, a date, never negative, never for hours."""
    now = datetime.now(UTC)
    assert retry_after({"retry-after": "20"}) == 20
    assert retry_after({"retry-after": "-3"}) == 0
    assert retry_after({"retry-after": "86400"}) == 300
    assert retry_after({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert retry_after({"retry-after": "Wed, 01 Jan 2025 00:00:00 GMT"}) == 0
    assert retry_after({"retry-after": format_datetime(now + timedelta(hours=1), usegmt=True)}) == 300
    soon = retry_after({"retry-after": format_datetime(now + timedelta(seconds=100), usegmt=True)})
    assert soon is not None and 90 < soon <= 100
    assert retry_after({}) is None
    for nonsense in ("soon", "", "nan", "inf", "Wed, 99 Foo 2025"):
        assert retry_after({"retry-after": nonsense}) is None


@example("00000%")
@example("00000\\")
@given(st.text(min_size=6, max_size=30).filter(lambda text: text.isprintable()))
def test_a_secret_is_taken_out_in_every_encoding(secret: str) -> None:
    """B83."""
    scrub = Scrubber([secret])
    encoded = quote(secret, safe="")
    lower = re.sub("%..", lambda match: match.group().lower(), encoded)
    for form in (secret, encoded, lower, quote(secret), json.dumps(secret)[1:-1]):
        assert scrub(f"<{form}>") == "<[secret]>"


def test_what_is_too_short_to_be_a_secret_spoils_no_words() -> None:
    assert Scrubber(["k", "1", "true"])("Invalid API key: 1 of true others") == "Invalid API key: 1 of true others"


def test_the_address_of_an_endpoint_may_hide_secrets_too() -> None:
    scrub = Scrubber.of(ModelConfig("openai-chat", "m", "https://u:pass-word@host/v1?key=sk-in-query", "sk-key/1"))
    text = f"sk-key/1 {quote_plus('sk-key/1')} sk-in-query pass-word"
    assert scrub(text) == "[secret] [secret] [secret] [secret]"


@pytest.mark.parametrize("kind", [RuntimeError, OSError, InvalidEndpoint, KeyError])
def test_an_exception_that_holds_the_key_is_told_without_it(kind: type[Exception]) -> None:
    """B83: also where nothing is known about the exception but its text."""
    error = from_exception(kind("no good: 'Bearer sk-key/1' at https://host/?key=sk-key%2F1"), Scrubber(["sk-key/1"]))
    assert "sk-key" not in error.message
    assert error.message.count("[secret]") == 2
    assert error.retryable is False


def test_messages_are_cut_and_storable() -> None:
    """B69."""
    assert len(PLAIN("x" * 5_000)) == MAX_MESSAGE
    assert PLAIN("a\x00b") == "a\ufffdb"
