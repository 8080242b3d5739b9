"""Returned tasks: a person rejected the work handed in, and nothing has been handed in since.

The stored outcome of the attempt stays ``completed``; what a person made of it is read from the events.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model import Returned
    from ..storage.db import Row
    from .core import Transaction

_REJECTED = "kind IN ('released', 'handed_off', 'rejected', 'reassigned', 'cancelled') AND kind = 'rejected'"
"""SQL: an event that returned a task; the index of notes has these kinds."""
_LATEST = f"(SELECT max(seq) FROM event WHERE task_seq = task.seq AND {_REJECTED})"
_NOW_RETURNED = f"""
    SELECT task.id, event.actor, event.at, event.data ->> 'note' AS note, imported
      FROM task JOIN event ON event.seq = {_LATEST}
     WHERE finished_at IS NULL AND fence > 0 AND status <> 'review' AND {{which}}
       AND NOT EXISTS (SELECT 1 FROM event AS later
                        WHERE later.task_seq = task.seq AND later.seq > event.seq AND later.kind = 'completed')
     ORDER BY task.seq LIMIT :limit"""


def returned_tasks(tx: Transaction, limit: int) -> dict[str, Returned]:
    """Return for the first ``limit`` returned tasks, by id, who returned each, when, and with which note."""
    return {row["id"]: _returned(row) for row in tx.execute(_NOW_RETURNED.format(which="1"), {"limit": limit})}


def returned(tx: Transaction, seq: int) -> Returned | None:
    """Return who returned a task, when, and with which note; ``None`` if it is not returned."""
    row = tx.execute(_NOW_RETURNED.format(which="task.seq = :seq"), {"seq": seq, "limit": 1}).fetchone()
    return None if row is None else _returned(row)


def returned_attempts(tx: Transaction, seq: int) -> set[int]:
    """Return the numbers of a task's attempts whose work a person rejected."""
    rows = tx.execute(
        f"""
        SELECT (SELECT data ->> 'attempt' FROM event AS submitted
                 WHERE submitted.task_seq = event.task_seq AND submitted.seq < event.seq AND kind = 'completed'
                 ORDER BY submitted.seq DESC LIMIT 1)
          FROM event WHERE task_seq = ? AND {_REJECTED}
        """,
        (seq,),
    ).fetchall()
    return {row[0] for row in rows if row[0] is not None}


def _returned(row: Row) -> Returned:
    found: Returned = {"by": row["actor"], "at": row["at"], "note": row["note"]}
    if row["imported"]:
        found["imported"] = True
    return found
