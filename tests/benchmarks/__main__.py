"""Measure, and print the table of ``docs/benchmarks.md``."""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks import contention, growth, history, http, mcp, page, search, startup, waiting

if TYPE_CHECKING:
    from collections.abc import Callable

PARTS: dict[str, Callable[[Path, bool], list[str]]] = {
    "startup": lambda place, quick: startup.measure(place, 5 if quick else 60),
    "contention": lambda place, quick: contention.measure(place, 300 if quick else 3_000, 1 if quick else 5),
    "growth": lambda place, quick: growth.measure(
        place, 20 if quick else 300, **({"large": 2_000, "huge": 5_000} if quick else {})
    ),
    "history": lambda place, quick: history.measure(place, 3 if quick else 100, history=2_000 if quick else 1_000_000),
    "search": lambda place, quick: search.measure(place, 3 if quick else 30, tasks=2_000 if quick else 100_000),
    "http": lambda place, quick: http.measure(place, 3 if quick else 40, tasks=500 if quick else 10_000),
    "mcp": lambda place, quick: mcp.measure(place, 20 if quick else 400),
    "waiting": lambda place, quick: waiting.measure(
        place, 3 if quick else 20, **({"waiters": 5, "idle": 2} if quick else {})
    ),
    "page": lambda place, quick: page.measure(place, 2 if quick else 15, tasks=500 if quick else 10_000),
}
"""What is measured: takes a directory, and whether to be quick; returns rows of the table."""


def main() -> None:
    """Run the measurements asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("what", nargs="*", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--directory", help="where to make the boards: the disk that is measured (default: here)")
    parser.add_argument("--quick", action="store_true", help="few runs and small boards, to see that it works")
    args = parser.parse_args()
    unknown = set(args.what) - PARTS.keys()
    if unknown:
        parser.error(f"there is no measurement {', '.join(sorted(unknown))}")
    print(
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.system()}, "
        f"{os.cpu_count()} processors\n"
    )
    print("| what | against | this | that | ratio |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=args.directory or ".", prefix="benchmark-") as place:
        directory = Path(place)
        for name, measure in PARTS.items():
            if name in (args.what or PARTS):
                print("\n".join(measure(directory, args.quick)))


if __name__ == "__main__":
    main()
