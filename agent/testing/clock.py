"""A clock that stands still until it is told to move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(eq=False, slots=True)
class _Alarm:
    due: float
    callback: Callable[[], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeClock:
    """The runtime's `Clock` for tests: `advance` moves the time and calls the timers that fall due, in order."""

    def __init__(self, start: float = 1_000.0) -> None:
        self._now = start
        self._alarms: list[_Alarm] = []

    def now(self) -> float:
        """Return the seconds on this clock."""
        return self._now

    def call_later(self, delay: float, callback: Callable[[], None]) -> _Alarm:
        """Call `callback` from the `advance` that reaches its time."""
        alarm = _Alarm(self._now + delay, callback)
        self._alarms.append(alarm)
        return alarm

    def advance(self, seconds: float) -> None:
        """Move the time forward; each timer sees the moment it was set for."""
        if seconds < 0:
            raise ValueError(f"a clock does not go back, got {seconds!r}")
        end = self._now + seconds
        while due := [alarm for alarm in self._alarms if alarm.due <= end and not alarm.cancelled]:
            alarm = min(due, key=lambda waiting: waiting.due)
            self._alarms.remove(alarm)
            self._now = max(self._now, alarm.due)
            alarm.callback()
        self._alarms = [alarm for alarm in self._alarms if not alarm.cancelled]
        self._now = end
