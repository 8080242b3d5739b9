"""Update tasks from newer rows of the tracker that they came from.

A task is updated if nobody has claimed or changed it since its import; comments do not count as a change.
"""

from __future__ import annotations

from .joining import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..board.core import Transaction
    from ..storage.db import Connection
    from .outcome import Outcome

_IS_UNTOUCHED = """
    (task.archived_at IS NULL AND task.status IN ('queued', 'done', 'failed', 'cancelled') AND NOT EXISTS (
        SELECT 1 FROM event AS later
         WHERE later.task_seq = task.seq AND kind NOT IN ('imported', 'commented')
           AND later.seq > (SELECT max(seq) FROM event AS import
                             WHERE import.task_seq = task.seq AND import.kind = 'imported')))"""
"""SQL: nobody has claimed or changed the task since its import."""
_ROW_AT = """
    coalesce((SELECT json_extract(data, '$.row_at') FROM event
               WHERE task_seq = task.seq AND kind = 'imported' AND json_extract(data, '$.row_at') IS NOT NULL
               ORDER BY seq DESC LIMIT 1), task.updated_at)"""
"""SQL: the ``updated_at`` of the row that the task was imported or updated from."""
_COLUMNS = "title body status priority due_at not_before tags params result updated_at".split()
"""What a newer row changes, with the assignee, the dependencies and ``finished_at``."""


def plan(connection: Connection) -> None:
    """Decide what becomes of each staged issue whose id is on the board."""
    connection.execute("UPDATE staged_issue SET fate = NULL WHERE fate IS NOT NULL")
    connection.execute(
        f"""
        UPDATE staged_issue
           SET fate = (
               SELECT CASE WHEN coalesce(staged_task.updated_at, '') <= {_ROW_AT} THEN 'exists'
                           WHEN NOT {_IS_UNTOUCHED} THEN 'changed_here'
                           WHEN task.status = 'done' AND staged_task.status <> 'done' THEN 'done_here'
                           ELSE 'updated' END
                 FROM staged_key JOIN staged_task USING (position) JOIN task ON task.id = staged_key.id
                WHERE staged_key.position = staged_issue.position)
         WHERE position IN (SELECT position FROM staged_key WHERE skipped)
        """
    )


def report(connection: Connection, outcome: Outcome) -> None:
    """Count what the latest check decided about the staged issues, and warn about those that come in held."""
    for name, fate in connection.execute(
        """
        SELECT name, fate FROM staged_key JOIN staged_issue USING (position) WHERE skipped ORDER BY position
        """
    ):
        if fate == "updated":
            outcome.update(name)
        else:
            outcome.skip(fate or "exists", name)
    for name, replaced, skipped in connection.execute(
        """
        SELECT name, replaced, skipped FROM staged_key JOIN staged_issue USING (position)
         WHERE replaced ORDER BY position
        """
    ):
        if skipped:
            for _ in range(replaced):
                outcome.skip("repeated", name)
        else:
            outcome.update(name, replaced)
    held: dict[str, int] = {}
    for name, reason in connection.execute(
        """
        SELECT name, held FROM staged_key JOIN staged_issue USING (position)
         WHERE held IS NOT NULL AND (skipped = 0 OR fate = 'updated') ORDER BY position
        """
    ):
        held[reason] = held.get(reason, 0) + 1
        outcome.detail("held", name)
    if held:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in held.items())
        outcome.warnings.append(f"held, with the tag `held`, until somebody changes `not_before`: {counts}")
    changed = outcome.details.get("changed_here")
    if changed:
        outcome.warnings.append(
            f"{changed['count']:,} newer rows did not change their tasks, which were claimed or changed on this board"
        )
    done = outcome.details.get("done_here")
    if done:
        outcome.warnings.append(f"{done['count']:,} newer rows reopen tasks that are done; a done task stays done")


def apply(tx: Transaction, base: int) -> None:
    """Update the tasks that the latest check planned to; it must be current in this transaction.

    ``base`` is the sequence number before the first task that this import has added.
    """
    rows = tx.execute(
        f"""
        SELECT position, task.seq AS seq, staged_key.id AS id, {", ".join(f"staged_task.{key}" for key in _COLUMNS)},
               (SELECT name FROM staged_agent WHERE key = staged_task.assignee) AS assignee,
               iif(final, coalesce(staged_task.finished_at, staged_task.updated_at), NULL) AS finished_at
          FROM staged_issue JOIN staged_key USING (position) JOIN staged_task USING (position)
          JOIN task ON task.id = staged_key.id
         WHERE fate = 'updated' ORDER BY position
        """
    ).fetchall()
    for row in rows:
        before = tx.task(row["seq"])
        if row["assignee"] is not None:
            tx.register_agent(row["assignee"])
        values = {key: row[key] for key in (*_COLUMNS, "assignee", "finished_at")}
        if before["status"] == "done":
            values["finished_at"] = before["finished_at"]
        tx.execute(
            f"""
            UPDATE task
               SET {", ".join(f"{key} = :{key}" for key in values)}, delayed = coalesce(:not_before > :now, 0),
                   version = version + 1
             WHERE seq = :seq AND {_IS_UNTOUCHED}
            """,
            {**values, "seq": row["seq"], "now": tx.now},
        )
        _replace_dependencies(tx, row["seq"], row["position"], base)
        _add_comments(tx, row["seq"], row["id"])
        record(tx, before, row["updated_at"])


def _replace_dependencies(tx: Transaction, seq: int, position: int, base: int) -> None:
    wanted = [
        row[0]
        for row in tx.execute(
            """
            SELECT DISTINCT coalesce(:base + number, target) FROM staged_dependency
             WHERE position = :position AND coalesce(number, target) IS NOT NULL ORDER BY place
            """,
            {"base": base, "position": position},
        ).fetchall()
        if row[0] != seq
    ]
    current = [
        row[0]
        for row in tx.execute(
            "SELECT depends_on_seq FROM dependency WHERE task_seq = ? ORDER BY position", (seq,)
        ).fetchall()
    ]
    if wanted != current:
        tx.execute("DELETE FROM dependency WHERE task_seq = ?", (seq,))
        tx.executemany(
            "INSERT INTO dependency (task_seq, depends_on_seq, position) VALUES (?, ?, ?)",
            [(seq, other, number) for number, other in enumerate(wanted, 1)],
        )
    tx.execute("DELETE FROM awaited_dependency WHERE task_seq = ?", (seq,))


def _add_comments(tx: Transaction, seq: int, id_: str) -> None:
    tx.execute(
        """
        INSERT INTO event (task_seq, kind, actor, actor_kind, at, data, imported)
        SELECT :seq, kind, actor, actor_kind, at, data, 1 FROM staged_event
         WHERE task_id = :id
           AND NOT EXISTS (SELECT 1 FROM event AS known
                            WHERE known.task_seq = :seq AND known.kind = 'commented' AND known.at = staged_event.at
                              AND known.data = staged_event.data)
         ORDER BY place
        """,
        {"seq": seq, "id": id_},
    )
