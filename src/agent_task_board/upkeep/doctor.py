"""Look a board over: what is wrong with it, and what is to be done about each thing.

Looking writes nothing. A repair is made only when it is asked for by name, and after a backup.
"""

from __future__ import annotations

import os
import shlex
import stat
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from itertools import groupby
from operator import itemgetter

from .. import inputs, instants
from ..board.history import difference, fold
from ..board.refusals import cycle
from ..board.rows import COLUMNS, NAMES
from ..errors import BoardError, Busy, Unusable
from ..storage import copies, schema
from ..storage.db import FILE, SCHEMA_VERSION, SQLITE_VERSION, Database, Error, until_unchanged
from ..storage.filesystem import shared_type
from ..storage.workdir import leftovers, sweep
from .backup import FOLDER, backup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from ..board.core import Core
    from ..storage.db import Connection, Row

    Finding = dict[str, Any]

OK, NOTE, WARNING, ERROR = "ok", "note", "warning", "error"
LEVELS = (OK, NOTE, WARNING, ERROR)
"""How bad a finding is; a board with an ``error`` is not healthy."""

NAMED = 5
"""Tasks that one finding names."""
LARGE_LOG = 256 << 20
"""Bytes of a write-ahead log that is no longer a matter of course."""
STUCK = instants.HOUR
FROM_A_BACKUP = "Stop all writers and restore the newest backup that is whole: `atb restore ZIP --data-dir NEW`."
BY_HAND = "If nobody needs it, stop all writers and take it away: `sqlite3 {path} {statement}`."
REPORT = "Nothing should be able to do this; please report it, with the output of `atb doctor`."


def doctor(
    core: Core,
    fix: str | None,
    config: str | os.PathLike[str] | None,
    *,
    check_schedule: Callable[[Core, Row], None],
) -> dict[str, Any]:
    """Do what ``Board.doctor`` promises; ``check_schedule`` refuses a stored schedule that cannot create tasks."""
    if fix is not None:
        inputs.one_of(fix, "fix", FIXES)
    checkup = _Checkup(core, None if config is None else os.fspath(config), check_schedule)
    found = checkup.run()
    if fix is None:
        return found
    fixed: dict[str, Any] = {"name": fix, "backup": None, "did": []}
    if any(finding["fix"] == fix for finding in found["findings"]):
        if core.exists():
            fixed["backup"] = backup(core)["path"]
        fixed["did"] = FIXES[fix](checkup)
    return {**checkup.run(), "fixed": fixed}


class _Checkup:
    """One run of all checks."""

    def __init__(self, core: Core, config: str | None, check_schedule: Callable[[Core, Row], None]) -> None:
        self.core = core
        self.check_schedule = check_schedule
        self.directory = core.database.directory
        self.path = core.database.path
        self.now = core.clock()
        self.configs = {os.path.join(self.directory, "config.toml"), *([os.path.abspath(config)] if config else [])}

    def run(self) -> dict[str, Any]:
        """Return ``{"findings", "healthy"}``."""
        findings = list(_sqlite(SQLITE_VERSION))
        for check in (_file_system, _permissions, _log, _unfinished, _config):
            findings += check(self)
        findings += until_unchanged(lambda: list(self._within()), self.core.settings.busy_timeout / 1_000)
        return {"findings": findings, "healthy": all(finding["level"] != ERROR for finding in findings)}

    def _within(self) -> Iterator[Finding]:
        """Look into the file, in one read transaction, so that all checks see the same board."""
        database = Database(self.directory, read_only=True, busy_timeout=self.core.settings.busy_timeout / 1_000)
        try:
            if not database.exists():
                yield _finding("file", NOTE, f"there is no board at {self.path} yet")
                return
            session = database.session()
            tx = session.connection
            copies.distrust(tx)
            tx.execute("BEGIN")
            version = session.check_identity()
            tx.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except Busy:
            database.close()
            raise
        except BoardError as error:
            yield _finding("file", ERROR, error.message, error.hint)
            database.close()
            return
        except Error as error:
            yield _finding("file", ERROR, f"{self.path}: {error}", FROM_A_BACKUP)
            database.close()
            return
        try:
            if version == 0:
                yield _finding("file", NOTE, f"{self.path} has no tables yet", "The first `atb add` makes them.")
                return
            if version < SCHEMA_VERSION:
                text = f"{self.path} has schema {version}, older than this program's {SCHEMA_VERSION}"
                yield _finding("file", WARNING, text, "Run `atb tick` once: it brings the board up to date.")
            else:
                yield _finding("file", OK, f"{self.path} is a board of schema {version}")
            if other_names := database.hard_links():
                yield _finding("file", ERROR, other_names.message, other_names.hint)
            for name, check in _OF_THE_FILE.items():
                yield from _guarded(name, check, tx)
            yield from _guarded("schema", _schema, tx, version, self.path)
            if not _has_our_tables(tx, version):  # a view in place of a table may never end
                return
            for name, check in _OF_ANY_SCHEMA.items():
                yield from _guarded(name, check, tx)
            yield from _guarded("clock", _clock, tx, self.now)
            if version == SCHEMA_VERSION:
                for name, check in _OF_THIS_SCHEMA.items():
                    yield from _guarded(name, check, tx)
                yield from _guarded("schedules", _schedules, tx, self)
                yield from _guarded("outbox", _outbox, tx, self.now)
        finally:
            session.roll_back()
            database.close()
            session.refuse_changed()


def _guarded(name: str, check: Callable[..., Iterable[Finding]], *arguments: Any) -> list[Finding]:
    """Run one check; a board so damaged that it cannot be read is a finding, too."""
    try:
        return list(check(*arguments)) or [_finding(name, OK, _FINE[name])]
    except (Error, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        return [_finding(name, ERROR, f"cannot be read: {type(error).__name__}: {error}", FROM_A_BACKUP)]


def _finding(check: str, level: str, message: str, remedy: str | None = None, fix: str | None = None) -> Finding:
    return {"check": check, "level": level, "message": message, "remedy": remedy, "fix": fix}


# Around the file


def _sqlite(numbers: tuple[int, ...]) -> Iterator[Finding]:
    version = ".".join(map(str, numbers))
    if _has_reset_fault(numbers):
        yield _finding(
            "sqlite",
            WARNING,
            f"SQLite {version} can damage a board when several processes checkpoint its log at once",
            "Use a Python with SQLite 3.51.3 or newer (or 3.50.7, 3.44.6), keep backups, and run no checkpoints.",
        )
    else:
        yield _finding("sqlite", OK, f"SQLite {version}")


def _has_reset_fault(version: tuple[int, ...]) -> bool:
    """Say whether a version has the WAL-reset fault: 3.7.0 to 3.51.2, but for two lines that were mended."""
    mended = (3, 44, 6) <= version < (3, 45) or (3, 50, 7) <= version < (3, 51)
    return (3, 7, 0) <= version < (3, 51, 3) and not mended


def _file_system(checkup: _Checkup) -> Iterator[Finding]:
    kind = shared_type(checkup.directory)
    if kind is None:
        yield _finding("filesystem", OK, "the data directory is on a local file system, as far as can be told")
    else:
        text = f"{checkup.directory} is on a shared file system ({kind}), where a board loses what is written"
        yield _finding("filesystem", ERROR, text, "Move the data directory to a local disk.")


def _permissions(checkup: _Checkup) -> Iterator[Finding]:
    fine = True
    for path in _ours(checkup):
        try:
            found = os.stat(path)
        except OSError:
            continue
        what, unwanted = ("written", 0o022) if stat.S_ISDIR(found.st_mode) else ("read or written", 0o077)
        if os.name == "posix" and found.st_mode & unwanted:
            fine = False
            text = f"{path} can be {what} by other users ({stat.filemode(found.st_mode)})"
            yield _finding("permissions", WARNING, text, "`atb doctor --fix permissions`", "permissions")
        if not os.access(path, os.R_OK | os.W_OK):
            fine = False
            text = f"{path} cannot be read and written by this user"
            yield _finding("permissions", WARNING, text, "Work as the user who owns it, or give it to this one.")
    if fine:
        yield _finding("permissions", OK, "the board is this user's alone")


def _ours(checkup: _Checkup) -> list[str]:
    names = (FILE, f"{FILE}-wal", f"{FILE}-shm", "turnstile.queue", "turnstile.turn", FOLDER)
    return [checkup.directory, *(os.path.join(checkup.directory, name) for name in names)]


def _log(checkup: _Checkup) -> Iterator[Finding]:
    size = _size_of(f"{checkup.path}-wal")  # asked of the directory: to open the file would drop SQLite's locks
    if size is not None and _size_of(checkup.path) is None:
        text = f"{checkup.path}-wal is there without its board, and holds the latest changes"
        yield _finding("log", ERROR, text, "Put the tasks.db that it belongs to back beside it, or restore a backup.")
    elif size is not None and size > LARGE_LOG:
        text = f"the write-ahead log has {size >> 20:,} MiB, after a large import, or while somebody reads for long"
        yield _finding("log", NOTE, text, "If it grows, stop servers and readers; the last one to close empties it.")
    elif _size_of(f"{checkup.path}-journal") is not None:
        text = "a rollback journal is there: a process was killed, or is writing"
        yield _finding("log", NOTE, text, "The next command that writes cleans up.")
    else:
        yield _finding("log", OK, f"{size or 0:,} bytes of write-ahead log")


def _size_of(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def _unfinished(checkup: _Checkup) -> Iterator[Finding]:
    left = _left(checkup)
    for path in left:
        text = f"{path} was left behind by a backup or restore that was killed"
        yield _finding("unfinished", NOTE, text, "`atb doctor --fix leftovers`", "leftovers")
    if not left:
        yield _finding("unfinished", OK, "no backup or restore was left unfinished")


def _left(checkup: _Checkup) -> list[str]:
    return [path for place in _places(checkup) for path in leftovers(place)]


def _places(checkup: _Checkup) -> list[str]:
    return [checkup.directory, os.path.join(checkup.directory, FOLDER)]


def _config(checkup: _Checkup) -> Iterator[Finding]:
    open_ones = [path for path in sorted(checkup.configs) if _shows_secret(path)]
    for path in open_ones:
        text = f"{path} holds a webhook_secret, and other users can read it"
        yield _finding(
            "config", WARNING, text, "`atb doctor --fix permissions`, and choose a new secret", "permissions"
        )
    if not open_ones:
        yield _finding("config", OK, "no configuration file shows a secret to other users")


def _shows_secret(path: str) -> bool:
    import tomllib

    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            hooks = tomllib.load(file).get("hooks")
    except (OSError, ValueError):
        return False
    secret = isinstance(hooks, dict) and hooks.get("webhook_secret")
    return bool(secret) and os.name == "posix" and mode & 0o077 != 0


# Within the file


def _integrity(tx: Connection) -> Iterator[Finding]:
    found = copies.faults(tx, NAMED)
    if found:
        yield _finding("integrity", ERROR, "the file is damaged: " + "; ".join(found)[:1_000], FROM_A_BACKUP)


def _foreign_keys(tx: Connection) -> Iterator[Finding]:
    found = copies.broken_references(tx)
    if found:
        where = ", ".join(f"{table} ({rows})" for table, rows in found.items())
        yield _finding("foreign_keys", ERROR, f"rows that refer to nothing: {where}", FROM_A_BACKUP)


def _schema(tx: Connection, version: int, path: str) -> Iterator[Finding]:
    for kind, type_, name in schema.faults(tx, version):
        text = schema.in_words(kind, type_, name)
        if kind == schema.TOLERATED:
            yield _finding("schema", NOTE, text, "Nothing, if somebody needs it; it makes writing a little slower.")
        elif kind == schema.ADDED:
            statement = f"DROP {type_.upper()} " + '"{}"'.format(name.replace('"', '""'))
            remedy = BY_HAND.format(path=shlex.quote(path), statement=shlex.quote(statement))
            level = ERROR if type_ == "trigger" else WARNING  # it takes part in every write
            yield _finding("schema", level, f"{text}, and keeps the board from being backed up", remedy)
        else:
            yield _finding("schema", ERROR, text, FROM_A_BACKUP)


def _has_our_tables(tx: Connection, version: int) -> bool:
    try:
        return not any(
            type_ == "table" and kind not in (schema.ADDED, schema.TOLERATED)
            for kind, type_, _ in schema.faults(tx, version)
        )
    except Error:
        return True  # damaged; each check says so itself


_UNTOLD = """
    SELECT id FROM task
      JOIN (SELECT task_seq AS of, max(seq) AS newest FROM event
             WHERE kind NOT IN ('commented', 'hook_delivered', 'hook_failed') GROUP BY task_seq) ON of = task.seq
      JOIN event ON event.seq = newest
     WHERE event.kind <> 'imported' AND event.at <> task.updated_at"""
"""SQL: tasks that changed at an instant of which no event tells; an import brings that instant along."""


def _events(tx: Connection) -> Iterator[Finding]:
    count, first, last = tx.execute("SELECT count(*), min(seq), max(seq) FROM event").fetchone()
    if count and (first, last) != (1, count):
        text = f"{count:,} events are there, numbered {first:,} to {last:,}: some are lost"
        yield _finding("events", ERROR, text, FROM_A_BACKUP)
    if ids := _some(tx, _UNTOLD):
        yield _finding("events", ERROR, f"the newest events of a task are lost: {ids}", FROM_A_BACKUP)


def _folds(tx: Connection) -> Iterator[Finding]:
    """Hold every task against its history; one task and one event at a time, however many there are."""
    wrong: list[str] = []
    count = 0
    events = tx.execute("SELECT task_seq, seq, kind, data FROM event ORDER BY task_seq, seq")
    histories = groupby(events, key=itemgetter(0))
    owner, history = next(histories, (None, ()))
    for row in tx.execute(f"SELECT {COLUMNS} FROM task ORDER BY seq"):
        task = dict(zip(NAMES, row, strict=True))
        while owner is not None and owner < task["seq"]:
            owner, history = next(histories, (None, ()))
        said: str | None = "has no history"
        if owner == task["seq"]:
            state, said = fold((seq, kind, data) for _, seq, kind, data in history)
            fields = difference(state, task)
            said = f"differs from its history in {', '.join(fields)}" if fields else said
        if said:
            count += 1
            wrong += [f"{task['id']} {said}"][: NAMED - len(wrong)]
    if count:
        more = f"; and {count - len(wrong):,} more" if count > len(wrong) else ""
        yield _finding("folds", ERROR, "; ".join(wrong) + more, FROM_A_BACKUP)


def _attempts(tx: Connection) -> Iterator[Finding]:
    following = """
        SELECT task_seq, number, fence, claimed_at, lag(fence) OVER task AS fence_before,
               lag(ended_at) OVER task AS ended_before, lag(number) OVER task AS number_before
          FROM attempt WINDOW task AS (PARTITION BY task_seq ORDER BY number)"""
    id_of = "(SELECT id FROM task WHERE seq = task_seq)"
    for what, query in (
        (
            "an attempt began before the one before it had ended, or under no newer fence",
            f"""
            SELECT {id_of} FROM ({following})
             WHERE number_before IS NOT NULL AND (ended_before IS NULL OR fence <= fence_before)""",
        ),
        (
            "an attempt is open and nobody holds the task, or the other way round",
            """
            SELECT id FROM task
             WHERE (status IN ('claimed', 'running'))
                <> (SELECT count(*) FROM attempt WHERE task_seq = task.seq AND outcome IS NULL)""",
        ),
        (
            "an attempt has a newer fence than its task",
            f"SELECT {id_of} FROM attempt WHERE fence > (SELECT fence FROM task WHERE seq = task_seq)",
        ),
    ):
        if ids := _some(tx, query):
            yield _finding("attempts", ERROR, f"{what}: {ids}", REPORT)
    if ids := _some(tx, f"SELECT {id_of} FROM ({following}) WHERE claimed_at < ended_before"):
        back = """
            SELECT EXISTS (SELECT 1 FROM (SELECT at, lag(at) OVER (ORDER BY seq) AS before FROM event)
                            WHERE at < before)"""
        if tx.execute(back).fetchone()[0]:
            text = f"leases that overlap by the clock, which was set back, or came with an import: {ids}"
            yield _finding("attempts", NOTE, text, "Nothing, if the clock of this machine is right now.")
        else:
            yield _finding("attempts", ERROR, f"leases that overlap: {ids}", REPORT)


def _dependencies(tx: Connection) -> Iterator[Finding]:
    forward = "SELECT EXISTS (SELECT 1 FROM dependency WHERE depends_on_seq > task_seq)"
    if not tx.execute(forward).fetchone()[0]:
        return  # each waits for older ones only
    graph: TopologicalSorter[int] = TopologicalSorter()
    for task, other in tx.execute("SELECT task_seq, depends_on_seq FROM dependency"):
        graph.add(task, other)
    try:
        graph.prepare()
    except CycleError as error:
        seqs = error.args[1][::-1]
        ids = [tx.execute("SELECT id FROM task WHERE seq = ?", (seq,)).fetchone()[0] for seq in seqs]
        text = f"tasks wait for each other: {cycle(ids)}"
        yield _finding("dependencies", ERROR, text, "`atb update ID --drop-depends-on ID` on one of them.")


_TALLY = (
    "SELECT queue, iif(archived_at IS NULL, status, 'archived') AS status, count(*) AS tasks FROM task GROUP BY 1, 2"
)
_OPEN = """
    (SELECT count(*) FROM dependency JOIN task AS other ON other.seq = depends_on_seq
      WHERE task_seq = task.seq AND other.status <> 'done')"""
_DONE_BY = """
    SELECT agent, sum(outcome IS 'completed') AS completed, sum(outcome IS 'failed') AS failed,
           sum(outcome IS 'expired') AS expired
      FROM attempt GROUP BY agent"""


_WRITES = """
    SELECT count(*) FROM event LEFT JOIN
           (SELECT task_seq, max(seq) AS since FROM event WHERE kind = 'imported' GROUP BY task_seq) USING (task_seq)
     WHERE seq >= coalesce(since, 0) AND kind NOT IN ('hook_delivered', 'hook_failed')"""
"""SQL: the least that the board's revision can be. What an import brought along was counted on another board."""
_LEAP = 1 << 32


def _revision(tx: Connection) -> tuple[int | None, int]:
    """Return the revision, ``None`` if it is lost, and the least that it can be."""
    row = tx.execute("SELECT revision FROM board").fetchone()
    return None if row is None else row[0], tx.execute(_WRITES).fetchone()[0]


def _counters(tx: Connection) -> Iterator[Finding]:
    kept = "SELECT queue, status, tasks FROM tally WHERE tasks <> 0"
    off = f"SELECT * FROM ({_TALLY} EXCEPT {kept}) UNION SELECT * FROM ({kept} EXCEPT {_TALLY})"
    counts = {
        "the tasks of a queue are counted wrong": _some(tx, f"SELECT queue FROM ({off})"),
        "open dependencies are counted wrong": _some(tx, f"SELECT id FROM task WHERE open_dependencies <> {_OPEN}"),
        "the attempts of an agent are counted wrong": _some(
            tx,
            f"""
            SELECT name FROM agent LEFT JOIN ({_DONE_BY}) AS seen ON seen.agent = name
             WHERE (agent.completed, agent.failed, agent.expired)
                IS NOT (coalesce(seen.completed, 0), coalesce(seen.failed, 0), coalesce(seen.expired, 0))""",
        ),
    }
    revision, least = _revision(tx)
    if revision is None or revision < least:
        said = "lost" if revision is None else f"{revision:,}, below the {least:,} that its events ask for"
        yield _finding(
            "counters", ERROR, f"the revision of the board is {said}", "`atb doctor --fix counters`", "counters"
        )
    for what, which in counts.items():
        if which:
            yield _finding("counters", ERROR, f"{what}: {which}", "`atb doctor --fix counters`", "counters")


def _clock(tx: Connection, now: int) -> Iterator[Finding]:
    newest = tx.execute("SELECT max(at) FROM event").fetchone()[0]
    ahead = 0 if newest is None else instants.from_text(newest) - now
    if ahead > instants.SECOND:
        text = f"the newest event is {instants.format_length(ahead)} ahead of this machine's clock"
        yield _finding("clock", WARNING, text, "Set the clock: leases, waits and schedules go by it.")


def _schedules(tx: Connection, checkup: _Checkup) -> Iterator[Finding]:
    for row in tx.execute("SELECT name, cron, zone, task, next_at, last_at FROM schedule ORDER BY key"):
        try:
            checkup.check_schedule(checkup.core, row)
        except BoardError as error:
            wrong = error.message
        except (ValueError, TypeError, RecursionError) as error:
            wrong = f"{type(error).__name__}: {error}"
        else:
            continue
        remedy = f"`atb schedule remove {shlex.quote(row['name'])}`, then add it again."
        yield _finding("schedules", ERROR, f"the schedule {row['name']} creates no tasks: {wrong}", remedy)


def _outbox(tx: Connection, now: int) -> Iterator[Finding]:
    since = instants.to_text(now - STUCK)
    stuck, failed = tx.execute(
        """
        SELECT (SELECT count(*) FROM outbox WHERE status = 'pending' AND due_at <= ?),
               (SELECT count(*) FROM outbox WHERE status = 'failed')""",
        (since,),
    ).fetchone()
    if stuck:
        text = f"{stuck:,} deliveries to hooks have been due for more than {instants.format_length(STUCK)}"
        yield _finding("outbox", WARNING, text, "Let cron run `atb tick` every minute, and see that hooks are enabled.")
    if failed:
        yield _finding("outbox", NOTE, f"{failed:,} deliveries to hooks were given up", "See what the hooks answered.")


def _some(tx: Connection, query: str) -> str:
    """Return the first values that a query gives, as text; empty if there are none."""
    found = [str(row[0]) for row in tx.execute(f"SELECT DISTINCT * FROM ({query}) LIMIT {NAMED + 1}")]
    return ", ".join(found[:NAMED]) + (", and more" if len(found) > NAMED else "")


_OF_THE_FILE: dict[str, Callable[[Connection], Iterable[Finding]]] = {
    "integrity": _integrity,
    "foreign_keys": _foreign_keys,
}

_OF_ANY_SCHEMA: dict[str, Callable[[Connection], Iterable[Finding]]] = {
    "events": _events,
    "dependencies": _dependencies,
}
"""Checks that need no column of a later schema than the first."""

_OF_THIS_SCHEMA: dict[str, Callable[[Connection], Iterable[Finding]]] = {
    "folds": _folds,
    "attempts": _attempts,
    "counters": _counters,
}

_FINE = {
    "integrity": "SQLite finds the file whole",
    "foreign_keys": "every reference leads somewhere",
    "schema": "tables, indexes and triggers are as this program makes them",
    "events": "the numbers of the events have no gap",
    "dependencies": "no tasks wait for each other",
    "clock": "the clock is not behind the newest event",
    "folds": "every task is what its events say",
    "attempts": "no two leases of a task overlap",
    "counters": "every counter is right",
    "schedules": "every schedule can be read",
    "outbox": "no delivery to a hook is stuck",
}

CHECKS = ("sqlite", "filesystem", "permissions", "log", "unfinished", "config", "file", *_FINE)


# Repairs


def _fix_counters(checkup: _Checkup) -> list[str]:
    with checkup.core.database.write() as tx:
        revision, least = _revision(tx)
        lost = revision is None or revision < least
        if lost:  # above any that was given out: whoever has seen one compares it for equality
            tx.execute(
                "INSERT OR REPLACE INTO board (id, revision) VALUES (1, ?)", (max(revision or 0, least) + _LEAP,)
            )
        tx.execute("DELETE FROM tally")
        tx.execute(f"INSERT INTO tally (queue, status, tasks) {_TALLY}")
        tasks = tx.execute(
            f"UPDATE task SET open_dependencies = {_OPEN} WHERE open_dependencies <> {_OPEN} RETURNING seq"
        ).fetchall()
        agents = tx.execute(
            f"""
            UPDATE agent
               SET (completed, failed, expired) =
                   (SELECT coalesce(sum(completed), 0), coalesce(sum(failed), 0), coalesce(sum(expired), 0)
                      FROM ({_DONE_BY}) AS seen WHERE seen.agent = name)
            RETURNING key
            """
        ).fetchall()
    return [
        "counted the tasks of every queue anew",
        f"counted the open dependencies of {len(tasks):,} tasks anew",
        f"counted the attempts of {len(agents):,} agents anew",
        *(["set the revision of the board to one that was never given out"] if lost else []),
    ]


def _fix_leftovers(checkup: _Checkup) -> list[str]:
    return [f"removed {path}" for place in _places(checkup) for path in sweep(place)]


def _fix_permissions(checkup: _Checkup) -> list[str]:
    did = []
    for path in [*_ours(checkup), *filter(_shows_secret, sorted(checkup.configs))]:
        with suppress(FileNotFoundError):
            found = os.stat(path).st_mode
            wanted = 0o022 if stat.S_ISDIR(found) else 0o077
            if found & wanted:
                try:
                    os.chmod(path, stat.S_IMODE(found) & ~wanted)
                except OSError as error:
                    raise Unusable(f"{path}: {error.strerror}", hint="Do it as the user who owns it.") from error
                did.append(f"took {path} out of the reach of other users")
    return did


FIXES: dict[str, Callable[[_Checkup], list[str]]] = {
    "counters": _fix_counters,
    "leftovers": _fix_leftovers,
    "permissions": _fix_permissions,
}
"""Repairs that lose nothing, by the name that a finding gives as its ``fix``."""
