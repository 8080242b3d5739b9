"""Waiting: how soon a waiter has the task that was added for it, and what waiters cost themselves and the writers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from agent_task_board import Board
from tests.benchmarks.measuring import Measured, row

WAITERS = 50
"""Processes that wait on the board whose writers are measured."""

_CLAIM = """
import sys, time
from agent_task_board import Board
board = Board(sys.argv[1])
print("ready", flush=True)
grant = board.claim(sys.argv[2], queues=[sys.argv[3]], wait="10m")
print(time.time(), flush=True)
"""


def measure(directory: Path, waits: int, *, waiters: int = WAITERS, idle: float = 30) -> list[str]:
    """Return the rows of the table: from ``add`` to ``claim``, the cost of an idle waiter, adds beside waiters."""
    place = directory / "waiting"
    with Board(place) as board:
        board.create()
        return [_from_add_to_claim(board, waits), _idle(board, idle), _adds_beside(board, waits * 10, waiters)]


def _from_add_to_claim(board: Board, waits: int) -> str:
    took = []
    for _ in range(waits):
        with _waiter(board, "ada", "wanted") as process:
            time.sleep(0.3)  # the waiter backs off meanwhile, as one does that waits for long
            board.add("wanted", queue="wanted")
            added = time.time()
            took.append(float(_line(process)) - added)
    measured = Measured(took)
    return row(
        "`add` returns until the waiting `claim` returns, p50, p90",
        "",
        f"{measured.median * 1e3:.0f}, {measured.percentile(90) * 1e3:.0f} ms",
    )


def _idle(board: Board, seconds: float) -> str:
    with _waiter(board, "ada", "nothing") as process:
        time.sleep(1)
        before = _processor_seconds(process.pid)
        time.sleep(seconds)
        used = _processor_seconds(process.pid) - before
        process.kill()
    return row(f"an idle waiter, {seconds:g} s", "one processor", f"{used / seconds:.2%}")


def _adds_beside(board: Board, adds: int, waiters: int) -> str:
    def add() -> Measured:
        took = []
        for number in range(adds):
            start = time.perf_counter()
            board.add(f"task {number}", queue="others")
            took.append(time.perf_counter() - start)
        return Measured(took)

    alone = add()
    processes = [_waiter(board, f"agent-{number}", "nothing") for number in range(waiters)]
    try:
        time.sleep(5)  # until all of them have backed off
        beside = add()
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    return row(
        f"`add`, {waiters} processes wait",
        "`add`, nobody waits",
        beside.milliseconds,
        alone.milliseconds,
        beside.over(alone),
    )


def _waiter(board: Board, agent: str, queue: str) -> subprocess.Popen[str]:
    """Start a process that waits for a task of a queue; return it once it does."""
    words = [sys.executable, "-c", _CLAIM, board.database.directory, agent, queue]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert _line(process) == "ready"
    return process


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
