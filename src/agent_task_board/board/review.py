"""The verbs of a person: approve work, or send it back."""

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
"""SQL: nobody judges a task on which they held a lease; an imported task has its holder and no attempts."""


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
    """Refuse an agent: one that says it is an agent, and one that has worked on this very task.

    Raises:
        NotPermitted: the transaction's actor is one.
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
            f"only a person may do this, and {who}",
            hint=(
                f"A person does it under a name of their own: in the browser, or with `atb {verb} {row['id']}` "
                "without ATB_AGENT."
            ),
        )
