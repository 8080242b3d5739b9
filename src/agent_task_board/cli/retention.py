"""The commands for backup and archive: archive, unarchive, backup, restore."""

from __future__ import annotations

from ..errors import InvalidInput
from .command import Call, Command, Reply
from .leases import receipt_reply
from .several import for_each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parsing import Parser


def _archive_arguments(parser: Parser) -> None:
    parser.add_argument("ids", metavar="ID", nargs="*", help="finished tasks to archive, instead of --older-than")
    parser.option("--older-than", "LENGTH", "archive tasks that finished at least this long ago, such as 30d")
    parser.repeated("--status", "STATUS", "only tasks with this status: done, failed or cancelled (default: all three)")
    parser.flag("--dry-run", "count the tasks, but archive nothing")
    parser.actor()


def _archive(call: Call) -> Reply:
    args = call.args
    older_than, actor = args.older_than, call.actor()
    if args.ids:
        for option in ("older_than", "status", "dry_run"):
            if getattr(args, option):
                raise InvalidInput(f"{option}: not allowed with the ids of tasks", field=option)
        return for_each(call, lambda task: call.board.archive_task(task, actor=actor), "archived")
    if older_than is None:
        raise InvalidInput("older_than: missing", hint="Pass --older-than LENGTH, or ids of tasks.", field="older_than")
    return Reply(call.board.archive(older_than, status=args.status, dry_run=args.dry_run, actor=actor))


def _unarchive_arguments(parser: Parser) -> None:
    parser.task()
    parser.actor()


def _unarchive(call: Call) -> Reply:
    return receipt_reply(call, call.board.unarchive(call.args.id, actor=call.actor()), "unarchived")


def _backup_arguments(parser: Parser) -> None:
    parser.option("--output", "DIR", "write the backup to this directory (default: backups in the data directory)")
    parser.whole("--keep", "then delete the oldest backups in that directory until N are left")


def _backup(call: Call) -> Reply:
    if call.args.output is not None and call.args.output.lower().endswith(".zip"):
        raise InvalidInput(
            f"output: a directory, not a file: {call.args.output[:200]}",
            hint="The ZIP gets a name with the time in it; pass the directory for it.",
            field="output",
        )
    return Reply(call.board.backup(output=call.args.output, keep=call.args.keep))


def _restore_arguments(parser: Parser) -> None:
    parser.add_argument("zip", metavar="ZIP", help="the backup file, as created by `atb backup`")


def _restore(call: Call) -> Reply:
    from ..storage.db import SCHEMA_VERSION
    from ..upkeep.restore import restore

    restored = restore(call.args.zip, call.config.data_dir)
    warnings = [f"created a board at {restored['path']}"]
    if restored.pop("schema") < SCHEMA_VERSION:
        warnings.append("the board has an older schema; run `atb tick` on it once to migrate it")
    return Reply(restored, warnings=warnings)


COMMANDS = {
    "archive": Command(
        _archive,
        _archive_arguments,
        "Archive tasks that finished long ago.",
        "Nothing is deleted. Lists, the board and claims leave out archived tasks; `atb show`, `atb events`\n"
        "and `atb list --search TEXT` still find them, and dependencies on them still count. The command\n"
        "works in small steps while others use the board. `data` is {archived}, the number of tasks; with one\n"
        "ID {task}, with several {results}, as `atb cancel` has. If\n"
        "`archive_after` is set in the configuration, `atb tick` archives automatically.",
        (
            "atb archive 9F3K2A",
            "atb archive --older-than 30d --dry-run",
            "atb archive --older-than 90d --status done --status cancelled",
        ),
    ),
    "unarchive": Command(
        _unarchive,
        _unarchive_arguments,
        "Move a task back out of the archive.",
        "The status does not change. Its age counts from now, so that it is not archived again at once.\n"
        "Refused with `conflict` (exit 4) if the task is not archived. `data` is {task}. `atb retry` also\n"
        "unarchives a failed or cancelled task.",
        ("atb unarchive 9F3K2A",),
    ),
    "backup": Command(
        _backup,
        _backup_arguments,
        "Back up the board to a ZIP file.",
        "Safe while others write, and blocks nobody. The ZIP contains `tasks.db`, which is verified and\n"
        "usable on its own, and `metadata.json`. `data` is {path, tasks, events, sha256}; the digest is that\n"
        "of `tasks.db`. With --keep, `data` also has {removed}; only backups of this board are ever deleted,\n"
        "so boards can share a directory.",
        ("atb backup", "atb backup --output /srv/backups --keep 14"),
    ),
    "restore": Command(
        _restore,
        _restore_arguments,
        "Restore a backup into a new directory.",
        "The data directory must be empty or missing, so that an existing board is never overwritten. The\n"
        "backup is checked first (members, sizes, SHA-256, integrity, schema). The board is created\n"
        "completely or not at all. `data` is {path, tasks, events}; `path` is the data directory.",
        ("atb restore /srv/backups/backup-20261130T061405Z-3f9a2c4177d01e5b.zip --data-dir restored",),
    ),
}
