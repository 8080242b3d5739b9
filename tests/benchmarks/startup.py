"""A whole `atb` process against a bare interpreter with the same three imports: time and memory."""

from __future__ import annotations

import os
import subprocess
import venv
from functools import partial
from pathlib import Path

from agent_task_board import Board
from tests.benchmarks.measuring import Measured, in_turn, row

ROOT = Path(__file__).resolve().parents[2]
TELL_PEAK = "sys.stderr.write(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')))"
BARE = "import sqlite3, json, argparse"
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith(("ATB_", "PYTHON"))}


def measure(directory: Path, runs: int) -> list[str]:
    """Return the rows of the table: each command's time and memory over the bare interpreter's."""
    binaries = _installed(directory / "venv")
    data = directory / "startup"
    board = Board(data)
    board.import_tasks([{"title": f"task {number}"} for number in range(3 * runs)])
    held = board.claim("bench", lease="7d")
    assert held is not None
    assert held.lease is not None
    board.close()
    atb = [str(binaries / "atb"), "--data-dir", str(data)]
    commands = {
        "bare": [str(binaries / "python"), "-c", BARE],
        "claim": [*atb, "claim", "--json", "--agent", "bench"],
        "heartbeat": [*atb, "heartbeat", held.task.id, "--token", held.lease.token],
        "list": [*atb, "list", "--limit", "30"],
    }
    times = in_turn({name: partial(_run, command) for name, command in commands.items()}, runs)
    bare = times.pop("bare")
    rows = [
        row(f"`atb {name}`, whole process", f"`{BARE}`", taken.milliseconds, bare.milliseconds, taken.over(bare))
        for name, taken in times.items()
    ]
    python = str(binaries / "python")
    nothing = _peak([python, "-c", f"import sqlite3, sys\n{TELL_PEAK}"])
    claim = _peak(
        [
            python,
            "-c",
            f"import sys; from agent_task_board.cli import main; main()\n{TELL_PEAK}",
            *commands["claim"][1:],
        ]
    )
    rows.append(
        row(
            "`atb claim`, peak memory",
            "`import sqlite3`",
            f"{claim.median / 1024:.1f} MiB",
            f"{nothing.median / 1024:.1f} MiB",
            claim.over(nothing),
        )
    )
    return rows


def _installed(place: Path) -> Path:
    """Install the wheel into a venv of its own, its bytecode compiled; return the folder of its programs."""
    venv.create(place, with_pip=True)
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--compile"]
    subprocess.run([*pip, str(ROOT)], check=True, env=ENVIRONMENT)
    return place / "bin"


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL)


def _peak(command: list[str]) -> Measured:
    """Return the peak memory of a command that tells it at its end, in KiB.

    The child tells it itself: what the parent is told counts the memory of the fork before the exec, too.
    """
    runs = [subprocess.run(command, check=True, env=ENVIRONMENT, capture_output=True) for _ in range(5)]
    return Measured([int(run.stderr.split()[-2]) for run in runs])
