"""Expire leases and promote delayed tasks: a claim does so for a limited number, a tick for all."""

from __future__ import annotations

from .core import system
from .history import changes
from .predicates import ANYTHING_DUE, IS_EXPIRED, IS_WAITING
from .refusals import lease_expired
from .rows import COLUMNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..model import TaskRow
    from .core import Core, Transaction

BATCH = 200
"""The most leases that one transaction expires, and the most delayed tasks that it promotes."""

END_LEASE = "lease_token_hash = NULL, lease_expires_at = NULL, lease_length = NULL"
"""SQL: the assignments that end a lease."""

TO_QUEUE = f"status = 'queued', claimed_by = NULL, claimed_at = NULL, progress = NULL, {END_LEASE}"
"""SQL: the assignments that return a task to its queue."""


def to_queue_unless(is_last: str) -> str:
    """Return the assignments that return a task to its queue, or fail it if the SQL ``is_last`` is true."""
    return f"""
        status = iif({is_last}, 'failed', 'queued'), finished_at = iif({is_last}, :now, NULL),
        claimed_by = iif({is_last}, claimed_by, NULL), claimed_at = iif({is_last}, claimed_at, NULL),
        progress = iif({is_last}, progress, NULL), {END_LEASE}"""


def sweep(tx: Transaction, *, first: str | None = None, values: dict[str, Any] | None = None) -> tuple[int, int]:
    """Expire leases past their end and promote delayed tasks that are due, at most ``BATCH`` of each.

    Args:
        tx: the write transaction.
        first: SQL over a row of ``task``; rows for which it is true come first, then those of larger priority.
            Without it, rows come in the order of their instants, which needs no sorting.
        values: the parameters of ``first``.

    Returns:
        How many leases were expired, and how many tasks promoted.
    """
    if not tx.execute(ANYTHING_DUE, {"now": tx.now}).fetchone()[0]:
        return 0, 0
    parameters = {**(values or {}), "now": tx.now, "batch": BATCH}
    best_expired, best_delayed = "lease_expires_at", "not_before"
    if first is not None:
        claimable = f"({first}) AND open_dependencies = 0"
        best_expired = (
            f"{claimable} AND attempts < max_attempts AND coalesce(not_before <= :now, 1) DESC, priority DESC, seq"
        )
        best_delayed = f"{claimable} DESC, priority DESC, seq"
    expired = tx.tasks(
        f"""
        SELECT {COLUMNS} FROM task
         WHERE seq IN (
               SELECT seq FROM task INDEXED BY task_leased
                WHERE {IS_EXPIRED}
                ORDER BY {best_expired}
                LIMIT :batch)
         ORDER BY priority DESC, seq
        """,
        parameters,
    )
    for row in expired:
        _expire(tx, row)
    promoted = tx.execute(
        f"""
        UPDATE task SET delayed = 0
         WHERE {IS_WAITING} AND seq IN (
               SELECT seq FROM task INDEXED BY task_delayed
                WHERE {IS_WAITING} AND not_before <= :now
                ORDER BY {best_delayed}
                LIMIT :batch)
        RETURNING seq
        """,
        parameters,
    ).fetchall()
    return len(expired), len(promoted)


def expire_all(core: Core, warnings: list[str] | None = None) -> int:
    """Expire every lease past its end and promote every delayed task that is due, in small transactions.

    Appends to ``warnings`` which tasks are stuck now because a last attempt expired.

    Returns:
        How many leases were expired.
    """
    total = 0
    while True:
        with core.write() as tx:
            expired, promoted = sweep(tx)
            tx.execute("DELETE FROM released WHERE until <= ?", (tx.now,))
        if warnings is not None:
            warnings += tx.warnings
        total += expired
        if max(expired, promoted) < BATCH:
            return total


def _expire(tx: Transaction, before: TaskRow) -> None:
    """Expire the lease of a task: the task is queued at once, or failed if no attempt is left."""
    error = lease_expired(before)
    assignments = f"{to_queue_unless('attempts >= max_attempts')}, error = :error"
    after = tx.change(before, assignments, where=IS_EXPIRED, values={"error": error})
    if after is None:
        return  # cannot happen: the sweep read the row in this transaction
    number = tx.end_attempt(after, "expired", error=error)
    tx.record(after, "expired", {**changes(before, after), "attempt": number, "error": error}, system())
