"""How many commands a socket may send."""

from __future__ import annotations

import time

LARGE = 64 * 1024  # characters of a frame that count as one more command


class TokenBucket:
    """Allows `per_second` commands a second, and as many at once after a pause."""

    __slots__ = ("_at", "_per_second", "_tokens")

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._tokens = float(per_second)
        self._at = time.monotonic()

    def take(self, size: int = 0) -> bool:
        """Use up one command, and more for a large one, which may overdraw; False where there is none left."""
        now = time.monotonic()
        self._tokens = min(self._per_second, self._tokens + (now - self._at) * self._per_second)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1 + size // LARGE
        return True
