"""Statistics: what each agent did and holds, counts of tasks, and how long tasks take."""

from __future__ import annotations

from .. import inputs, instants
from ..model import ARCHIVED, FINAL, STATUSES
from .predicates import IS_BLOCKED, IS_DUE, IS_EXPIRED, IS_LEASED, IS_PROMOTED, IS_UNBLOCKED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..model import AgentSummary, Stats
    from ..storage.db import Row
    from .core import Core, Transaction

DAYS = 366
RUNNING = 100
"""The most held tasks that ``stats`` lists."""


def agents(core: Core) -> list[AgentSummary]:
    """Do what ``Board.agents`` promises."""
    with core.read() as tx:
        found: dict[str, AgentSummary] = {
            row["name"]: {
                "name": row["name"],
                "first_seen_at": row["first_seen_at"],
                "last_seen_at": row["last_seen_at"],
                "completed": row["completed"],
                "failed": row["failed"],
                "expired": row["expired"],
                "holds": [],
            }
            for row in tx.execute("SELECT * FROM agent ORDER BY last_seen_at IS NULL, last_seen_at DESC, name")
        }
        for row in tx.execute(
            f"""
            SELECT id, title, status, progress, claimed_by, claimed_at, lease_expires_at, lease_length,
                   (SELECT data ->> 'note' FROM (
                        SELECT data FROM event WHERE task_seq = task.seq AND at >= claimed_at
                           AND kind IN ('claimed', 'started', 'progressed') ORDER BY seq DESC LIMIT 20)
                     WHERE data ->> 'note' IS NOT NULL LIMIT 1) AS note
              FROM task INDEXED BY task_leased
             WHERE {IS_LEASED}
             ORDER BY lease_expires_at
            """
        ):
            ends = instants.from_text(row["lease_expires_at"])
            found[row["claimed_by"]]["holds"].append(
                {
                    "id": row["id"],
                    "title": row["title"],
                    "status": row["status"],
                    "progress": row["progress"],
                    "claimed_at": row["claimed_at"],
                    "lease_expires_at": row["lease_expires_at"],
                    "lease_expired": row["lease_expires_at"] <= tx.now,
                    "renewed_at": instants.to_text(ends - row["lease_length"]),
                    "silent": silent_at(ends, row["lease_length"]) < tx.instant,
                    "silent_at": instants.to_text(silent_at(ends, row["lease_length"])),
                    "note": row["note"],
                }
            )
    return list(found.values())


def silent_at(ends: int, length: int) -> int:
    """Return the instant after which a holder is silent: two thirds of its lease have passed without a renewal.

    Holders are asked to renew at every third, so two renewals are missing. All values are in milliseconds.
    """
    return ends - length // 3


def stats(core: Core, days: int) -> Stats:
    """Do what ``Board.stats`` promises."""
    inputs.integer(days, "days", 1, DAYS)
    zone = core.settings.timezone
    with core.read() as tx:
        calendar = _calendar(tx.instant, days, zone)
        queues, archived = _queues(tx)
        derived = _derived(tx)
        running = _running(tx)
        finished = _finished(tx, instants.parse_instant(calendar[0], zone, field="days"))
    return {
        "tasks": sum(sum(counts.values()) for counts in queues.values()),
        "archived": archived,
        "by_status": {status: sum(counts[status] for counts in queues.values()) for status in STATUSES},
        "by_queue": queues,
        "ready": derived["ready"],
        "blocked": derived["blocked"],
        "stuck": derived["stuck"],
        "lease_expired": derived["lease_expired"],
        "days": days,
        "finished": _per_day(finished, calendar, zone),
        "lead_time": _spread(finished, "created_at"),
        "cycle_time": _spread(finished, "claimed_at"),
        "running": running,
        "by_agent": _per_agent(finished),
    }


def _queues(tx: Transaction) -> tuple[dict[str, dict[str, int]], int]:
    """Return the tasks of each queue by status, and how many are archived."""
    queues: dict[str, dict[str, int]] = {}
    archived = 0
    for queue, status, count in tx.execute("SELECT queue, status, tasks FROM tally ORDER BY queue"):
        counts = queues.setdefault(queue, dict.fromkeys(STATUSES, 0))
        if status == ARCHIVED:
            archived += count
        else:
            counts[status] = count
    return queues, archived


def _derived(tx: Transaction) -> Row:
    """Return how many tasks are ready, blocked, or have an expired lease; each count uses its own index."""
    row: Row = tx.execute(
        f"""
        SELECT (SELECT count(*) FROM task WHERE {IS_PROMOTED} AND {IS_DUE})
             + (SELECT count(*) FROM task WHERE {IS_UNBLOCKED} AND delayed = 1 AND not_before <= :now) AS ready,
               (SELECT count(*) FROM task WHERE {IS_BLOCKED}) AS blocked,
               (SELECT count(*) FROM task WHERE stuck = 1) AS stuck,
               (SELECT count(*) FROM task WHERE {IS_EXPIRED}) AS lease_expired
        """,
        {"now": tx.now},
    ).fetchone()
    return row


def _running(tx: Transaction) -> list[dict[str, Any]]:
    """Return the held tasks, the oldest claims first, with their age in seconds."""
    rows = tx.execute(
        f"""
        SELECT id, title, claimed_by, claimed_at FROM task INDEXED BY task_leased
         WHERE {IS_LEASED} ORDER BY claimed_at LIMIT {RUNNING}
        """
    ).fetchall()
    return [
        {**dict(row), "age": (tx.instant - instants.from_text(row["claimed_at"])) / instants.SECOND} for row in rows
    ]


def _finished(tx: Transaction, since: str) -> list[Row]:
    """Return the tasks finished since an instant, archived or not; each half uses its own index."""
    columns = "status, claimed_by, created_at, claimed_at, finished_at"
    return tx.execute(
        f"""
        SELECT {columns} FROM task
         WHERE finished_at IS NOT NULL AND archived_at IS NULL AND finished_at >= :since
        UNION ALL
        SELECT {columns} FROM task
         WHERE archived_at IS NOT NULL AND finished_at >= :since
         ORDER BY finished_at
        """,
        {"since": since},
    ).fetchall()


def _calendar(instant: int, days: int, timezone: str) -> list[str]:
    """Return the last dates in a time zone, up to that of ``instant``."""
    from datetime import UTC, datetime, timedelta

    today = datetime.fromtimestamp(instant / 1000, UTC).astimezone(instants.load_zone(timezone)).date()
    return [(today - timedelta(days=back)).isoformat() for back in range(days - 1, -1, -1)]


def _per_day(finished: list[Row], calendar: list[str], timezone: str) -> list[dict[str, Any]]:
    """Return how many tasks were finished on each day, and how long they took."""
    from datetime import datetime

    zone = instants.load_zone(timezone)
    found: dict[str, list[Row]] = {day: [] for day in calendar}
    for row in finished:
        day = datetime.fromisoformat(row["finished_at"]).astimezone(zone).date().isoformat()
        found.setdefault(day, []).append(row)  # if the clock was set back, a task may be finished tomorrow
    return [
        {
            "day": day,
            **_by_end(rows),
            "lead_time": _spread(rows, "created_at")["median"],
            "cycle_time": _spread(rows, "claimed_at")["median"],
        }
        for day, rows in found.items()
        if day in calendar
    ]


def _per_agent(finished: list[Row]) -> list[dict[str, Any]]:
    """Return what each agent finished; the agent that completed most is first."""
    by_agent: dict[str, list[Row]] = {}
    for row in finished:
        if row["claimed_by"] is not None:
            by_agent.setdefault(row["claimed_by"], []).append(row)
    found = [
        {"agent": agent, **_by_end(rows), "cycle_time": _spread(rows, "claimed_at")} for agent, rows in by_agent.items()
    ]
    return sorted(found, key=lambda row: (-row["done"], row["agent"]))


def _by_end(finished: list[Row]) -> dict[str, int]:
    """Return the number of tasks by final status."""
    ends = [row["status"] for row in finished]
    return {status: ends.count(status) for status in FINAL}


def _spread(finished: list[Row], since: str) -> dict[str, Any]:
    """Return how long the done tasks took, in seconds: ``{"tasks", "median", "p90"}``."""
    times = sorted(
        (instants.from_text(row["finished_at"]) - instants.from_text(row[since])) / instants.SECOND
        for row in finished
        if row["status"] == "done" and row[since] is not None
    )
    if not times:
        return {"tasks": 0, "median": None, "p90": None}
    return {"tasks": len(times), "median": times[(len(times) - 1) // 2], "p90": times[(len(times) - 1) * 9 // 10]}
