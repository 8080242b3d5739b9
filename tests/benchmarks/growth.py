"""A claim on boards of all sizes: tasks that are queued, finished, blocked, delayed or others' must cost nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from agent_task_board import Board
from tests.benchmarks.measuring import in_turn, row

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOW, LATER = "2026-11-30T06:14:05.123+00:00", "2099-11-30T06:14:05.123+00:00"
READY = 1_000
"""Tasks that a claim may take, on every board."""

SPECIAL: dict[str, dict[str, Any]] = {
    "queued": {"priority": 0},
    "done": {"status": "done"},
    "delayed": {"delayed": 1},
    "assigned": {"assignee": "somebody else"},
    "blocked": {},
}
"""What sets the rows of each kind apart."""

ROWS = """
    WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < :rows)
    INSERT INTO task (id, title, status, priority, max_attempts, created_by, created_at, updated_at, finished_at,
                      assignee, not_before, delayed)
    SELECT printf('%026X', n + (SELECT count(*) FROM task)), 'task ' || n, :status, :priority, 3, 'bench', :now, :now,
           iif(:status = 'done', :now, NULL), :assignee, iif(:delayed, :later, NULL), :delayed
      FROM number"""


def boards(large: int, huge: int) -> dict[str, dict[str, int]]:
    """Return how many rows of which kind each board has beside its ready ones."""
    return {
        f"{READY:,} queued": {},
        f"{large:,} queued": {"queued": large - READY},
        f"{huge:,} queued": {"queued": huge - READY},
        f"{large:,} finished": {"done": large},
        f"{huge:,} finished": {"done": huge},
        f"behind {large:,} blocked": {"blocked": large},
        f"behind {large:,} delayed": {"delayed": large},
        f"behind {large:,} assigned elsewhere": {"assigned": large},
    }


def measure(directory: Path, runs: int, *, large: int = 100_000, huge: int = 1_000_000) -> list[str]:
    """Return the rows of the table: a claim through the service on each board over that on the smallest."""
    calls: dict[str, Callable[[], object]] = {}
    for number, (name, kinds) in enumerate(boards(large, huge).items()):
        place = directory / f"growth-{number}"
        _make(place, kinds)
        board = Board(place)
        calls[name] = lambda board=board: board.claim("bench")  # type: ignore[misc]
    took = in_turn(calls, runs)
    smallest = took[f"{READY:,} queued"]
    return [
        row(
            f"claim, {name}",
            f"claim, {READY:,} queued",
            measured.milliseconds,
            smallest.milliseconds,
            measured.over(smallest),
        )
        for name, measured in took.items()
        if measured is not smallest
    ]


def _make(place: Path, kinds: dict[str, int]) -> None:
    board = Board(place)
    first = board.add("what the blocked ones wait for", not_before=LATER)
    board.claim("somebody else")
    board.close()
    with closing(sqlite3.connect(place / "tasks.db", isolation_level=None)) as connection:
        connection.execute("BEGIN")
        base: dict[str, Any] = {
            "now": NOW,
            "later": LATER,
            "status": "queued",
            "priority": 5,
            "assignee": None,
            "delayed": 0,
        }
        for kind, rows in kinds.items():
            special: dict[str, Any] = SPECIAL[kind]
            connection.execute(ROWS, {**base, **special, "rows": rows})
            if kind == "blocked":
                connection.execute(
                    """
                    INSERT INTO dependency (task_seq, depends_on_seq, position)
                    SELECT task.seq, first.seq, 1 FROM task, task AS first WHERE first.id = ? AND task.seq <> first.seq
                    """,
                    (first.task.id,),
                )
        connection.execute(ROWS, {**base, "priority": 0, "rows": READY})
        connection.execute("COMMIT")
