"""The board in a few groups: what needs a person, what is in progress, what is ready, and how much there is of it."""

from __future__ import annotations

from .. import instants
from ..model import STATUSES
from .predicates import IS_BLOCKED, IS_DUE, IS_EXPIRED, IS_LEASED, IS_PROMOTED, IS_UNBLOCKED, IS_UNFINISHED, IS_WAITING
from .rows import LEAN_COLUMNS, LEAN_NAMES, to_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .core import Core, Transaction

LISTED = 100
"""Tasks of one group, at most; its count is of all of them."""

_LIVE = f"INDEXED BY task_leased WHERE {IS_LEASED} AND lease_expires_at > :now"
_LATE = f"INDEXED BY task_leased WHERE {IS_EXPIRED}"
_OVERDUE = f"WHERE {IS_UNFINISHED} AND due_at < :now"
_PROMOTED = f"WHERE {IS_PROMOTED} AND {IS_DUE}"
_COME = f"WHERE {IS_UNBLOCKED} AND delayed = 1 AND not_before <= :now"
"""Tasks whose delay is over, and that no claim or tick has promoted yet."""
_NOT_LATE = f"NOT ({IS_LEASED} AND lease_expires_at <= :now) AND status <> 'review'"
"""A task needs a person for one reason, the most urgent one."""


class Overview:
    """The board at one moment.

    ``data`` is ``{"revision", "counts", "blocked", "stuck", "delayed", "needs_you", "in_progress", "ready"}``:
    integers, tasks by status, and groups ``{"count", "tasks"}`` with at most ``LISTED`` tasks each, without body,
    params, result and error. ``needs_you`` has a group for each reason, the most urgent first. ``at`` is when it was
    read, and ``until`` when time alone changes it (``None``: never), in milliseconds since 1970.
    """

    __slots__ = ("at", "data", "until")

    def __init__(self, at: int, data: dict[str, Any], until: int | None) -> None:
        self.at = at
        self.data = data
        self.until = until

    def holds_at(self, instant: int) -> bool:
        """Say whether it still holds if nobody has written since; not if the clock was set back."""
        return self.at <= instant and (self.until is None or instant < self.until)


def overview(core: Core) -> Overview:
    """Return the board as it is now, in one read transaction."""
    with core.read() as tx:
        counts = dict.fromkeys(STATUSES, 0)
        for status, count in tx.execute(
            "SELECT status, sum(tasks) FROM tally WHERE status <> 'archived' GROUP BY status"
        ):
            counts[status] = count
        data = {
            "revision": tx.execute("SELECT revision FROM board").fetchone()[0],
            "counts": counts,
            "blocked": _number(tx, f"SELECT count(*) FROM task WHERE {IS_BLOCKED}"),
            "stuck": _number(tx, "SELECT count(*) FROM task WHERE stuck = 1"),
            "delayed": _number(tx, f"SELECT count(*) FROM task WHERE {IS_WAITING} AND not_before > :now"),
            "needs_you": _needs_you(tx, counts),
            "in_progress": _group(tx, _LIVE, "claimed_at, seq"),
            "ready": _ready(tx),
        }
        return Overview(tx.instant, data, _next_instant(tx))


def _needs_you(tx: Transaction, counts: dict[str, int]) -> dict[str, Any]:
    nothing: dict[str, Any] = {"count": 0, "tasks": []}
    failed = "WHERE finished_at IS NOT NULL AND archived_at IS NULL AND status = 'failed'"
    return {
        "review": _group(tx, "WHERE status = 'review'", "seq", count=counts["review"]),
        "expired": _group(tx, _LATE, "lease_expires_at, seq"),
        "stuck": _group(tx, "WHERE stuck = 1", "seq"),
        "overdue": _group(tx, f"{_OVERDUE} AND stuck = 0 AND {_NOT_LATE}", "due_at, seq"),
        "failed": _group(tx, failed, "finished_at DESC, seq DESC", count=counts["failed"])
        if counts["failed"]
        else nothing,
    }


def _ready(tx: Transaction) -> dict[str, Any]:
    """Return the tasks that are ready, in the order in which a claim takes them."""
    count = _number(tx, f"SELECT (SELECT count(*) FROM task {_PROMOTED}) + (SELECT count(*) FROM task {_COME})")
    rank = f"ORDER BY priority DESC, seq LIMIT {LISTED}"
    # Each half has its own index, and the best of both are among the best of each.
    chosen = " UNION ALL ".join(
        f"SELECT * FROM (SELECT seq, priority FROM task {half} {rank})" for half in (_PROMOTED, _COME)
    )
    return {"count": count, "tasks": _tasks(tx, f"SELECT seq FROM ({chosen}) {rank}", "priority DESC, seq")}


def _group(tx: Transaction, where: str, order: str, *, count: int | None = None) -> dict[str, Any]:
    if count is None:
        count = _number(tx, f"SELECT count(*) FROM task {where}")
    chosen = f"SELECT seq FROM task {where} ORDER BY {order} LIMIT {LISTED}"
    return {"count": count, "tasks": _tasks(tx, chosen, order) if count else []}


def _tasks(tx: Transaction, chosen: str, order: str) -> list[dict[str, Any]]:
    rows = tx.execute(
        f"SELECT {LEAN_COLUMNS} FROM task WHERE seq IN ({chosen}) ORDER BY {order}", {"now": tx.now}
    ).fetchall()
    return [to_task(dict(zip(LEAN_NAMES, row, strict=True)), tx.now).to_dict() for row in rows]


def _number(tx: Transaction, sql: str) -> int:
    number: int = tx.execute(sql, {"now": tx.now}).fetchone()[0]
    return number


def _next_instant(tx: Transaction) -> int | None:
    """Return when the next lease ends, delay is over or deadline passes; ``None`` if there is none."""
    ends, starts, deadline = tx.execute(
        f"""
        SELECT (SELECT min(lease_expires_at) FROM task {_LIVE}),
               (SELECT min(not_before) FROM task WHERE {IS_WAITING} AND not_before > :now),
               (SELECT min(due_at) FROM task WHERE {IS_UNFINISHED} AND due_at >= :now)
        """,
        {"now": tx.now},
    ).fetchone()
    # A task is overdue once its deadline lies behind, a lease has expired the moment that it ends.
    coming = [instants.from_text(at) + later for at, later in ((ends, 0), (starts, 0), (deadline, 1)) if at is not None]
    return min(coming, default=None)
