"""The verbs of people: approve or reject work in review."""

from __future__ import annotations

from .. import inputs
from ..errors import NotPermitted
from ..model import AGENT, REVIEW, Receipt
from .expiry import TO_QUEUE
from .history import changes
from .refusals import status_conflict
from .rows import to_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..identity import Actor
    from ..model import TaskRow
    from .core import Core, Transaction

IS_PERSON = """claimed_by IS NOT :actor
    AND NOT EXISTS (SELECT 1 FROM attempt WHERE task_seq = task.seq AND agent = :actor)"""
"""SQL: the actor never held a lease on the task; an imported task has a holder, but no attempts."""


def approve(core: Core, task: str, *, note: str | None, actor: Actor | None) -> Receipt:
    """Do what ``Board.approve`` promises."""
    note = inputs.note(note)
    return _judge(core, task, "approve", "approved", "status = 'done', finished_at = :now", note, actor)


def reject(core: Core, task: str, *, note: str, actor: Actor | None) -> Receipt:
    """Do what ``Board.reject`` promises."""
    note = inputs.text(note, "note", inputs.TEXT, required=True)
    return _judge(core, task, "reject", "rejected", f"{TO_QUEUE}, attempts = 0", note, actor)


def _judge(
    core: Core, task: str, verb: str, kind: str, assignments: str, note: str | None, actor: Actor | None
) -> Receipt:
    with core.write(core.caller(actor)) as tx:
        before = tx.find(task)
        require_person(tx, before, verb)
        after = tx.change(before, assignments, where=f"status = 'review' AND {IS_PERSON}", values={"actor": tx.by.name})
        if after is None:
            raise status_conflict(before, [REVIEW])
        tx.record(after, kind, {**changes(before, after), "note": note})
        return Receipt(to_task(after, tx.now))


def require_person(tx: Transaction, row: TaskRow, verb: str) -> None:
    """Refuse an actor that says it is an agent, or that has held a lease on this task.

    Raises:
        NotPermitted: the transaction's actor is such an actor.
    """
    who, by = None, tx.by
    if by.kind == AGENT:
        who = f"{by.name} is an agent"
    elif tx.execute(
        f"SELECT 1 FROM task WHERE seq = :seq AND NOT ({IS_PERSON})", {"seq": row["seq"], "actor": by.name}
    ).fetchone():
        who = f"{by.name} worked on task {row['id']}"
    if who is not None:
        raise NotPermitted(
            f"only a person may do this, but {who}",
            hint=(
                f"A person must do this, under their own name: in the browser, or with `atb {verb} {row['id']}` "
                "without ATB_AGENT."
            ),
        )
