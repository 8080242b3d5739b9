"""The commands that look after the board: tick, config, demo."""

from __future__ import annotations

import sys

from .. import config
from .command import Call, Command, Reply
from .reads import no_arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parsing import Parser


def _tick(call: Call) -> Reply:
    warnings: list[str] = []
    return Reply(call.board.tick(warnings=warnings), warnings=warnings)


def _config_arguments(parser: Parser) -> None:
    parser.add_argument("action", choices=["show", "init"], help="show what is in force, or write a commented file")
    parser.add_argument("file", metavar="FILE", nargs="?", help="with init: the file to write (default: ./atb.toml)")


def _config(call: Call) -> Reply:
    if call.args.action == "init":
        path = config.init(call.args.file or call.args.config or "atb.toml")
        return Reply({"path": path})
    if call.args.file is not None:
        from ..errors import InvalidInput

        raise InvalidInput("file: goes with init only", field="file")
    return Reply(config.show(call.config), page="config")


def _demo(call: Call) -> Reply:
    from ..demo import run

    played = run(call.args.data_dir, out=sys.stderr, quiet=call.args.quiet)
    return Reply(played, page="demo", warnings=[f"made a new board at {played['directory']}"])


COMMANDS = {
    "tick": Command(
        _tick,
        no_arguments,
        "Do what time alone brings about; for cron, every minute.",
        "Takes back expired leases and promotes delayed tasks (claims do that on their way, too), makes the tasks of\n"
        "schedules that are due, tells hooks what they are owed, and archives by age where that is configured. In\n"
        "small transactions; safe to run twice at once, and every minute. `data` is {expired, created, delivered,\n"
        "catchup_pending}: how many of each, and whether schedules have more to catch up with at the next tick.",
        ("atb tick", "* * * * * atb --data-dir /srv/board tick --quiet   # a line for crontab"),
    ),
    "config": Command(
        _config,
        _config_arguments,
        "Show the settings in force and where each comes from, or write a file with all of them.",
        "`show`: `data` is {file, values}, each value with its source. `init` writes a commented file that changes\n"
        "nothing until it is edited, and never overwrites one.",
        ("atb config show --format table", "atb config init", "atb config init ~/.config/atb.toml"),
        reads=True,
    ),
    "demo": Command(
        _demo,
        no_arguments,
        "Watch several agents empty a board of its own, some of them dying on the way.",
        "Loads an example project into a fresh directory, starts real worker processes, kills one, lets the lease\n"
        "of another run out, and proves from the history that every task was worked once and every stale holder\n"
        "refused. Takes about 15 seconds. The story goes to standard error, the proof to standard output.",
        ("atb demo", "atb demo --data-dir demo-board"),
    ),
}
