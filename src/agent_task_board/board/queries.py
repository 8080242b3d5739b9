"""The read side of the board: each method one read transaction, a single view that writes nothing."""

from __future__ import annotations

import json

from .. import inputs, instants
from ..errors import InvalidInput
from ..model import ARCHIVED, COLUMNS, FINAL, LEAN_COLUMNS, LEAN_NAMES, NAMES, STATUSES, Task
from .claiming import MINE, TAGGED
from .core import Core

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence
    from typing import Any

    from ..model import AgentSummary, Attempt, Attention, Event, EventPage, Link, Stats, TaskDetails

LIST_LIMIT = 100_000
EVENT_LIMIT = 10_000
SEARCH = 500
DAYS = 366
NAMED = 5
"""Tasks that ``attention`` names of each kind."""
COUNTED = 1_000
"""How far a claim that found nothing counts: the cost of its answer must not grow with the board."""

UNFINISHED = frozenset(STATUSES) - frozenset(FINAL)
READY_NOW = "status = 'queued' AND open_dependencies = 0 AND coalesce(not_before <= :now, 1)"
BLOCKED = "status = 'queued' AND open_dependencies > 0"
"""SQL: what ``Task.ready`` and ``Task.blocked`` say of a row of ``task``."""

_NEVER = "9999-12-31T23:59:59.999+00:00"
_ORDERS = {
    "age": ("seq", "seq", "seq > :seq"),
    "priority": ("priority", "priority DESC, seq", "(priority < :key OR (priority = :key AND seq > :seq))"),
    "updated": (
        "updated_at",
        "updated_at DESC, seq",
        "(updated_at < :key OR (updated_at = :key AND seq > :seq))",
    ),
    "due": (
        f"coalesce(due_at, '{_NEVER}')",
        f"coalesce(due_at, '{_NEVER}'), seq",
        f"(coalesce(due_at, '{_NEVER}'), seq) > (:key, :seq)",
    ),
}
ORDERS = tuple(_ORDERS)
"""The orders of a list: oldest first, largest priority first, latest change first, earliest deadline first."""


class TaskPage:
    """Some tasks of a list, and the cursor of those that follow (``None``: there are no more)."""

    __slots__ = ("next", "tasks")

    def __init__(self, tasks: list[Task], following: str | None) -> None:
        self.tasks = tasks
        self.next = following

    def to_dict(self) -> dict[str, Any]:
        """Return ``{"tasks", "next"}``."""
        return {"tasks": [task.to_dict() for task in self.tasks], "next": self.next}


class Queries(Core):
    """List, show, events, agents, stats, and why nothing is ready."""

    def list_tasks(
        self,
        *,
        status: Sequence[str] = (),
        queue: str | None = None,
        assignee: str | None = None,
        claimed_by: str | None = None,
        tags: Sequence[str] = (),
        ready: bool = False,
        blocked: bool = False,
        overdue: bool = False,
        search: str | None = None,
        archived: bool = False,
        order: str = "age",
        limit: int = 100,
        after: str | None = None,
        full: bool = False,
    ) -> TaskPage:
        """Return the tasks that meet every condition given, ``limit`` of them after the cursor ``after``.

        ``assignee`` may be ``none``; ``tags`` must all be there; ``search`` looks into id, title and body, without
        regard to the case of ASCII letters. Archived tasks are found by ``search``, and by ``archived``, which leaves
        out all others. Without ``full`` the tasks lack body, params, result and error.
        """
        inputs.integer(limit, "limit", 1, LIST_LIMIT)
        key, ordering, beyond = _ORDERS[inputs.one_of(order, "order", ORDERS)]
        where: list[str] = []
        values: dict[str, Any] = {"limit": limit + 1}
        if status:
            names = [inputs.one_of(one, "status", STATUSES) for one in status]
            where.append(f"status IN ({', '.join(repr(one) for one in names)})")
        # Not redundant: SQLite uses a partial index only in a query that repeats its term.
        if ready or blocked or overdue or (status and UNFINISHED.issuperset(status)):
            where.append("finished_at IS NULL")
        elif archived or not search:
            where.append("archived_at IS NOT NULL" if archived else "archived_at IS NULL")
        if queue is not None:
            where.append("queue = :queue")
            values["queue"] = inputs.name(queue, "queue")
        if tags:
            where.append(TAGGED)
            values["tags"] = inputs.json_text(inputs.tags(tags), "tags")
        if ready:
            where.append(READY_NOW)
        if blocked:
            where.append(BLOCKED)
        if overdue:
            where.append("due_at < :now AND status NOT IN ('done', 'failed', 'cancelled')")
        if search:
            pattern = inputs.text(search, "search", SEARCH)
            for special in "\\%_":
                pattern = pattern.replace(special, f"\\{special}")
            where.append(
                r"(title LIKE :search ESCAPE '\' OR body LIKE :search ESCAPE '\' OR id LIKE :search ESCAPE '\')"
            )
            values["search"] = f"%{pattern}%"
        if after:
            values["key"], values["seq"] = _read_cursor(after, order)
            where.append(beyond)
        with self._db.read() as tx:
            values["now"] = now = instants.to_text(self._clock())
            if assignee is not None:
                name = inputs.assignee(assignee, "assignee")
                where.append("assignee IS :assignee")
                values["assignee"] = name and self._known_as(tx, name)
            if claimed_by is not None:
                where.append("claimed_by = :claimed_by")
                values["claimed_by"] = self._known_as(tx, inputs.agent_name(claimed_by, "claimed_by"))
            rows = tx.execute(
                f"""
                SELECT {COLUMNS if full else LEAN_COLUMNS}, {key} AS key FROM task
                 WHERE {" AND ".join(where) or "1"}
                 ORDER BY {ordering}
                 LIMIT :limit
                """,
                values,
            ).fetchall()
        following = None
        if len(rows) > limit:
            rows.pop()
            following = f"{order}~{rows[-1]['key']}~{rows[-1]['seq']}"
        columns = (*(NAMES if full else LEAN_NAMES), "key")
        return TaskPage([Task.from_row(dict(zip(columns, row, strict=True)), now) for row in rows], following)

    def show(self, task: str) -> TaskDetails:
        """Return a task with its attempts, its dependencies both ways and its comments.

        Raises:
            NotFound: no such task.
        """
        with self._db.read() as tx:
            now = instants.to_text(self._clock())
            row = self._row(tx, task)
            seq = row["seq"]
            attempts: list[Attempt] = [
                _attempt(attempt)
                for attempt in tx.execute("SELECT * FROM attempt WHERE task_seq = ? ORDER BY number", (seq,))
            ]
            found: TaskDetails = {
                "task": Task.from_row(row, now).to_dict(),
                "attempts": attempts,
                "dependencies": _links(
                    tx,
                    "JOIN dependency ON task.seq = depends_on_seq WHERE task_seq = ? ORDER BY position",
                    seq,
                ),
                "dependents": _links(
                    tx,
                    "JOIN dependency ON task.seq = task_seq WHERE depends_on_seq = ? ORDER BY task.seq",
                    seq,
                ),
                "comments": list(_events(tx, "event.task_seq = ? AND kind = 'commented' ORDER BY event.seq", (seq,))),
            }
            if row["archived_at"] is not None:
                found["archived_at"] = row["archived_at"]
            return found

    def events(
        self, *, task: str | None = None, after: int = 0, before: int | None = None, limit: int = 100
    ) -> EventPage:
        """Return events with a sequence number above ``after``, oldest first, of one task or of all.

        ``next`` is the number to go on after: that of the last event returned, or ``after`` again. With ``before``
        the events come newest first, from below that number (0: from the newest), and ``next`` is the number to go on
        before, 0 once the first event was returned.

        Raises:
            NotFound: no such task.
        """
        inputs.integer(after, "after", 0, 2**62)
        inputs.integer(limit, "limit", 1, EVENT_LIMIT)
        if before is None:
            where, values, order = "event.seq > ?", [after], "event.seq"
        else:
            if after:
                raise InvalidInput("after and before exclude each other", field="before")
            inputs.integer(before, "before", 0, 2**62)
            where, values, order = "event.seq < ?", [before or 2**62], "event.seq DESC"
        with self._db.read() as tx:
            if task is not None:
                where, values = f"event.task_seq = ? AND {where}", [self._row(tx, task)["seq"], *values]
            found = list(_events(tx, f"{where} ORDER BY {order} LIMIT ?", (*values, limit)))
        if before is None:
            return {"events": found, "next": found[-1]["seq"] if found else after}
        return {"events": found, "next": found[-1]["seq"] if len(found) == limit else 0}

    def agents(self) -> list[AgentSummary]:
        """Return every agent that claimed work or was given some, with what it holds, latest seen first."""
        with self._db.read() as tx:
            now = instants.to_text(self._clock())
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
                """
                SELECT id, title, status, progress, claimed_by, claimed_at, lease_expires_at, lease_length,
                       (SELECT data ->> 'note' FROM (
                            SELECT data FROM event WHERE task_seq = task.seq AND at >= claimed_at
                               AND kind IN ('claimed', 'started', 'progressed') ORDER BY seq DESC LIMIT 20)
                         WHERE data ->> 'note' IS NOT NULL LIMIT 1) AS note
                  FROM task INDEXED BY task_leased
                 WHERE status IN ('claimed', 'running')
                 ORDER BY lease_expires_at
                """
            ):
                found[row["claimed_by"]]["holds"].append(
                    {
                        "id": row["id"],
                        "title": row["title"],
                        "status": row["status"],
                        "progress": row["progress"],
                        "claimed_at": row["claimed_at"],
                        "lease_expires_at": row["lease_expires_at"],
                        "lease_expired": row["lease_expires_at"] <= now,
                        "renewed_at": instants.to_text(
                            instants.from_text(row["lease_expires_at"]) - row["lease_length"]
                        ),
                        "note": row["note"],
                    }
                )
        return list(found.values())

    def stats(self, *, days: int = 14) -> Stats:
        """Return counts by status and queue, what is at work, and what was finished in the last ``days`` days.

        Lead time runs from the making of a task to its end, cycle time from its last claim to its end; both in
        seconds, over the tasks done in that time. Days are those of the board's zone, from midnight to midnight, the
        present one last. ``running`` holds the 100 oldest claims at most.
        """
        inputs.integer(days, "days", 1, DAYS)
        with self._db.read() as tx:
            instant = self._clock()
            now = instants.to_text(instant)
            calendar = self._calendar(instant, days)
            queues: dict[str, dict[str, int]] = {}
            archived = 0
            for queue, status, count in tx.execute("SELECT queue, status, tasks FROM tally ORDER BY queue"):
                counted = queues.setdefault(queue, dict.fromkeys(STATUSES, 0))
                if status == ARCHIVED:
                    archived += count
                else:
                    counted[status] = count
            derived = tx.execute(
                f"""
                SELECT (SELECT count(*) FROM task WHERE status = 'queued' AND open_dependencies = 0
                           AND delayed = 0 AND coalesce(not_before <= :now, 1))
                     + (SELECT count(*) FROM task WHERE status = 'queued' AND delayed = 1
                           AND not_before <= :now AND open_dependencies = 0) AS ready,
                       (SELECT count(*) FROM task WHERE {BLOCKED}) AS blocked,
                       (SELECT count(*) FROM task WHERE status IN ('claimed', 'running')
                           AND lease_expires_at <= :now) AS lease_expired
                """,
                {"now": now},
            ).fetchone()
            running = tx.execute(
                """
                SELECT id, title, claimed_by, claimed_at FROM task INDEXED BY task_leased
                 WHERE status IN ('claimed', 'running') ORDER BY claimed_at LIMIT 100
                """
            ).fetchall()
            finished = tx.execute(
                """
                SELECT status, claimed_by, created_at, claimed_at, finished_at FROM task
                 WHERE finished_at IS NOT NULL AND archived_at IS NULL AND finished_at >= :since
                UNION ALL
                SELECT status, claimed_by, created_at, claimed_at, finished_at FROM task
                 WHERE archived_at IS NOT NULL AND finished_at >= :since
                 ORDER BY finished_at
                """,
                {"since": instants.parse_instant(calendar[0], self.settings.timezone, field="days")},
            ).fetchall()
        return {
            "tasks": sum(sum(counts.values()) for counts in queues.values()),
            "archived": archived,
            "by_status": {status: sum(counts[status] for counts in queues.values()) for status in STATUSES},
            "by_queue": queues,
            "ready": derived["ready"],
            "blocked": derived["blocked"],
            "lease_expired": derived["lease_expired"],
            "days": days,
            "finished": self._per_day(finished, calendar),
            "lead_time": _spread(finished, "created_at"),
            "cycle_time": _spread(finished, "claimed_at"),
            "running": [
                {**dict(row), "age": (instant - instants.from_text(row["claimed_at"])) / instants.SECOND}
                for row in running
            ],
            "by_agent": _per_agent(finished),
        }

    def _calendar(self, instant: int, days: int) -> list[str]:
        """Return the dates of the last days in the board's zone, that of an instant last."""
        from datetime import UTC, datetime, timedelta

        zone = instants.load_zone(self.settings.timezone)
        today = datetime.fromtimestamp(instant / 1000, UTC).astimezone(zone).date()
        return [(today - timedelta(days=back)).isoformat() for back in range(days - 1, -1, -1)]

    def _per_day(self, finished: list[sqlite3.Row], calendar: list[str]) -> list[dict[str, Any]]:
        from datetime import datetime

        zone = instants.load_zone(self.settings.timezone)
        found: dict[str, list[sqlite3.Row]] = {day: [] for day in calendar}
        for row in finished:
            day = datetime.fromisoformat(row["finished_at"]).astimezone(zone).date().isoformat()
            found.setdefault(day, []).append(row)  # a clock that was set back leaves tasks finished tomorrow
        return [
            {
                "day": day,
                **_ended(rows),
                "lead_time": _spread(rows, "created_at")["median"],
                "cycle_time": _spread(rows, "claimed_at")["median"],
            }
            for day, rows in found.items()
            if day in calendar
        ]

    def attention(self) -> Attention:
        """Return what somebody should look at: reviews, which wait for a person, and leases that ran out; 5 of each."""
        with self._db.read() as tx:
            values = {"now": instants.to_text(self._clock()), "limit": NAMED}
            reviews = tx.execute("SELECT coalesce(sum(tasks), 0) FROM tally WHERE status = 'review'").fetchone()[0]
            waiting = reviews and tx.execute(
                "SELECT id FROM task WHERE status = 'review' ORDER BY seq LIMIT :limit", values
            )
            ran_out = (
                "FROM task INDEXED BY task_leased WHERE status IN ('claimed', 'running') AND lease_expires_at <= :now"
            )
            expired = tx.execute(f"SELECT count(*) {ran_out}", values).fetchone()[0]
            late = expired and tx.execute(f"SELECT id {ran_out} ORDER BY lease_expires_at LIMIT :limit", values)
            return {
                "review": {"count": reviews, "ids": [row[0] for row in waiting or ()]},
                "expired": {"count": expired, "ids": [row[0] for row in late or ()]},
            }

    def revision(self) -> int:
        """Return the number that grows with every write to any task."""
        with self._db.read() as tx:
            number: int = tx.execute("SELECT revision FROM board").fetchone()[0]
        return number

    def nothing_ready(self, agent: str, *, queues: Sequence[str] = (), tags: Sequence[str] = ()) -> list[str]:
        """Say in sentences why a claim with these arguments finds nothing: what there is, and what it waits for.

        Counts end at 1,000, so that the answer costs the same on any board.
        """
        if not self.exists():
            return []
        queues, tags = inputs.queues(queues), inputs.tags(tags)
        values: dict[str, Any] = {f"queue{number}": queue for number, queue in enumerate(queues)}
        within = f" AND queue IN ({', '.join(f':{name}' for name in values)})" if values else ""
        if tags:
            within += f" AND {TAGGED}"
            values["tags"] = inputs.json_text(tags, "tags")
        said: list[str] = []
        with self._db.read() as tx:
            values |= {"now": instants.to_text(self._clock()), "agent": self._known_as(tx, agent)}
            queued = "status = 'queued' AND open_dependencies = 0"
            for what, where, column in (
                ("waiting for other tasks", BLOCKED, None),
                ("delayed", f"{queued} AND delayed = 1 AND not_before > :now", "not_before"),
                # Promoted already, and early again: the clock was set back.
                ("delayed", f"{queued} AND delayed = 0 AND not_before > :now AND {MINE}", "not_before"),
                ("assigned to other agents", f"{queued} AND delayed = 0 AND assignee <> :agent", None),
                ("leased", "status IN ('claimed', 'running')", "lease_expires_at"),
            ):
                count, first = tx.execute(
                    f"""
                    SELECT count(*), min(at) FROM (
                        SELECT {column or "NULL"} AS at FROM task WHERE {where}{within}
                        {f"ORDER BY {column}" if column else ""} LIMIT {COUNTED + 1})
                    """,
                    values,
                ).fetchone()
                if count:
                    shown = f"more than {COUNTED:,}" if count > COUNTED else str(count)
                    said.append(f"{shown} {what}" + (f", the first until {first}" if first else ""))
        where = f" in {', '.join(queues)}" if queues else ""
        where += f" with the tags {', '.join(tags)}" if tags else ""
        return [f"nothing is ready{where}: {'; '.join(said) or 'no task is queued or leased'}"]


def _read_cursor(cursor: str, order: str) -> tuple[Any, int]:
    """Return the sort key and sequence number that a cursor stands for."""
    name, _, rest = inputs.line(cursor, "after", inputs.KEY).partition("~")
    key, _, seq = rest.rpartition("~")
    try:
        if name != order or max(len(key), len(seq)) > len(_NEVER):
            raise ValueError
        found = int(key) if order in ("age", "priority") else instants.to_text(instants.from_text(key))
        return found, inputs.integer(int(seq), "after", 1, 2**62)
    except (ValueError, TypeError, OverflowError):  # TypeError: an instant without an offset
        raise InvalidInput(
            f"after: {cursor[:60]!r} is not a cursor of a list by {order}",
            hint="Give the cursor that the page before ended with, and list in the same order.",
            field="after",
        ) from None


def _attempt(row: sqlite3.Row) -> Attempt:
    return {
        "number": row["number"],
        "agent": row["agent"],
        "fence": row["fence"],
        "claimed_at": row["claimed_at"],
        "ended_at": row["ended_at"],
        "outcome": row["outcome"],
        "error": row["error"],
        "note": row["note"],
        "result": None if row["result"] is None else json.loads(row["result"]),
    }


def _links(tx: sqlite3.Connection, where: str, seq: int) -> list[Link]:
    return [
        {"id": row["id"], "title": row["title"], "status": row["status"]}
        for row in tx.execute(f"SELECT id, title, status FROM task {where}", (seq,))
    ]


def _events(tx: sqlite3.Connection, where: str, values: Sequence[Any]) -> Iterator[Event]:
    for row in tx.execute(
        f"""
        SELECT event.seq, task.id AS task_id, kind, actor, actor_kind, at, data
          FROM event JOIN task ON task.seq = event.task_seq
         WHERE {where}
        """,
        values,
    ):
        yield {
            "seq": row["seq"],
            "task_id": row["task_id"],
            "kind": row["kind"],
            "actor": row["actor"],
            "actor_kind": row["actor_kind"],
            "at": row["at"],
            "data": json.loads(row["data"]),
        }


def _ended(finished: list[sqlite3.Row]) -> dict[str, int]:
    """Return how many tasks came to each final status."""
    ends = [row["status"] for row in finished]
    return {status: ends.count(status) for status in FINAL}


def _per_agent(finished: list[sqlite3.Row]) -> list[dict[str, Any]]:
    """Return what each agent brought to an end, who did most first."""
    by_agent: dict[str, list[sqlite3.Row]] = {}
    for row in finished:
        if row["claimed_by"] is not None:
            by_agent.setdefault(row["claimed_by"], []).append(row)
    told = [
        {"agent": agent, **_ended(rows), "cycle_time": _spread(rows, "claimed_at")} for agent, rows in by_agent.items()
    ]
    return sorted(told, key=lambda row: (-row["done"], row["agent"]))


def _spread(finished: list[sqlite3.Row], since: str) -> dict[str, Any]:
    """Return how long the tasks done took, in seconds: ``{"tasks", "median", "p90"}``."""
    took = sorted(
        (instants.from_text(row["finished_at"]) - instants.from_text(row[since])) / instants.SECOND
        for row in finished
        if row["status"] == "done" and row[since] is not None
    )
    if not took:
        return {"tasks": 0, "median": None, "p90": None}
    return {"tasks": len(took), "median": took[(len(took) - 1) // 2], "p90": took[(len(took) - 1) * 9 // 10]}
