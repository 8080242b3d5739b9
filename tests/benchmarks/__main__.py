"""Measure, and print the table of ``docs/benchmarks.md``."""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import tempfile
from pathlib import Path

from tests.benchmarks import contention, growth, startup


def main() -> None:
    """Run the measurements asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("what", nargs="*", help="startup, contention, growth (default: all)")
    parser.add_argument("--directory", help="where to make the boards: the disk that is measured (default: here)")
    parser.add_argument("--quick", action="store_true", help="few runs and small boards, to see that it works")
    args = parser.parse_args()
    unknown = set(args.what) - {"startup", "contention", "growth"}
    if unknown:
        parser.error(f"there is no measurement {', '.join(sorted(unknown))}")
    what = args.what or ["startup", "contention", "growth"]
    print(
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.system()}, "
        f"{os.cpu_count()} processors\n"
    )
    print("| what | against | this | that | ratio |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=args.directory or ".", prefix="benchmark-") as place:
        directory = Path(place)
        rows: list[str] = []
        if "startup" in what:
            rows += startup.measure(directory, 5 if args.quick else 60)
        if "contention" in what:
            rows += contention.measure(directory, 300 if args.quick else 3_000, 1 if args.quick else 5)
        if "growth" in what:
            size = {"large": 2_000, "huge": 5_000} if args.quick else {}
            rows += growth.measure(directory, 20 if args.quick else 300, **size)
        print("\n".join(rows))


if __name__ == "__main__":
    main()
