"""The commands for maintenance: tick, doctor, config, demo."""

from __future__ import annotations

import sys

from .. import config
from ..errors import InvalidInput
from .command import Call, Command, Reply
from .reads import no_arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parsing import Parser


def _tick(call: Call) -> Reply:
    warnings: list[str] = []
    return Reply(call.board.tick(warnings=warnings), warnings=warnings)


def _doctor_arguments(parser: Parser) -> None:
    parser.option("--fix", "NAME", "make a repair that a finding suggests: counters, leftovers, permissions")


def _doctor(call: Call) -> Reply:
    from ..upkeep.doctor import refuse_unhealthy

    found = call.board.doctor(fix=call.args.fix, config=call.config.file, ignored=call.config.ignored)
    refuse_unhealthy(found)
    return Reply(found, page="doctor")


def _config_arguments(parser: Parser) -> None:
    parser.add_argument("action", choices=["show", "init"], help="show the current settings, or write a commented file")
    parser.add_argument("file", metavar="FILE", nargs="?", help="with init: the file to write (default: ./atb.toml)")


def _config(call: Call) -> Reply:
    if call.args.action == "init":
        path = config.init(call.args.file or call.args.config or "atb.toml")
        return Reply({"path": path})
    if call.args.file is not None:
        raise InvalidInput("file: requires `init`", field="file")
    call.warn(*(sentence for sentence in call.config.ignored if sentence not in call.config.warnings))
    return Reply(config.show(call.config), page="config")


def _demo(call: Call) -> Reply:
    from ..demo import run

    outcome = run(call.args.data_dir, out=sys.stderr, quiet=call.args.quiet)
    return Reply(outcome, page="demo", warnings=[f"created a board at {outcome['directory']}"])


COMMANDS = {
    "tick": Command(
        _tick,
        no_arguments,
        "Run time-based maintenance.",
        "Run it every minute from cron; docs/schedules.md has the line. It ends expired leases,\n"
        "promotes delayed tasks, creates the tasks of schedules that are due, delivers pending hook\n"
        "notifications, and archives old tasks if `archive_after` is set. It works in small transactions, and\n"
        "several ticks can run at the same time. `data` is {expired, created, delivered, catchup_pending}:\n"
        "three counts, and whether the next tick has more occurrences to catch up on.",
        ("atb tick", "atb tick --quiet"),
    ),
    "doctor": Command(
        _doctor,
        _doctor_arguments,
        "Check the board: file, history, counters, clock, disk.",
        "`data` is {findings, healthy}. A finding has {check, level, message, remedy, fix}; the level is ok,\n"
        "note, warning or error. If there is an error, the command is refused with `unusable` (exit 8), and\n"
        "`details` has all findings. It is read-only unless --fix names a repair that a finding suggests:\n"
        "then it makes a backup first, and `fixed` says what it did.",
        ("atb doctor --format table", "atb doctor --fix counters"),
    ),
    "config": Command(
        _config,
        _config_arguments,
        "Show the settings and their sources, or write a configuration file.",
        "For `show`, `data` is {file, values}, each value with its source. `init` writes a file in which\n"
        "every setting is commented out; it never overwrites a file.",
        ("atb config show --format table", "atb config init", "atb config init ~/.config/atb.toml"),
        reads=True,
    ),
    "demo": Command(
        _demo,
        no_arguments,
        "Run a demo: several agents, with simulated crashes.",
        "Imports an example project into a new board and starts real worker processes. It kills one and\n"
        "freezes another until its lease expires. Then it proves from the history that every task had one\n"
        "holder at a time and that every stale holder was refused. Takes about 15 seconds. Progress goes to\n"
        "standard error, the proof to standard output.",
        ("atb demo", "atb demo --data-dir demo-board"),
    ),
}
