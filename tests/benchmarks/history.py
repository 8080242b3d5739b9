"""Claim, list and board with a long history: tasks that are finished or archived must cost nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from agent_task_board import Board
from tests.benchmarks.growth import NOW, READY, ROWS
from tests.benchmarks.measuring import in_turn, row

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHOWN = 10_000
"""Finished tasks on every board: as many as the board shows at most."""

CALLS: dict[str, Callable[[Board], object]] = {
    "claim": lambda board: board.claim("bench"),
    "list of 100": lambda board: board.list_tasks(),
    "board": lambda board: board.snapshot(),
    "show": lambda board: board.show("0" * 22 + "0100"),
}


def measure(directory: Path, runs: int, *, history: int = 1_000_000) -> list[str]:
    """Return the rows of the table: each call on boards with a history over that on a board without one."""
    boards = {name: Board(directory / name) for name in ("plain", "finished", "archived")}
    for name, board in boards.items():
        _make(board, 0 if name == "plain" else history, archived=name == "archived")
    rows = []
    for what, call in CALLS.items():
        took = in_turn({name: lambda board=board: call(board) for name, board in boards.items()}, runs)  # type: ignore[misc]  # noqa: B023
        rows += [
            row(
                f"{what}, {history:,} {name}",
                f"{what}, no history",
                took[name].milliseconds,
                took["plain"].milliseconds,
                took[name].over(took["plain"]),
            )
            for name in ("finished", "archived")
        ]
    for board in boards.values():
        board.close()
    return rows


def _make(board: Board, history: int, *, archived: bool) -> None:
    board.add("first")
    base = {"now": NOW, "later": None, "priority": 0, "assignee": None, "delayed": 0}
    with closing(sqlite3.connect(board.path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        if history:
            connection.execute(ROWS, {**base, "status": "done", "rows": history})
        if archived:
            connection.execute("UPDATE task SET archived_at = ? WHERE status = 'done'", (NOW,))
        connection.execute(ROWS, {**base, "status": "done", "rows": SHOWN})
        connection.execute(ROWS, {**base, "status": "queued", "rows": READY})
        connection.execute("COMMIT")
