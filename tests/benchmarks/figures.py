"""What is reported: figures, the limits that they must keep, and the table of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Literal

WIDTH = 42


@dataclass(frozen=True, slots=True)
class Limit:
    """What a figure must keep: its `value`, or its `ratio` to the floor, is at most (or at least) `bound`."""

    of: Literal["value", "ratio"]
    bound: float
    least: bool = False

    def met(self, figure: Figure) -> bool:
        measured = figure.value if self.of == "value" else figure.ratio
        assert measured is not None
        return measured >= self.bound if self.least else measured <= self.bound

    def __str__(self) -> str:
        return f"{self.of} {'≥' if self.least else '≤'} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report; `value`, `floor` and `sdk` are medians in `unit`, `runs` the subject's single values.

    A figure that is only reported has no limit, some have no floor, and few an official SDK beside them.
    """

    name: str
    unit: str
    value: float
    floor: float | None
    ratio: float | None
    runs: list[float]
    limit: Limit | None = None
    sdk: float | None = None

    def as_json(self) -> dict[str, object]:
        limit, met = (str(self.limit), self.limit.met(self)) if self.limit else (None, None)
        return {**asdict(self), "limit": limit, "met": met}

    def __str__(self) -> str:
        floor, ratio, sdk = ("" if each is None else f"{each:.2f}" for each in (self.floor, self.ratio, self.sdk))
        judged = f"  ({self.limit}: {'met' if self.limit.met(self) else 'NOT MET'})" if self.limit else ""
        return f"{self.name:<{WIDTH}}{self.value:>10.2f}{floor:>10}{ratio:>8}{sdk:>10}  {self.unit}{judged}"


def figure(
    name: str,
    unit: str,
    values: Sequence[float],
    floors: Sequence[float] = (),
    sdks: Sequence[float] = (),
    limit: Limit | None = None,
) -> Figure:
    """Return the figure of some runs."""
    value, floor, sdk = (median(each) if each else None for each in (values, floors, sdks))
    assert value is not None
    runs = [round(each, 4) for each in values]
    ratio = round(value / floor, 3) if floor else None
    return Figure(name, unit, round(value, 4), _rounded(floor), ratio, runs, limit, _rounded(sdk))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def table(figures: Sequence[Figure]) -> str:
    """Return the report as text."""
    head = f"{'row':<{WIDTH}}{'value':>10}{'floor':>10}{'ratio':>8}{'sdk':>10}  unit"
    return "\n".join([head, *map(str, figures)])
