"""The commands for the board of a project: init, where."""

from __future__ import annotations

import os

from ..errors import InvalidInput, Unusable
from .command import Call, Command, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parsing import Parser


def _no_options(parser: Parser) -> None:
    del parser


def _init(call: Call) -> Reply:
    return Reply(create(call))


def create(call: Call, start: str | None = None) -> dict[str, object]:
    """Create the project's board, unless it has one; return ``{"data_dir", "created", "config", "timezone"}``.

    Without a named data directory it is ``.atb`` in the project's root, seen from ``start`` (default: the working
    directory).

    Raises:
        Unusable: a directory or file cannot be created; nothing of it is left behind.
    """
    from .. import config, places
    from ..service import Board

    found = call.config if start is None else config.load(data_dir=None, config=None, environ=os.environ, cwd=start)
    data_dir = found.data_dir
    if found.place is not None and not found.place.exists and found.place.why == places.DEFAULT:
        data_dir = os.path.join(found.place.root or start or os.getcwd(), places.HIDDEN)
    with Board(data_dir, settings=found.settings) as board:
        if board.exists():
            call.warn("the project already has a board")
            return {"data_dir": data_dir, "created": False, "config": found.file, "timezone": found.settings.timezone}
        board.create()
    file, zone = os.path.join(data_dir, config.IN_DATA_DIR), config.machine_zone()
    if os.path.lexists(file):
        return {"data_dir": data_dir, "created": True, "config": file, "timezone": found.settings.timezone}
    if zone is None:
        call.warn(f"the time zone of this machine is unknown; set timezone in {file}")
    config.init(file, timezone=zone)
    return {"data_dir": data_dir, "created": True, "config": file, "timezone": zone or found.settings.timezone}


def _where(call: Call) -> Reply:
    found = call.config
    place = found.place
    return Reply(
        {
            "data_dir": found.data_dir,
            "exists": _exists(found.data_dir),
            "why": found.values["data_dir"][1],
            "root": None if place is None else place.root,
            "config": found.file,
            "looked": [] if place is None else place.looked,
            "ignored": [warning for warning in found.warnings if " is ignored" in warning],
        }
    )


def _exists(data_dir: str) -> bool:
    from ..service import Board

    with Board(data_dir, create=False, read_only=True) as board:
        try:
            return board.exists()
        except (Unusable, InvalidInput):
            return False


COMMANDS = {
    "init": Command(
        _init,
        _no_options,
        "Create the board of this project.",
        "Creates `.atb` in the root of the repository (in the main checkout, from a linked worktree), or in the\n"
        "working directory outside of one, with a config.toml that has this machine's time zone. A project\n"
        "that has a board keeps it. `data` is {data_dir, created, config, timezone}.",
        ("atb init", "atb init --data-dir ~/boards/app"),
        needs_board=False,
    ),
    "where": Command(
        _where,
        _no_options,
        "Show which board is used here, and why.",
        "Searches as every command does: from the working directory upwards to the root of the repository or\n"
        "the home directory, in each directory for atb.toml, .atb and data. `data` is {data_dir, exists, why,\n"
        "root, config, looked, ignored}; `ignored` names configuration files that other users control.",
        ("atb where", "atb where --format table"),
        needs_board=False,
    ),
}
