"""Token counts of the Messages API in our terms."""

from __future__ import annotations

from collections import Counter
from typing import Any

from agent.providers.decoding import count, details_of, member, usage_of
from agent.runtime.messages import Usage
from agent.runtime.model import UsageDetails

_FRESH = ("input_tokens",)
_WRITTEN = ("cache_creation_input_tokens",)
_WRITTEN_FOR_AN_HOUR = ("cache_creation", "ephemeral_1h_input_tokens")
_CACHED = ("cache_read_input_tokens",)
_MADE = ("output_tokens",)
_THOUGHT = ("output_tokens_details", "thinking_tokens")
_PATHS = (_FRESH, _WRITTEN, _WRITTEN_FOR_AN_HOUR, _CACHED, _MADE, _THOUGHT)


class Tokens:
    """The counts of one answer: in a call a later count replaces an earlier one (B38), calls of one answer add up.

    The provider counts three kinds of input apart; our input is their sum.
    """

    def __init__(self) -> None:
        self._before: Counter[tuple[str, ...]] = Counter()
        self._now: dict[tuple[str, ...], int] = {}

    def count(self, usage: Any) -> None:
        """Take in what an event says."""
        for path in _PATHS:
            if (tokens := count(member(usage, *path))) is not None:
                self._now[path] = tokens

    def next_call(self) -> None:
        """Say that another call goes on with the answer."""
        self._before.update(self._now)
        self._now = {}

    def total(self) -> tuple[Usage | None, UsageDetails | None]:
        """Return the usage and how it divides, None where the provider counted nothing."""
        sums = self._before + Counter(self._now) if self._before else self._now
        if not sums:
            return None, None
        given = sum(sums.get(path, 0) for path in (_FRESH, _WRITTEN, _CACHED))
        usage = usage_of(given, sums.get(_MADE, 0), None)
        details = details_of(
            cached=sums.get(_CACHED),
            written=sums.get(_WRITTEN),
            written_for_an_hour=sums.get(_WRITTEN_FOR_AN_HOUR),
            reasoning=sums.get(_THOUGHT),
        )
        return usage, details
