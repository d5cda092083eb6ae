"""`python -m tests.benchmarks`: measure, print a table, write `build/bench.json`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks import history, search
from tests.benchmarks.figures import table
from tests.benchmarks.harness import IMPORT_ROW, measure, measure_import
from tests.benchmarks.live import GROUPS, measure_live
from tests.benchmarks.rows import ROWS


def main(arguments: Sequence[str] | None = None) -> None:
    live = [name for group in GROUPS for name in group.names]
    names = [*(row.name for row in ROWS), IMPORT_ROW, *live, *history.names(), *search.names()]
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="What the hot paths cost.")
    parser.add_argument("--runs", type=int, default=5, help="measured runs of each side (default 5)")
    parser.add_argument("--only", action="append", metavar="NAME", choices=names, help=f"one of: {', '.join(names)}")
    parser.add_argument("--size", type=float, default=1.0, help="share of the work, for a quick look (default 1)")
    parser.add_argument("--output", type=Path, default=Path("build/bench.json"))
    options = parser.parse_args(arguments)
    wanted = options.only or names
    figures = [measure(row, runs=options.runs, size=options.size) for row in ROWS if row.name in wanted]
    if IMPORT_ROW in wanted:
        figures.append(measure_import(runs=options.runs))
    figures += measure_live(wanted, runs=options.runs, size=options.size)
    figures += history.measure_history(wanted, size=options.size)
    figures += search.measure_search(wanted, size=options.size)
    print(table(figures))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps([figure.as_json() for figure in figures], indent=2) + "\n")


if __name__ == "__main__":
    main()
