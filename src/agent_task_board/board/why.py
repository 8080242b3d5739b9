"""Why a task is not being worked on, or why nothing is: one leading reason, and what would change it."""

from __future__ import annotations

from .. import instants
from ..model import CANCELLED, DONE, FAILED, LEASED, QUEUED, REVIEW
from . import stuck
from .predicates import IS_BLOCKED, IS_EXPIRED, IS_LEASED, IS_UNBLOCKED, derive
from .refusals import shown
from .stats import silent_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..model import Link, TaskRow, Why, WhyNothing
    from .core import Core, Transaction

    _Said = tuple[str, str, list[Link]]

STEPS = 10
"""The most tasks of a chain of dependencies that a reason names."""

REASONS = (
    "expired",
    "held",
    "review",
    "stuck",
    "blocked",
    "delayed",
    "assigned",
    "ready",
    "failed",
    "cancelled",
    "done",
)
"""The reasons: of those that apply to a task, the one that is named first here leads."""

_GROUPS = {
    "expired": IS_EXPIRED,
    "held": IS_LEASED,
    "review": "status = 'review'",
    "stuck": "stuck = 1",
    "blocked": IS_BLOCKED,
    "delayed": f"{IS_UNBLOCKED} AND coalesce(not_before > :now, 0)",
    "assigned": f"{IS_UNBLOCKED} AND assignee IS NOT NULL",
    "ready": IS_UNBLOCKED,
}
"""SQL: the unfinished tasks to which a reason applies, and none before it does."""


def why(tx: Transaction, row: TaskRow) -> Why:
    """Return the leading reason of a task."""
    reason = _reason(row, tx.now)
    text, change, chain = _TEXTS[reason](tx, row)
    return {"reason": reason, "text": text, "change": change, "chain": chain}


def explain(core: Core, task: str) -> tuple[TaskRow, str, Why]:
    """Return a task, the instant at which it was read, and its leading reason.

    Raises:
        NotFound: no such task.
    """
    with core.read() as tx:
        row = tx.find(task)
        return row, tx.now, why(tx, row)


def why_nothing(core: Core) -> WhyNothing:
    """Return for each reason how many unfinished tasks it keeps, and the first of them with its sentence."""
    cases = " ".join(f"WHEN {condition} THEN '{reason}'" for reason, condition in _GROUPS.items())
    with core.read() as tx:
        rows = tx.execute(
            f"""
            SELECT reason, count(*) AS count, min(seq) AS first FROM (
                SELECT seq, CASE {cases} END AS reason FROM task WHERE finished_at IS NULL)
             WHERE reason IS NOT NULL GROUP BY reason
            """,
            {"now": tx.now},
        ).fetchall()
        counts = {row["reason"]: (row["count"], row["first"]) for row in rows}
        found: WhyNothing = {"text": "", "reasons": []}
        for reason in REASONS:
            if reason in counts:
                count, first = counts[reason]
                task = tx.task(first)
                link: Link = {"id": task["id"], "title": task["title"], "status": task["status"]}
                leading = why(tx, task)
                text, change = leading["text"], leading["change"]
                found["reasons"].append(
                    {"reason": reason, "count": count, "first": link, "text": text, "change": change}
                )
    found["text"] = _in_all(found)
    return found


def _in_all(found: WhyNothing) -> str:
    counts = {one["reason"]: one["count"] for one in found["reasons"]}
    if not counts:
        return "no task is unfinished: add one"
    parts = [f"{count:,} {_COUNTED[reason]}" for reason, count in counts.items()]
    if "ready" in counts:
        head = "tasks are ready, and agents may claim them" if counts["ready"] > 1 else "one task is ready"
    elif "held" in counts:
        head = "agents are at work, and nothing else is ready"
    else:
        head = "nothing is ready"
    return f"{head}: {', '.join(parts)}"


_COUNTED = {
    "expired": "with an expired lease",
    "held": "held by agents",
    "review": "in review",
    "stuck": "stuck",
    "blocked": "waiting for other tasks",
    "delayed": "delayed",
    "assigned": "assigned to an agent",
    "ready": "ready for any agent",
}


def _reason(row: TaskRow, now: str) -> str:
    status = row["status"]
    if status in LEASED:
        return "expired" if row["lease_expires_at"] <= now else "held"
    if status != QUEUED:
        return {REVIEW: "review", DONE: "done", FAILED: "failed", CANCELLED: "cancelled"}[status]
    found = derive(row, now)
    for name in ("stuck", "blocked", "delayed"):
        if found[name]:
            return name
    return "assigned" if row["assignee"] is not None else "ready"


# One function a reason: its sentence, what would change it, and the chain that it names


def _held(tx: Transaction, row: TaskRow) -> _Said:
    text = f"held by {shown(row['claimed_by'])} until {row['lease_expires_at']}"
    quiet = silent_at(instants.from_text(row["lease_expires_at"]), row["lease_length"] or 0)
    if quiet < tx.instant:
        return (
            f"{text}, silent since {instants.to_text(quiet)}",
            "the lease expires by itself; reassign the task to free it now",
            [],
        )
    return text, "it ends when the holder is finished, or loses its lease", []


def _expired(_: Transaction, row: TaskRow) -> _Said:
    text = f"the lease of {shown(row['claimed_by'])} expired at {row['lease_expires_at']}"
    return text, "the next claim or `atb tick` returns it to its queue", []


def _in_review(tx: Transaction, row: TaskRow) -> _Said:
    since = tx.execute(
        "SELECT max(ended_at) FROM attempt WHERE task_seq = ? AND outcome = 'completed'", (row["seq"],)
    ).fetchone()[0]
    return f"in review since {since or row['updated_at']}", "a person approves or rejects it", []


def _stuck(tx: Transaction, row: TaskRow) -> _Said:
    chain = _chain(tx, row, dead_ends=True)
    last = chain[-1] if chain else None
    if last is None or last["status"] not in stuck.ENDS:
        return "stuck behind a failed or cancelled task", stuck.REMEDY, chain
    return f"stuck, since {_named(last)} {stuck.ended(last['status'])}{_through(chain)}", stuck.REMEDY, chain


def _blocked(tx: Transaction, row: TaskRow) -> _Said:
    chain = _chain(tx, row, dead_ends=False)
    more = row["open_dependencies"] - 1
    others = f" and {more:,} more" if more > 0 else ""
    if not chain:  # cannot be: the count of open dependencies is kept with them
        return "waits for other tasks", "they are done", []
    last = tx.task(_seq(tx, chain[-1]))
    root = "" if len(chain) == 1 else f"; at the end of the chain, {_named(chain[-1])}"
    state = why(tx, last)["text"] if last["status"] != QUEUED or not last["open_dependencies"] else "waits for others"
    return (
        f"waits for {_named(chain[0])}{others}{root}: {state}",
        "all that it waits for is done, or the dependency is dropped",
        chain,
    )


def _delayed(_: Transaction, row: TaskRow) -> _Said:
    return f"delayed until {row['not_before']}", "the time passes, or `not_before` is cleared", []


def _assigned(tx: Transaction, row: TaskRow) -> _Said:
    name = row["assignee"]
    seen = tx.execute("SELECT last_seen_at FROM agent WHERE name = ?", (name,)).fetchone()
    at = None if seen is None else seen[0]
    when = f"last seen at {at}" if at else "never seen so far"
    return f"assigned to {shown(name)}, {when}", f"{shown(name)} claims it, or it is reassigned", []


def _ready(tx: Transaction, row: TaskRow) -> _Said:
    since, seen = tx.execute(
        """
        SELECT max(:created, coalesce(:not_before, ''),
                   coalesce((SELECT max(other.finished_at)
                               FROM dependency JOIN task AS other ON other.seq = depends_on_seq
                              WHERE task_seq = :seq), ''),
                   coalesce((SELECT max(at) FROM event WHERE task_seq = :seq AND kind IN
                       ('failed', 'expired', 'released', 'handed_off', 'rejected', 'reassigned', 'retried')), '')),
               (SELECT max(last_seen_at) FROM agent)
        """,
        {"seq": row["seq"], "created": row["created_at"], "not_before": row["not_before"]},
    ).fetchone()
    if seen is None or seen < since:
        asked = "no agent has been seen since"
    else:
        asked = f"an agent was last seen at {seen}: agents take larger priorities, or other queues and tags, first"
    return f"ready since {since}; {asked}", "an agent claims it", []


def _failed(_: Transaction, row: TaskRow) -> _Said:
    error = (row["error"] or "").split("\n", 1)[0][:200]
    return f"failed at {row['finished_at']}{f': {error}' if error else ''}", "somebody retries it", []


def _cancelled(_: Transaction, row: TaskRow) -> _Said:
    return f"cancelled at {row['finished_at']}", "somebody retries it", []


def _done(_: Transaction, row: TaskRow) -> _Said:
    return f"done since {row['finished_at']}", "nothing: it stays done", []


_TEXTS: dict[str, Callable[[Any, Any], Any]] = {
    "expired": _expired,
    "held": _held,
    "review": _in_review,
    "stuck": _stuck,
    "blocked": _blocked,
    "delayed": _delayed,
    "assigned": _assigned,
    "ready": _ready,
    "failed": _failed,
    "cancelled": _cancelled,
    "done": _done,
}


def _chain(tx: Transaction, row: TaskRow, *, dead_ends: bool) -> list[Link]:
    """Return the tasks that a task waits for, one behind the other to the root, at most ``STEPS``.

    With ``dead_ends``, each is one that keeps it stuck; else the first that is not done.
    """
    wanted = stuck.IS_DEAD_END if dead_ends else "other.status <> 'done'"
    chain: list[Link] = []
    seq = row["seq"]
    while len(chain) < STEPS:
        found = tx.execute(
            f"""
            SELECT other.seq, other.id, other.title, other.status
              FROM dependency JOIN task AS other ON other.seq = depends_on_seq
             WHERE task_seq = ? AND {wanted} ORDER BY position LIMIT 1
            """,
            (seq,),
        ).fetchone()
        if found is None:
            break
        chain.append({"id": found["id"], "title": found["title"], "status": found["status"]})
        seq = found["seq"]
    return chain


def _seq(tx: Transaction, link: Link) -> int:
    seq: int = tx.execute("SELECT seq FROM task WHERE id = ?", (link["id"],)).fetchone()[0]
    return seq


def _named(link: Link) -> str:
    from .dependencies import label

    return label(link)


def _through(chain: list[Link]) -> str:
    return f", {len(chain)} tasks away" if len(chain) > 1 else ""
