"""The benchmark harness, on the smallest amount of work; what it measures is not judged here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import main
from tests.benchmarks.harness import Figure, figure, interleave, measure, table
from tests.benchmarks.rows import ROWS, DeltaBurst


def test_a_run_prints_a_table_and_writes_the_figures_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["engine.delta.burst", "engine.delta.paced", "engine.tool_turn.10", "engine.import"]
    output = tmp_path / "build" / "bench.json"
    only = [f"--only={name}" for name in names]
    main([*only, "--runs=1", "--size=0.01", f"--output={output}"])

    figures = json.loads(output.read_text())
    assert [row["name"] for row in figures] == names
    for row in figures:
        assert set(row) == {"name", "unit", "value", "floor", "ratio", "runs"}
        assert row["value"] > 0 and row["floor"] > 0 and len(row["runs"]) == 1
        assert row["ratio"] == pytest.approx(row["value"] / row["floor"], rel=0.05)
    printed = capsys.readouterr().out
    assert all(name in printed for name in names)


def test_runs_of_both_sides_are_interleaved_and_reported_by_their_median() -> None:
    order: list[str] = []
    values = iter([5.0, 1.0, 3.0])

    def subject() -> float:
        order.append("subject")
        return next(values)

    def floor() -> float:
        order.append("floor")
        return 2.0

    measured = interleave(subject, floor, 3)
    assert order == ["subject", "floor"] * 3
    assert figure("x", "ms", *measured) == Figure("x", "ms", 3.0, 2.0, 1.5, [5.0, 1.0, 3.0])
    assert "1.50  ms" in table([figure("x", "ms", *measured)])


def test_a_measured_process_that_dies_is_an_error_and_no_figure() -> None:
    class Unknown(DeltaBurst):
        name = "engine.unknown"

    with pytest.raises(RuntimeError, match=r"engine\.unknown subject .* ended with status 2"):
        measure(Unknown, runs=1)


def test_each_row_has_a_name_and_a_unit_of_its_own() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert all("CPU per" in row.unit for row in ROWS)
