"""Addresses, and what the end of a connection means."""

from __future__ import annotations

import ssl

import pytest
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.frames import Close
from websockets.http11 import Response

from conversations.client.connection import LONGEST_PAUSE, Patience, refusal, websocket_address
from conversations.client.exceptions import ProtocolViolation


@pytest.mark.parametrize(
    ("url", "base", "address"),
    [
        ("https://ai.example.org", "/ai", "wss://ai.example.org/ai/ws"),
        ("http://127.0.0.1:8000/", "/ai/", "ws://127.0.0.1:8000/ai/ws"),
        ("http://[::1]:8000", "", "ws://[::1]:8000/ws"),
        ("wss://example.org/tools", "/ai", "wss://example.org/tools/ai/ws"),
    ],
)
def test_the_websocket_of_a_site_is_found(url: str, base: str, address: str) -> None:
    assert websocket_address(url, base) == address


@pytest.mark.parametrize("url", ["", "ai.example.org", "ftp://example.org", "https://", "https://a:b@c", "https://a?b"])
def test_what_is_no_address_of_a_site_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match="address of a site"):
        websocket_address(url, "/ai")


def closed(code: int) -> ConnectionClosedError:
    return ConnectionClosedError(Close(code, ""), None)


def status(code: int) -> InvalidStatus:
    return InvalidStatus(Response(code, "", Headers()))


@pytest.mark.parametrize(
    "error",
    [
        closed(1012),
        closed(4011),
        closed(1009),
        closed(1001),
        ConnectionClosedError(None, None),
        ConnectionRefusedError(),
    ]
    + [TimeoutError(), EOFError(), status(502), status(503), status(429), OSError("no route")],
)
def test_after_what_passes_the_client_connects_again(error: Exception) -> None:
    assert refusal(error) is None


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (closed(4401), "AUTH_REQUIRED"),
        (closed(4403), "FORBIDDEN"),
        (closed(4406), "PROTOCOL_NOT_SUPPORTED"),
        (closed(4500), "NOT_SERVED"),
        (ConnectionClosedError(None, Close(1009, "")), "FRAME_TOO_LARGE"),
        (status(404), "NOT_CONNECTED"),
        (ssl.SSLCertVerificationError("self-signed"), "NOT_CONNECTED"),
        (ProtocolViolation("what"), "PROTOCOL_ERROR"),
        (ZeroDivisionError("a fault of ours"), "NOT_CONNECTED"),
    ],
)
def test_what_does_not_pass_is_an_error_at_once(error: Exception, code: str) -> None:
    refused = refusal(error)
    assert refused is not None
    assert refused.code == code


def test_pauses_grow_with_jitter_up_to_a_bound_and_end() -> None:
    patience = Patience(1000)
    pauses = [patience.pause() for _ in range(12)]
    assert all(pause is not None and pause <= LONGEST_PAUSE for pause in pauses)
    assert pauses[0] is not None and pauses[11] is not None
    assert 0.125 <= pauses[0] <= 0.25
    assert pauses[11] >= LONGEST_PAUSE / 2
    patience.worked()
    again = patience.pause()
    assert again is not None and again <= 0.25
    assert Patience(0).pause() is None
