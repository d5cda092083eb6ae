"""Measures rows: subject and floor in processes of their own, runs interleaved, medians reported."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from statistics import median
from typing import Literal

from tests.benchmarks.rows import Row

IMPORT_ROW = "engine.import"
WARM_UPS = 2


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
    """One line of the report; `value` and `floor` are medians in `unit`, `runs` the single values of the subject.

    A figure that is only reported has no limit, and some have no floor.
    """

    name: str
    unit: str
    value: float
    floor: float | None
    ratio: float | None
    runs: list[float]
    limit: Limit | None = None

    def as_json(self) -> dict[str, object]:
        limit, met = (str(self.limit), self.limit.met(self)) if self.limit else (None, None)
        return {**asdict(self), "limit": limit, "met": met}

    def __str__(self) -> str:
        floor = "" if self.floor is None else f"{self.floor:.2f}"
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        judged = f"  ({self.limit}: {'met' if self.limit.met(self) else 'NOT MET'})" if self.limit else ""
        return f"{self.name:<24}{self.value:>10.2f}{floor:>10}{ratio:>8}  {self.unit}{judged}"


def interleave(subject: Callable[[], float], floor: Callable[[], float], runs: int) -> tuple[list[float], list[float]]:
    """Measure one after the other, `runs` times, so that what disturbs the machine disturbs both."""
    pairs = [(subject(), floor()) for _ in range(runs)]
    return [value for value, _ in pairs], [value for _, value in pairs]


def figure(
    name: str, unit: str, values: Sequence[float], floors: Sequence[float] = (), limit: Limit | None = None
) -> Figure:
    value, runs = median(values), [round(v, 4) for v in values]
    if not floors:
        return Figure(name, unit, round(value, 4), None, None, runs, limit)
    floor = median(floors)
    ratio = round(value / floor, 3) if floor else None
    return Figure(name, unit, round(value, 4), round(floor, 4), ratio, runs, limit)


def measure(row: type[Row], *, runs: int, size: float = 1.0) -> Figure:
    """Measure one row against a scripted provider in yet another process."""
    with ExitStack() as stack:
        port = stack.enter_context(process("tests.benchmarks.provider"))("")
        provider = f"http://127.0.0.1:{port}"
        subject, floor = (
            stack.enter_context(process("tests.benchmarks.worker", row.name, side, provider, f"--size={size}"))
            for side in ("subject", "floor")
        )
        interleave(lambda: float(subject("run")), lambda: float(floor("run")), WARM_UPS)
        values, floors = interleave(lambda: float(subject("run")), lambda: float(floor("run")), runs)
    return figure(row.name, row.unit, values, floors)


def measure_import(*, runs: int) -> Figure:
    """Measure what importing the engine costs, against pydantic alone, each time in a fresh interpreter."""

    def importing(module: str) -> float:
        script = f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        return float(done.stdout) * 1e3

    def both(count: int) -> tuple[list[float], list[float]]:
        return interleave(lambda: importing("agent.runtime"), lambda: importing("pydantic"), count)

    both(1)  # writes the .pyc files
    return figure(IMPORT_ROW, "ms CPU", *both(runs))


def table(figures: Sequence[Figure]) -> str:
    """Return the report as text."""
    return "\n".join([f"{'row':<24}{'value':>10}{'floor':>10}{'ratio':>8}  unit", *map(str, figures)])


@contextmanager
def process(module: str, *arguments: str) -> Iterator[Callable[[str], str]]:
    """Run a module; yields a function that sends it a line (nothing for an empty one) and returns its answer."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    def ask(line: str) -> str:
        with suppress(BrokenPipeError):  # it ended; there is no answer then
            if line:
                print(line, file=stdin, flush=True)
        answer = stdout.readline().strip()
        if not answer:
            raise RuntimeError(f"{module} {' '.join(arguments)} ended with status {process.wait()}")
        return answer

    try:
        yield ask
    finally:
        with suppress(BrokenPipeError):
            stdin.close()  # which is its sign to leave
        process.wait()
        stdout.close()
