"""Token counts of the Messages API in our terms."""

from __future__ import annotations

from collections import Counter
from typing import Any

from agent.providers.decoding import count, details_of, member, usage_of
from agent.runtime.messages import MAX_SAFE_INTEGER, Usage
from agent.runtime.model import UsageDetails

_FRESH = ("input_tokens",)
_WRITTEN = ("cache_creation_input_tokens",)
_CACHED = ("cache_read_input_tokens",)
_MADE = ("output_tokens",)
_THOUGHT = ("output_tokens_details", "thinking_tokens")
_PATHS = (_FRESH, _WRITTEN, _CACHED, _MADE, _THOUGHT)


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
        tokens = {path: min(sums[path], MAX_SAFE_INTEGER) for path in _PATHS if path in sums}
        given = sum(tokens.get(path, 0) for path in (_FRESH, _WRITTEN, _CACHED))
        usage = usage_of(min(given, MAX_SAFE_INTEGER), tokens.get(_MADE, 0), None)
        details = details_of(cached=tokens.get(_CACHED), written=tokens.get(_WRITTEN), reasoning=tokens.get(_THOUGHT))
        return usage, details
