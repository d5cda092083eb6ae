"""Measures rows: each side in a process of its own, runs interleaved, medians reported."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from tests.benchmarks.figures import Figure, figure
from tests.benchmarks.rows import Row

IMPORT_ROW = "engine.import"
WARM_UPS = 2


def interleave(works: Sequence[Callable[[], float]], runs: int) -> list[list[float]]:
    """Do one after the other, `runs` times, so that what disturbs the machine disturbs all; returns figures of each."""
    rounds = [[work() for work in works] for _ in range(runs)]
    return [list(values) for values in zip(*rounds, strict=True)]


def measure(row: Row, *, runs: int, size: float = 1.0) -> Figure:
    """Measure one row against a scripted provider in yet another process."""
    with ExitStack() as stack:
        port = stack.enter_context(process("tests.benchmarks.provider"))("")
        provider = f"http://127.0.0.1:{port}"

        def side(name: str) -> Callable[[], float]:
            worker = process("tests.benchmarks.worker", row.name, name, provider, f"--size={size}")
            ask = stack.enter_context(worker)
            return lambda: float(ask("run"))

        works = [side(name) for name in row.sides]
        interleave(works, WARM_UPS)
        sides = interleave(works, runs)
    return figure(row.name, row.unit, *sides, limit=row.limit)


def measure_import(*, runs: int) -> Figure:
    """Measure what importing the engine costs, against pydantic alone, each time in a fresh interpreter."""

    def importing(module: str) -> float:
        script = f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        return float(done.stdout) * 1e3

    works = [lambda: importing("agent.runtime"), lambda: importing("pydantic")]
    interleave(works, 1)  # writes the .pyc files
    return figure(IMPORT_ROW, "ms CPU", *interleave(works, runs))


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
