"""Dependencies on issues that come in a later file: kept, and joined once the other issue is imported.

So the parts of a file that was split end the same in any order.
"""

from __future__ import annotations

import json

from ..board import history
from ..board.refusals import cycle
from ..errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..board.core import Transaction
    from ..model import TaskRow
    from ..storage.db import Connection

_COMES_IN = "(skipped = 0 OR fate = 'updated')"
"""SQL: the dependencies of a staged task become those of the task."""


def refuse_cycles(connection: Connection) -> None:
    """Refuse a cycle that the staged tasks would close with tasks of the board, before anything is written.

    Raises:
        InvalidInput: there is such a cycle; the message has the tracker's names.
    """
    starts = connection.execute(
        """
        SELECT task.id FROM staged_key JOIN awaited_dependency USING (id) JOIN task ON seq = task_seq
         WHERE skipped = 0
         UNION
        SELECT id FROM staged_key JOIN staged_issue USING (position) WHERE fate = 'updated'
        """
    ).fetchall()
    finished: set[str] = set()
    for (start,) in starts:
        if start in finished:
            continue
        path = {start: iter(_dependencies(connection, start))}
        while path:
            id_ = next(reversed(path))
            other = next(path[id_], None)
            if other is None:
                finished.add(id_)
                del path[id_]
            elif other in path:
                ids = list(path)[list(path).index(other) :]
                raise InvalidInput(
                    f"blocked_by: dependency cycle: {cycle([_name(connection, one) for one in (*ids, other)])}",
                    hint="Remove one of these dependencies from the file.",
                    field="blocked_by",
                )
            elif other not in finished:
                path[other] = iter(_dependencies(connection, other))


def _dependencies(connection: Connection, id_: str) -> list[str]:
    """Return what a task will depend on."""
    staged = connection.execute(
        f"""
        SELECT position FROM staged_key LEFT JOIN staged_issue USING (position) WHERE id = ? AND {_COMES_IN}
        """,
        (id_,),
    ).fetchone()
    if staged is not None:
        return [
            row[0]
            for row in connection.execute(
                "SELECT id FROM staged_dependency WHERE position = ? AND dropped = 0", (staged[0],)
            )
        ]
    return [
        row[0]
        for row in connection.execute(
            """
            SELECT other.id FROM task JOIN dependency ON task_seq = task.seq JOIN task AS other
                ON other.seq = depends_on_seq
             WHERE task.id = :id
             UNION ALL
            SELECT awaited_dependency.id FROM task JOIN awaited_dependency ON task_seq = task.seq WHERE task.id = :id
            """,
            {"id": id_},
        ).fetchall()
    ]


def _name(connection: Connection, id_: str) -> str:
    """Return what the tracker calls an issue."""
    row = connection.execute(
        """
        SELECT (SELECT name FROM staged_key JOIN staged_issue USING (position) WHERE id = :id),
               (SELECT params FROM task WHERE id = :id)
        """,
        {"id": id_},
    ).fetchone()
    if row[0] is not None:
        return str(row[0])
    for kept in json.loads(row[1] or "{}").values():
        if isinstance(kept, dict) and isinstance(kept.get("id"), str):
            return str(kept["id"])
    return id_


def join(tx: Transaction, base: int) -> None:
    """Keep the dependencies on what is not here, and add those that the new tasks were awaited for.

    ``base`` is the sequence number before the first task that this import has added.
    """
    tx.execute(
        f"""
        INSERT OR IGNORE INTO awaited_dependency (id, task_seq, name)
        SELECT staged_dependency.id, task.seq, staged_dependency.name
          FROM staged_dependency JOIN staged_key USING (position) LEFT JOIN staged_issue USING (position)
          JOIN task ON task.id = staged_key.id
         WHERE staged_dependency.name IS NOT NULL AND target IS NULL AND staged_dependency.number IS NULL
           AND original_id IS NULL AND {_COMES_IN}
        """
    )
    rows = tx.execute(
        """
        SELECT task_seq, :base + number AS seq FROM staged_key JOIN awaited_dependency USING (id)
         WHERE skipped = 0 ORDER BY task_seq, seq
        """,
        {"base": base},
    ).fetchall()
    waiting: dict[int, list[int]] = {}
    for seq, other in rows:
        waiting.setdefault(seq, []).append(other)
    for seq, others in waiting.items():
        before = tx.task(seq)
        tx.executemany(
            """
            INSERT OR IGNORE INTO dependency (task_seq, depends_on_seq, position)
            SELECT :seq, :other, coalesce(max(position), 0) + 1 FROM dependency WHERE task_seq = :seq
            """,
            [{"seq": seq, "other": other} for other in others],
        )
        # Not `updated_at`: that is the tracker's, and says whether a row is newer.
        tx.execute("UPDATE task SET version = version + 1 WHERE seq = ?", (seq,))
        record(tx, before)
    tx.execute("DELETE FROM awaited_dependency WHERE id IN (SELECT id FROM staged_key WHERE skipped = 0)")


def record(tx: Transaction, before: TaskRow, row_at: str | None = None) -> None:
    """Add an ``imported`` event with what an import has changed in a task of the board; it notifies no hooks.

    ``row_at`` is the ``updated_at`` of the row that it was changed from.
    """
    seq = before["seq"]
    data = history.changes(before, tx.task(seq)) | ({} if row_at is None else {"row_at": row_at})
    tx.execute(
        "INSERT INTO event (task_seq, kind, actor, actor_kind, at, data) VALUES (?, 'imported', ?, ?, ?, ?)",
        (seq, tx.by.name, tx.by.kind, tx.now, json.dumps(data, ensure_ascii=False, separators=(",", ":"))),
    )
