"""Errors in words, for pages that come from the server."""

from __future__ import annotations

import pytest

from conversations.words import sentence


@pytest.mark.parametrize(
    ("code", "message", "said"),
    [
        ("MODEL_FAILED", "no route to host", "The model did not answer. No route to host."),
        ("MODEL_FAILED", "", "The model did not answer."),
        ("RATE_LIMITED", "too many commands", "That was too fast. Try again in a moment."),
        ("NEW_CODE", "what happened!", "What happened!"),
        ("", "", "Something went wrong."),
    ],
)
def test_an_error_is_one_or_two_whole_sentences(code: str, message: str, said: str) -> None:
    assert sentence(code, message) == said
