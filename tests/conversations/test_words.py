"""Errors in words, for pages that come from the server."""

from __future__ import annotations

import pytest

from conversations.words import Notice, cancellation, failure, sentence


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


@pytest.mark.parametrize(
    ("code", "message", "begun", "said"),
    [
        ("MODEL_FAILED", "no route", False, Notice("The model did not answer.", "No route.")),
        ("MODEL_FAILED", "the connection broke", True, Notice("The answer broke off.", "The connection broke.")),
        ("TOOL_FAILED", "", True, Notice("A tool failed.")),
        ("EXECUTION_LOST", "no heartbeat", True, Notice("The server was stopped while it answered.")),
        ("NEW_CODE", "what happened!", False, Notice("What happened!")),
        ("", "", False, Notice("Something went wrong.")),
    ],
)
def test_a_failed_run_has_one_plain_sentence_and_a_detail(code: str, message: str, begun: bool, said: Notice) -> None:
    assert failure(code, message, begun=begun) == said


def test_a_run_that_ended_with_the_server_was_not_stopped_by_a_person() -> None:
    assert cancellation("user").text == "Stopped."
    assert cancellation("shutdown").text == "The server was stopped while it answered."
