"""The benchmark harness, on the smallest amount of work; what it measures is not judged here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.benchmarks import search
from tests.benchmarks.__main__ import main
from tests.benchmarks.databases import servers
from tests.benchmarks.dialects import DIALECTS
from tests.benchmarks.figures import Figure, Limit, figure, table
from tests.benchmarks.harness import interleave, measure, process
from tests.benchmarks.live import GROUPS, highest
from tests.benchmarks.rows import ROWS, DeltaBurst


def test_a_run_prints_a_table_and_writes_the_figures_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = ["engine.delta.burst", "engine.delta.paced", "engine.tool_turn.10", "engine.import"]
    live = [name for group in GROUPS for name in group.names]
    with_sdk = "provider.anthropic-messages.burst"
    names = [*engine[:-1], with_sdk, engine[-1], *live]
    output = tmp_path / "build" / "bench.json"
    only = [f"--only={name}" for name in names]
    main([*only, "--runs=1", "--size=0.01", f"--output={output}"])

    figures = json.loads(output.read_text())
    assert [row["name"] for row in figures] == names
    for row in figures:
        assert set(row) == {"name", "unit", "value", "floor", "ratio", "runs", "limit", "met", "sdk"}
        assert len(row["runs"]) == 1
        if row["name"] == "ws.idle":  # no growth is possible: a handful of sockets fits into memory that was there
            continue
        assert row["value"] > 0
        assert (row["sdk"] is not None) is (row["name"] == with_sdk)
        if row["floor"] is not None:
            assert row["ratio"] == pytest.approx(row["value"] / row["floor"], rel=0.05)
    reported = {row["name"] for row in figures if row["limit"] is None}
    assert reported == {*engine, "ws.html.paced", *(name for name in live if name.startswith("start.latency"))}
    printed = capsys.readouterr().out
    assert all(name in printed for name in names)


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    with process("tests.benchmarks.provider") as ask:
        yield f"http://127.0.0.1:{ask('')}"


@pytest.mark.parametrize("protocol", DIALECTS)
@pytest.mark.parametrize("name", ["burst", "tool_turn.50"])
async def test_all_sides_of_a_provider_row_read_the_same_stream(name: str, protocol: str, provider: str) -> None:
    row = next(row for row in ROWS if row.name == f"provider.{protocol}.{name}")
    assert row.limit == (Limit("ratio", 1.0) if name == "burst" else Limit("ratio", 2.0))
    assert row.sides == ("subject", "floor", "sdk")[: 2 if protocol == "ollama-chat" else 3]
    for side in row.sides:
        async with row.side(side, provider, 0.05) as work:  # which checks what it reads
            assert await work() == (250 if name == "burst" else 1 if side == "sdk" else 2)


def test_runs_of_all_sides_are_interleaved_and_reported_by_their_median() -> None:
    order: list[str] = []
    values = {"subject": iter([5.0, 1.0, 3.0]), "floor": iter([2.0] * 3), "sdk": iter([9.0, 8.0, 7.0])}

    def work(side: str) -> Callable[[], float]:
        def run() -> float:
            order.append(side)
            return next(values[side])

        return run

    measured = figure("x", "ms", *interleave([work(side) for side in values], 3))
    assert order == ["subject", "floor", "sdk"] * 3
    assert measured == Figure("x", "ms", 3.0, 2.0, 1.5, [5.0, 1.0, 3.0], sdk=8.0)
    assert "1.50      8.00  ms" in table([measured])


@pytest.mark.parametrize(
    ("limit", "met"),
    [(Limit("ratio", 1.5), True), (Limit("ratio", 1.4), False), (Limit("value", 2), False)]
    + [(Limit("ratio", 1.2, least=True), True), (Limit("ratio", 2, least=True), False)],
)
def test_a_figure_with_a_limit_says_whether_it_keeps_it(limit: Limit, met: bool) -> None:
    measured = figure("x", "ms", [3.0], [2.0], limit=limit)
    assert measured.as_json()["met"] is met
    assert f"({limit}: {'met' if met else 'NOT MET'})" in table([measured])


@pytest.mark.parametrize("true", [1, 2, 37, 64, 511, 1_024])
async def test_the_search_for_the_capacity_comes_close_from_below(true: int) -> None:
    async def holds(streams: int) -> bool:
        return streams <= true

    found = await highest(holds, 1_024)
    assert found <= true <= found * 1.04 + 1


def test_a_measured_process_that_dies_is_an_error_and_no_figure() -> None:
    unknown = DeltaBurst()
    unknown.name = "engine.unknown"
    with pytest.raises(RuntimeError, match=r"engine\.unknown subject .* ended with status 2"):
        measure(unknown, runs=1)


def test_each_row_has_a_name_and_a_unit_of_its_own() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert all("CPU per" in row.unit for row in ROWS)


def test_the_search_is_measured_with_its_queries_on_each_database(tmp_path: Path) -> None:
    output = tmp_path / "bench.json"
    only = [f"--only={name}" for name in search.names() if name.endswith((".common", ".rare", ".save"))]
    main([*only, "--size=0.001", f"--output={output}"])
    figures = {row["name"]: row for row in json.loads(output.read_text())}
    assert figures["sqlite.search.common"]["unit"] == "ms, 3 queries"
    assert {name for name, _ in servers(["sqlite.x", "postgresql.x"])} == {name.split(".")[0] for name in figures}
    assert all(row["value"] > 0 and row["limit"] is None for row in figures.values())
