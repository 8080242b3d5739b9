"""Releases: for a while, the claims of an agent take the equals of a task that it has released first.

Without this, an agent that releases the best task would get the same one again at once. For other agents, and for a
claim by id, the order does not change.
"""

from __future__ import annotations

from .. import instants
from .predicates import IS_CLAIMABLE_BY, IS_DUE, IS_PROMOTED, IS_RELEASE_LIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..model import TaskRow
    from .core import Transaction

WALKED = 200
"""The most released tasks that one claim passes over in search of an equal: a claim must not cost more on any board."""
REMOVED = 200
"""The most rows whose time has passed that one release removes."""

_IS_RELEASED = f"EXISTS (SELECT 1 FROM released WHERE {IS_RELEASE_LIVE} AND task_seq = task.seq)"


def remember(tx: Transaction, task: TaskRow, length: int) -> None:
    """Remember that the holder of a task has just released it, for ``length`` milliseconds."""
    agent = task["claimed_by"]
    tx.execute(
        f"""
        DELETE FROM released
         WHERE agent = :agent AND task_seq IN (
               SELECT task_seq FROM released INDEXED BY released_until
                WHERE agent = :agent AND until <= :now LIMIT {REMOVED})
        """,
        {"agent": agent, "now": tx.now},
    )
    if length > 0:
        tx.execute(
            """
            INSERT INTO released (agent, task_seq, until) VALUES (?, ?, ?)
                ON CONFLICT (task_seq, agent) DO UPDATE SET until = excluded.until
            """,
            (agent, task["seq"], instants.to_text(tx.instant + length)),
        )


def best_in_turn(
    tx: Transaction, best: str, heads: Sequence[tuple[str, str]], tagged: str, values: dict[str, Any]
) -> int | None:
    """Return the sequence number of the task that an agent with recent releases claims; ``None`` if none is ready.

    ``best`` is SQL for sequence number and priority of the best ready task. If the agent has released it lately, the
    oldest of its equals that it has not released goes first; if there is none, the one that it released first.
    ``heads`` are pairs of an index of ready tasks and a condition; ``tagged`` is one more condition.
    """
    first = tx.execute(best, {**values, "now": tx.now}).fetchone()
    if first is None:
        return None
    seq: int = first["seq"]
    values = {**values, "now": tx.now, "seq": seq, "priority": first["priority"]}
    if not tx.execute(f"SELECT 1 FROM task WHERE seq = :seq AND {_IS_RELEASED}", values).fetchone():
        return seq
    is_ready = f"{IS_PROMOTED} AND {IS_DUE} AND priority = :priority"
    equals = " UNION ALL ".join(
        f"""
        SELECT * FROM (
            SELECT seq FROM (
                SELECT seq FROM task INDEXED BY {index}
                 WHERE {is_ready} AND {condition} AND {tagged}
                 ORDER BY seq LIMIT {WALKED}) AS task
             WHERE NOT {_IS_RELEASED} LIMIT 1)"""
        for index, condition in heads
    )
    row = tx.execute(f"SELECT min(seq) FROM ({equals})", values).fetchone()
    if row[0] is not None:
        return int(row[0])
    anywhere = " OR ".join(f"({condition})" for _, condition in heads)
    row = tx.execute(
        f"""
        SELECT task.seq
          FROM (SELECT task_seq FROM released INDEXED BY released_until
                 WHERE {IS_RELEASE_LIVE} ORDER BY until LIMIT {WALKED})
               CROSS JOIN task ON task.seq = task_seq
         WHERE {is_ready} AND {IS_CLAIMABLE_BY} AND ({anywhere}) AND {tagged} LIMIT 1
        """,
        values,
    ).fetchone()
    return seq if row is None else int(row[0])
