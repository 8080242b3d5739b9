"""``python -m tests.proof``: one run, its report on standard output, exit code 1 where something was found."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.proof.run import as_text, prove


def main() -> int:
    """Run it once."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long callers work (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="of the random choices (default: 1)")
    parser.add_argument("--report", type=Path, help="write the report to this file, too")
    parser.add_argument("--keep", type=Path, help="leave board and journals in this new directory")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        directory = given.keep or Path(temporary)
        directory.mkdir(parents=True, exist_ok=given.keep is None)
        report = prove(directory, seconds=given.seconds, seed=given.seed)
    text = as_text(report)
    if given.report is not None:
        given.report.write_text(text)
    sys.stdout.write(text)
    return 1 if report["violations"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
