"""The verbs of people: approve or reject work in review."""

from __future__ import annotations

from .. import inputs
from ..errors import NotPermitted
from ..model import AGENT, REVIEW, Receipt
from .expiry import TO_QUEUE
from .history import changes
from .refusals import shown, status_conflict
from .rows import to_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..identity import Actor
    from ..model import TaskRow
    from .core import Core, Transaction

IS_PERSON = """claimed_by IS NOT :actor
    AND NOT EXISTS (
        SELECT 1 FROM attempt
         WHERE task_seq = task.seq AND agent = :actor
           AND NOT (task.status = 'done' AND task.claimed_by IS NULL AND fence = task.fence))"""
"""SQL: nobody judges a task on which they held a lease; an imported task has its holder and no attempts.

The last attempt of a done task without a holder is the ``done`` of a person, who held no lease.
"""


def approve(core: Core, task: str, *, note: str | None, actor: Actor | None) -> Receipt:
    """Do what ``Board.approve`` promises."""
    note = inputs.note(note)
    return _judge(core, task, "approved", "status = 'done', finished_at = :now", note, actor)


def reject(core: Core, task: str, *, note: str, actor: Actor | None) -> Receipt:
    """Do what ``Board.reject`` promises."""
    note = inputs.text(note, "note", inputs.TEXT, required=True)
    return _judge(core, task, "rejected", f"{TO_QUEUE}, attempts = 0", note, actor)


def _judge(core: Core, task: str, kind: str, assignments: str, note: str | None, actor: Actor | None) -> Receipt:
    with core.write(core.caller(actor)) as tx:
        before = tx.find(task)
        require_person(tx, before)
        after = tx.change(before, assignments, where=f"status = 'review' AND {IS_PERSON}", values={"actor": tx.by.name})
        if after is None:
            raise status_conflict(before, [REVIEW])
        tx.record(after, kind, {**changes(before, after), "note": note})
        return Receipt(to_task(after, tx.now), warnings=tx.warnings)


def require_person(tx: Transaction, row: TaskRow) -> None:
    """Refuse an agent: one that says it is an agent, and one that has worked on this very task.

    The refusal names who can do it and gives an agent no way round.

    Raises:
        NotPermitted: the transaction's actor is such an actor.
    """
    who = None
    if tx.by.kind == AGENT:
        who = f"{shown(tx.by.name)} is an agent"
    elif not is_person(tx, row):
        who = f"{shown(tx.by.name)} worked on task {row['id']}"
    if who is not None:
        raise NotPermitted(
            f"only a person may do this, but {who}",
            hint="Leave it to a person, who does it in the browser or from a shell of their own.",
        )


def is_person(tx: Transaction, row: TaskRow) -> bool:
    """Say whether the transaction's actor counts as a person with regard to a task."""
    values = {"seq": row["seq"], "actor": tx.by.name}
    worked = tx.execute(f"SELECT 1 FROM task WHERE seq = :seq AND NOT ({IS_PERSON})", values).fetchone()
    return tx.by.kind != AGENT and worked is None
