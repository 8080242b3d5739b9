"""Compare staged tasks with the board, and copy them to it.

``Merger.check`` decides what is skipped and what each task depends on. It takes time that grows with the file, so it
runs without the write lock. Under the lock ``Merger.is_current`` asks whether the board has changed since in what the
check relied on, and ``Merger.copy`` copies.
"""

from __future__ import annotations

import json

from ..board.history import NEW_TASK
from ..board.refusals import cycle
from ..errors import InvalidInput
from .cycles import find_cycle
from .staging import COLUMNS, SELECT_STATES, imported_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from ..board.core import Transaction
    from ..storage import db
    from .outcome import Outcome
    from .staging import Staging

WARNINGS = 100
"""Maximum number of warnings about skipped and redirected parts of a file."""

_IS_IMPORTED = "staged_key.skipped = 0"
"""SQL: the task is not skipped."""


class Merger:
    """Merges the content of staging tables into a board."""

    def __init__(self, staging: Staging) -> None:
        self._may_have_cycle = staging.may_have_cycle
        self._seen = 0
        """The newest event of the board that the latest check saw."""
        self._changed: set[int] = set()
        """The tasks that any check has decided to import differently from the file."""
        self._rows: tuple[int, int, int, int] = (0, 0, 0, 0)
        self.warnings: list[str] = []
        """The differences from the file that the latest check found."""

    def check(self, connection: db.Connection, new_id: Callable[[], str]) -> tuple[int, int]:
        """Decide what is imported and what is skipped, and what each task depends on; return the two counts.

        Raises:
            InvalidInput: an unknown dependency, or a dependency cycle.
        """
        self.warnings = []
        for statement in _FORGET:  # what an earlier check decided
            connection.execute(statement)
        self._seen = connection.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0]
        connection.execute(
            "UPDATE staged_agent SET name = coalesce((SELECT name FROM agent WHERE key = staged_agent.key), written)"
        )
        _skip_existing(connection, new_id)
        _skip_repeated(connection)
        connection.execute(
            """
            UPDATE staged_key SET number = numbered.number
              FROM (SELECT position, row_number() OVER (ORDER BY position) AS number FROM staged_key WHERE skipped = 0)
                   AS numbered
             WHERE numbered.position = staged_key.position
            """
        )
        redirected = self._redirect(connection)
        self._changed |= redirected | self._resolve(connection)
        # The file's own dependencies were searched for a cycle before; only a redirected one can add another.
        if self._may_have_cycle or redirected:
            _refuse_cycle(connection)
        self._skip_schedules(connection)
        _update_imported_events(connection, self._changed)
        for statement in _PREPARE:
            connection.execute(statement)
        imported, total, *rows = connection.execute(
            """
            SELECT coalesce(sum(skipped = 0), 0), count(*),
                   (SELECT count(*) FROM staged_dependency), (SELECT count(*) FROM staged_attempt),
                   (SELECT count(*) FROM staged_event_of)
              FROM staged_key
            """
        ).fetchone()
        self._rows = (imported, *rows)
        return imported, total - imported

    @property
    def rows(self) -> int:
        """About how many rows ``copy`` writes."""
        tasks, *others = self._rows
        return 2 * tasks + sum(others)  # with one event for each task

    @property
    def seconds(self) -> float:
        """About how long ``copy`` takes."""
        return sum(count * cost for count, cost in zip(self._rows, _COSTS, strict=True)) / 1_000_000

    def is_current(self, connection: db.Connection) -> bool:
        """Say whether the latest check would decide the same on the board as it is now.

        Takes time that grows with what has changed on the board since, and with the agents and schedules in the file.
        """
        found = connection.execute(
            """
            SELECT EXISTS (
                   SELECT 1 FROM (SELECT DISTINCT task_seq FROM event WHERE seq > :seen) JOIN task ON seq = task_seq
                    WHERE EXISTS (SELECT 1 FROM staged_key WHERE id = task.id)
                       OR EXISTS (SELECT 1 FROM staged_key
                                   WHERE dedupe_key = task.dedupe_key AND dedupe_key IS NOT NULL)
                       OR EXISTS (SELECT 1 FROM staged_key
                                   WHERE schedule_id = task.schedule_id AND occurrence_at = task.occurrence_at
                                     AND schedule_id IS NOT NULL))
                OR EXISTS (SELECT 1 FROM staged_agent JOIN agent USING (key) WHERE agent.name <> staged_agent.name)
                OR EXISTS (SELECT 1 FROM staged_schedule
                            WHERE skipped <> EXISTS (SELECT 1 FROM schedule
                                                      WHERE id = staged_schedule.id OR key = staged_schedule.key))
            """,
            {"seen": self._seen},
        ).fetchone()
        return not found[0]

    @staticmethod
    def _redirect(connection: db.Connection) -> set[int]:
        """Replace dependencies on tasks that an existing one stands in for; return the tasks that this changes."""
        rows = connection.execute(
            """
            UPDATE staged_dependency SET original_id = staged_dependency.id, id = other.existing_id
              FROM staged_key AS other
             WHERE other.id = staged_dependency.id AND other.skipped AND other.existing_id IS NOT NULL
               AND NOT EXISTS (SELECT 1 FROM staged_key WHERE id = other.id AND skipped = 0)
            RETURNING position
            """
        ).fetchall()
        return {row[0] for row in rows}

    def _resolve(self, connection: db.Connection) -> set[int]:
        """Find the rows of all dependencies; return the tasks that lose one.

        Raises:
            InvalidInput: there is no such task, or a task depends on itself.
        """
        connection.execute(
            """
            UPDATE staged_dependency
               SET number = (SELECT number FROM staged_key WHERE id = staged_dependency.id AND skipped = 0)
            """
        )
        connection.execute(
            """
            UPDATE staged_dependency SET target = (SELECT seq FROM task WHERE id = staged_dependency.id)
             WHERE number IS NULL
            """
        )
        connection.execute(
            """
            UPDATE staged_dependency SET dropped = 1
             WHERE position IN (SELECT position FROM staged_dependency WHERE original_id IS NOT NULL)
               AND EXISTS (SELECT 1 FROM staged_dependency AS other
                            WHERE other.position = staged_dependency.position
                              AND (other.target = staged_dependency.target OR other.number = staged_dependency.number)
                              AND other.place < staged_dependency.place)
            """
        )
        odd = connection.execute(
            f"""
            SELECT position, staged_dependency.place AS place_in_list, staged_dependency.id AS other, name,
                   target IS NULL AND staged_dependency.number IS NULL AS is_unknown, original_id,
                   staged_key.id AS id, staged_key.place AS place
              FROM staged_dependency JOIN staged_key USING (position)
             WHERE {_IS_IMPORTED}
               AND ((target IS NULL AND staged_dependency.number IS NULL)
                    OR staged_dependency.number = staged_key.number OR original_id IS NOT NULL)
             ORDER BY position, place_in_list
            """
        ).fetchall()
        changed: set[int] = set()
        for row in odd:
            if row["original_id"] is not None and not row["is_unknown"] and row["other"] != row["id"]:
                self._warn(
                    f"{row['id']} depends on {row['other']} instead of {row['original_id']}, "
                    "which has the same dedupe key or occurrence"
                )
                continue
            if row["original_id"] is None and row["name"] is None:
                if row["is_unknown"]:
                    what = f"unknown task: {row['other']} (neither in the file nor on the board)"
                else:
                    what = f"the task depends on itself: {row['other']}"
                _refuse(row["place"], f"blocked_by: {what}", "blocked_by")
            if row["name"] is not None and row["original_id"] is None:
                if row["is_unknown"]:
                    what = f"waits for {row['name']} only once that is imported, too"
                else:
                    what = f"ignored the dependency on {row['name']}, which is the task itself"
                self._warn(f"{row['place']}: {what}")
            connection.execute(
                "UPDATE staged_dependency SET dropped = 1 WHERE position = ? AND place = ?",
                (row["position"], row["place_in_list"]),
            )
            changed.add(row["position"])
        return changed

    def _skip_schedules(self, connection: db.Connection) -> None:
        for row in connection.execute(
            """
            UPDATE staged_schedule SET skipped = 1
             WHERE EXISTS (SELECT 1 FROM schedule WHERE id = staged_schedule.id OR key = staged_schedule.key)
            RETURNING name
            """
        ).fetchall():
            self._warn(f"skipped the schedule {row['name']!r}: the board already has one with this name or id")

    def _warn(self, sentence: str) -> None:
        if len(self.warnings) < WARNINGS:
            self.warnings.append(sentence)
        elif len(self.warnings) == WARNINGS:
            self.warnings.append("and more warnings of this kind")

    @staticmethod
    def report(connection: db.Connection, outcome: Outcome) -> None:
        """Count the skipped tasks of a file of ours, by reason."""
        for id_, reason in connection.execute(
            """
            SELECT staged_key.id,
                   CASE WHEN existing_id IS NULL THEN 'exists'
                        WHEN schedule_id IS NOT NULL THEN 'occurrence' ELSE 'dedupe_key' END
              FROM staged_key
             WHERE skipped AND NOT EXISTS (SELECT 1 FROM staged_issue WHERE position = staged_key.position)
             ORDER BY position
            """
        ):
            outcome.skip(reason, id_)

    @staticmethod
    def copy(tx: Transaction) -> None:
        """Copy to the board what the latest check did not skip; it must be current in this transaction."""
        base = tx.execute("SELECT coalesce(max(seq), 0) FROM task").fetchone()[0]
        values = {"now": tx.now, "actor": tx.by.name, "actor_kind": tx.by.kind, "base": base}
        for statement in _COPY:
            tx.execute(statement, values)


def _skip_existing(connection: db.Connection, new_id: Callable[[], str]) -> None:
    """Skip tasks that the board has already, by id, dedupe key or occurrence."""
    exists = "EXISTS (SELECT 1 FROM task WHERE id = staged_key.id)"
    for row in connection.execute(f"SELECT position FROM staged_key WHERE has_new_id AND {exists}").fetchall():
        connection.execute("UPDATE staged_key SET id = ? WHERE position = ?", (new_id(), row[0]))
    connection.execute(f"UPDATE staged_key SET skipped = 1 WHERE {exists}")
    for column, existing in (
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
        connection.execute(
            f"""
            UPDATE staged_key SET skipped = 1, existing_id = ({existing})
             WHERE skipped = 0 AND {column} IS NOT NULL AND EXISTS ({existing})
            """
        )


def _skip_repeated(connection: db.Connection) -> None:
    """Skip tasks whose id, dedupe key or occurrence an earlier task of the file has."""
    conditions = " OR ".join(
        f"""({columns}) IN (
            SELECT {columns} FROM staged_key WHERE skipped = 0 AND {columns.split(", ")[0]} IS NOT NULL
             GROUP BY {columns} HAVING count(*) > 1)"""
        for columns in ("id", "dedupe_key", "schedule_id, occurrence_at")
    )
    first: dict[tuple[str, ...], str] = {}
    skips: list[tuple[str | None, int]] = []
    for position, id_, key, schedule, at in connection.execute(
        f"""
        SELECT position, id, dedupe_key, schedule_id, occurrence_at FROM staged_key
         WHERE skipped = 0 AND ({conditions}) ORDER BY position
        """
    ):
        marks = [("id", id_), *([("key", key)] if key else []), *([(schedule, at)] if schedule else [])]
        earlier = [first[mark] for mark in marks if mark in first]
        if earlier:
            skips.append((None if earlier[0] == id_ else earlier[0], position))
        else:
            first.update(dict.fromkeys(marks, id_))
    connection.executemany("UPDATE staged_key SET skipped = 1, existing_id = ? WHERE position = ?", skips)


def _refuse_cycle(connection: db.Connection) -> None:
    """Refuse a dependency cycle; it can only be among the imported tasks."""
    size = connection.execute("SELECT count(*) FROM staged_key WHERE skipped = 0").fetchone()[0]
    edges = f"""
        SELECT staged_dependency.number AS dependency, staged_key.number AS dependent
          FROM staged_dependency JOIN staged_key USING (position)
         WHERE {_IS_IMPORTED} AND dropped = 0 AND staged_dependency.number IS NOT NULL
         ORDER BY dependency"""
    found = find_cycle(size, lambda: connection.execute(edges))
    if found:
        ids = dict(
            connection.execute(
                """
                SELECT number, coalesce(name, id) FROM staged_key LEFT JOIN staged_issue USING (position)
                 WHERE skipped = 0 AND number IN (SELECT value FROM json_each(?))
                """,
                (json.dumps(found),),
            ).fetchall()
        )
        raise InvalidInput(
            f"blocked_by: dependency cycle: {cycle([ids[number] for number in found])}",
            hint="Remove one of these dependencies from the file.",
            field="blocked_by",
        )


def _update_imported_events(connection: db.Connection, changed: set[int]) -> None:
    """Compute the `imported` events again of tasks that are not imported as the file has them."""
    renamed = connection.execute("SELECT key FROM staged_agent WHERE name <> written").fetchall()
    if renamed:
        keys = json.dumps([row[0] for row in renamed])
        changed = changed | {
            row[0]
            for row in connection.execute(
                """
                SELECT position FROM staged_task
                 WHERE assignee IN (SELECT value FROM json_each(:keys))
                    OR claimed_by IN (SELECT value FROM json_each(:keys))
                """,
                {"keys": keys},
            )
        }
    for position in changed:
        row = connection.execute(f"{SELECT_STATES} WHERE position = ?", (position,)).fetchone()
        state = NEW_TASK if row["history"] is None else json.loads(row["history"])
        data = imported_data(dict(row), state)
        connection.execute("UPDATE staged_imported SET data = ? WHERE position = ?", (data, position))


_FORGET = (
    "UPDATE staged_key SET skipped = 0, existing_id = NULL, number = NULL WHERE skipped OR number IS NOT NULL",
    """
    UPDATE staged_dependency
       SET id = coalesce(original_id, id), original_id = NULL, dropped = 0, target = NULL, number = NULL
     WHERE dropped OR target IS NOT NULL OR number IS NOT NULL OR original_id IS NOT NULL
    """,
    "UPDATE staged_agent SET imported = 0, first = NULL, last = NULL WHERE imported",
    "UPDATE staged_schedule SET skipped = 0 WHERE skipped",
    "DELETE FROM staged_event_of",
)
_PREPARE = (
    # Attempts tell when an agent was seen.
    f"""
    UPDATE staged_agent SET imported = 1, first = seen.first, last = seen.last
      FROM (SELECT key, min(first) AS first, max(last) AS last FROM (
                   SELECT assignee AS key, NULL AS first, NULL AS last
                     FROM staged_task JOIN staged_key USING (position) WHERE {_IS_IMPORTED} AND assignee IS NOT NULL
                   UNION ALL
                   SELECT claimed_by, NULL, NULL
                     FROM staged_task JOIN staged_key USING (position) WHERE {_IS_IMPORTED} AND claimed_by IS NOT NULL
                   UNION ALL
                   SELECT agent, claimed_at,
                          iif(outcome IN ('completed', 'failed', 'released', 'handed_off'), ended_at, claimed_at)
                     FROM staged_attempt JOIN staged_key ON id = task_id WHERE {_IS_IMPORTED})
             GROUP BY key) AS seen
     WHERE seen.key = staged_agent.key
    """,
    f"""
    INSERT INTO staged_event_of (place, number)
    SELECT staged_event.place, number FROM staged_event CROSS JOIN staged_key ON id = task_id
     WHERE {_IS_IMPORTED}
     ORDER BY staged_event.place
    """,
)
_COSTS = (15, 5, 5, 5)
"""Microseconds that ``copy`` takes for a task with its new event, a dependency, an attempt, an event; about."""
_COPIED = tuple(
    column for column in COLUMNS if column not in ("assignee", "claimed_by", "created_at", "updated_at", "finished_at")
)
_COPY = (
    # A trigger counts the attempts by outcome.
    """
    INSERT INTO agent (key, name, first_seen_at, last_seen_at)
    SELECT key, name, coalesce(first, :now), last FROM staged_agent WHERE imported
        ON CONFLICT (key) DO UPDATE
       SET last_seen_at = coalesce(max(last_seen_at, excluded.last_seen_at), last_seen_at, excluded.last_seen_at)
        ON CONFLICT (name) DO UPDATE
       SET last_seen_at = coalesce(max(last_seen_at, excluded.last_seen_at), last_seen_at, excluded.last_seen_at)
    """,
    f"""
    INSERT INTO task (seq, id, archived_at, delayed, assignee, claimed_by, created_at, updated_at, finished_at,
                      {", ".join(_COPIED)})
    SELECT :base + number, id, archived_at, coalesce(not_before > :now, 0),
           (SELECT name FROM staged_agent WHERE key = assignee), (SELECT name FROM staged_agent WHERE key = claimed_by),
           coalesce(created_at, :now), coalesce(updated_at, :now),
           iif(final, coalesce(finished_at, updated_at, :now), NULL),
           {", ".join(f"staged_task.{column}" for column in _COPIED)}
      FROM staged_key JOIN staged_task USING (position)
     WHERE {_IS_IMPORTED}
     ORDER BY position
    """,
    f"""
    INSERT INTO dependency (task_seq, depends_on_seq, position)
    SELECT :base + staged_key.number, coalesce(:base + staged_dependency.number, target), staged_dependency.place
      FROM staged_key JOIN staged_dependency USING (position)
     WHERE {_IS_IMPORTED} AND dropped = 0
     ORDER BY position, staged_dependency.place
    """,
    f"""
    INSERT INTO attempt (task_seq, number, agent, fence, claimed_at, ended_at, outcome, result, error, note)
    SELECT :base + staged_key.number, staged_attempt.number, name, fence, claimed_at, coalesce(ended_at, :now),
           coalesce(outcome, 'revoked'), result, error, note
      FROM staged_key CROSS JOIN staged_attempt ON task_id = id CROSS JOIN staged_agent ON key = agent
     WHERE {_IS_IMPORTED}
     ORDER BY position, staged_attempt.number
    """,
    """
    INSERT INTO event (task_seq, kind, actor, actor_kind, at, data, imported)
    SELECT :base + number, kind, actor, actor_kind, at, data, 1
      FROM staged_event_of CROSS JOIN staged_event USING (place)
     ORDER BY place
    """,
    f"""
    INSERT INTO event (task_seq, kind, actor, actor_kind, at, data)
    SELECT :base + number, 'imported', :actor, :actor_kind, :now, data
      FROM staged_key JOIN staged_imported USING (position)
     WHERE {_IS_IMPORTED}
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


def _refuse(place: str, what: str, field: str) -> NoReturn:
    raise InvalidInput(f"{place}: {what}", place=place, field=field)
