"""The server: the whole board of 10,000 tasks, the same unchanged, and small requests on one connection."""

from __future__ import annotations

import http.client
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

from agent_task_board import Board
from agent_task_board.board.snapshot import _OBJECT
from tests.benchmarks.measuring import Measured, in_turn, row

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = f"SELECT json_group_array(json_object({_OBJECT})) FROM task"
"""The least that could make the same text: the same columns of the same rows, in no order, without anything else."""


def measure(directory: Path, runs: int, *, tasks: int = 10_000) -> list[str]:
    """Return the rows of the table: a board as a whole process serves it, over what SQLite needs for its text."""
    place = directory / "http"
    board = Board(place)
    board.import_tasks(
        [{"title": f"Task {number}", "body": "x" * 300, "tags": ["a", "b"]} for number in range(tasks - 1)]
    )
    held = board.add("Touched", claim=True, agent="bench").to_dict()
    server = subprocess.Popen(
        [sys.executable, "-m", "agent_task_board", "serve", "--port", "0", "--quiet", "--data-dir", place],
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    host = json.loads(server.stdout.readline())["data"]["url"].removeprefix("http://").strip("/")
    connection = http.client.HTTPConnection(host)
    bare = sqlite3.connect(board.path)

    def get(path: str, expected: int = 200, **headers: str) -> http.client.HTTPResponse:
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        response.read()
        assert response.status == expected, response.status
        return response

    def touch() -> None:
        board.heartbeat(held["task"]["id"], held["lease"]["token"])

    try:
        with closing(bare), closing(connection):
            took = in_turn(
                {
                    "touch": touch,
                    "board": lambda: get("/api/board"),
                    "plain": lambda: bare.execute(PLAIN, {"now": "2026"}).fetchone(),
                },
                runs,
            )
            touch()
            tag = get("/api/board").headers["ETag"]
            small = in_turn(
                {
                    "304": lambda: get("/api/board", 304, If_None_Match=tag),
                    "health": lambda: get("/healthz"),
                    "task": lambda: get(f"/api/tasks/{held['task']['id']}"),
                },
                runs * 20,
            )
    finally:
        server.terminate()
        server.wait()
        board.close()
    return [
        row(
            f"`GET /api/board`, {tasks:,} tasks, just changed",
            "`json_group_array` of the same rows",
            took["board"].milliseconds,
            took["plain"].milliseconds,
            took["board"].over(took["plain"]),
        ),
        row(f"`GET /api/board`, {tasks:,} tasks, unchanged: 304, p50, p95", "", _spread(small["304"])),
        row("`GET /healthz`, kept connection, p50, p95", "", _spread(small["health"])),
        row("`GET /api/tasks/ID`, kept connection, p50, p95", "", _spread(small["task"])),
    ]


def _spread(measured: Measured) -> str:
    return f"{measured.percentile(50) * 1e3:.2f}, {measured.percentile(95) * 1e3:.2f} ms"
