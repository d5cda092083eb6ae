"""The answers that runs were given: the first one counts, and the same one may be sent again."""

from __future__ import annotations

from collections import OrderedDict
from uuid import UUID

from agent.runtime.exceptions import InvalidState
from agent.runtime.interrupts import Decision
from conversations.bodies import ToolResultBody
from conversations.store import request_digest

REMEMBERED = 10_000

Answer = Decision | ToolResultBody
Question = tuple[int, UUID, str]


class Answers:
    """Remembers the latest answers by their digests; what a client's tool returned may be large."""

    def __init__(self) -> None:
        self._given: OrderedDict[Question, str] = OrderedDict()

    def repeated(self, question: Question, answer: Answer) -> bool:
        """Return whether this answer was given before; raises `InvalidState` if another one was."""
        given = self._given.get(question)
        if given is None:
            return False
        digest, _, how = given.partition(" ")
        if digest != _digest(answer):
            raise InvalidState("this was answered already" + (f": {how}" if how else ""))
        return True

    def add(self, question: Question, answer: Answer) -> None:
        """Remember an answer that was taken."""
        how = answer.kind if isinstance(answer, Decision) else ""
        self._given[question] = f"{_digest(answer)} {how}"
        while len(self._given) > REMEMBERED:
            self._given.popitem(last=False)


def _digest(answer: Answer) -> str:
    return request_digest(answer if isinstance(answer, Decision) else answer.to_wire())
