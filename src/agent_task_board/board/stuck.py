"""Stuck tasks: queued ones that wait, directly or through others, for a task that failed or was cancelled.

They start only if somebody acts. The column ``stuck`` holds it, so that no claim, list or count has to search;
``settle`` updates it in the transaction of every change of a status or a dependency.
"""

from __future__ import annotations

import json

from ..model import CANCELLED, FAILED, QUEUED
from .predicates import IS_BLOCKED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..model import Link
    from ..storage.db import Connection, Row
    from .core import Transaction

ENDS = (FAILED, CANCELLED)
"""The statuses that never let a dependent start."""

NAMED = 3
"""The most stuck tasks that one sentence names."""

REMEDY = "retry that task, drop the dependency, or cancel what waits for it"
"""What can be done about stuck tasks."""

IS_DEAD_END = "(other.status IN ('failed', 'cancelled') OR other.stuck = 1)"
"""SQL: what waits for ``other`` is stuck."""
HAS_DEAD_END = f"""
    (SELECT EXISTS (SELECT 1 FROM dependency JOIN task AS other ON other.seq = depends_on_seq
                     WHERE task_seq = task.seq AND {IS_DEAD_END}))"""
"""SQL: a task has a dependency that makes it stuck."""

_WAIT_BEHIND = """
    WITH RECURSIVE behind (seq) AS (
      {first}
       UNION
      SELECT task_seq FROM behind JOIN dependency ON depends_on_seq = behind.seq JOIN task ON task.seq = task_seq
       WHERE task.status = 'queued' AND task.stuck = {stuck})
    SELECT seq FROM behind"""
_BEHIND_ONE = """
    SELECT task_seq FROM dependency JOIN task ON task.seq = task_seq
     WHERE depends_on_seq = :seq AND task.status = 'queued' AND task.stuck = {stuck}"""
_AMONG = f"SELECT seq FROM json_each(:among) JOIN task ON seq = value WHERE {HAS_DEAD_END}"

_STUCK = """
    WITH RECURSIVE behind (seq) AS (
      SELECT task_seq FROM task JOIN dependency ON task_seq = task.seq JOIN task AS other ON other.seq = depends_on_seq
       WHERE task.status = 'queued' AND task.open_dependencies > 0 AND other.status IN ('failed', 'cancelled')
       UNION
      SELECT task_seq FROM behind JOIN dependency ON depends_on_seq = behind.seq JOIN task ON task.seq = task_seq
       WHERE task.status = 'queued')
    SELECT seq FROM behind"""
"""SQL: every stuck task, by its definition."""

WRONGLY_STUCK = f"SELECT id FROM task WHERE stuck <> (seq IN ({_STUCK}))"
"""SQL: the tasks whose flag differs from the definition."""


def settle(tx: Transaction, seq: int, *, was_dead_end: bool | None = None) -> bool:
    """Update the flag of a task, and of those that wait for it, after a change of its status or its dependencies.

    Appends to ``tx.warnings`` which tasks are stuck now, and why. ``was_dead_end`` says whether tasks that waited for
    it were stuck before a change of its status.

    Returns:
        Whether the task itself is stuck now.
    """
    row = tx.execute(
        f"""
        SELECT seq, id, title, status, stuck, {IS_BLOCKED} AND {HAS_DEAD_END} AS found FROM task WHERE seq = ?
        """,
        (seq,),
    ).fetchone()
    is_stuck = bool(row["found"])
    if was_dead_end is None:
        was_dead_end = row["status"] in ENDS or row["stuck"] == 1
    if is_stuck != row["stuck"]:
        tx.execute("UPDATE task SET stuck = ? WHERE seq = ?", (is_stuck, seq))
    is_dead_end = is_stuck or row["status"] in ENDS
    more: Sequence[int] = ()
    if is_dead_end and not was_dead_end:
        more = _mark_behind(tx, seq)
    elif was_dead_end and not is_dead_end:
        _unmark_behind(tx, seq)
    if is_stuck and not row["stuck"]:
        found = cause(tx, seq)
        if found is not None:
            tx.warnings.append(why(row, found))
    if more:
        tx.warnings.append(_also_stuck(tx, row, more))
    return is_stuck


def settle_all(tx: Connection) -> tuple[list[int], int]:
    """Set every flag anew, after many changes at once.

    Returns:
        The sequence numbers of the tasks that are stuck now and were not, and how many are no longer stuck.
    """
    lost = tx.execute(f"UPDATE task SET stuck = 0 WHERE stuck = 1 AND seq NOT IN ({_STUCK}) RETURNING seq").fetchall()
    new = tx.execute(f"UPDATE task SET stuck = 1 WHERE stuck = 0 AND seq IN ({_STUCK}) RETURNING seq").fetchall()
    return sorted(row[0] for row in new), len(lost)


def imported(tx: Transaction) -> list[str]:
    """Settle every flag after an import; return sentences about the tasks that are stuck now, with the first ones."""
    seqs, _ = settle_all(tx.connection)
    if not seqs:
        return []
    found = [(tx.task(seq), cause(tx, seq)) for seq in seqs[:NAMED]]
    sentences = [why(row, link) for row, link in found if link is not None]
    if len(seqs) > NAMED:
        sentences.append(f"{len(seqs) - NAMED:,} more imported tasks are stuck; see `atb list --stuck`")
    return sentences


def _mark_behind(tx: Transaction, seq: int) -> list[int]:
    behind = _WAIT_BEHIND.format(first=_BEHIND_ONE.format(stuck=0), stuck=0)
    rows = tx.execute(f"UPDATE task SET stuck = 1 WHERE seq IN ({behind}) RETURNING seq", {"seq": seq}).fetchall()
    return sorted(row[0] for row in rows)


def _unmark_behind(tx: Transaction, seq: int) -> None:
    """Remove the marks of tasks that waited for a task; those that another one keeps stuck get theirs again."""
    behind = _WAIT_BEHIND.format(first=_BEHIND_ONE.format(stuck=1), stuck=1)
    rows = tx.execute(f"UPDATE task SET stuck = 0 WHERE seq IN ({behind}) RETURNING seq", {"seq": seq}).fetchall()
    if rows:
        among = json.dumps([row[0] for row in rows])
        still = _WAIT_BEHIND.format(first=_AMONG, stuck=0)
        tx.execute(f"UPDATE task SET stuck = 1 WHERE seq IN ({still})", {"among": among})


# Why


def cause(tx: Transaction, seq: int) -> Link | None:
    """Return the failed or cancelled task that keeps a task stuck, one of the nearest; ``None`` if there is none."""
    row = tx.execute(
        """
        WITH RECURSIVE ahead (seq) AS (
          SELECT * FROM (SELECT depends_on_seq FROM dependency WHERE task_seq = :seq ORDER BY position)
           UNION
          SELECT depends_on_seq FROM ahead JOIN task USING (seq) JOIN dependency ON task_seq = ahead.seq
           WHERE task.stuck = 1)
        SELECT id, title, status FROM ahead JOIN task USING (seq) WHERE status IN ('failed', 'cancelled') LIMIT 1
        """,
        {"seq": seq},
    ).fetchone()
    return None if row is None else _link(row)


def causes(tx: Transaction, limit: int) -> dict[str, Link]:
    """Return for the first ``limit`` stuck tasks, by id, the failed or cancelled task that keeps each stuck."""
    found: dict[int, Link] = {}
    ids: dict[int, str] = {}
    waiting: dict[int, list[int]] = {}
    for row in tx.execute(
        f"""
        SELECT task.seq AS task_seq, task.id AS task_id, other.seq AS other_seq, other.id, other.title, other.status
          FROM (SELECT seq, id FROM task WHERE stuck = 1 ORDER BY seq LIMIT :limit) AS task
          JOIN dependency ON dependency.task_seq = task.seq JOIN task AS other ON other.seq = depends_on_seq
         WHERE {IS_DEAD_END}
         ORDER BY task.seq, position
        """,
        {"limit": limit},
    ).fetchall():
        ids[row["task_seq"]] = row["task_id"]
        if row["status"] in ENDS:
            found.setdefault(row["task_seq"], _link(row))
        else:
            waiting.setdefault(row["other_seq"], []).append(row["task_seq"])
    pending = list(found)
    for seq in pending:  # grows: nearest tasks first
        for behind in waiting.get(seq, ()):
            if behind not in found:
                found[behind] = found[seq]
                pending.append(behind)
    return {ids[seq]: link for seq, link in found.items()}


def why(row: Mapping[str, Any], link: Link) -> str:
    """Return the sentence that says why a task is stuck and what can be done."""
    cause = f"it waits for {_name(link)}, which {ended(link['status'])}"
    return f"{_name(row)} is stuck: {cause}; {REMEDY}"


def _also_stuck(tx: Transaction, row: Row, seqs: Sequence[int]) -> str:
    """Return the sentence about tasks that a change of another task made stuck."""
    some = json.dumps(seqs[:NAMED])
    named = [
        _name(one)
        for one in tx.execute("SELECT id, title FROM task WHERE seq IN (SELECT value FROM json_each(?))", (some,))
    ]
    more = f" and {len(seqs) - len(named):,} more" if len(seqs) > len(named) else ""
    one = len(seqs) == 1
    waiting = f"{', '.join(named)}{more} {'waits' if one else 'wait'} for {_name(row)}"
    if row["status"] == QUEUED:
        return f"{waiting} and {'is' if one else 'are'} stuck, too"
    return f"{waiting}, which {ended(row['status'])}, and cannot start; {REMEDY}"


def ended(status: str) -> str:
    """Return how a task ended, for the end of a sentence."""
    return "was cancelled" if status == CANCELLED else status


def _link(row: Row) -> Link:
    return {"id": row["id"], "title": row["title"], "status": row["status"]}


def _name(row: Any) -> str:
    from .dependencies import label

    return label(row)
