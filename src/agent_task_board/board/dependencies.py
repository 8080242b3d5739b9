"""Dependencies: who waits for whom, told in sentences, and never in a cycle."""

from __future__ import annotations

from .. import inputs
from ..errors import Conflict
from . import refusals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..model import TaskRow
    from .core import Transaction

SENTENCES = 10
"""Dependencies that a receipt spells out, at most."""
_TITLE = 60


def find_all(tx: Transaction, references: Iterable[str]) -> dict[str, TaskRow]:
    """Return the tasks that references name, by id.

    Raises:
        NotFound: one of them does not exist.
    """
    rows = (tx.find(reference, "depends_on") for reference in references)
    return {row["id"]: row for row in rows}


def add(tx: Transaction, row: TaskRow, others: dict[str, TaskRow]) -> list[str]:
    """Let a task wait for others; return who waits for whom, in sentences.

    Raises:
        Conflict: the others wait for the task themselves, directly or along a chain.
        InvalidInput: the task would have too many dependencies.
    """
    cycle = _cycle(tx, row, others)
    if cycle:
        raise Conflict(
            f"this would close a cycle: {refusals.cycle(cycle)}",
            hint="Leave out one of these dependencies, or drop another one first.",
            reason="cycle",
            cycle=cycle,
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
    return sentences(row, others.values(), "waits for")


def drop(tx: Transaction, row: TaskRow, others: dict[str, TaskRow]) -> list[str]:
    """Let a task no longer wait for others; return what changed, in sentences."""
    tx.executemany(
        "DELETE FROM dependency WHERE task_seq = ? AND depends_on_seq = ?",
        [(row["seq"], other["seq"]) for other in others.values()],
    )
    return sentences(row, others.values(), "no longer waits for")


def sentences(row: TaskRow, others: Iterable[TaskRow], verb: str) -> list[str]:
    """Say who waits for whom, so that nobody gets the direction of a dependency wrong."""
    everyone = list(others)
    said = [f"{_shown(row)} {verb} {_shown(other)}" for other in everyone[:SENTENCES]]
    if len(everyone) > SENTENCES:
        said.append(f"{_shown(row)} {verb} {len(everyone) - SENTENCES:,} more tasks")
    return said


def _cycle(tx: Transaction, row: TaskRow, others: dict[str, TaskRow]) -> list[str]:
    """Return the ids along the cycle that these dependencies would close, its first id again at its end."""
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


def _shown(row: TaskRow) -> str:
    title = row["title"]
    return f'"{title if len(title) <= _TITLE else title[: _TITLE - 1] + "…"}" ({row["id"][-6:]})'
