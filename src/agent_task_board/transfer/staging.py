"""Staging tables: where the records of an import wait until the whole file has been read.

The tables are SQLite's temporary tables: on disk, private to one connection, and dropped with it. Filling them takes no
lock on the board, however long the file is.
"""

from __future__ import annotations

import contextlib
import json
import os

from ..board.history import DIGESTED, NEW_TASK, TRACKED, difference, fold
from ..errors import InvalidInput
from ..storage import db
from ..storage.refusals import refuse_scratch
from .cycles import find_cycle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Any, NoReturn

COLUMNS = tuple(
    """
    title body queue priority assignee due_at not_before tags params dedupe_key max_attempts needs_approval status
    result artifacts error progress attempts fence version claimed_by created_by schedule_id occurrence_at created_at
    updated_at claimed_at finished_at max_runtime
    """.split()
)
"""The staged columns of a task besides its key; ``assignee`` and ``claimed_by`` hold keys of ``staged_agent``."""

_TABLES = {
    # Narrow, since a check changes every row. `has_new_id`: the file has no id. `existing_id`: the task that has the
    # same dedupe key or occurrence. `number`: 1, 2, 3 … of the tasks that are imported, in all these tables.
    "staged_key": """
        position INTEGER PRIMARY KEY, id TEXT, dedupe_key TEXT, schedule_id TEXT, occurrence_at TEXT,
        has_new_id INTEGER, final INTEGER, place TEXT, archived_at TEXT, skipped INTEGER DEFAULT 0, existing_id TEXT,
        number INTEGER""",
    "staged_task": f"position INTEGER PRIMARY KEY, {', '.join(COLUMNS)}",
    # `name`: what another tracker calls the dependency; if there is a name, the dependency may be missing.
    # `original_id`: the id in the file, if the task now depends on another one. Of `target` and `number` one is set:
    # the task is on the board, or it is imported with this one.
    "staged_dependency": """
        position INTEGER, place INTEGER, id TEXT, name TEXT, target INTEGER, original_id TEXT,
        dropped INTEGER DEFAULT 0, number INTEGER, PRIMARY KEY (position, place)""",
    "staged_attempt": """
        place INTEGER PRIMARY KEY, task_id TEXT, number INTEGER, agent TEXT, fence INTEGER, claimed_at TEXT,
        ended_at TEXT, outcome TEXT, result TEXT, error TEXT, note TEXT""",
    "staged_event": """
        place INTEGER PRIMARY KEY, task_id TEXT, kind TEXT, actor TEXT, actor_kind TEXT, at TEXT, data TEXT""",
    "staged_comment": """
        place INTEGER PRIMARY KEY, task_id TEXT, kind TEXT, actor TEXT, actor_kind TEXT, at TEXT, data TEXT""",
    # The task of each event that is imported.
    "staged_event_of": "place INTEGER PRIMARY KEY, number INTEGER",
    "staged_archived": "place INTEGER PRIMARY KEY, task_id TEXT, archived_at TEXT",
    # `written`: the name as first written in the file; `name`: as first written on the board.
    # `first`, `last`: when it was seen first and last, if an imported task or attempt names it.
    "staged_agent": "key TEXT PRIMARY KEY, written TEXT, name TEXT, imported INTEGER DEFAULT 0, first TEXT, last TEXT",
    # `history`: the state that the events of a task add up to, if it has any; `data`: of its `imported` event. JSON.
    "staged_imported": "position INTEGER PRIMARY KEY, history TEXT, data TEXT",
    # Issues of another tracker. `name`: what the tracker calls it; `held`: why it may not start; `spreads`: whether
    # what belongs to it is held with it; `replaced`: how many older rows of the file it replaced; `fate`: what becomes
    # of it if its id is on the board.
    "staged_issue": """
        position INTEGER PRIMARY KEY, name TEXT, held TEXT, spreads INTEGER, replaced INTEGER DEFAULT 0, fate TEXT""",
    "staged_parent": "position INTEGER PRIMARY KEY, id TEXT",
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
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_BATCH = 500
"""Rows that are inserted at once."""
_BATCH_SIZE = 4 * 1_048_576
"""Characters of rows that are inserted at once, about."""

_TRACKED = [key for key in (*TRACKED, *DIGESTED) if key in COLUMNS and key not in ("assignee", "claimed_by")]
SELECT_STATES = f"""
    SELECT position, staged_key.id, history, archived_at,
           (SELECT staged_task.updated_at FROM staged_issue AS one WHERE one.position = staged_key.position) AS row_at,
           (SELECT name FROM staged_agent WHERE key = assignee) AS assignee,
           (SELECT name FROM staged_agent WHERE key = claimed_by) AS claimed_by,
           (SELECT json_group_array(id) FROM (
                SELECT id FROM staged_dependency AS other
                 WHERE other.position = staged_key.position AND dropped = 0 ORDER BY place)) AS blocked_by,
           (SELECT number FROM staged_attempt WHERE task_id = staged_key.id AND outcome IS NULL) AS attempt,
           {", ".join(f"staged_task.{key}" for key in _TRACKED)}
      FROM staged_key JOIN staged_task USING (position) LEFT JOIN staged_imported USING (position)"""
"""SQL: what the `imported` event of each task is computed from."""


class Staging:
    """The staging tables of one import: in the board's connection, or in a separate one if that does not last."""

    def __init__(self, database: db.Database) -> None:
        self._database = self.board = database
        """The board that the tasks are compared with; an empty stand-in if there is none yet."""
        session = database.session()
        self._scratch: db.Database | None = None
        if session.is_absent or session.is_momentary:
            # Do not create the board before the whole file has been checked.
            self._scratch = db.Database(os.path.join(database.directory, "no board", "here"))
            self.board = self._scratch if session.is_absent else database
            session = self._scratch.session()
        self._path = database.path
        self._connection = session.connection
        self._pending: dict[str, list[Sequence[Any]]] = {name: [] for name in _TABLES}
        self._pending_size = dict.fromkeys(_TABLES, 0)
        self.may_have_cycle = False
        """Whether the dependencies in the file have a cycle; skipping some of its tasks may break it."""
        self.has_histories = False
        """Whether the file is an export of a board, with the events of its tasks."""

    @property
    def is_separate(self) -> bool:
        """Whether the tables are in another connection than the board's."""
        return self._scratch is not None

    def __enter__(self) -> Staging:
        """Create the tables; their content is kept if the block succeeds."""
        try:
            _create_tables(self._connection)
            self._connection.execute("SAVEPOINT staging")
        except db.Error as error:
            refuse_scratch(error, self._path)
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
            refuse_scratch(error, self._path)

    def keep(self, connection: db.Connection) -> None:
        """End a read transaction in which a check wrote to the tables; otherwise its end would undo that."""
        connection.execute("COMMIT")

    def close(self) -> None:
        """Drop the tables."""
        if self._scratch is not None:
            self._scratch.close()
            return
        with contextlib.suppress(db.Error):  # such as for a file that is not a board, which was refused already
            for name in _TABLES:
                self._connection.execute(f"DROP TABLE IF EXISTS temp.{name}")

    def add(self, table: str, row: Sequence[Any]) -> None:
        """Stage one row, its values in the order of the table's columns; columns at the end may be missing."""
        pending = self._pending[table]
        pending.append(row)
        self._pending_size[table] += sum(len(value) for value in row if isinstance(value, str))
        if len(pending) == _BATCH or self._pending_size[table] > _BATCH_SIZE:
            self._flush(table)

    def _flush(self, table: str) -> None:
        rows = self._pending[table]
        if rows:
            columns = [column.split()[0] for column in _TABLES[table].split(",")][: len(rows[0])]
            self._connection.executemany(
                f"INSERT INTO temp.{table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})", rows
            )
            rows.clear()
            self._pending_size[table] = 0

    def finish(
        self, *, with_events: bool, prepare: Callable[[db.Connection, Callable[[], bool]], object] | None = None
    ) -> None:
        """Check the tables against each other, once the file has been read.

        ``prepare`` changes the rows before; it gets the connection, and a function that says whether the dependencies
        have a cycle.

        Raises:
            InvalidInput: an attempt, event, comment or archive entry has no task in the file, or two attempts
                contradict each other.
        """
        self.has_histories = with_events
        for table in _TABLES:
            self._flush(table)
        connection = self._connection
        if prepare is not None:
            connection.execute("CREATE INDEX temp.staged_key_id ON staged_key (id)")
            connection.execute("CREATE INDEX temp.staged_dependency_id ON staged_dependency (id)")
            prepare(connection, self._find_cycle_in_file)
        if not with_events:  # otherwise the events include them
            connection.execute("INSERT INTO temp.staged_event SELECT * FROM staged_comment ORDER BY place")
        for index in _INDEXES:
            connection.execute(f"CREATE INDEX IF NOT EXISTS temp.{index}")
        self._check_owners(with_events=with_events)
        self._check_attempts()
        for row in connection.execute(
            """
            SELECT place FROM staged_archived
             WHERE (SELECT min(final) FROM staged_key WHERE id = task_id) = 0 ORDER BY place LIMIT 1
            """
        ):
            _refuse(f"archived[{row[0]}]", "task_id: the task is not finished", "task_id")
        connection.execute(
            """
            UPDATE staged_key SET archived_at = staged_archived.archived_at FROM staged_archived
             WHERE task_id = staged_key.id
            """
        )
        self._compute_imported_events()
        self.may_have_cycle = self._find_cycle_in_file()

    def _check_owners(self, *, with_events: bool) -> None:
        events = "events" if with_events else "comments"
        for table, array in (("attempt", "attempts"), ("event", events), ("archived", "archived")):
            for place, id_ in self._connection.execute(
                f"""
                SELECT place, task_id FROM staged_{table}
                 WHERE NOT EXISTS (SELECT 1 FROM staged_key WHERE id = task_id) ORDER BY place LIMIT 1
                """
            ):
                _refuse(f"{array}[{place}]", f"task_id: not a task in the file: {id_}", "task_id")

    def _check_attempts(self) -> None:
        for row in self._connection.execute(
            """
            SELECT max(place) FROM staged_attempt GROUP BY task_id, number HAVING count(*) > 1
            UNION ALL
            SELECT max(place) FROM staged_attempt WHERE outcome IS NULL GROUP BY task_id HAVING count(*) > 1
             LIMIT 1
            """
        ):
            what = "number: the task already has an attempt with this number, or an open attempt"
            _refuse(f"attempts[{row[0]}]", what, "number")
        for place, fence, previous in self._connection.execute(
            """
            SELECT place, fence, previous
              FROM (SELECT place, fence, lag(fence) OVER (PARTITION BY task_id ORDER BY number) AS previous
                      FROM staged_attempt)
             WHERE fence <= previous ORDER BY place LIMIT 1
            """
        ):
            _refuse(f"attempts[{place}]", f"fence: {fence} (the previous attempt of the task has {previous})", "fence")
        self._connection.execute(  # a task's fence is that of its latest lease
            """
            UPDATE staged_task SET fence = newest.fence
              FROM (SELECT position, max(fence) AS fence FROM staged_attempt JOIN staged_key ON id = task_id
                     GROUP BY position) AS newest
             WHERE newest.position = staged_task.position AND newest.fence > staged_task.fence
            """
        )

    def _compute_imported_events(self) -> None:
        connection = self._connection
        has_events = connection.execute("SELECT 1 FROM staged_event WHERE kind <> 'commented' LIMIT 1").fetchone()
        rows = connection.execute(f"{SELECT_STATES} ORDER BY position")
        names = [column[0] for column in rows.description]
        for values in rows:
            row = dict(zip(names, values, strict=True))  # a Row searches for each name again and again
            state, history = NEW_TASK, None
            if has_events:
                events = connection.execute(
                    "SELECT place, kind, data FROM staged_event WHERE task_id = ? ORDER BY place", (row["id"],)
                )
                state, _ = fold((place, kind, data) for place, kind, data in events)
                history = _json(state)
            self.add("staged_imported", (row["position"], history, imported_data(row, state)))
        self._flush("staged_imported")

    def _find_cycle_in_file(self) -> bool:
        connection = self._connection
        size = connection.execute("SELECT coalesce(max(position), 0) FROM staged_key").fetchone()[0]
        edges = """
            SELECT other.position AS dependency, staged_dependency.position AS dependent
              FROM staged_key AS other CROSS JOIN staged_dependency ON staged_dependency.id = other.id
             ORDER BY other.position"""
        return find_cycle(size, lambda: connection.execute(edges)) is not None

    def move_to(self, connection: db.Connection) -> None:
        """Move the tables to another connection of the board, unless they are there already."""
        if connection is self._connection:
            return
        try:
            _create_tables(connection)
            for table in _TABLES:
                rows = self._connection.execute(f"SELECT * FROM temp.{table}")
                marks = ", ".join("?" * len(rows.description))
                connection.executemany(f"INSERT INTO temp.{table} VALUES ({marks})", map(tuple, rows))
            for index in _INDEXES:
                connection.execute(f"CREATE INDEX temp.{index}")
        except db.Error as error:
            refuse_scratch(error, self._path)
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None
        self.board = self._database
        self._connection = connection


def imported_data(row: dict[str, Any], state: dict[str, Any]) -> str:
    """Return the data of an `imported` event: the differences between the task and the end of its history."""
    data: dict[str, Any] = {"changes": difference(state, row)}
    if row["attempt"] is not None:
        data["attempt"] = row["attempt"]
    if row["row_at"] is not None:  # of another tracker: a later import updates the task only from a newer row
        data["row_at"] = row["row_at"]
    return _json(data)


def _create_tables(connection: db.Connection) -> None:
    for name, columns in _TABLES.items():
        connection.execute(f"DROP TABLE IF EXISTS temp.{name}")  # left by an import that was interrupted
        connection.execute(f"CREATE TEMP TABLE {name} ({columns})")


def _refuse(place: str, what: str, field: str) -> NoReturn:
    raise InvalidInput(f"{place}: {what}", place=place, field=field)
