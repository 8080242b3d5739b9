"""What somebody should look at: work that waits for a person, leases that expired, and why nothing is ready."""

from __future__ import annotations

from .. import inputs
from .predicates import HAS_TAGS, IS_BLOCKED, IS_CLAIMABLE_BY, IS_EXPIRED, IS_LEASED, IS_UNBLOCKED, in_queues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model import Attention
    from .core import Core, Transaction

NAMED = 5
"""Tasks of each kind that ``attention`` names, at most."""
COUNTED = 1_000
"""Where the counts of a claim that found nothing end: its answer must not cost more on a larger board."""


def attention(tx: Transaction) -> Attention:
    """Return the tasks in review and the leases that expired; the first 5 of each are named."""
    reviews = tx.execute("SELECT coalesce(sum(tasks), 0) FROM tally WHERE status = 'review'").fetchone()[0]
    in_review = reviews and tx.execute("SELECT id FROM task WHERE status = 'review' ORDER BY seq LIMIT ?", (NAMED,))
    ended = f"FROM task INDEXED BY task_leased WHERE {IS_EXPIRED}"
    values = {"now": tx.now, "limit": NAMED}
    expired = tx.execute(f"SELECT count(*) {ended}", values).fetchone()[0]
    late = expired and tx.execute(f"SELECT id {ended} ORDER BY lease_expires_at LIMIT :limit", values)
    return {
        "review": {"count": reviews, "ids": [row[0] for row in in_review or ()]},
        "expired": {"count": expired, "ids": [row[0] for row in late or ()]},
    }


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
            ("waiting for other tasks", IS_BLOCKED, None),
            ("delayed", f"{IS_UNBLOCKED} AND delayed = 1 AND not_before > :now", "not_before"),
            # Promoted already, and early again: the clock was set back.
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
