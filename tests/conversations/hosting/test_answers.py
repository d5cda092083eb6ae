"""Answers: the first counts, the same again is fine, and large ones cost no memory."""

from __future__ import annotations

import sys
from uuid import uuid4

import pytest

from agent.runtime.exceptions import InvalidState
from agent.runtime.interrupts import APPROVED, Decision
from agent.runtime.values import freeze
from conversations.bodies import ToolResultBody
from conversations.hosting import answers as module
from conversations.hosting.answers import Answer, Answers

QUESTION = (1, uuid4(), "q")


def result(value: object) -> ToolResultBody:
    return ToolResultBody(call_id="call", result=value)


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (APPROVED, Decision("rejected")),
        (Decision("rejected", "no"), Decision("rejected", "never")),
        (Decision("modified", arguments=freeze({"a": 1})), Decision("modified", arguments=freeze({"a": 2}))),
        (result({"a": 1, "b": 2}), result({"a": 1, "b": True})),
        (result("x"), ToolResultBody(call_id="call", result="x", is_error=True)),
    ],
)
def test_the_same_answer_is_a_repetition_and_another_one_is_refused(first: Answer, other: Answer) -> None:
    answers = Answers()
    assert not answers.repeated(QUESTION, first)
    answers.add(QUESTION, first)
    assert answers.repeated(QUESTION, first)
    with pytest.raises(InvalidState, match="answered already"):
        answers.repeated(QUESTION, other)


def test_the_order_of_members_makes_no_other_answer() -> None:
    answers = Answers()
    answers.add(QUESTION, result({"a": 1, "b": 2}))
    assert answers.repeated(QUESTION, result({"b": 2, "a": 1}))


def test_a_large_result_is_not_kept() -> None:
    answers, large = Answers(), result("x" * 1_000_000)
    before = sys.getrefcount(large)
    answers.add(QUESTION, large)
    assert sys.getrefcount(large) == before
    assert sum(len(digest) for digest in answers._given.values()) < 100


def test_only_the_latest_answers_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 2)
    answers = Answers()
    questions = [(1, uuid4(), "q") for _ in range(3)]
    for question in questions:
        answers.add(question, APPROVED)
    assert [answers.repeated(question, APPROVED) for question in questions] == [False, True, True]
