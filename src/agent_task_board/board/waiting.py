"""Wait for a claimable task, or until tasks reach a status: without a daemon, a lock or an open transaction.

A waiter asks SQLite whether another connection has written, which costs a look at shared memory; only then, or when a
lease or a delay ends, does it read the board. It claims only after a read has found something, so that many waiters do
not take turns at the write lock for nothing.
"""

from __future__ import annotations

from time import monotonic, sleep

from .. import inputs, instants
from ..errors import Busy, Conflict, Empty, InvalidInput
from ..model import FINAL, LEASED, QUEUED, STATUSES
from .attention import attention
from .claiming import best_ready
from .expiry import expire_all
from .predicates import ANYTHING_DUE, HAS_TAGS, IS_CLAIMABLE_BY, IS_LEASED, IS_UNBLOCKED, IS_WAITING, in_queues
from .rows import to_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from ..model import Attention, Grant, Task, TaskRow
    from .claiming import Claiming
    from .core import Core

    Found = TypeVar("Found")
    Pause = Callable[[float], object]
    Look = Callable[[], tuple[Found | None, str | None]]

FIRST_POLL, LAST_POLL, POLL_GROWTH = 0.02, 0.25, 1.25
"""Seconds between two looks: the first ones, the longest, and by how much each is longer than the one before."""
WAIT_LOW, WAIT_HIGH = 0, 7 * instants.DAY
"""Milliseconds that a call may wait."""
NEEDS_YOU = "needs-you"
"""What ``atb wait --for`` waits for, beside statuses: something needs a person."""
ENDED = (*(status for status in STATUSES if status not in (QUEUED, *LEASED)),)
"""The statuses that a wait without others is for: nobody has the task any more, and it is not queued."""

_PASSING = ("blocked", "delayed", "paused", "full", "key")
"""Reasons of a conflict that end without a change of the task itself."""


class Waited:
    """How a wait for tasks ended.

    ``tasks`` are the tasks as they are now, ``met`` says whether the wait was for this. If it was not, ``reason`` says
    why the wait ended before its time, or is ``None``: its time was over.
    """

    __slots__ = ("met", "reason", "tasks")

    def __init__(self, tasks: list[Task], *, met: bool, reason: str | None = None) -> None:
        self.tasks = tasks
        self.met = met
        self.reason = reason

    def refusal(self) -> Empty:
        """Return the refusal of a wait that did not get there."""
        states = "; ".join(f"task {task.id} is {task.status}" for task in self.tasks[:3])
        return Empty(
            self.reason or f"the time is over: {states}",
            hint=None if self.reason is None else "A longer wait does not help.",
            tasks=[{"id": task.id, "status": task.status} for task in self.tasks],
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the ``data`` of the answer."""
        return {"tasks": [task.to_dict() for task in self.tasks], "met": self.met}


def to_seconds(wait: str | float | None, field: str = "wait") -> float | None:
    """Return the seconds of a wait; ``None``, one without an end, stays so.

    Raises:
        InvalidInput: not a duration of at most 7 days.
    """
    if wait is None:
        return None
    return instants.parse_length(wait, field=field, low=WAIT_LOW, high=WAIT_HIGH) / instants.SECOND


def at_once(_: float) -> bool:
    """Return true: a pause that ends every wait before it begins."""
    return True


def until(core: Core, look: Look[Found], *, seconds: float | None, pause: Pause = sleep) -> Found | None:
    """Look at the board now and whenever it may have changed, until something is found.

    Args:
        core: the board.
        look: returns what was found, or ``None``, and the instant at which time alone changes what it sees.
        seconds: how long to wait, without an end if ``None``.
        pause: sleeps for some seconds; a true result ends the wait.

    Returns:
        What was found; ``None`` if the time is over or ``pause`` ended the wait.

    Raises:
        Busy: the board could not be read when the time was over.
    """
    deadline = None if seconds is None else monotonic() + seconds
    interval = FIRST_POLL
    busy: Busy | None = None
    while True:
        mark, at = None, None
        try:
            mark = core.database.change_mark()  # before the look: a change in between is seen the next time
            found, at = look()
            busy = None
            if found is not None:
                return found
        except Busy as error:
            busy = error
        while True:
            left = LAST_POLL if deadline is None else deadline - monotonic()
            if left <= 0:
                if busy is not None:
                    raise busy
                return None
            if pause(min(interval, left)):
                return None
            interval = min(interval * POLL_GROWTH, LAST_POLL)
            if busy is not None or _is_due(core, at) or _has_changed(core, mark):
                break


def _is_due(core: Core, at: str | None) -> bool:
    return at is not None and instants.to_text(core.clock()) >= at


def _has_changed(core: Core, mark: tuple[int, ...] | None) -> bool:
    try:
        return core.database.change_mark() != mark
    except Busy:  # for a moment, as while the board is recovered after a crash
        return False


# Claims


class Outlook:
    """What a claim can expect: whether to try it now, when to look again, and whether anything can still change."""

    __slots__ = ("can_change", "has_work", "until")

    def __init__(self, *, has_work: bool, until: str | None, can_change: bool) -> None:
        self.has_work = has_work
        self.until = until
        self.can_change = can_change


class _Idle(Exception):
    """Nothing can change any more."""


def claim(
    core: Claiming,
    agent: str,
    *,
    seconds: float | None,
    until_idle: bool = False,
    pause: Pause = sleep,
    **arguments: Any,
) -> Grant | None:
    """Claim as ``Claiming.claim`` does, and wait for a task if there is none.

    Args:
        core: the board.
        agent: who claims.
        seconds: how long to wait, without an end if ``None``.
        until_idle: also end when nothing can change any more: no task is ready, and none is held or delayed.
        pause: sleeps for some seconds; a true result ends the wait.
        arguments: those of ``Claiming.claim``.
    """

    def outlook() -> Outlook:
        if arguments.get("task") is not None:
            return _named_outlook(core, arguments["task"])
        return _best_outlook(core, agent, arguments.get("queues", ()), arguments.get("tags", ()), until_idle)

    is_first = True

    def look() -> tuple[Grant | None, str | None]:
        nonlocal is_first
        seen = None if is_first else outlook()
        is_first = False
        if seen is None or seen.has_work:
            grant = _try(core, agent, arguments)
            if grant is not None:
                return grant, None
            seen = outlook()
        if until_idle and not seen.can_change and not seen.has_work:
            raise _Idle
        return None, seen.until

    try:
        return until(core, look, seconds=seconds, pause=pause)
    except _Idle:
        return None


def _try(core: Claiming, agent: str, arguments: dict[str, Any]) -> Grant | None:
    """Claim; return ``None`` if nothing is ready, or if the named task is not ready yet.

    Raises:
        Conflict: the named task will not be ready by waiting for it.
    """
    try:
        return core.claim(agent, **arguments)
    except Conflict as error:
        is_held = error.details.get("actual", {}).get("status") in LEASED
        if error.details.get("reason") in _PASSING or (error.details.get("reason") == "status" and is_held):
            return None
        raise


def _best_outlook(core: Core, agent: str, queues: Sequence[str], tags: Sequence[str], until_idle: bool) -> Outlook:
    """Return what a claim of the best task of some queues can expect; ``until_idle`` also looks for delayed tasks."""
    queues, tags = inputs.queues(queues), inputs.tags(tags)
    within, values = in_queues(queues)
    if tags:
        within += f" AND {HAS_TAGS}"
        values["tags"] = inputs.json_text(list(tags), "tags")
    with core.read() as tx:
        values |= {"agent": tx.canonical_name(inputs.agent_name(agent, "agent")), "now": tx.now}
        row = tx.execute(
            f"""
            SELECT (SELECT EXISTS (SELECT 1 FROM task WHERE {best_ready(queues, HAS_TAGS if tags else "1")}))
                   OR ({ANYTHING_DUE}) AS has_work,
                   (SELECT min(lease_expires_at) FROM task INDEXED BY task_leased WHERE {IS_LEASED}) AS lease_ends,
                   (SELECT min(not_before) FROM task INDEXED BY task_delayed WHERE {IS_WAITING}) AS delay_ends,
                   (:until_idle AND EXISTS (
                       SELECT 1 FROM task INDEXED BY task_delayed
                        WHERE {IS_WAITING} AND {IS_UNBLOCKED} AND {IS_CLAIMABLE_BY} AND {within})) AS is_delayed
            """,
            {**values, "until_idle": until_idle},
        ).fetchone()
    ends = [at for at in (row["lease_ends"], row["delay_ends"]) if at is not None]
    can_change = row["lease_ends"] is not None or bool(row["is_delayed"])
    return Outlook(has_work=bool(row["has_work"]), until=min(ends, default=None), can_change=can_change)


def _named_outlook(core: Core, task: str) -> Outlook:
    """Return what the claim of one task can expect."""
    with core.read() as tx:
        row = tx.find(task)
        found = to_task(row, tx.now)
        anybody = tx.execute(f"SELECT EXISTS (SELECT 1 FROM task WHERE {IS_LEASED})").fetchone()[0]
        is_queued = row["status"] == QUEUED
        has_work = found.lease_expired or (row["status"] not in LEASED and not (is_queued and not found.ready))
        at = row["lease_expires_at"] if row["status"] in LEASED else row["not_before"] if found.delayed else None
    return Outlook(has_work=has_work, until=at, can_change=bool(anybody) or found.delayed)


# Tasks


def wait(
    core: Core,
    tasks: Sequence[str],
    statuses: Sequence[str],
    *,
    every: bool = True,
    seconds: float | None = None,
    pause: Pause = sleep,
) -> Waited:
    """Do what ``Board.wait`` promises; ``pause`` sleeps for some seconds, and a true result ends the wait.

    An element of ``statuses`` may have several, separated by commas.
    """
    names = [name.strip() for given in statuses for name in given.split(",")]
    wanted = [inputs.one_of(name, "for", STATUSES) for name in names] or list(ENDED)
    if not tasks:
        raise InvalidInput("id: missing", hint=f"Name the tasks to wait for, or wait for {NEEDS_YOU}.", field="id")
    with core.read() as tx:
        order = list(dict.fromkeys(tx.find(task)["seq"] for task in tasks))
    enough = all if every else any
    latest: list[TaskRow] = []
    now = ""

    def look() -> tuple[Waited | None, str | None]:
        nonlocal latest, now
        with core.read() as tx:
            now = tx.now
            latest = [tx.task(seq) for seq in order]
        if not core.database.is_read_only and any((row["lease_expires_at"] or now) < now for row in latest):
            expire_all(core)
            return look()
        met = [row["status"] in wanted for row in latest]
        if enough(met):
            return ended(met=True), None
        missing = [row for row, is_met in zip(latest, met, strict=True) if not is_met]
        lost = [reason for row in missing if (reason := _unreachable(row, wanted))]
        if lost and (every or len(lost) == len(missing)):
            return ended(met=False, reason="; ".join(lost[:3])), None
        return None, min((row["lease_expires_at"] for row in latest if row["lease_expires_at"]), default=None)

    def ended(*, met: bool, reason: str | None = None) -> Waited:
        return Waited([to_task(row, now) for row in latest], met=met, reason=reason)

    return until(core, look, seconds=seconds, pause=pause) or ended(met=False)


def _unreachable(row: TaskRow, wanted: Sequence[str]) -> str | None:
    """Say why a task can no longer reach one of some statuses unless somebody retries it; ``None`` if it can."""
    if row["status"] in FINAL:
        return f"task {row['id']} is {row['status']}, so it cannot become {' or '.join(wanted)} unless it is retried"
    if row["stuck"] and QUEUED not in wanted:
        return f"task {row['id']} is stuck behind a failed or cancelled task"
    return None


def wait_for_person(core: Core, *, seconds: float | None = None, pause: Pause = sleep) -> Attention | None:
    """Wait until something needs a person; return what does, or ``None`` if the time was over."""

    def look() -> tuple[Attention | None, str | None]:
        with core.read() as tx:
            found = attention(tx, every_reason=True)
            at = tx.execute(
                f"""
                SELECT min(at) FROM (
                    SELECT min(lease_expires_at) AS at FROM task INDEXED BY task_leased WHERE {IS_LEASED}
                    UNION ALL SELECT min(due_at) FROM task WHERE finished_at IS NULL AND due_at >= :now)
                """,
                {"now": tx.now},
            ).fetchone()[0]
        reasons: list[Any] = list(found.values())
        return (found, None) if any(reason["count"] for reason in reasons) else (None, at)

    return until(core, look, seconds=seconds, pause=pause)
