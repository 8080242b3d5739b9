"""The commands for the board of a project: init, where."""

from __future__ import annotations

import os

from .. import config, places
from ..errors import InvalidInput, Unusable
from .command import Call, Command, Reply, refuse_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parsing import Parser


def _no_options(parser: Parser) -> None:
    del parser


def _init(call: Call) -> Reply:
    found = call.config
    data_dir = found.data_dir
    if found.place is not None and found.place.is_default:
        project = found.place.project
        data_dir = places.hidden_in(config.working_directory() if project is None else project.root)[0]
    return Reply(create(call, found, data_dir))


def create(call: Call, found: config.Config, data_dir: str) -> dict[str, object]:
    """Create the board of a project, unless it exists; return ``{"data_dir", "created", "config", "timezone"}``.

    A new board in a project's own directory gets a ``config.toml`` with the time zone of this machine, so that it
    does not depend on who calls.

    Raises:
        Unusable: the directory cannot be created, or other users control it; nothing was created.
    """
    from ..service import Board

    if found.place is not None:
        refuse_directory(data_dir, places.why_not_in(data_dir))
    with Board(data_dir, create=True, settings=found.settings) as board:
        if board.exists():
            call.warn("the project already has a board")
            return {"data_dir": data_dir, "created": False, "config": found.file, "timezone": found.settings.timezone}
        board.create()
        call.report_board(board)
    file, zone = _write_config(call, found, data_dir)
    return {"data_dir": data_dir, "created": True, "config": file, "timezone": zone}


def _write_config(call: Call, found: config.Config, data_dir: str) -> tuple[str | None, str]:
    """Write the ``config.toml`` of a new board; return the file that applies to it, and its time zone."""
    file, zone, current = os.path.join(data_dir, config.IN_DATA_DIR), config.machine_zone(), found.settings.timezone
    if found.file is not None or os.path.lexists(file):  # a new file would hide the settings of the other one
        other = found.file or file
        if found.values["timezone"][1] == "default":
            call.warn(f"{other} applies, and has no timezone; the default is {current}")
        return other, current
    if zone is None:
        call.warn(f"the time zone of this machine is unknown; set timezone in {file}")
    try:
        config.init(file, timezone=zone)
    except (InvalidInput, Unusable) as error:  # the board is created, and works
        call.warn(f"no configuration file was created: {error.message}")
        return None, current
    return file, zone or current


def _where(call: Call) -> Reply:
    found = call.config
    place = found.place
    return Reply(
        {
            "data_dir": found.data_dir,
            "exists": _exists(found.data_dir),
            "why": found.values["data_dir"][1],
            "root": None if place is None or place.project is None else place.project.root,
            "config": found.file,
            "looked": [] if place is None else place.looked,
            "ignored": found.ignored,
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
        "root, config, looked, ignored}; `ignored` names files and boards that other users control, and settings\n"
        "that count only after `atb trust`.",
        ("atb where", "atb where --format table"),
        needs_board=False,
    ),
}
