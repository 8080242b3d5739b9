"""What ``atb`` does without a command: the board at a glance, and the version."""

from __future__ import annotations

import os
import sys

from .command import Call, Command, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parsing import Parser

NAMED = 4
"""The most tasks with each status that needs a person that are named."""


def _no_arguments(parser: Parser) -> None:
    """Add nothing: there are only the options of every command."""


def _board(call: Call) -> Reply:
    board = call.board
    data: dict[str, object] = {"path": os.path.abspath(board.path), "exists": board.exists()}
    if data["exists"]:
        stats = board.stats(days=1)
        needing = [
            *board.list_tasks(status=["review"], limit=NAMED).tasks,
            *board.list_tasks(stuck=True, limit=NAMED).tasks,
            *board.list_tasks(status=["failed"], limit=NAMED).tasks,
        ]
        data |= {
            "by_status": stats["by_status"],
            "ready": stats["ready"],
            "blocked": stats["blocked"],
            "stuck": stats["stuck"],
            "lease_expired": stats["lease_expired"],
            "needs_you": [
                {"id": task.id, "status": task.status, "stuck": task.stuck, "title": task.title} for task in needing
            ],
        }
    return Reply(data, page="home")


def _version(_: Call) -> Reply:
    from .._version import __version__
    from ..storage.db import SQLITE_VERSION

    python = ".".join(map(str, sys.version_info[:3]))
    return Reply({"version": __version__, "python": python, "sqlite": ".".join(map(str, SQLITE_VERSION))})


BOARD = Command(_board, _no_arguments, "Show the board at a glance.", "", (), reads=True, needs_board=False)
VERSION = Command(_version, _no_arguments, "Print the version.", "", ())
