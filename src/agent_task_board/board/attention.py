"""What needs attention: tasks that need a person and why, and the reasons why no task is ready."""

from __future__ import annotations

from .. import inputs
from .predicates import (
    HAS_TAGS,
    IS_BLOCKED,
    IS_CLAIMABLE_BY,
    IS_EXPIRED,
    IS_LEASED,
    IS_UNBLOCKED,
    IS_UNFINISHED,
    in_queues,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model import Attention, Waiting
    from .core import Core, Transaction

NAMED = 5
"""The most ids that ``attention`` lists for each reason."""
COUNTED = 1_000
"""The highest count in ``nothing_ready``: its answer must not cost more on a larger board."""


def attention(tx: Transaction, *, every_reason: bool = False) -> Attention:
    """Do what ``Board.attention`` promises."""
    reviews = tx.execute("SELECT coalesce(sum(tasks), 0) FROM tally WHERE status = 'review'").fetchone()[0]
    in_review = reviews and tx.execute("SELECT id FROM task WHERE status = 'review' ORDER BY seq LIMIT ?", (NAMED,))
    found: Attention = {
        "review": {"count": reviews, "ids": [row[0] for row in in_review or ()]},
        "expired": _waiting(tx, f"FROM task INDEXED BY task_leased WHERE {IS_EXPIRED}", "lease_expires_at"),
        "stuck": _waiting(tx, "FROM task WHERE stuck = 1", "seq"),
    }
    if every_reason:
        found["overdue"] = _waiting(
            tx,
            f"""
            FROM task WHERE {IS_UNFINISHED} AND due_at < :now AND status <> 'review' AND stuck = 0
              AND NOT ({IS_EXPIRED})
            """,
            "due_at, seq",
        )
        found["failed"] = _waiting(
            tx,
            "FROM task WHERE finished_at IS NOT NULL AND archived_at IS NULL AND status = 'failed'",
            "finished_at DESC, seq DESC",
        )
    return found


def _waiting(tx: Transaction, rows: str, order: str) -> Waiting:
    """Return the count of some rows, and the ids of the first ones."""
    values = {"now": tx.now, "limit": NAMED}
    count: int = tx.execute(f"SELECT count(*) {rows}", values).fetchone()[0]
    first = count and tx.execute(f"SELECT id {rows} ORDER BY {order} LIMIT :limit", values)
    return {"count": count, "ids": [row[0] for row in first or ()]}


def nothing_ready(core: Core, agent: str, queues: Sequence[str], tags: Sequence[str]) -> list[str]:
    """Do what ``Board.nothing_ready`` promises."""
    if not core.exists():
        return []
    queues, tags = inputs.queues(queues), inputs.tags(tags)
    within, values = in_queues(queues)
    if tags:
        within += f" AND {HAS_TAGS}"
        values["tags"] = inputs.json_text(tags, "tags")
    counts: list[str] = []
    with core.read() as tx:
        values |= {"now": tx.now, "agent": tx.canonical_name(agent)}
        for what, where, column in (
            ("waiting for other tasks", f"{IS_BLOCKED} AND stuck = 0", None),
            ("stuck behind a failed or cancelled task (see `atb list --stuck`)", "stuck = 1", None),
            ("delayed", f"{IS_UNBLOCKED} AND delayed = 1 AND not_before > :now", "not_before"),
            # Already promoted, but not due again: the clock was set back.
            ("delayed", f"{IS_UNBLOCKED} AND delayed = 0 AND not_before > :now AND {IS_CLAIMABLE_BY}", "not_before"),
            ("assigned to other agents", f"{IS_UNBLOCKED} AND delayed = 0 AND assignee <> :agent", None),
            ("leased", IS_LEASED, "lease_expires_at"),
        ):
            count, first = tx.execute(
                f"""
                SELECT count(*), min(at) FROM (
                    SELECT {column or "NULL"} AS at FROM task WHERE {where} AND {within}
                    {f"ORDER BY {column}" if column else ""} LIMIT {COUNTED + 1})
                """,
                values,
            ).fetchone()
            if count:
                shown = f"more than {COUNTED:,}" if count > COUNTED else str(count)
                counts.append(f"{shown} {what}" + (f", the first until {first}" if first else ""))
    where = f" in {', '.join(queues)}" if queues else ""
    where += f" with the tags {', '.join(tags)}" if tags else ""
    return [f"nothing is ready{where}: {'; '.join(counts) or 'no task is queued or leased'}"]
