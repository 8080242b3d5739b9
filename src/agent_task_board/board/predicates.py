"""The rules about the state of a task at an instant, in SQL and in Python; no other module repeats them.

The SQL is over a row of ``task`` with the parameter ``:now``. Statuses are literals, and the terms of partial indexes
are repeated exactly: SQLite uses such an index only in a query that repeats its ``WHERE``.
"""

from __future__ import annotations

from ..model import FINAL, QUEUED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..model import TaskRow

IS_UNFINISHED = "finished_at IS NULL"
IS_LEASED = "status IN ('claimed', 'running')"
IS_EXPIRED = f"{IS_LEASED} AND lease_expires_at <= :now"
"""The lease is past its end, and no tick or claim has expired it yet."""

HELD = f"{IS_LEASED} AND same_secret(lease_token_hash, :token_hash) AND lease_expires_at > :now"
"""The guard of every verb under a lease: the token is right and the lease is live."""

IS_BLOCKED = "status = 'queued' AND open_dependencies > 0"
IS_UNBLOCKED = "status = 'queued' AND open_dependencies = 0"
IS_PROMOTED = f"{IS_UNBLOCKED} AND delayed = 0"
"""The terms of the indexes of ready tasks."""
IS_WAITING = "status = 'queued' AND delayed = 1"
"""The terms of the index of delayed tasks, due or not."""
IS_DUE = "coalesce(not_before <= :now, 1)"
"""Needed even with ``delayed = 0``: the clock may have been set back since the task was promoted."""
IS_READY = f"{IS_UNBLOCKED} AND {IS_DUE}"

DERIVED = {
    "ready": IS_READY,
    "blocked": IS_BLOCKED,
    "stuck": "stuck = 1",
    "delayed": "status = 'queued' AND coalesce(not_before > :now, 0)",
    "lease_expired": "coalesce(lease_expires_at <= :now, 0)",
    "overdue": f"coalesce(due_at < :now, 0) AND {IS_UNFINISHED}",
}
"""The derived booleans of a task; ``derive`` has the same rules in Python."""

IS_CLAIMABLE_BY = "(assignee IS NULL OR assignee = :agent)"

HAS_TAGS = """NOT EXISTS (
    SELECT 1 FROM json_each(:tags) AS wanted
     WHERE wanted.value NOT IN (SELECT value FROM json_each(task.tags)))"""
"""The task has every tag of the JSON array ``:tags``."""

IS_RELEASE_LIVE = "agent = :agent AND until > :now"
"""A row of ``released``: the agent has released the task lately."""
HAS_RELEASES = f"SELECT 1 FROM released INDEXED BY released_until WHERE {IS_RELEASE_LIVE} LIMIT 1"
"""SQL: whether an agent has released a task lately."""

ANYTHING_DUE = f"""
    SELECT EXISTS (SELECT 1 FROM task INDEXED BY task_leased WHERE {IS_EXPIRED})
        OR EXISTS (SELECT 1 FROM task INDEXED BY task_delayed WHERE {IS_WAITING} AND not_before <= :now)"""
"""SQL: whether there is a lease to expire or a task to promote."""


def derive(row: TaskRow, now: str) -> dict[str, bool]:
    """Return the derived booleans of a row as of ``now``; ``DERIVED`` has the same rules in SQL."""
    status, not_before, due_at = row["status"], row["not_before"], row["due_at"]
    blocked = status == QUEUED and row["open_dependencies"] > 0
    delayed = status == QUEUED and not_before is not None and not_before > now
    return {
        "ready": status == QUEUED and not blocked and not delayed,
        "blocked": blocked,
        "stuck": row["stuck"] == 1,
        "delayed": delayed,
        "lease_expired": row["lease_expires_at"] is not None and row["lease_expires_at"] <= now,
        "overdue": due_at is not None and due_at < now and status not in FINAL,
    }


def in_queues(queues: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return SQL for "in one of these queues" (in any, if none is given), and its parameters."""
    if not queues:
        return "1", {}
    values = {f"queue{number}": queue for number, queue in enumerate(queues)}
    return f"queue IN ({', '.join(f':{name}' for name in values)})", values
