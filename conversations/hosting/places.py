"""How much at a time: connections of each person (sockets, event streams and long polls together), and large bodies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from conversations.exceptions import RateLimited

LARGE_AT_ONCE = 4  # each takes some ten times its size while it is read and stored
SOON = 5  # seconds


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


class LargeBodies:
    """Lets few large bodies be in memory at a time: one of each person, `LARGE_AT_ONCE` in all. For use in threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._of: set[int] = set()

    @contextmanager
    def room(self, user_id: int) -> Iterator[None]:
        """Have room for one; raises `RateLimited`."""
        with self._lock:
            if user_id in self._of:
                raise RateLimited("another large body of yours is being read; send this one after it", retry_after=SOON)
            if len(self._of) >= LARGE_AT_ONCE:
                raise RateLimited("too many large bodies are being read; try again in a moment", retry_after=SOON)
            self._of.add(user_id)
        try:
            yield
        finally:
            with self._lock:
                self._of.discard(user_id)
