"""The doctor's checks inside the file: integrity, schema, history, counts, schedules, deliveries."""

from __future__ import annotations

import shlex
from graphlib import CycleError, TopologicalSorter
from itertools import groupby, islice
from operator import itemgetter

from .. import instants
from ..board import indexing
from ..board.core import is_board_id
from ..board.history import difference, fold
from ..board.refusals import cycle
from ..board.rows import COLUMNS, NAMES
from ..board.stuck import WRONGLY_STUCK
from ..errors import BoardError, Busy, no_board
from ..storage import copies, fulltext, schema
from ..storage.db import SCHEMA_VERSION, Database, Error
from ..storage.refusals import refuse, until_unchanged
from . import values
from .finding import ERROR, NOTE, OK, WARNING, Checkup, finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from ..storage.db import Connection
    from .finding import Finding

NAMED = 5
"""The most tasks that one finding names."""
STUCK = instants.HOUR
"""How long a delivery can be due before it is worth a warning."""
LIMIT = 2_000_000_000
"""Steps of SQLite's virtual machine that a check of a board with a foreign schema can take: about half a minute."""
RESTORE = "Stop all writers and restore the newest undamaged backup: `atb restore ZIP --data-dir NEW`."
REMOVE = "If nobody needs it, stop all writers and remove it: `sqlite3 {path} {statement}`."
REPORT = "This should be impossible. Please report it with the output of `atb doctor`."


def check(checkup: Checkup) -> list[Finding]:
    """Return the findings inside the file, from one read transaction: all checks see the same board.

    Where the board can be read without locks only, what was read while it changed does not count.

    Raises:
        Busy: the board stayed locked, or went on changing, for the whole busy timeout.
    """
    timeout = checkup.core.settings.busy_timeout / instants.SECOND
    return until_unchanged(lambda: list(_check(checkup, timeout)), timeout)


def _check(checkup: Checkup, timeout: float) -> Iterator[Finding]:
    database = Database(checkup.directory, read_only=True, busy_timeout=timeout)
    try:
        if not database.exists():
            refusal = no_board(checkup.path)
            yield finding("file", NOTE, refusal.message, refusal.hint)
            return
        session = database.session()
        tx = session.connection
        try:
            tx.execute("BEGIN")
            version = session.check_identity()
            if _is_foreign(tx, version):
                session.restrict(LIMIT)
            else:
                session.trust()
            tx.execute("SELECT count(*) FROM main.sqlite_master").fetchone()
            if other_names := database.hard_links():
                yield finding("file", ERROR, other_names.message, other_names.hint)
            yield from _inside(checkup, tx, version)
        finally:
            session.roll_back()
            session.refuse_changed()
    except Busy:
        raise
    except BoardError as refusal:
        yield finding("file", ERROR, refusal.message, refusal.hint)
    except Error as error:
        _raise_busy(error, checkup.path)
        yield finding("file", ERROR, f"{checkup.path}: {error}", RESTORE)
    finally:
        database.close()


def _is_foreign(tx: Connection, version: int) -> bool:
    """Say whether the schema has anything that this program did not create and that executes something."""
    return version > 0 and any(kind != schema.TOLERATED for kind, _, _ in schema.faults(tx, version))


def _inside(checkup: Checkup, tx: Connection, version: int) -> Iterator[Finding]:
    path = checkup.path
    if version == 0:
        yield finding("file", NOTE, f"{path} has no tables yet", "The first `atb add` creates them.")
        return
    if version < SCHEMA_VERSION:
        text = f"{path} has schema {version}, older than this program's {SCHEMA_VERSION}"
        yield finding("file", WARNING, text, "Run `atb tick` once: it migrates the board.")
    else:
        yield finding("file", OK, f"{path} is a board of schema {version}")
    checks: list[tuple[str, Callable[..., Iterable[Finding]], tuple[Any, ...]]] = [
        ("integrity", _integrity, ()),
        ("foreign_keys", _foreign_keys, ()),
        ("schema", _schema, (version, path)),
    ]
    if _has_our_tables(tx, version):  # reading a view in place of a table might never end
        checks += [
            ("values", _values, ()),
            ("events", _events, (version,)),
            ("dependencies", _dependencies, ()),
            ("clock", _clock, (checkup.now,)),
        ]
        if version == SCHEMA_VERSION:  # these need columns of the newest schema
            checks += [("folds", _folds, ()), ("attempts", _attempts, ()), ("counters", _counters, ())]
            checks += [
                ("stuck", _stuck, ()),
                ("search", _search, ()),
                ("schedules", _schedules, (checkup,)),
                ("outbox", _outbox, (checkup.now,)),
            ]
    for name, one, arguments in checks:
        yield from _guarded(name, one, tx, *arguments)


def _guarded(name: str, check: Callable[..., Iterable[Finding]], tx: Connection, *arguments: Any) -> list[Finding]:
    """Run one check; if the board is too damaged to be read, that is a finding, too."""
    try:
        return list(check(tx, *arguments)) or [finding(name, OK, FINE[name])]
    except (Error, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        if isinstance(error, Error):
            _raise_busy(error, name)
        return [finding(name, ERROR, f"cannot be read: {type(error).__name__}: {error}", RESTORE)]


def _raise_busy(error: Error, path: str) -> None:
    """Raise ``Busy`` if that is what an error means."""
    try:
        refuse(error, path)
    except Busy:
        raise
    except (BoardError, Error):
        return


def _integrity(tx: Connection) -> Iterator[Finding]:
    found = copies.faults(tx, NAMED)
    if found:
        yield finding("integrity", ERROR, f"the file is damaged: {'; '.join(found)[:1_000]}", RESTORE)


def _values(tx: Connection) -> Iterator[Finding]:
    found = list(islice(values.faults(tx), NAMED))
    if found:
        yield finding("values", ERROR, "; ".join(found), RESTORE)


def _foreign_keys(tx: Connection) -> Iterator[Finding]:
    found = copies.broken_references(tx)
    if found:
        where = ", ".join(f"{table} ({rows})" for table, rows in found.items())
        yield finding("foreign_keys", ERROR, f"rows refer to rows that do not exist: {where}", RESTORE)


def _schema(tx: Connection, version: int, path: str) -> Iterator[Finding]:
    for kind, type_, name in schema.faults(tx, version):
        text = schema.in_words(kind, type_, name)
        if kind == schema.TOLERATED:
            yield finding("schema", NOTE, text, "Keep it only if you need it: it makes writes a little slower.")
        elif kind == schema.ADDED:
            statement = f"DROP {type_.upper()} " + '"{}"'.format(name.replace('"', '""'))
            remedy = REMOVE.format(path=shlex.quote(path), statement=shlex.quote(statement))
            level = ERROR if type_ == "trigger" else WARNING  # a trigger runs at writes
            yield finding("schema", level, f"{text}, and prevents backups", remedy)
        else:
            yield finding("schema", ERROR, text, RESTORE)


def _has_our_tables(tx: Connection, version: int) -> bool:
    try:
        return not any(
            type_ == "table" and kind not in (schema.ADDED, schema.TOLERATED)
            for kind, type_, _ in schema.faults(tx, version)
        )
    except Error:
        return True  # damaged: each check reports it


_WITHOUT_EVENT = """
    SELECT id FROM task
      JOIN (SELECT task_seq AS of, max(seq) AS newest FROM event
             WHERE kind NOT IN ('commented', 'hook_delivered', 'hook_failed') GROUP BY task_seq) ON of = task.seq
      JOIN event ON event.seq = newest
     WHERE event.kind <> 'imported' AND event.at <> task.updated_at"""
"""SQL: tasks whose latest change has no event; an imported task keeps the instant of its latest change."""


def _events(tx: Connection, version: int) -> Iterator[Finding]:
    count, first, last = tx.execute("SELECT count(*), min(seq), max(seq) FROM event").fetchone()
    if count and (first, last) != (1, count):
        text = f"events are missing: {count:,} events have the numbers {first:,} to {last:,}"
        yield finding("events", ERROR, text, RESTORE)
    if version == SCHEMA_VERSION:
        row = tx.execute("SELECT last_event FROM board").fetchone()
        if row is not None and row[0] > (last or 0):
            text = f"the newest events are missing: the last one is {last or 0:,}, but there was {row[0]:,}"
            yield finding("events", ERROR, text, RESTORE)
    if ids := _some(tx, _WITHOUT_EVENT):
        yield finding("events", ERROR, f"the newest events of a task are missing: {ids}", RESTORE)


def _folds(tx: Connection) -> Iterator[Finding]:
    """Compare every task with its history; only one task and one event are in memory at a time."""
    wrong: list[str] = []
    count = 0
    events = tx.execute("SELECT task_seq, seq, kind, data FROM event ORDER BY task_seq, seq")
    histories = groupby(events, key=itemgetter(0))
    owner, history = next(histories, (None, ()))
    for row in tx.execute(f"SELECT {COLUMNS} FROM task ORDER BY seq"):
        task = dict(zip(NAMES, row, strict=True))
        while owner is not None and owner < task["seq"]:
            owner, history = next(histories, (None, ()))
        fault: str | None = "has no history"
        if owner == task["seq"]:
            state, fault = fold((seq, kind, data) for _, seq, kind, data in history)
            fields = difference(state, task)
            fault = f"differs from its history in {', '.join(fields)}" if fields else fault
        if fault:
            count += 1
            wrong += [f"{task['id']} {fault}"][: NAMED - len(wrong)]
    if count:
        more = f"; and {count - len(wrong):,} more" if count > len(wrong) else ""
        yield finding("folds", ERROR, "; ".join(wrong) + more, RESTORE)


def _attempts(tx: Connection) -> Iterator[Finding]:
    following = """
        SELECT task_seq, number, fence, claimed_at, lag(fence) OVER task AS fence_before,
               lag(ended_at) OVER task AS ended_before, lag(number) OVER task AS number_before
          FROM attempt WINDOW task AS (PARTITION BY task_seq ORDER BY number)"""
    id_of = "(SELECT id FROM task WHERE seq = task_seq)"
    for what, query in (
        (
            "an attempt began before the previous one ended, or without a higher fence",
            f"""
            SELECT {id_of} FROM ({following})
             WHERE number_before IS NOT NULL AND (ended_before IS NULL OR fence <= fence_before)""",
        ),
        (
            "an attempt has not ended but no agent holds the task, or the reverse",
            """
            SELECT id FROM task
             WHERE (status IN ('claimed', 'running'))
                <> (SELECT count(*) FROM attempt WHERE task_seq = task.seq AND outcome IS NULL)""",
        ),
        (
            "an attempt has a higher fence than its task",
            f"SELECT {id_of} FROM attempt WHERE fence > (SELECT fence FROM task WHERE seq = task_seq)",
        ),
    ):
        if ids := _some(tx, query):
            yield finding("attempts", ERROR, f"{what}: {ids}", REPORT)
    if ids := _some(tx, f"SELECT {id_of} FROM ({following}) WHERE claimed_at < ended_before"):
        back = """
            SELECT EXISTS (SELECT 1 FROM (SELECT at, lag(at) OVER (ORDER BY seq) AS before FROM event)
                            WHERE at < before)"""
        if tx.execute(back).fetchone()[0]:
            text = f"leases overlap, because the clock was set back or the events were imported: {ids}"
            yield finding("attempts", NOTE, text, "Check that this machine's clock is right now.")
        else:
            yield finding("attempts", ERROR, f"leases overlap: {ids}", REPORT)


def _dependencies(tx: Connection) -> Iterator[Finding]:
    forward = "SELECT EXISTS (SELECT 1 FROM dependency WHERE depends_on_seq > task_seq)"
    if not tx.execute(forward).fetchone()[0]:
        return  # tasks depend on older ones only: no cycle
    graph: TopologicalSorter[int] = TopologicalSorter()
    for task, other in tx.execute("SELECT task_seq, depends_on_seq FROM dependency"):
        graph.add(task, other)
    try:
        graph.prepare()
    except CycleError as error:
        seqs = error.args[1][::-1]
        ids = [tx.execute("SELECT id FROM task WHERE seq = ?", (seq,)).fetchone()[0] for seq in seqs]
        text = f"dependency cycle: {cycle(ids)}"
        yield finding(
            "dependencies", ERROR, text, "Remove one of these dependencies: `atb update ID --drop-depends-on ID`"
        )


TASKS_BY_STATUS = (
    "SELECT queue, iif(archived_at IS NULL, status, 'archived') AS status, count(*) AS tasks FROM task GROUP BY 1, 2"
)
OPEN_DEPENDENCIES = """
    (SELECT count(*) FROM dependency JOIN task AS other ON other.seq = depends_on_seq
      WHERE task_seq = task.seq AND other.status <> 'done')"""
ATTEMPTS_BY_OUTCOME = """
    SELECT agent, sum(outcome IS 'completed') AS completed, sum(outcome IS 'failed') AS failed,
           sum(outcome IS 'expired') AS expired
      FROM attempt GROUP BY agent"""


_LEAST_REVISION = """
    SELECT count(*) FROM event LEFT JOIN
           (SELECT task_seq, max(seq) AS since FROM event WHERE kind = 'imported' GROUP BY task_seq) USING (task_seq)
     WHERE seq >= coalesce(since, 0) AND kind NOT IN ('hook_delivered', 'hook_failed')"""
"""SQL: the least possible revision. Events before an import do not count: they happened on another board."""


def revision_and_least(tx: Connection) -> tuple[int | None, int]:
    """Return the board's revision (``None`` if it is lost), and the least possible one."""
    row = tx.execute("SELECT revision, last_event_revision FROM board").fetchone()
    least: int = tx.execute(_LEAST_REVISION).fetchone()[0]
    return (None, least) if row is None else (row[0], max(least, row[1]))


def _counters(tx: Connection) -> Iterator[Finding]:
    kept = "SELECT queue, status, tasks FROM tally WHERE tasks <> 0"
    off = f"SELECT * FROM ({TASKS_BY_STATUS} EXCEPT {kept}) UNION SELECT * FROM ({kept} EXCEPT {TASKS_BY_STATUS})"
    counts = {
        "the number of tasks in a queue is wrong": _some(tx, f"SELECT queue FROM ({off})"),
        "the number of open dependencies is wrong": _some(
            tx, f"SELECT id FROM task WHERE open_dependencies <> {OPEN_DEPENDENCIES}"
        ),
        "a task is wrongly marked as stuck, or not marked": _some(tx, WRONGLY_STUCK),
        "the number of attempts of an agent is wrong": _some(
            tx,
            f"""
            SELECT name FROM agent LEFT JOIN ({ATTEMPTS_BY_OUTCOME}) AS seen ON seen.agent = name
             WHERE (agent.completed, agent.failed, agent.expired)
                IS NOT (coalesce(seen.completed, 0), coalesce(seen.failed, 0), coalesce(seen.expired, 0))""",
        ),
    }
    revision, least = revision_and_least(tx)
    if revision is None or revision < least:
        what = "missing" if revision is None else f"too low: {revision:,} (at least {least:,} for its events)"
        yield finding("counters", ERROR, f"the board's revision is {what}", "`atb doctor --fix counters`", "counters")
    if revision is not None and not is_board_id(tx.execute("SELECT board_id FROM board").fetchone()[0]):
        what = "the board's id is missing or malformed"
        yield finding("counters", ERROR, what, "`atb doctor --fix counters`", "counters")
    for what, which in counts.items():
        if which:
            yield finding("counters", ERROR, f"{what}: {which}", "`atb doctor --fix counters`", "counters")


def _stuck(tx: Connection) -> Iterator[Finding]:
    count = tx.execute("SELECT count(*) FROM task WHERE stuck = 1").fetchone()[0]
    if count:
        which = _some(tx, "SELECT id FROM task WHERE stuck = 1 ORDER BY seq")
        text = f"{'1 task waits' if count == 1 else f'{count:,} tasks wait'} for a task that failed or was cancelled: "
        remedy = "`atb show ID` says for which one: retry it, drop the dependency, or cancel what waits."
        yield finding("stuck", WARNING, text + which, remedy)


def _search(tx: Connection) -> Iterator[Finding]:
    """Compare the full-text index with the texts of every task that it should have."""
    behind = tx.execute("SELECT count(*) FROM unindexed").fetchone()[0]
    if not fulltext.is_available(tx):
        text = "this SQLite has no FTS5: a search reads the texts of every task"
        yield finding("search", NOTE, text, "On a large board, use a Python whose SQLite has FTS5.")
        return
    if not fulltext.exists(tx) or behind > indexing.PER_TICK:
        text = f"{behind:,} tasks are not in the full-text index yet: a search reads their texts"
        yield finding("search", NOTE, text, "Run `atb tick` every minute from cron.")
    if fulltext.exists(tx) and (ids := indexing.wrong(tx, NAMED + 1)):
        which = ", ".join(ids[:NAMED]) + (", and more" if len(ids) > NAMED else "")
        text = f"the full-text index differs from the texts of tasks: {which}"
        yield finding("search", ERROR, text, "`atb doctor --fix search`", "search")


def _clock(tx: Connection, now: int) -> Iterator[Finding]:
    newest = tx.execute("SELECT max(at) FROM event").fetchone()[0]
    ahead = 0 if newest is None else instants.from_text(newest) - now
    if ahead > instants.SECOND:
        text = f"the newest event is {instants.format_length(ahead)} ahead of this machine's clock"
        yield finding("clock", WARNING, text, "Set the clock: leases, waits and schedules depend on it.")


def _schedules(tx: Connection, checkup: Checkup) -> Iterator[Finding]:
    for row in tx.execute("SELECT name, cron, zone, task, next_at, last_at FROM schedule ORDER BY key"):
        try:
            checkup.check_schedule(checkup.core, row)
        except BoardError as error:
            wrong = error.message
        except (ValueError, TypeError, RecursionError) as error:
            wrong = f"{type(error).__name__}: {error}"
        else:
            continue
        remedy = f"`atb schedule remove {shlex.quote(row['name'])}`; then add the schedule again."
        yield finding("schedules", ERROR, f"schedule {row['name']!r} cannot create tasks: {wrong}", remedy)


def _outbox(tx: Connection, now: int) -> Iterator[Finding]:
    since = instants.to_text(now - STUCK)
    stuck, failed = tx.execute(
        """
        SELECT (SELECT count(*) FROM outbox WHERE status = 'pending' AND due_at <= ?),
               (SELECT count(*) FROM outbox WHERE status = 'failed')""",
        (since,),
    ).fetchone()
    if stuck:
        text = f"{stuck:,} hook deliveries have been due for more than {instants.format_length(STUCK)}"
        yield finding(
            "outbox", WARNING, text, "Run `atb tick` every minute from cron, and check that hooks are enabled."
        )
    if failed:
        yield finding(
            "outbox", NOTE, f"{failed:,} hook deliveries have failed", "See `atb hooks list --status failed`."
        )


def _some(tx: Connection, query: str) -> str:
    """Return the first values of a query as text; empty if there are none."""
    found = [str(row[0]) for row in tx.execute(f"SELECT DISTINCT * FROM ({query}) LIMIT {NAMED + 1}")]
    return ", ".join(found[:NAMED]) + (", and more" if len(found) > NAMED else "")


FINE = {
    "integrity": "SQLite finds the file undamaged",
    "foreign_keys": "every reference has a target",
    "schema": "tables, indexes and triggers are those that this program creates",
    "values": "every value is one that the board can read",
    "events": "no event is missing",
    "dependencies": "there is no dependency cycle",
    "clock": "the clock is not behind the newest event",
    "folds": "every task equals the result of its events",
    "attempts": "no two leases of a task overlap",
    "counters": "every stored count is right",
    "stuck": "no task waits for a failed or cancelled one",
    "search": "the full-text index has the texts of every task",
    "schedules": "every schedule can create its next task",
    "outbox": "no hook delivery is stuck",
}
"""The message of each check that finds nothing."""
