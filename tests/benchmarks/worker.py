"""The measured process: does one side of one row, once for each line on standard input.

It answers each line with the CPU time of this process per unit, in the row's unit. The first run is the warm-up and its
figure is thrown away by whoever asked.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
import time

from tests.benchmarks.rows import ROWS


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("row", choices=[row.name for row in ROWS])
    parser.add_argument("side", choices=["subject", "floor", "sdk"])
    parser.add_argument("provider")
    parser.add_argument("--size", type=float, default=1.0)
    options = parser.parse_args()
    row = next(row for row in ROWS if row.name == options.row)
    async with row.side(options.side, options.provider, options.size) as work:
        while await asyncio.to_thread(sys.stdin.readline):
            gc.collect()
            before = time.process_time()
            units = await work()
            spent = time.process_time() - before
            print(json.dumps(spent * row.scale / units), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
