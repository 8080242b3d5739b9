"""The commands that keep a board for long: archive, unarchive, backup, restore, doctor."""

from __future__ import annotations

from .command import Call, Command, Reply
from .leases import receipt_reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parsing import Parser


def _archive_arguments(parser: Parser) -> None:
    parser.option("--older-than", "LENGTH", "how long ago they were finished, such as 30d", required=True)
    parser.repeated("--status", "STATUS", "only tasks that are done, failed or cancelled; without it, all three")
    parser.flag("--dry-run", "only say how many it would be")
    parser.actor()


def _archive(call: Call) -> Reply:
    args = call.args
    older_than, actor = args.older_than, call.actor()
    return Reply(call.board.archive(older_than, status=args.status, dry_run=args.dry_run, actor=actor))


def _unarchive_arguments(parser: Parser) -> None:
    parser.task()
    parser.actor()


def _unarchive(call: Call) -> Reply:
    return receipt_reply(call, call.board.unarchive(call.args.id, actor=call.actor()), "unarchived")


def _backup_arguments(parser: Parser) -> None:
    parser.option("--output", "DIR", "where to put it (default: backups in the data directory)")
    parser.whole("--keep", "afterwards, remove our oldest backups there until N are left")


def _backup(call: Call) -> Reply:
    return Reply(call.board.backup(output=call.args.output, keep=call.args.keep))


def _restore_arguments(parser: Parser) -> None:
    parser.add_argument("zip", metavar="ZIP", help="the backup: what `atb backup` made")


def _restore(call: Call) -> Reply:
    from ..storage.db import SCHEMA_VERSION
    from ..upkeep.restore import restore

    made = restore(call.args.zip, call.config.data_dir)
    warnings = [f"made a new board at {made['path']}"]
    if made.pop("schema") < SCHEMA_VERSION:
        warnings.append("it has an older schema; run `atb tick` there once to bring it up to date")
    return Reply(made, warnings=warnings)


def _doctor_arguments(parser: Parser) -> None:
    parser.option("--fix", "NAME", "make the repair that a finding offers: counters, leftovers, permissions")


def _doctor(call: Call) -> Reply:
    from ..upkeep.doctor import refuse_unhealthy

    found = call.board.doctor(fix=call.args.fix, config=call.config.file)
    refuse_unhealthy(found)
    missing = [] if call.board.exists() else [f"there is no board at {call.board.path} yet"]
    return Reply(found, page="doctor", warnings=missing)


COMMANDS = {
    "archive": Command(
        _archive,
        _archive_arguments,
        "Put tasks out of sight that were finished long ago; nothing is deleted.",
        "Lists, the board and claims leave archived tasks out; `atb show`, `atb events` and `atb list --search TEXT`\n"
        "find them, and what depends on them still does. Works in small steps, beside others. `data` is {archived},\n"
        "how many. With `archive_after` in the configuration `atb tick` does it by itself.",
        ("atb archive --older-than 30d --dry-run", "atb archive --older-than 90d --status done --status cancelled"),
    ),
    "unarchive": Command(
        _unarchive,
        _unarchive_arguments,
        "Bring a task back from the archive.",
        "Its status stays; its age counts anew, so that it is not archived again at once. A task that is not in the\n"
        "archive is a conflict. `data` is {task}. `atb retry` brings a failed or cancelled task back, too.",
        ("atb unarchive 9F3K2A",),
    ),
    "backup": Command(
        _backup,
        _backup_arguments,
        "Put the board as it is now into a ZIP.",
        "Works beside any number of writers and keeps none waiting. The ZIP holds `tasks.db`, which was checked\n"
        "and opens alone, and `metadata.json`. `data` is {path, tasks, events, sha256}; the digest is that of\n"
        "`tasks.db`. With --keep also {removed}; only files named as ours are ever removed.",
        ("atb backup", "atb backup --output /srv/backups --keep 14"),
    ),
    "restore": Command(
        _restore,
        _restore_arguments,
        "Make a new board of a backup.",
        "The data directory must be empty or not there: a board in use is never touched. The backup is checked\n"
        "first (members, sizes, SHA-256, integrity, schema), and the board appears whole or not at all. `data` is\n"
        "{path, tasks, events}; `path` is the data directory.",
        ("atb restore /srv/backups/backup-20261130T061405Z.zip --data-dir restored",),
    ),
    "doctor": Command(
        _doctor,
        _doctor_arguments,
        "Look the board over: file, history, counters, clock, disk.",
        "`data` is {findings, healthy}; a finding has {check, level, message, remedy, fix}, its level is ok, note,\n"
        "warning or error. An error is `unusable`, exit 8, with all findings in `details`. Writes nothing, unless\n"
        "--fix names a repair that a finding offers; that comes after a backup, and `fixed` says what was done.",
        ("atb doctor --format table", "atb doctor --fix counters"),
    ),
}
