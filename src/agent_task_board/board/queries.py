"""Read tasks and their history; each method is one read transaction."""

from __future__ import annotations

import json

from .. import inputs, instants
from ..errors import InvalidInput
from ..model import FINAL, STATUSES
from .core import Core
from .predicates import DERIVED, HAS_TAGS, IS_BLOCKED, IS_LEASED, IS_PROMOTED, IS_UNFINISHED, IS_WAITING
from .rows import COLUMNS, EVENT_COLUMNS, LEAN_COLUMNS, LEAN_NAMES, NAMES, to_event, to_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from ..model import Attempt, EventPage, Link, Task, TaskDetails
    from ..storage.db import Cursor, Row
    from .core import Transaction
    from .searching import Search

    class Room(Protocol):
        """What one page may hold."""

        @property
        def is_full(self) -> bool:
            """Whether the page ends with the rows so far."""

        def take(self, row: Row) -> None:
            """Count a row."""


LIST_LIMIT = 100_000
EVENT_LIMIT = 10_000
SEARCH = 500
PAGE_SIZE = 32 * 1_048_576
"""Characters of long values in one page, plus those of its last entry; a page that reaches it ends early."""

UNFINISHED = frozenset(STATUSES) - frozenset(FINAL)

WORK = "work"
"""The default order: what a claim would take next, the other queued tasks, those held, waiting or in review, those
finished."""
ASSIGNEES = 50
"""The most assignees of ready tasks whose tasks a list reads one by one."""
COUNTED = 10_000
"""The most tasks behind a page that are counted."""

_LONG = frozenset(("tags", "blocked_by", "artifacts", "body", "params", "result", "error", "data"))
"""The columns of tasks and events that can be long."""
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
_ORDERS["newest"] = ("seq", "seq DESC", "seq < :seq")
RELEVANCE = "relevance"
"""The order of a search that names none: all words in title or id, some of them there, none; then oldest first."""
ORDERS = (WORK, *_ORDERS)
"""The orders of a list: the work that is left first; oldest first, largest priority first, latest change first,
earliest deadline first, newest first."""


class _Band:
    """A part of the order ``work``, which is its parts one after the other.

    ``parts`` are conditions that exclude each other, each with a partial index. ``key`` and ``seq`` order the band,
    upwards or downwards, in ``ordering``; ``beyond`` is what lies behind a cursor.
    """

    __slots__ = ("beyond", "key", "ordering", "parts", "statuses")

    def __init__(self, statuses: Sequence[str], *parts: str, key: str, ordering: str, beyond: str) -> None:
        self.statuses = frozenset(statuses)
        self.parts = parts
        self.key = key
        self.ordering = ordering
        self.beyond = beyond


_BEST_FIRST = {
    "key": "priority",
    "ordering": "priority DESC, seq",
    "beyond": "(priority < :key OR (priority = :key AND seq > :seq))",
}
_BANDS = (
    # A claim promotes what is due first, so delayed tasks that are due belong to the first band.
    _Band(("queued",), IS_PROMOTED, f"{IS_WAITING} AND open_dependencies = 0 AND not_before <= :now", **_BEST_FIRST),
    _Band(("queued",), IS_BLOCKED, f"{IS_WAITING} AND open_dependencies = 0 AND not_before > :now", **_BEST_FIRST),
    _Band(
        ("claimed", "running", "review"),
        IS_LEASED,
        "status = 'review'",
        **_BEST_FIRST,
    ),
    _Band(
        FINAL,
        "finished_at IS NOT NULL",
        key="finished_at",
        ordering="finished_at DESC, seq DESC",
        beyond="(finished_at, seq) < (:key, :seq)",
    ),
)
_FINISHED = len(_BANDS) - 1


NEXT_AS_AFTER = "; pass `next` as `after`"
"""How a program gets the next page: the end of the sentence that says that there is one."""


class _Characters:
    """Room for ``PAGE_SIZE`` characters of long values."""

    def __init__(self) -> None:
        self._size = 0

    @property
    def is_full(self) -> bool:
        return self._size > PAGE_SIZE

    def take(self, row: Row) -> None:
        self._size += sum(len(row[name] or "") for name in _LONG.intersection(row.keys()))


class TaskPage:
    """Some tasks of a list, and the cursor of the next page (``None`` on the last page).

    ``more`` is how many tasks follow, ``hidden`` how many finished ones were left out. Where counting takes long, it
    ends at ``COUNTED + 1``. The page of a search has for each task a snippet: by id, the part of a text that matches.
    ``said`` are warnings about what was asked.
    """

    __slots__ = ("hidden", "more", "next", "said", "snippets", "tasks")

    def __init__(self, tasks: list[Task], following: str | None, *, more: int = 0, hidden: int = 0) -> None:
        self.tasks = tasks
        self.next = following
        self.more = more
        self.hidden = hidden
        self.snippets: dict[str, str] | None = None
        self.said: list[str] = []

    def entries(self) -> list[dict[str, Any]]:
        """Return the tasks as JSON, those of a search with ``snippet``."""
        found = [task.to_dict() for task in self.tasks]
        for task in found if self.snippets is not None else ():
            task["snippet"] = (self.snippets or {}).get(task["id"], "")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return ``{"tasks", "next"}``."""
        return {"tasks": self.entries(), "next": self.next}

    def warnings(self, how: str = NEXT_AS_AFTER) -> list[str]:
        """Return ``said``, and a sentence if more tasks follow; ``how`` ends it, and says how to get them."""
        if self.next is None:
            return self.said
        return [*self.said, f"{tasks_in_words(self.more)} {'follows' if self.more == 1 else 'follow'}{how}"]


def tasks_in_words(number: int, kind: str = "more") -> str:
    """Return a number of tasks as ``TaskPage`` counts them: ``3 more tasks``."""
    count = f"more than {COUNTED:,}" if number == COUNTED + 1 else f"{number:,}"
    return f"{count} {kind} task{'' if number == 1 else 's'}"


def events_follow(number: int, how: str = NEXT_AS_AFTER) -> str:
    """Return the sentence of a page of events that is not the last one; ``how`` ends it."""
    return f"{number:,} more event{' follows' if number == 1 else 's follow'}{how}"


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
        stuck: bool = False,
        overdue: bool = False,
        search: str | None = None,
        archived: bool = False,
        order: str | None = None,
        limit: int = 100,
        after: str | None = None,
        full: bool = False,
        hide_finished: bool = False,
        agent: str | None = None,
        room: Room | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> TaskPage:
        """Return the tasks that meet every given condition, at most ``limit`` after the cursor ``after``.

        ``status`` entries may name several, separated by commas. ``assignee`` may be ``none``; ``me``, there and in
        ``claimed_by``, is ``agent``, else the caller. A task must have all ``tags``.

        ``search`` finds tasks with all its words, in any order, in title, body, tags, result, error, comments or id; a
        ``"phrase"`` counts as one word, the last word may be unfinished, and an id is found by its first or last
        characters. Upper and lower case are equal (``docs/search.md``). It finds archived tasks, too; ``archived``
        finds only them. The default ``order`` is ``relevance`` with ``search``, else ``work``.

        ``hide_finished`` leaves out finished tasks, unless ``status``, ``archived`` or ``search`` asks for them, and
        counts them. Without ``full``, body, params, result and error are left out. ``room`` ends the page early, and
        ``stop`` is asked while SQLite works.

        Raises:
            Busy: ``stop`` said so.
        """
        inputs.integer(limit, "limit", 1, LIST_LIMIT)
        search = search and inputs.text(search, "search", SEARCH)
        if order is None:
            order = RELEVANCE if search else WORK
        else:
            inputs.one_of(order, "order", ORDERS)
        found = _Filter()
        names = _statuses(status)
        hides = hide_finished and not (names or archived or search)
        if names:
            found.add(f"status IN ({', '.join(repr(one) for one in names)})")
        kept = "1"
        only_unfinished = ready or blocked or stuck or overdue or (bool(names) and UNFINISHED.issuperset(names))
        if only_unfinished:
            found.add(IS_UNFINISHED)
            hides = False
        if archived:
            kept = "archived_at IS NOT NULL"
        elif not (only_unfinished or search):
            kept = "archived_at IS NULL"
        if queue is not None:
            found.add("queue = :queue", queue=inputs.name(queue, "queue"))
        if tags:
            found.add(HAS_TAGS, tags=inputs.json_text(inputs.tags(tags), "tags"))
        for name, wanted in (("ready", ready), ("blocked", blocked), ("stuck", stuck), ("overdue", overdue)):
            if wanted:
                found.add(DERIVED[name])
        start = _read_cursor(after, order) if after else None
        with self.read(stop) as tx:
            if assignee is not None:
                wanted_assignee = inputs.assignee(self.named(assignee, None, agent), "assignee", old=True)
                found.add("assignee IS :assignee", assignee=wanted_assignee and tx.canonical_name(wanted_assignee))
            if claimed_by is not None:
                name = inputs.agent_name(self.named(claimed_by, None, agent), "claimed_by", old=True)
                found.add("claimed_by = :claimed_by", claimed_by=tx.canonical_name(name))
            found.values["now"] = tx.now
            if search:
                from .searching import Search

                hits = Search(tx, search, stop)
                if order == RELEVANCE:
                    page = _relevant_page(tx, found, hits, kept, limit, start, room or _Characters(), full=full)
                    return _with_snippets(page, hits)
                matching, values = hits.hits()
                found.add(f"task.seq IN ({matching.replace(':seq', '0')})", **values)
            bands = range(_FINISHED) if hides or only_unfinished else range(len(_BANDS))
            if archived:  # only what is finished is archived
                bands = range(0) if only_unfinished else range(_FINISHED, len(_BANDS))
            if order == WORK:
                chosen = [number for number in bands if not names or _BANDS[number].statuses.intersection(names)]
                page = _work_page(tx, found, chosen, kept, limit, start, room or _Characters(), full=full)
            else:
                kept = IS_UNFINISHED if hides else kept
                page = _ordered_page(tx, found, order, kept, limit, start, room or _Characters(), full=full)
            if hides and not found.terms:
                page.hidden = tx.execute(
                    f"SELECT coalesce(sum(tasks), 0) FROM tally WHERE status IN {FINAL}"
                ).fetchone()[0]
            elif hides:
                page.hidden = _count(tx, found, [f"finished_at IS NOT NULL AND {kept}"])
            return _with_snippets(page, hits) if search else page

    def show(self, task: str, *, output: bool = False, why: bool = False) -> TaskDetails:
        """Return a task with its attempts, its dependencies in both directions and its comments.

        With ``output``, an attempt has the end of what its command wrote, where that was kept. With ``why``, an
        unfinished task comes with the reason why it is not finished, in a sentence.

        Raises:
            NotFound: no such task.
        """
        with self.read() as tx:
            row = tx.find(task)
            seq = row["seq"]
            from . import returned

            rejected = returned.returned_attempts(tx, seq) if row["fence"] else set()
            attempts: list[Attempt] = [
                {**_attempt(attempt), "returned": True} if attempt["number"] in rejected else _attempt(attempt)
                for attempt in tx.execute("SELECT * FROM attempt WHERE task_seq = ? ORDER BY number", (seq,))
            ]
            if output:
                from .output import outputs

                kept = outputs(tx, seq)
                attempts = [
                    {**one, "output": kept[one["number"]]} if one["number"] in kept else one for one in attempts
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
                    to_event(event, event["task_id"])
                    for event in _select_events(
                        tx, "event.task_seq = ? AND kind = 'commented' ORDER BY event.seq", (seq,)
                    )
                ],
            }
            if why and row["finished_at"] is None:
                from . import why as reasons

                found["why"] = reasons.why(tx, row)["text"]
            if row["archived_at"] is not None:
                found["archived_at"] = row["archived_at"]
            by_whom = returned.returned(tx, seq)
            if by_whom is not None:
                found["returned"] = by_whom
            if row["stuck"]:
                from . import stuck

                by = stuck.cause(tx, seq)
                if by is not None:
                    found["stuck_by"] = by
            return found

    def events(
        self,
        *,
        task: str | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
        room: Room | None = None,
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
                _select_events(tx, f"{where} ORDER BY {order} LIMIT ?", (*values, limit + 1)),
                limit,
                room or _Characters(),
            )
            found = [to_event(row, row["task_id"]) for row in rows]
        if before is None:
            return {"events": found, "next": found[-1]["seq"] if found else after}
        return {"events": found, "next": found[-1]["seq"] if has_more else 0}

    def count_events(self, after: int, *, task: str | None = None) -> int:
        """Count the events with a sequence number above ``after``, of one task or of all.

        Raises:
            NotFound: no such task.
        """
        with self.read() as tx:
            if task is None:  # the numbers have no gap
                latest = tx.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0]
                return max(0, int(latest) - after)
            number: int = tx.execute(
                "SELECT count(*) FROM event WHERE task_seq = ? AND seq > ?", (tx.find(task)["seq"], after)
            ).fetchone()[0]
        return number

    def revision(self) -> int:
        """Return the board's revision, which grows with every write to any task."""
        with self.read() as tx:
            number: int = tx.execute("SELECT revision FROM board").fetchone()[0]
        return number


def _statuses(given: Sequence[str]) -> list[str]:
    """Return the statuses that a list is asked for; one entry may name several, separated by commas."""
    if isinstance(given, str):
        raise InvalidInput("status: must be a list", field="status")
    entries: Sequence[Any] = given
    words = [word for one in entries for word in (one.split(",") if isinstance(one, str) else [one])]
    return [inputs.one_of(word.strip() if isinstance(word, str) else word, "status", STATUSES) for word in words]


def _ordered_page(
    tx: Transaction,
    found: _Filter,
    order: str,
    kept: str,
    limit: int,
    start: tuple[Any, int] | None,
    room: Room,
    *,
    full: bool,
) -> TaskPage:
    """Return a page in one of the simple orders."""
    key, ordering, beyond = _ORDERS[order]
    where, values = f"{kept} AND {found.sql}", {**found.values, "limit": limit + 1}
    if start is not None:
        where, values = f"{where} AND {beyond}", {**values, "key": start[0], "seq": start[1]}
    rows, has_more = _page(
        tx.execute(
            f"""
            SELECT {COLUMNS if full else LEAN_COLUMNS}, {key} AS key FROM task
             WHERE {where}
             ORDER BY {ordering}
             LIMIT :limit
            """,
            values,
        ),
        limit,
        room,
    )
    if not has_more:
        return TaskPage(_read_tasks(tx, rows, full=full), None)
    last = (rows[-1]["key"], rows[-1]["seq"])
    more = _count(tx, found, [f"{kept} AND {beyond}"], key=last[0], seq=last[1])
    return TaskPage(_read_tasks(tx, rows, full=full), f"{order}~{last[0]}~{last[1]}", more=more)


def _work_page(
    tx: Transaction,
    found: _Filter,
    bands: Sequence[int],
    kept: str,
    limit: int,
    start: tuple[Any, int] | None,
    room: Room,
    *,
    full: bool,
) -> TaskPage:
    """Return a page in the order ``work``: band after band, until it is full.

    The inner query sorts keys, which the partial indexes hold, and only the rows of the page are read.
    """
    first, key = (0, None) if start is None else start[0]
    nobody_waits = not tx.execute("SELECT 1 FROM tally WHERE status = 'waiting' AND tasks > 0 LIMIT 1").fetchone()
    rows: list[Row] = []
    following = None
    more = 0
    for number in bands:
        if number < first:
            continue
        band = _BANDS[number]
        # What is not finished is never archived, and SQLite would read the rows to see it.
        parts = [f"{part} AND {kept}" if number == _FINISHED else part for part in band.parts]
        if nobody_waits:  # no index has them
            parts = [part for part in parts if "'waiting'" not in part]
        beyond = "1"
        values = dict(found.values)
        if start is not None and number == first and key is not None:
            beyond, values = band.beyond, {**values, "key": key, "seq": start[1]}
        if following is not None:
            more += _count(tx, found, parts, room=COUNTED + 1 - more) if more <= COUNTED else 0
            continue
        keys, names = _keys(tx, band, [f"{part} AND {found.sql} AND {beyond}" for part in parts])
        values |= names
        left = limit - len(rows)
        chosen, has_more = _page(
            tx.execute(
                f"""
                SELECT {COLUMNS if full else LEAN_COLUMNS}, key
                  FROM (SELECT seq, key FROM ({keys}) ORDER BY {band.ordering} LIMIT :limit) CROSS JOIN task USING (seq)
                """,
                {**values, "limit": left + 1},
            ),
            left,
            room,
        )
        rows += chosen
        if has_more:
            if chosen:
                last = (chosen[-1]["key"], chosen[-1]["seq"])
                following = f"{WORK}~{number}.{last[0]}~{last[1]}"
                behind = [f"{part} AND {band.beyond}" for part in parts]
                more += _count(tx, found, behind, key=last[0], seq=last[1])
            else:  # the page ended with the band before: the next one begins with this band
                following = f"{WORK}~{number}.~0"
                more += _count(tx, found, parts)
    return TaskPage(_read_tasks(tx, rows, full=full), following, more=more)


def _keys(tx: Transaction, band: _Band, parts: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return SQL for ``seq``, ``key`` of what a page of a band is chosen from, and its parameters.

    The index of what is ready has an assignee before the priority. So the best of each assignee are taken, which costs
    the same on any board, unless there are many assignees.
    """
    if band is not _BANDS[0]:
        return " UNION ALL ".join(
            f"SELECT seq, {band.key} AS key, {band.key} FROM task WHERE {part}" for part in parts
        ), {}
    ready, *others = parts
    assignees = [
        row[0]
        for row in tx.execute(
            f"""
            WITH RECURSIVE one (name) AS (
              SELECT min(assignee) FROM task INDEXED BY task_ready WHERE {IS_PROMOTED} AND assignee > ''
              UNION ALL
              SELECT (SELECT min(assignee) FROM task INDEXED BY task_ready WHERE {IS_PROMOTED} AND assignee > name)
                FROM one WHERE name IS NOT NULL
               LIMIT {ASSIGNEES + 1})
            SELECT name FROM one WHERE name IS NOT NULL"""
        )
    ]
    if len(assignees) < ASSIGNEES:
        mine = ["assignee IS NULL", *(f"assignee = :assignee{number}" for number in range(len(assignees)))]
        chosen = [
            f"SELECT * FROM (SELECT seq, priority AS key, priority FROM task WHERE {one} AND {ready}"
            f" ORDER BY {band.ordering} LIMIT :limit)"
            for one in mine
        ]
    else:
        chosen = [f"SELECT seq, priority AS key, priority FROM task WHERE {ready}"]
    chosen += [f"SELECT seq, priority AS key, priority FROM task WHERE {part}" for part in others]
    return " UNION ALL ".join(chosen), {f"assignee{number}": name for number, name in enumerate(assignees)}


def _count(tx: Transaction, found: _Filter, parts: Sequence[str], room: int = COUNTED + 1, **values: Any) -> int:
    """Count tasks that meet a filter and one of several conditions; at most ``room``."""
    rows = " UNION ALL ".join(f"SELECT 1 FROM task WHERE {part} AND {found.sql}" for part in parts)
    number: int = tx.execute(
        f"SELECT count(*) FROM ({rows} LIMIT :room)", {**found.values, **values, "room": room}
    ).fetchone()[0]
    return number


def _read_tasks(tx: Transaction, rows: Sequence[Row], *, full: bool) -> list[Task]:
    columns = (*(NAMES if full else LEAN_NAMES), "key")
    return [to_task(dict(zip(columns, row, strict=True)), tx.now) for row in rows]


def _relevant_page(
    tx: Transaction,
    found: _Filter,
    hits: Search,
    kept: str,
    limit: int,
    start: tuple[Any, int] | None,
    room: Room,
    *,
    full: bool,
) -> TaskPage:
    """Return a page of a search in the order ``relevance``: level after level, until it is full."""
    first, after = (0, 0) if start is None else start
    where = f"{kept} AND {found.sql}"
    rows: list[Row] = []
    more = 0
    following = None
    for level in hits.levels:
        if level < first:
            continue
        matching, values = hits.hits(level)
        values |= {**found.values, "seq": after if level == first else 0}
        if following is not None:
            more += _count_hits(tx, matching, where, values, COUNTED + 1 - more) if more <= COUNTED else 0
            continue
        left = limit - len(rows)
        chosen, has_more = _page(
            tx.execute(
                f"""
                SELECT {COLUMNS if full else LEAN_COLUMNS}, {level} AS key
                  FROM ({matching}) AS hit CROSS JOIN task USING (seq)
                 WHERE {where}
                 ORDER BY hit.seq
                 LIMIT :limit
                """,
                {**values, "limit": left + 1},
            ),
            left,
            room,
        )
        rows += chosen
        if has_more:
            last = chosen[-1]["seq"] if chosen else values["seq"]
            following = f"{RELEVANCE}~{level}~{last}"
            more += _count_hits(tx, matching, where, {**values, "seq": last}, COUNTED + 1)
    return TaskPage(_read_tasks(tx, rows, full=full), following, more=more)


def _count_hits(tx: Transaction, matching: str, where: str, values: dict[str, Any], room: int) -> int:
    """Count tasks that a search finds and that meet a filter; at most ``room``."""
    join = "" if where == "1 AND 1" else f"CROSS JOIN task USING (seq) WHERE {where}"
    number: int = tx.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM ({matching}) {join} LIMIT :room)", {**values, "room": room}
    ).fetchone()[0]
    return number


def _with_snippets(page: TaskPage, hits: Search) -> TaskPage:
    page.snippets = hits.snippets(task.id for task in page.tasks)
    page.said = hits.warnings
    return page


def _read_cursor(cursor: str, order: str) -> tuple[Any, int]:
    """Return the sort key and sequence number in a cursor."""
    name, _, rest = inputs.line(cursor, "after", inputs.KEY).partition("~")
    key, _, seq = rest.rpartition("~")
    try:
        if name != order or max(len(key) - 2, len(seq)) > len(_NEVER):
            raise ValueError
        if order == WORK:
            return _band_key(key), inputs.integer(inputs.whole_number(seq, "after"), "after", 0, 2**62)
        number = inputs.integer(inputs.whole_number(seq, "after"), "after", 0, 2**62)
        if order == RELEVANCE:
            return inputs.integer(inputs.whole_number(key, "after"), "after", 0, 3), number
        if order in ("age", "newest", "priority"):
            return inputs.whole_number(key, "after"), number
        return instants.to_text(instants.from_text(key)), number
    except (InvalidInput, ValueError, TypeError, OverflowError):  # TypeError: an instant without an offset
        raise InvalidInput(
            f"after: not a cursor of a list in this order ({order}): {cursor[:60]!r}",
            hint="Give the cursor that the previous page ended with, and list in the same order.",
            field="after",
        ) from None


def _band_key(text: str) -> tuple[int, Any]:
    """Return the band and the key in it that a cursor of the order ``work`` names; ``None``: the band's beginning."""
    band, _, key = text.partition(".")
    number = inputs.integer(int(band), "after", 0, _FINISHED)
    if not key:
        return number, None
    return number, instants.to_text(instants.from_text(key)) if number == _FINISHED else inputs.priority(
        int(key), "after"
    )


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


def _page(rows: Cursor, limit: int, room: Room) -> tuple[list[Row], bool]:
    """Return at most ``limit`` rows, fewer if there is no room for more, and whether there are more."""
    page: list[Row] = []
    for row in rows:
        if len(page) == limit or room.is_full:
            rows.close()  # an open cursor would keep the read transaction open
            return page, True
        page.append(row)
        room.take(row)
    return page, False


def _select_events(tx: Transaction, where: str, values: Sequence[Any]) -> Cursor:
    return tx.execute(
        f"""
        SELECT {EVENT_COLUMNS}, task.id AS task_id
          FROM event JOIN task ON task.seq = event.task_seq
         WHERE {where}
        """,
        values,
    )
