"""The outbox: notifications, queued in the transaction of the change and kept until they are delivered or have failed.

A process reserves a row for delivery by moving its ``due_at`` beyond the time limit of an attempt. So no two processes
deliver it at once, and a row whose process was killed becomes due again. A row with attempts, no error and a future
``due_at`` is being delivered.
"""

from __future__ import annotations

from .. import inputs, instants
from ..backoff import delay
from ..board.core import system
from ..board.rows import EVENT_COLUMNS, to_event, to_task
from ..errors import Conflict, NotFound
from .message import Message, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..board.core import Core, Transaction
    from ..model import TaskRow
    from ..settings import Hooks
    from ..storage.db import Row

ATTEMPTS = 8
"""How many attempts a delivery gets."""
BACKOFF = 30 * instants.SECOND
BACKOFF_CAP = instants.HOUR
RESERVED = 60 * instants.SECOND
"""How long a row is reserved for the process that delivers it; longer than any attempt."""
GIVEN_UP = instants.DAY
"""How long a delivery waits for a target that is not configured any more."""
KEPT = 7 * instants.DAY
"""How long delivered and failed deliveries are kept."""
STATUSES = ("pending", "delivered", "failed")

_DUE = "status = 'pending' AND due_at <= :now AND target IN (:first, :second)"
_ASTRAY = "status = 'pending' AND due_at > :horizon AND target IN (:first, :second)"
"""SQL: a row is due; and a row is further ahead than any wait, because the clock was set back."""
_BATCH = 500


class Delivery:
    """A row that this process has reserved, with its message."""

    __slots__ = ("attempt", "id", "message", "target", "task")

    def __init__(self, row: Row, task: TaskRow, message: Message) -> None:
        self.id: str = row["id"]
        self.target: str = row["target"]
        self.attempt: int = row["attempts"]
        self.task = task
        self.message = message


def is_anything_due(core: Core, hooks: Hooks) -> bool:
    """Say whether any delivery is due."""
    with core.read() as tx:
        found: int = tx.execute(
            f"SELECT EXISTS (SELECT 1 FROM outbox WHERE {_DUE}) OR EXISTS (SELECT 1 FROM outbox WHERE {_ASTRAY})",
            _due_at(hooks, tx),
        ).fetchone()[0]
        return bool(found)


def next_due(core: Core) -> float | None:
    """Return the seconds until the next delivery is due; ``None`` if there is none."""
    hooks = core.settings.hooks
    if hooks is None:
        return None
    with core.read() as tx:
        due = tx.execute(
            "SELECT min(due_at) FROM outbox WHERE status = 'pending' AND target IN (?, ?)", _targets(hooks)
        ).fetchone()[0]
        return None if due is None else max(0.1, (instants.from_text(due) - tx.instant) / instants.SECOND)


def reserve(core: Core, hooks: Hooks) -> Delivery | None:
    """Reserve the row that has been due longest; ``None`` if there is none, or its attempts are used up."""
    with core.write(system()) as tx:
        rows = tx.execute(
            f"""
            UPDATE outbox SET attempts = attempts + 1, error = NULL, due_at = :later, process = NULL
             WHERE id = coalesce(
                   (SELECT id FROM outbox INDEXED BY outbox_due WHERE {_DUE} ORDER BY due_at, event_seq LIMIT 1),
                   (SELECT id FROM outbox INDEXED BY outbox_due WHERE {_ASTRAY} ORDER BY due_at, event_seq LIMIT 1))
               AND status = 'pending'
            RETURNING *
            """,
            {**_due_at(hooks, tx), "later": instants.to_text(tx.instant + RESERVED)},
        ).fetchall()
        if not rows:
            return None
        delivery = _with_message(tx, rows[0])
        if delivery.attempt <= ATTEMPTS:
            return delivery
        # The last attempt began, but its process ended before it recorded an outcome.
        delivery.attempt = ATTEMPTS
        tx.execute("UPDATE outbox SET attempts = ? WHERE id = ?", (ATTEMPTS, delivery.id))
        _record(tx, delivery, Outcome("the delivering process ended before the attempt did"))
        return None


def record_outcome(core: Core, delivery: Delivery, outcome: Outcome) -> None:
    """Record the outcome of an attempt in its row and as an event of the task.

    If this process was stopped for long, another process may have the row; then a failure does not change it.
    """
    with core.write(system()) as tx:
        _record(tx, delivery, outcome)


def _targets(hooks: Hooks) -> tuple[str, str]:
    """Return the configured targets as two parameters of a statement."""
    configured = hooks.targets()
    return configured[0], configured[-1]


def _due_at(hooks: Hooks, tx: Transaction) -> dict[str, str]:
    first, second = _targets(hooks)
    horizon = instants.to_text(tx.instant + BACKOFF_CAP + instants.MINUTE)
    return {"first": first, "second": second, "now": tx.now, "horizon": horizon}


def _with_message(tx: Transaction, row: Row) -> Delivery:
    event = tx.execute(f"SELECT {EVENT_COLUMNS}, task_seq FROM event WHERE seq = ?", (row["event_seq"],)).fetchone()
    task = tx.task(event["task_seq"])
    shown = to_event(event, task["id"])
    return Delivery(row, task, Message(row["id"], row["told"], dict(shown), to_task(task, tx.now).to_dict()))


def _record(tx: Transaction, delivery: Delivery, outcome: Outcome) -> None:
    if outcome.error is None:
        status, guard = "delivered", ""
    else:
        status = "failed" if delivery.attempt >= ATTEMPTS else "pending"
        guard = "AND attempts = :attempt AND error IS NULL"
    ended = status != "pending"
    wait = delay(delivery.attempt, base=BACKOFF, cap=BACKOFF_CAP)
    tx.execute(
        f"""
        UPDATE outbox
           SET status = :status, error = :error, due_at = :due, ended_at = :ended, process = NULL
         WHERE id = :id AND status = 'pending' {guard}
        """,
        {
            "id": delivery.id,
            "status": status,
            "error": outcome.error,
            "due": None if ended else instants.to_text(tx.instant + wait),
            "ended": tx.now if ended else None,
            "attempt": delivery.attempt,
        },
    )
    tx.record(
        delivery.task,
        "hook_delivered" if outcome.error is None else "hook_failed",
        {
            "delivery": delivery.id,
            "target": delivery.target,
            "told": delivery.message.notification,
            "attempt": delivery.attempt,
            **outcome.to_dict(),
            "ended": ended,
        },
    )


def give_up(core: Core, hooks: Hooks | None) -> int:
    """End some deliveries to targets that have not been configured for a day; return how many."""
    configured = hooks.targets() if hooks is not None else ["none"]
    orphaned = """
        status = 'pending' AND created_at <= :before AND target NOT IN (:first, :second)
        AND due_at <= :before"""
    values = {
        "before": instants.to_text(core.clock() - GIVEN_UP),
        "first": configured[0],
        "second": configured[-1],
        "batch": _BATCH,
    }
    with core.read() as tx:
        if tx.execute(f"SELECT 1 FROM outbox WHERE {orphaned} LIMIT 1", values).fetchone() is None:
            return 0
    error = "no such target is configured any more"
    with core.write(system()) as tx:
        rows = tx.execute(
            f"""
            UPDATE outbox SET status = 'failed', error = :error, due_at = NULL, ended_at = :now, process = NULL
             WHERE id IN (SELECT id FROM outbox INDEXED BY outbox_due WHERE {orphaned} ORDER BY due_at LIMIT :batch)
            RETURNING id, event_seq, target, told, attempts
            """,
            {**values, "error": error, "now": tx.now},
        ).fetchall()
        for row in rows:
            owner = tx.execute("SELECT task_seq FROM event WHERE seq = ?", (row["event_seq"],)).fetchone()[0]
            data = {"delivery": row["id"], "target": row["target"], "told": row["told"], "attempt": row["attempts"]}
            tx.record(tx.task(owner), "hook_failed", {**data, "error": error, "ended": True})
    return len(rows)


def prune(core: Core) -> None:
    """Remove some deliveries that ended long ago."""
    old = "status <> 'pending' AND ended_at <= :before"
    values = {"before": instants.to_text(core.clock() - KEPT), "batch": _BATCH}
    with core.read() as tx:
        if tx.execute(f"SELECT 1 FROM outbox WHERE {old} LIMIT 1", values).fetchone() is None:
            return
    with core.write() as tx:
        tx.execute(
            f"""
            DELETE FROM outbox
             WHERE id IN (SELECT id FROM outbox INDEXED BY outbox_ended WHERE {old} ORDER BY ended_at LIMIT :batch)
            """,
            values,
        )


def deliveries(core: Core, *, status: str | None = None, limit: int = 100) -> list[dict[str, Any]]:
    """Return deliveries, newest first: all, or those with a status.

    Each is ``{"id", "task_id", "event_seq", "told", "target", "status", "attempts", "due_at", "error", "created_at",
    "ended_at"}``; ``due_at`` is the time of the next attempt.
    """
    inputs.integer(limit, "limit", 1, 10_000)
    where = "1" if status is None else f"outbox.status = '{inputs.one_of(status, 'status', STATUSES)}'"
    with core.read() as tx:
        rows = tx.execute(
            f"""
            SELECT outbox.id, task.id AS task_id, event_seq, told, target, outbox.status, outbox.attempts,
                   outbox.due_at, outbox.error, outbox.created_at, ended_at
              FROM outbox JOIN event ON event.seq = event_seq JOIN task ON task.seq = event.task_seq
             WHERE {where}
             ORDER BY event_seq DESC, outbox.id
             LIMIT ?
            """,
            (limit,),
        ).fetchall()
        return [dict(row) for row in rows]


def retry(core: Core, delivery: str | None = None) -> int:
    """Make one delivery, or all that are not delivered, due now with all attempts; return how many.

    Deliveries in progress do not change.

    Raises:
        NotFound: no such delivery.
        Conflict: it was delivered, or is being delivered.
    """
    with core.write() as tx:
        name = None if delivery is None else inputs.line(delivery, "delivery", inputs.KEY).lower()
        done = tx.execute(
            """
            UPDATE outbox SET status = 'pending', due_at = :now, attempts = 0, error = NULL, ended_at = NULL
             WHERE (:id IS NULL OR id = :id)
               AND (status = 'failed' OR (status = 'pending' AND (
                    attempts = 0 OR error IS NOT NULL OR due_at <= :now OR due_at > :reserved)))
            RETURNING id
            """,
            {"id": name, "now": tx.now, "reserved": instants.to_text(tx.instant + RESERVED)},
        ).fetchall()
        if name is None or done:
            return len(done)
        row = tx.execute("SELECT status FROM outbox WHERE id = ?", (name,)).fetchone()
        if row is None:
            raise NotFound(f"no such delivery: {name}", hint="List the ids with `atb hooks list`.", field="delivery")
        state = "was delivered" if row["status"] == "delivered" else "is being delivered"
        raise Conflict(f"delivery {name} {state}", hint="See `atb hooks list`.", reason="status")
