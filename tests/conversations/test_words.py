"""Errors in words, for pages that come from the server."""

from __future__ import annotations

import re

import pytest

from conversations.words import WORDS, Notice, cancellation, failure, sentence
from tests.site import ROOT


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
        (
            "MODEL_FAILED",
            "the connection broke",
            True,
            Notice("The answer broke off.", "The connection broke.", begun=True),
        ),
        ("TOOL_FAILED", "", True, Notice("A tool failed.", begun=True)),
        ("EXECUTION_LOST", "no heartbeat", True, Notice("The server was stopped while it answered.", begun=True)),
        ("NEW_CODE", "what happened!", False, Notice("What happened!")),
        ("", "", False, Notice("Something went wrong.")),
    ],
)
def test_a_failed_run_has_one_plain_sentence_and_a_detail(code: str, message: str, begun: bool, said: Notice) -> None:
    assert failure(code, message, begun=begun) == said


def test_a_run_that_ended_with_the_server_was_not_stopped_by_a_person() -> None:
    assert cancellation("user", begun=True).text == "Stopped."
    assert cancellation("shutdown", begun=True).text == "The server was stopped while it answered."


@pytest.mark.parametrize("begun", [True, False])
def test_only_what_has_begun_can_be_gone_on_from(begun: bool) -> None:
    assert failure("NEW_CODE", "", begun=begun).begun is begun
    assert failure("EXECUTION_LOST", "", begun=begun).begun is begun
    assert cancellation("shutdown", begun=begun).begun is begun


def test_every_code_of_the_protocol_is_said_in_words() -> None:
    """The two tables of codes in docs/protocol.md."""
    tables = re.findall(
        r"^\| `?(?:code|errorCode)`? \|.*\n((?:\|.*\n)+)", (ROOT / "docs/protocol.md").read_text(), re.MULTILINE
    )
    rows = [line.split("|")[1] for table in tables for line in table.splitlines()]
    codes = {code for row in rows for code in re.findall(r"[A-Z_]+", row)}

    assert len(tables) == 2
    assert len(codes) > 20
    assert codes - set(WORDS) == set()
