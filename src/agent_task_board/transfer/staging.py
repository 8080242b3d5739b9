"""Where an import waits until it is whole: temporary tables, and the statements that bring them onto the board at once.

The tables are SQLite's own temporary ones: on disk, private to one connection, gone with it. Filling them takes no lock
of the board, however long the file is. ``check`` compares them with the board and ``bring_in`` copies them; the write
lock is held for these two only.
"""

from __future__ import annotations

import contextlib
import json
import os
from array import array

from ..board.history import DIGESTED, TRACKED, UNBORN, difference, fold
from ..board.refusals import cycle
from ..errors import InvalidInput
from ..storage import db

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType
    from typing import Any, NoReturn

    from ..board.core import Transaction

COLUMNS = tuple(
    """
    title body queue priority assignee due_at not_before tags params dedupe_key max_attempts needs_approval status
    result artifacts error progress attempts fence version claimed_by created_by schedule_id occurrence_at created_at
    updated_at claimed_at finished_at
    """.split()
)
"""What is staged of a task beside its key; ``assignee`` and ``claimed_by`` hold keys of ``staged_name``."""

_TABLES = {
    # Narrow, since every row is changed by a check; `made`: the file gave no id; `instead`: whose key or occurrence
    # stands in the way.
    "staged_key": """
        position INTEGER PRIMARY KEY, id TEXT, dedupe_key TEXT, schedule_id TEXT, occurrence_at TEXT, made INTEGER,
        final INTEGER, place TEXT, archived_at TEXT, skipped INTEGER DEFAULT 0, instead TEXT, seq INTEGER""",
    "staged_task": f"position INTEGER PRIMARY KEY, {', '.join(COLUMNS)}",
    # `name`: what another tracker calls the other issue; such a dependency may lead nowhere.
    "staged_dependency": """
        position INTEGER, place INTEGER, id TEXT, name TEXT, target INTEGER, was TEXT, dropped INTEGER DEFAULT 0,
        PRIMARY KEY (position, place)""",
    "staged_attempt": """
        place INTEGER PRIMARY KEY, task_id TEXT, number INTEGER, agent TEXT, fence INTEGER, claimed_at TEXT,
        ended_at TEXT, outcome TEXT, result TEXT, error TEXT, note TEXT""",
    "staged_event": """
        place INTEGER PRIMARY KEY, task_id TEXT, kind TEXT, actor TEXT, actor_kind TEXT, at TEXT, data TEXT""",
    "staged_comment": """
        place INTEGER PRIMARY KEY, task_id TEXT, kind TEXT, actor TEXT, actor_kind TEXT, at TEXT, data TEXT""",
    "staged_archived": "place INTEGER PRIMARY KEY, task_id TEXT, archived_at TEXT",
    "staged_name": "key TEXT PRIMARY KEY, written TEXT, name TEXT",
    # What the history of a task led to, if it has one, and the data of its `imported` event; both JSON.
    "staged_told": "position INTEGER PRIMARY KEY, history TEXT, data TEXT",
    "staged_schedule": """
        id TEXT PRIMARY KEY, key TEXT, name TEXT, cron TEXT, zone TEXT, task TEXT, catch_up INTEGER, paused_at TEXT,
        next_at TEXT, last_at TEXT, made INTEGER, created_by TEXT, created_at TEXT, updated_at TEXT,
        skipped INTEGER DEFAULT 0""",
}
_INDEXES = (
    "staged_key_id ON staged_key (id)",
    "staged_key_dedupe ON staged_key (dedupe_key) WHERE dedupe_key IS NOT NULL",
    "staged_key_occurrence ON staged_key (schedule_id, occurrence_at) WHERE schedule_id IS NOT NULL",
    "staged_dependency_id ON staged_dependency (id)",
    "staged_attempt_task ON staged_attempt (task_id, number)",
    "staged_event_task ON staged_event (task_id)",
    "staged_archived_task ON staged_archived (task_id)",
)
_BROUGHT = "staged_key.skipped = 0"
"""SQL: the task comes in."""
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_ROWS = 500
"""Rows that are written at once."""
WARNINGS = 100
"""Warnings of a kind, at most."""

_OWN = [key for key in (*TRACKED, *DIGESTED) if key in COLUMNS and key not in ("assignee", "claimed_by")]
_TOLD = f"""
    SELECT position, staged_key.id, history, archived_at,
           (SELECT name FROM staged_name WHERE key = assignee) AS assignee,
           (SELECT name FROM staged_name WHERE key = claimed_by) AS claimed_by,
           (SELECT json_group_array(id) FROM (
                SELECT id FROM staged_dependency AS other
                 WHERE other.position = staged_key.position AND dropped = 0 ORDER BY place)) AS blocked_by,
           (SELECT number FROM staged_attempt WHERE task_id = staged_key.id AND outcome IS NULL) AS attempt,
           {", ".join(f"staged_task.{key}" for key in _OWN)}
      FROM staged_key JOIN staged_task USING (position) LEFT JOIN staged_told USING (position)"""


class Staging:
    """The tables of one import, in the board's connection or, where that would not last, in one of their own."""

    def __init__(self, database: db.Database) -> None:
        self.board = database
        """Whose tasks those of the file are compared with."""
        session = database.session()
        self._scratch: db.Database | None = None
        if session.is_absent or session.is_momentary:
            # Nothing must make the board before the whole file was found good.
            self._scratch = db.Database(os.path.join(database.directory, "no board", "here"))
            self.board = self._scratch if session.is_absent else database
            session = self._scratch.session()
        self._path = database.path
        self._connection = session.connection
        self._waiting: dict[str, list[Sequence[Any]]] = {name: [] for name in _TABLES}
        self.warnings: list[str] = []
        """What the latest check found to be not as in the file."""

    @property
    def is_apart(self) -> bool:
        """Whether the tables lie outside of the board's connection."""
        return self._scratch is not None

    # Filling

    def __enter__(self) -> Staging:
        """Make the tables, and begin to fill them; what is written counts once the block has ended."""
        try:
            _make(self._connection)
            self._connection.execute("SAVEPOINT staging")
        except db.Error as error:
            db.refuse_scratch(error, self._path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._connection.execute("RELEASE staging")
            return
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        if isinstance(error, db.Error):
            db.refuse_scratch(error, self._path)

    def close(self) -> None:
        """Drop the tables."""
        if self._scratch is not None:
            self._scratch.close()
            return
        with contextlib.suppress(db.Error):  # of a file that is no board, say; it was refused already
            for name in _TABLES:
                self._connection.execute(f"DROP TABLE IF EXISTS temp.{name}")

    def add(self, table: str, row: Sequence[Any]) -> None:
        """Stage one row, its values in the order of the table's columns; the last ones may be missing."""
        waiting = self._waiting[table]
        waiting.append(row)
        if len(waiting) == _ROWS:
            self._write(table)

    def _write(self, table: str) -> None:
        rows = self._waiting[table]
        if rows:
            columns = [column.split()[0] for column in _TABLES[table].split(",")][: len(rows[0])]
            self._connection.executemany(
                f"INSERT INTO temp.{table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})", rows
            )
            rows.clear()

    def finish(self, *, with_events: bool) -> None:
        """Hold the tables against each other once the file was read.

        Raises:
            InvalidInput: an attempt, event, comment or archive entry of no task in the file, or attempts that
                contradict each other.
        """
        for table in _TABLES:
            self._write(table)
        tx = self._connection
        if not with_events:  # else they are among the events
            tx.execute("INSERT INTO temp.staged_event SELECT * FROM staged_comment ORDER BY place")
        for index in _INDEXES:
            tx.execute(f"CREATE INDEX IF NOT EXISTS temp.{index}")
        for table, array_ in (("attempt", "attempts"), ("event", "events"), ("archived", "archived")):
            name = array_ if with_events or table != "event" else "comments"
            for place, id_ in tx.execute(
                f"""
                SELECT place, task_id FROM staged_{table}
                 WHERE NOT EXISTS (SELECT 1 FROM staged_key WHERE id = task_id) ORDER BY place LIMIT 1
                """
            ):
                _refuse(f"{name}[{place}]", f"task_id: there is no task {id_} in the file", "task_id")
        for place in tx.execute(
            """
            SELECT max(place) FROM staged_attempt GROUP BY task_id, number HAVING count(*) > 1
            UNION ALL
            SELECT max(place) FROM staged_attempt WHERE outcome IS NULL GROUP BY task_id HAVING count(*) > 1
             LIMIT 1
            """
        ):
            _refuse(f"attempts[{place[0]}]", "number: the task has such an attempt, or an open one, already", "number")
        for place in tx.execute(
            """
            SELECT place FROM staged_archived
             WHERE (SELECT min(final) FROM staged_key WHERE id = task_id) = 0 ORDER BY place LIMIT 1
            """
        ):
            _refuse(f"archived[{place[0]}]", "task_id: the task is not finished", "task_id")
        tx.execute(
            """
            UPDATE staged_key SET archived_at = staged_archived.archived_at FROM staged_archived
             WHERE task_id = staged_key.id
            """
        )
        self._tell()

    def _tell(self) -> None:
        """Write down, for each task, what its `imported` event will tell."""
        tx = self._connection
        has_events = tx.execute("SELECT 1 FROM staged_event WHERE kind <> 'commented' LIMIT 1").fetchone()
        rows = tx.execute(f"{_TOLD} ORDER BY position")
        names = [column[0] for column in rows.description]
        for values in rows:
            row = dict(zip(names, values, strict=True))  # a Row searches for each name again and again
            state, history = UNBORN, None
            if has_events:
                events = tx.execute(
                    "SELECT place, kind, data FROM staged_event WHERE task_id = ? ORDER BY place", (row["id"],)
                )
                state, _ = fold((place, kind, data) for place, kind, data in events)
                history = _json(state)
            self.add("staged_told", (row["position"], history, _imported(row, state)))
        self._write("staged_told")

    # Under the board's eyes

    def bring_to(self, connection: db.Connection) -> None:
        """See to it that the tables are in the connection that will be used."""
        if connection is self._connection:
            return
        try:
            _make(connection)
            for table in _TABLES:
                rows = self._connection.execute(f"SELECT * FROM temp.{table}")
                marks = ", ".join("?" * len(rows.description))
                connection.executemany(f"INSERT INTO temp.{table} VALUES ({marks})", map(tuple, rows))
            for index in _INDEXES:
                connection.execute(f"CREATE INDEX temp.{index}")
        except db.Error as error:
            db.refuse_scratch(error, self._path)
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None
        self._connection = connection

    def check(self, tx: db.Connection, new_id: Callable[[], str]) -> tuple[int, int]:
        """Find out what comes in and what is passed over, and what each task waits for; return how many do.

        Raises:
            InvalidInput: an unknown dependency, or tasks that would wait for each other.
        """
        self.warnings = []
        tx.execute(
            "UPDATE staged_name SET name = coalesce((SELECT name FROM agent WHERE key = staged_name.key), written)"
        )
        self._skip(tx, new_id)
        base = tx.execute("SELECT coalesce(max(seq), 0) FROM task").fetchone()[0]
        tx.execute(
            """
            UPDATE staged_key SET seq = :base + numbered.number
              FROM (SELECT position, row_number() OVER (ORDER BY position) AS number FROM staged_key WHERE skipped = 0)
                   AS numbered
             WHERE numbered.position = staged_key.position
            """,
            {"base": base},
        )
        changed = self._resolve(tx)
        self._refuse_circles(tx, base)
        self._pass_over_schedules(tx)
        self._tell_again(tx, changed)
        brought, all_ = tx.execute("SELECT coalesce(sum(skipped = 0), 0), count(*) FROM staged_key").fetchone()
        return brought, all_ - brought

    def _skip(self, tx: db.Connection, new_id: Callable[[], str]) -> None:
        """Mark what is there already, by id, dedupe key or occurrence, on the board or earlier in the file."""
        taken = "EXISTS (SELECT 1 FROM task WHERE id = staged_key.id)"
        for row in tx.execute(f"SELECT position FROM staged_key WHERE made AND {taken}").fetchall():
            tx.execute("UPDATE staged_key SET id = ? WHERE position = ?", (new_id(), row[0]))
        tx.execute(f"UPDATE staged_key SET skipped = 1 WHERE {taken}")
        for column, holder in (
            (
                "dedupe_key",
                """
                SELECT id FROM task
                 WHERE task.dedupe_key = staged_key.dedupe_key AND task.dedupe_key IS NOT NULL
                   AND status NOT IN ('done', 'failed', 'cancelled')
                """,
            ),
            (
                "schedule_id",
                """
                SELECT id FROM task
                 WHERE task.schedule_id = staged_key.schedule_id AND task.occurrence_at = staged_key.occurrence_at
                   AND task.schedule_id IS NOT NULL
                """,
            ),
        ):
            tx.execute(
                f"""
                UPDATE staged_key SET skipped = 1, instead = ({holder})
                 WHERE skipped = 0 AND {column} IS NOT NULL AND EXISTS ({holder})
                """
            )
        self._skip_repeated(tx)

    @staticmethod
    def _skip_repeated(tx: db.Connection) -> None:
        """Go through what shares an id, a key or an occurrence with another task of the file, in the file's order."""
        conditions = " OR ".join(
            f"""({columns}) IN (
                SELECT {columns} FROM staged_key WHERE skipped = 0 AND {columns.split(", ")[0]} IS NOT NULL
                 GROUP BY {columns} HAVING count(*) > 1)"""
            for columns in ("id", "dedupe_key", "schedule_id, occurrence_at")
        )
        first: dict[tuple[str, ...], str] = {}
        skips: list[tuple[str | None, int]] = []
        for position, id_, key, schedule, at in tx.execute(
            f"""
            SELECT position, id, dedupe_key, schedule_id, occurrence_at FROM staged_key
             WHERE skipped = 0 AND ({conditions}) ORDER BY position
            """
        ):
            marks = [("id", id_), *([("key", key)] if key else []), *([(schedule, at)] if schedule else [])]
            in_the_way = [first[mark] for mark in marks if mark in first]
            if in_the_way:
                skips.append((None if in_the_way[0] == id_ else in_the_way[0], position))
            else:
                first.update(dict.fromkeys(marks, id_))
        tx.executemany("UPDATE staged_key SET skipped = 1, instead = ? WHERE position = ?", skips)

    def _resolve(self, tx: db.Connection) -> set[int]:
        """Find what each task waits for; return the tasks for which that is not as in the file."""
        instead = tx.execute(
            """
            UPDATE staged_dependency SET was = staged_dependency.id, id = other.instead FROM staged_key AS other
             WHERE other.id = staged_dependency.id AND other.skipped AND other.instead IS NOT NULL
               AND NOT EXISTS (SELECT 1 FROM staged_key WHERE id = other.id AND skipped = 0)
            RETURNING position
            """
        ).fetchall()
        tx.execute(
            """
            UPDATE staged_dependency SET target = coalesce(
                (SELECT seq FROM staged_key WHERE id = staged_dependency.id AND skipped = 0),
                (SELECT seq FROM task WHERE id = staged_dependency.id))
            """
        )
        changed = {row[0] for row in instead}
        if changed:
            tx.execute(
                """
                UPDATE staged_dependency SET dropped = 1
                 WHERE EXISTS (SELECT 1 FROM staged_dependency AS other
                                WHERE other.position = staged_dependency.position
                                  AND other.target = staged_dependency.target AND other.place < staged_dependency.place)
                """
            )
        odd = tx.execute(
            f"""
            SELECT position, staged_dependency.place AS number, staged_dependency.id AS other, name, target, was,
                   staged_key.id AS id, staged_key.place AS place
              FROM staged_dependency JOIN staged_key USING (position)
             WHERE {_BROUGHT} AND (target IS NULL OR target = seq OR was IS NOT NULL)
             ORDER BY position, number
            """
        ).fetchall()
        for row in odd:
            if row["was"] is not None and row["target"] is not None and row["other"] != row["id"]:
                self._warn(
                    f"{row['id']} waits for {row['other']} instead of {row['was']}, "
                    "which has the same dedupe key or occurrence"
                )
                continue
            if row["was"] is None and row["name"] is None:
                what = (
                    f"there is no task {row['other']}, neither in the file nor on the board"
                    if row["target"] is None
                    else "waits for itself"
                )
                _refuse(row["place"], f"blocked_by: {what}", "blocked_by")
            if row["name"] is not None and row["was"] is None:
                what = "which is not there" if row["target"] is None else "which is itself"
                self._warn(f"{row['place']} waits for {row['name']}, {what}: left out")
            tx.execute(
                "UPDATE staged_dependency SET dropped = 1 WHERE position = ? AND place = ?",
                (row["position"], row["number"]),
            )
            changed.add(row["position"])
        return changed

    def _warn(self, sentence: str) -> None:
        if len(self.warnings) < WARNINGS:
            self.warnings.append(sentence)
        elif len(self.warnings) == WARNINGS:
            self.warnings.append("there are more such differences")

    def _refuse_circles(self, tx: db.Connection, base: int) -> None:
        """Refuse tasks that wait for each other; a circle can only lie among the new ones."""
        edges = f"""
            SELECT target - :base AS target, seq - :base AS waiter
              FROM staged_dependency JOIN staged_key USING (position)
             WHERE {_BROUGHT} AND dropped = 0 AND target > :base"""
        size = tx.execute("SELECT count(*) FROM staged_key WHERE skipped = 0").fetchone()[0]
        circle = _circle(
            size,
            tx.execute(f"{edges} ORDER BY target", {"base": base}),
            lambda: tx.execute(edges, {"base": base}),
        )
        if circle:
            ids = [
                tx.execute("SELECT id FROM staged_key WHERE seq = ?", (base + number,)).fetchone()[0]
                for number in circle
            ]
            raise InvalidInput(
                f"blocked_by: these tasks would wait for each other: {cycle(ids)}",
                field="blocked_by",
            )

    def _pass_over_schedules(self, tx: db.Connection) -> None:
        for row in tx.execute(
            """
            UPDATE staged_schedule SET skipped = 1
             WHERE EXISTS (SELECT 1 FROM schedule WHERE id = staged_schedule.id OR key = staged_schedule.key)
            RETURNING name
            """
        ).fetchall():
            self._warn(f"there is a schedule {row['name']!r} already; the one of the file was passed over")

    @staticmethod
    def _tell_again(tx: db.Connection, changed: set[int]) -> None:
        """Write down anew what is told of tasks that come in otherwise than the file has them."""
        renamed = tx.execute("SELECT key FROM staged_name WHERE name <> written").fetchall()
        if renamed:
            keys = json.dumps([row[0] for row in renamed])
            changed = changed | {
                row[0]
                for row in tx.execute(
                    """
                    SELECT position FROM staged_task
                     WHERE assignee IN (SELECT value FROM json_each(:keys))
                        OR claimed_by IN (SELECT value FROM json_each(:keys))
                    """,
                    {"keys": keys},
                )
            }
        for position in changed:
            row = tx.execute(f"{_TOLD} WHERE position = ?", (position,)).fetchone()
            state = UNBORN if row["history"] is None else json.loads(row["history"])
            tx.execute("UPDATE staged_told SET data = ? WHERE position = ?", (_imported(dict(row), state), position))

    def bring_in(self, tx: Transaction) -> None:
        """Copy what a check in the same transaction accepted onto the board."""
        values = {"now": tx.now, "actor": tx.by.name, "actor_kind": tx.by.kind}
        for statement in _STATEMENTS:
            tx.execute(statement, values)


_DIRECT = tuple(
    column for column in COLUMNS if column not in ("assignee", "claimed_by", "created_at", "updated_at", "finished_at")
)
_STATEMENTS = (
    # When an agent was seen is what its attempts tell: a trigger counts them by their outcome.
    f"""
    INSERT INTO agent (key, name, first_seen_at, last_seen_at)
    SELECT key, name, coalesce(min(first), :now), max(last) FROM (
           SELECT assignee AS key, NULL AS first, NULL AS last
             FROM staged_task JOIN staged_key USING (position) WHERE {_BROUGHT} AND assignee IS NOT NULL
           UNION ALL
           SELECT claimed_by, NULL, NULL
             FROM staged_task JOIN staged_key USING (position) WHERE {_BROUGHT} AND claimed_by IS NOT NULL
           UNION ALL
           SELECT agent, claimed_at,
                  iif(outcome IN ('completed', 'failed', 'released', 'handed_off'), ended_at, claimed_at)
             FROM staged_attempt JOIN staged_key ON id = task_id WHERE {_BROUGHT})
      JOIN staged_name USING (key)
     GROUP BY key
        ON CONFLICT (key) DO UPDATE
       SET last_seen_at = coalesce(max(last_seen_at, excluded.last_seen_at), last_seen_at, excluded.last_seen_at)
        ON CONFLICT (name) DO UPDATE
       SET last_seen_at = coalesce(max(last_seen_at, excluded.last_seen_at), last_seen_at, excluded.last_seen_at)
    """,
    f"""
    INSERT INTO task (seq, id, archived_at, delayed, assignee, claimed_by, created_at, updated_at, finished_at,
                      {", ".join(_DIRECT)})
    SELECT seq, id, archived_at, coalesce(not_before > :now, 0),
           (SELECT name FROM staged_name WHERE key = assignee), (SELECT name FROM staged_name WHERE key = claimed_by),
           coalesce(created_at, :now), coalesce(updated_at, :now),
           iif(final, coalesce(finished_at, updated_at, :now), NULL),
           {", ".join(f"staged_task.{column}" for column in _DIRECT)}
      FROM staged_key JOIN staged_task USING (position)
     WHERE {_BROUGHT}
     ORDER BY position
    """,
    f"""
    INSERT INTO dependency (task_seq, depends_on_seq, position)
    SELECT seq, target, staged_dependency.place FROM staged_key JOIN staged_dependency USING (position)
     WHERE {_BROUGHT} AND dropped = 0
     ORDER BY position, staged_dependency.place
    """,
    f"""
    INSERT INTO attempt (task_seq, number, agent, fence, claimed_at, ended_at, outcome, result, error, note)
    SELECT seq, number, name, fence, claimed_at, coalesce(ended_at, :now), coalesce(outcome, 'revoked'),
           result, error, note
      FROM staged_key JOIN staged_attempt ON task_id = id JOIN staged_name ON key = agent
     WHERE {_BROUGHT}
     ORDER BY seq, number
    """,
    f"""
    INSERT INTO event (task_seq, kind, actor, actor_kind, at, data)
    SELECT seq, kind, actor, actor_kind, at, data
      FROM staged_event CROSS JOIN staged_key ON id = task_id
     WHERE {_BROUGHT}
     ORDER BY staged_event.place
    """,
    f"""
    INSERT INTO event (task_seq, kind, actor, actor_kind, at, data)
    SELECT seq, 'imported', :actor, :actor_kind, :now, data
      FROM staged_key JOIN staged_told USING (position)
     WHERE {_BROUGHT}
     ORDER BY position
    """,
    """
    INSERT INTO schedule (id, key, name, cron, zone, task, catch_up, paused_at, next_at, last_at, made, created_by,
                          created_at, updated_at)
    SELECT id, key, name, cron, zone, task, catch_up, paused_at, next_at, last_at, made, created_by,
           coalesce(created_at, :now), coalesce(updated_at, :now)
      FROM staged_schedule WHERE skipped = 0
    """,
)


def _imported(row: dict[str, Any], state: dict[str, Any]) -> str:
    """Return the data of an `imported` event: what differs from where the history of the task ended."""
    data: dict[str, Any] = {"changes": difference(state, row)}
    if row["attempt"] is not None:
        data["attempt"] = row["attempt"]
    return _json(data)


def _circle(
    size: int, edges: Iterable[tuple[int, int]], again: Callable[[], Iterator[tuple[int, int]]]
) -> list[int] | None:
    """Return tasks along a circle, the first one again at its end, if there is one.

    ``edges`` are (what is waited for, who waits), sorted; tasks are numbers from 1 to ``size``. Arrays of integers,
    since there may be millions.
    """
    waits = array("q", bytes(8 * (size + 1)))
    first = array("q", bytes(8 * (size + 2)))
    waiters = array("q")
    for target, waiter in edges:
        waits[waiter] += 1
        first[target + 1] += 1
        waiters.append(waiter)
    if not waiters:
        return None
    for number in range(1, size + 2):
        first[number] += first[number - 1]
    free = array("q", (number for number in range(1, size + 1) if not waits[number]))
    left = size
    while free:
        done = free.pop()
        left -= 1
        for waiter in waiters[first[done] : first[done + 1]]:
            waits[waiter] -= 1
            if not waits[waiter]:
                free.append(waiter)
    if not left:
        return None
    following = {waiter: target for target, waiter in again() if waits[waiter] and waits[target]}
    path = {next(iter(following)): 0}
    while True:
        target = following[next(reversed(path))]
        if target in path:
            return [*list(path)[path[target] :], target]
        path[target] = len(path)


def _make(connection: db.Connection) -> None:
    for name, columns in _TABLES.items():
        connection.execute(f"DROP TABLE IF EXISTS temp.{name}")  # of an import that was cut short
        connection.execute(f"CREATE TEMP TABLE {name} ({columns})")


def _refuse(place: str, what: str, field: str) -> NoReturn:
    raise InvalidInput(f"{place}: {what}", place=place, field=field)
