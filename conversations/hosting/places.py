"""How many connections each person may hold open at a time: sockets, event streams and long polls together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from conversations.exceptions import RateLimited


class Places:
    """Gives each person `most` places."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: Counter[int] = Counter()

    def check(self, user_id: int) -> None:
        """Raise `RateLimited` if this person has no place left."""
        if self._taken[user_id] >= self._most:
            raise RateLimited(f"you have {self._most} connections open; close one of them first")

    @contextmanager
    def held(self, user_id: int) -> Iterator[None]:
        """Hold one place; raises `RateLimited`."""
        self.check(user_id)
        self._taken[user_id] += 1
        try:
            yield
        finally:
            self._taken[user_id] -= 1
            if not self._taken[user_id]:
                del self._taken[user_id]
