"""The verbs of a person: approve work or send it back."""

from __future__ import annotations

from .. import inputs, instants
from ..errors import NotPermitted
from ..model import AGENT, COLUMNS, REVIEW, Receipt, Task, task_rows
from .core import BACK_TO_QUEUE, Core, changes, status_conflict

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from ..identity import Actor
    from ..model import TaskRow

PERSON = """claimed_by IS NOT :actor
    AND NOT EXISTS (SELECT 1 FROM attempt WHERE task_seq = task.seq AND agent = :actor)"""
"""SQL: nobody judges work that they held a lease on themselves; an imported task has its holder and no attempts."""


class Reviewing(Core):
    """Approve and reject."""

    def approve(self, task: str, *, note: str | None = None, actor: Actor | None = None) -> Receipt:
        """Accept work in review: the task is done, and what waits for it may start.

        Raises:
            NotFound: no such task.
            NotPermitted: the caller is an agent, or held a lease on this task.
            Conflict: the task is not in review.
        """
        note = inputs.note(note)
        return self._judge(task, "approve", "approved", "status = 'done', finished_at = :now", note, actor)

    def reject(self, task: str, *, note: str, actor: Actor | None = None) -> Receipt:
        """Send work in review back to the queue with a new budget of attempts; its result stays for inspection.

        Raises:
            NotFound: no such task.
            NotPermitted: the caller is an agent, or held a lease on this task.
            Conflict: the task is not in review.
        """
        note = inputs.text(note, "note", inputs.TEXT, required=True)
        return self._judge(task, "reject", "rejected", f"{BACK_TO_QUEUE}, attempts = 0", note, actor)

    def _judge(self, task: str, verb: str, kind: str, ending: str, note: str | None, actor: Actor | None) -> Receipt:
        by = self._caller(actor)
        with self._db.write() as tx:
            now = instants.to_text(self._clock())
            before = self._row(tx, task)
            by.name = self._known_as(tx, by.name)
            self._require_person(tx, before, by, verb)
            rows = task_rows(
                tx,
                f"""
                UPDATE task
                   SET {ending}, version = version + 1, updated_at = :now
                 WHERE seq = :seq AND status = 'review' AND {PERSON}
                RETURNING {COLUMNS}
                """,
                {"seq": before["seq"], "now": now, "actor": by.name},
            )
            if not rows:
                raise status_conflict(before, [REVIEW])
            after = rows[0]
            self._record(tx, after, kind, by, now, {**changes(before, after), "note": note})
            return Receipt(Task.from_row(after, now))

    @staticmethod
    def _require_person(tx: sqlite3.Connection, row: TaskRow, by: Actor, verb: str) -> None:
        """Refuse an agent, whether it says so or has shown it by working on this very task.

        Raises:
            NotPermitted: the caller is one.
        """
        who = None
        if by.kind == AGENT:
            who = f"{by.name} is an agent"
        elif tx.execute(
            f"SELECT 1 FROM task WHERE seq = :seq AND NOT ({PERSON})", {"seq": row["seq"], "actor": by.name}
        ).fetchone():
            who = f"{by.name} worked on task {row['id']}"
        if who is not None:
            raise NotPermitted(
                f"only a person may do this, and {who}",
                hint=(
                    f"A person does it under a name of their own: in the browser, or by `atb {verb} {row['id']}` "
                    "without ATB_AGENT."
                ),
            )
