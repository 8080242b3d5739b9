"""Add and drop dependencies, refuse cycles, and describe the changes in sentences."""

from __future__ import annotations

import json

from .. import inputs
from ..errors import Conflict
from . import refusals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..model import TaskRow
    from .core import Transaction

SENTENCES = 10
"""Maximum number of dependencies that a receipt describes one by one."""
_TITLE = 60
"""Maximum number of characters of a title in a sentence."""


def find_all(tx: Transaction, references: Iterable[str]) -> dict[str, TaskRow]:
    """Return the tasks with these references, by id.

    Raises:
        NotFound: one of the tasks does not exist.
    """
    rows = (tx.find(reference, "depends_on") for reference in references)
    return {row["id"]: row for row in rows}


def add(tx: Transaction, row: TaskRow, others: dict[str, TaskRow]) -> list[str]:
    """Make a task depend on others; return sentences that say which task waits for which.

    Raises:
        Conflict: one of the others depends on the task, directly or through other tasks.
        InvalidInput: the task would have too many dependencies.
    """
    cycle = _cycle(tx, row, others)
    if cycle:
        is_long = len(cycle) > refusals.CYCLE_TASKS + 1
        raise Conflict(
            f"dependency cycle: {refusals.cycle(cycle)}",
            hint="Omit one of these dependencies, or drop another one first.",
            reason="cycle",
            cycle=cycle[: refusals.CYCLE_TASKS] if is_long else cycle,
            **({"more": len(cycle) - 1 - refusals.CYCLE_TASKS} if is_long else {}),
        )
    tx.executemany(
        """
        INSERT INTO dependency (task_seq, depends_on_seq, position)
        SELECT :seq, :other, coalesce(max(position), 0) + 1 FROM dependency WHERE task_seq = :seq
        """,
        [{"seq": row["seq"], "other": other["seq"]} for other in others.values()],
    )
    count = tx.execute("SELECT count(*) FROM dependency WHERE task_seq = ?", (row["seq"],)).fetchone()[0]
    inputs.at_most(count, "depends_on", inputs.DEPENDENCIES)
    return sentences(row, others.values(), "waits for", how_they_ended=True)


def drop(tx: Transaction, row: TaskRow, others: dict[str, TaskRow]) -> list[str]:
    """Remove dependencies of a task; return sentences that say what changed."""
    tx.executemany(
        "DELETE FROM dependency WHERE task_seq = ? AND depends_on_seq = ?",
        [(row["seq"], other["seq"]) for other in others.values()],
    )
    return sentences(row, others.values(), "no longer waits for")


def sentences(row: TaskRow, others: Iterable[TaskRow], verb: str, *, how_they_ended: bool = False) -> list[str]:
    """Return sentences that say which task waits for which, so that the direction of a dependency is clear.

    With ``how_they_ended``, they also say which of the others failed or were cancelled.
    """
    tasks = list(others)
    ends = {"failed": ", which failed", "cancelled": ", which was cancelled"} if how_they_ended else {}
    found = [f"{label(row)} {verb} {label(other)}{ends.get(other['status'], '')}" for other in tasks[:SENTENCES]]
    if len(tasks) > SENTENCES:
        found.append(f"{label(row)} {verb} {len(tasks) - SENTENCES:,} more tasks")
    return found


def of_new_tasks(tx: Transaction, after: int) -> list[str]:
    """Return the sentences about the dependencies of all tasks with a sequence number above ``after``."""
    edges = "FROM dependency WHERE task_seq > :after"
    pairs = tx.execute(
        f"SELECT task_seq, depends_on_seq {edges} ORDER BY task_seq, position LIMIT :limit",
        {"after": after, "limit": SENTENCES},
    ).fetchall()
    found = [one for seq, other in pairs for one in sentences(tx.task(seq), [tx.task(other)], "waits for")]
    if len(found) == SENTENCES:
        more = tx.execute(f"SELECT count(*) {edges}", {"after": after}).fetchone()[0] - SENTENCES
        found += [f"{more:,} more dependencies like these"] if more else []
    return found


def _cycle(tx: Transaction, row: TaskRow, others: dict[str, TaskRow]) -> list[str]:
    """Return the ids along the cycle that these dependencies would create, the first one repeated at the end."""
    if not tx.execute("SELECT 1 FROM dependency WHERE depends_on_seq = ? LIMIT 1", (row["seq"],)).fetchone():
        others = {id_: other for id_, other in others.items() if other["seq"] == row["seq"]}
    came_from: dict[int, tuple[int, str]] = {other["seq"]: (row["seq"], other["id"]) for other in others.values()}
    pending = list(came_from)
    while pending and row["seq"] not in came_from:
        at = pending.pop()
        for seq, id_ in tx.execute(
            """
            SELECT task.seq, task.id FROM dependency JOIN task ON task.seq = dependency.depends_on_seq
             WHERE dependency.task_seq = ?
            """,
            (at,),
        ).fetchall():
            if seq not in came_from:
                came_from[seq] = (at, id_)
                pending.append(seq)
    if row["seq"] not in came_from:
        return []
    path = [row["id"]]
    at = came_from[row["seq"]][0]
    while at != row["seq"]:
        at, id_ = came_from[at]
        path.append(id_)
    return [row["id"], *reversed(path[1:]), row["id"]]


def label(row: Mapping[str, Any]) -> str:
    """Return how a sentence names a task: its title, cut, and the end of its id."""
    title = row["title"]
    shortened = title if len(title) <= _TITLE else title[: _TITLE - 1] + "…"
    return f"{json.dumps(shortened, ensure_ascii=False)} ({row['id'][-6:]})"
