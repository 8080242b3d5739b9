"""Read tasks and their history; each method is one read transaction."""

from __future__ import annotations

import json

from .. import inputs, instants
from ..errors import InvalidInput
from ..model import FINAL, STATUSES
from .core import Core
from .predicates import DERIVED, HAS_TAGS, IS_UNFINISHED
from .rows import COLUMNS, LEAN_COLUMNS, LEAN_NAMES, NAMES, to_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..model import Attempt, Event, EventPage, Link, Task, TaskDetails
    from ..storage.db import Cursor, Row
    from .core import Transaction

LIST_LIMIT = 100_000
EVENT_LIMIT = 10_000
SEARCH = 500
PAGE_SIZE = 32 * 1_048_576
"""Characters of long values in one page, plus those of its last entry; a page that reaches it ends early."""

UNFINISHED = frozenset(STATUSES) - frozenset(FINAL)

_LONG = ("tags", "blocked_by", "artifacts", "body", "params", "result", "error")
"""The columns of a task that can be long."""
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
    """Some tasks of a list, and the cursor of the next page (``None`` on the last page)."""

    __slots__ = ("next", "tasks")

    def __init__(self, tasks: list[Task], following: str | None) -> None:
        self.tasks = tasks
        self.next = following

    def to_dict(self) -> dict[str, Any]:
        """Return ``{"tasks", "next"}``."""
        return {"tasks": [task.to_dict() for task in self.tasks], "next": self.next}


class _Filter:
    """The conditions of a list as SQL, and their parameters."""

    def __init__(self) -> None:
        self.terms: list[str] = []
        self.values: dict[str, Any] = {}

    def add(self, term: str, **values: Any) -> None:
        self.terms.append(term)
        self.values.update(values)

    @property
    def sql(self) -> str:
        return " AND ".join(self.terms) or "1"


class Queries(Core):
    """List, show, events, and the board's revision."""

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
        """Return the tasks that meet every given condition, at most ``limit`` after the cursor ``after``.

        ``assignee`` may be ``none``; a task must have all ``tags``; ``search`` searches id, title and body and ignores
        the case of ASCII letters. ``search`` finds archived tasks, too; ``archived`` finds only them. Without ``full``,
        body, params, result and error are left out.
        """
        inputs.integer(limit, "limit", 1, LIST_LIMIT)
        key, ordering, beyond = _ORDERS[inputs.one_of(order, "order", ORDERS)]
        found = _Filter()
        if status:
            names = [inputs.one_of(one, "status", STATUSES) for one in status]
            found.add(f"status IN ({', '.join(repr(one) for one in names)})")
        if ready or blocked or overdue or (status and UNFINISHED.issuperset(status)):
            found.add(IS_UNFINISHED)
        elif archived or not search:
            found.add("archived_at IS NOT NULL" if archived else "archived_at IS NULL")
        if queue is not None:
            found.add("queue = :queue", queue=inputs.name(queue, "queue"))
        if tags:
            found.add(HAS_TAGS, tags=inputs.json_text(inputs.tags(tags), "tags"))
        for name, wanted in (("ready", ready), ("blocked", blocked), ("overdue", overdue)):
            if wanted:
                found.add(DERIVED[name])
        if search:
            _add_search(found, search)
        if after:
            last_key, last_seq = _read_cursor(after, order)
            found.add(beyond, key=last_key, seq=last_seq)
        with self.read() as tx:
            if assignee is not None:
                wanted_assignee = inputs.assignee(assignee, "assignee", old=True)
                found.add("assignee IS :assignee", assignee=wanted_assignee and tx.canonical_name(wanted_assignee))
            if claimed_by is not None:
                name = inputs.agent_name(claimed_by, "claimed_by", old=True)
                found.add("claimed_by = :claimed_by", claimed_by=tx.canonical_name(name))
            columns = (*(NAMES if full else LEAN_NAMES), "key")
            rows, has_more = _page(
                tx.execute(
                    f"""
                    SELECT {COLUMNS if full else LEAN_COLUMNS}, {key} AS key FROM task
                     WHERE {found.sql}
                     ORDER BY {ordering}
                     LIMIT :limit
                    """,
                    {**found.values, "now": tx.now, "limit": limit + 1},
                ),
                limit,
                [columns.index(name) for name in _LONG if name in columns],
            )
        following = f"{order}~{rows[-1]['key']}~{rows[-1]['seq']}" if has_more else None
        return TaskPage([to_task(dict(zip(columns, row, strict=True)), tx.now) for row in rows], following)

    def show(self, task: str) -> TaskDetails:
        """Return a task with its attempts, its dependencies in both directions and its comments.

        Raises:
            NotFound: no such task.
        """
        with self.read() as tx:
            row = tx.find(task)
            seq = row["seq"]
            attempts: list[Attempt] = [
                _attempt(attempt)
                for attempt in tx.execute("SELECT * FROM attempt WHERE task_seq = ? ORDER BY number", (seq,))
            ]
            found: TaskDetails = {
                "task": to_task(row, tx.now).to_dict(),
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
                "comments": [
                    _event(event)
                    for event in _select_events(
                        tx, "event.task_seq = ? AND kind = 'commented' ORDER BY event.seq", (seq,)
                    )
                ],
            }
            if row["archived_at"] is not None:
                found["archived_at"] = row["archived_at"]
            return found

    def events(
        self, *, task: str | None = None, after: int = 0, before: int | None = None, limit: int = 100
    ) -> EventPage:
        """Return events with a sequence number above ``after``, oldest first, of one task or of all.

        ``next`` is the ``after`` of the next page: the number of the last event, or ``after`` if there is none. With
        ``before``, events below that number come newest first (0: all); ``next`` is then the ``before`` of the next
        page, or 0 on the last page.

        Raises:
            NotFound: no such task.
        """
        inputs.version(after, "after")
        inputs.integer(limit, "limit", 1, EVENT_LIMIT)
        if before is None:
            where, values, order = "event.seq > ?", [after], "event.seq"
        else:
            if after:
                raise InvalidInput("before: cannot be combined with after", field="before")
            inputs.version(before, "before")
            where, values, order = "event.seq < ?", [before or 2**62], "event.seq DESC"
        with self.read() as tx:
            if task is not None:
                where, values = f"event.task_seq = ? AND {where}", [tx.find(task)["seq"], *values]
            rows, has_more = _page(
                _select_events(tx, f"{where} ORDER BY {order} LIMIT ?", (*values, limit + 1)), limit, [6]
            )
            found = [_event(row) for row in rows]
        if before is None:
            return {"events": found, "next": found[-1]["seq"] if found else after}
        return {"events": found, "next": found[-1]["seq"] if has_more else 0}

    def revision(self) -> int:
        """Return the board's revision, which grows with every write to any task."""
        with self.read() as tx:
            number: int = tx.execute("SELECT revision FROM board").fetchone()[0]
        return number


def _add_search(found: _Filter, search: str) -> None:
    pattern = inputs.text(search, "search", SEARCH)
    for special in "\\%_":
        pattern = pattern.replace(special, f"\\{special}")
    found.add(
        r"(title LIKE :search ESCAPE '\' OR body LIKE :search ESCAPE '\' OR id LIKE :search ESCAPE '\')",
        search=f"%{pattern}%",
    )


def _read_cursor(cursor: str, order: str) -> tuple[Any, int]:
    """Return the sort key and sequence number in a cursor."""
    name, _, rest = inputs.line(cursor, "after", inputs.KEY).partition("~")
    key, _, seq = rest.rpartition("~")
    try:
        if name != order or max(len(key), len(seq)) > len(_NEVER):
            raise ValueError
        number = inputs.integer(inputs.whole_number(seq, "after"), "after", 1, 2**62)
        if order in ("age", "priority"):
            return inputs.whole_number(key, "after"), number
        return instants.to_text(instants.from_text(key)), number
    except (InvalidInput, ValueError, TypeError, OverflowError):  # TypeError: an instant without an offset
        raise InvalidInput(
            f"after: not a cursor of a list in this order ({order}): {cursor[:60]!r}",
            hint="Give the cursor that the previous page ended with, and list in the same order.",
            field="after",
        ) from None


def _attempt(row: Row) -> Attempt:
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


def _links(tx: Transaction, where: str, seq: int) -> list[Link]:
    return [
        {"id": row["id"], "title": row["title"], "status": row["status"]}
        for row in tx.execute(f"SELECT id, title, status FROM task {where}", (seq,))
    ]


def _page(rows: Cursor, limit: int, long: Sequence[int]) -> tuple[list[Row], bool]:
    """Return at most ``limit`` rows, fewer if ``long`` columns reach ``PAGE_SIZE``, and whether there are more."""
    page: list[Row] = []
    size = 0
    for row in rows:
        if len(page) == limit or size > PAGE_SIZE:
            rows.close()  # an open cursor would keep the read transaction open
            return page, True
        page.append(row)
        size += sum(len(row[column] or "") for column in long)
    return page, False


def _select_events(tx: Transaction, where: str, values: Sequence[Any]) -> Cursor:
    return tx.execute(
        f"""
        SELECT event.seq, task.id AS task_id, kind, actor, actor_kind, at, data
          FROM event JOIN task ON task.seq = event.task_seq
         WHERE {where}
        """,
        values,
    )


def _event(row: Row) -> Event:
    return {
        "seq": row["seq"],
        "task_id": row["task_id"],
        "kind": row["kind"],
        "actor": row["actor"],
        "actor_kind": row["actor_kind"],
        "at": row["at"],
        "data": json.loads(row["data"]),
    }
