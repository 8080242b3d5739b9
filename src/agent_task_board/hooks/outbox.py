"""What hooks are owed: rows written with the change that they are told of, until each is delivered or given up.

Whoever delivers takes a row by pushing its ``due_at`` beyond every limit of an attempt, so that no two of them are at
it at once, and that the row of one who was killed comes due again. A row with attempts, no error and a ``due_at``
ahead is one being delivered.
"""

from __future__ import annotations

import contextlib
import json
import os
from _thread import allocate_lock

from .. import identity, inputs, instants
from ..backoff import delay
from ..errors import Conflict, InvalidInput, NotFound
from ..model import COLUMNS, JSON_KEYS, SYSTEM, Task, task_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    import threading
    from collections.abc import Iterator
    from typing import Any

    from ..model import TaskRow
    from ..service import Board
    from ..settings import Hooks
    from .command import Message, Outcome

ATTEMPTS = 8
"""Attempts that a delivery gets."""
BACKOFF = 30 * instants.SECOND
BACKOFF_CAP = instants.HOUR
TAKEN = 60 * instants.SECOND
"""How long whoever takes a row has it; longer than any attempt."""
KEPT = 7 * instants.DAY
"""How long deliveries that ended are kept."""
PER_TICK = 100
"""Attempts that one tick makes, at most."""
SECONDS = 20.0
"""Seconds after which a tick begins no further attempt."""
AT_ONCE = 4
"""Processes of one board that deliver at the same time; a tick comes on top."""
STATUSES = ("pending", "delivered", "failed")
LOCK = "hooks.lock"

_DUE = "status = 'pending' AND due_at <= :now AND target IN (:first, :second)"
_ASTRAY = "status = 'pending' AND due_at > :horizon AND target IN (:first, :second)"
"""SQL: a row is due, and so is one further ahead than any wait: that of a clock that was set back since."""
_BATCH = 500


def deliver_due(board: Board) -> int:
    """Deliver what is due, some of it; return how many deliveries were made. Forget what ended long ago.

    Safe beside any number of others that do the same.
    """
    _prune(board)
    hooks = board.settings.hooks
    return 0 if hooks is None else _deliver(board, hooks, limit=PER_TICK, seconds=SECONDS)


def deliver_all(board: Board) -> int:
    """Deliver until nothing is due; return how many deliveries were made.

    Where ``AT_ONCE`` other processes are at it already, they do this one's part.
    """
    delivered, hooks = 0, board.settings.hooks
    while hooks is not None and _is_anything_due(board, hooks):
        with _place(board) as has_place:
            if not has_place:
                break
            delivered += _deliver(board, hooks)
        # Once more: what came due just now was left to this process by one that found no place.
    return delivered


def deliver_soon(board: Board) -> None:
    """Deliver in a thread of this process, one for each board; return at once.

    A server calls it after each answer to a call that may have changed something. The thread stays as long as
    deliveries wait for another attempt; it ends with the process, and leaves the rest to the next tick.
    """
    if board.settings.hooks is None:
        return
    from threading import Event, Thread

    key = (os.getpid(), id(board))
    with _starting:
        wake = _threads.get(key)
        if wake is None:
            wake = _threads[key] = Event()
            Thread(target=_work, args=(board, key, wake), name="hooks", daemon=True).start()
        wake.set()


_starting = allocate_lock()
_threads: dict[tuple[int, int], threading.Event] = {}
"""What wakes the thread of a board."""


def _work(board: Board, key: tuple[int, int], wake: threading.Event) -> None:
    while True:
        wake.clear()
        wait = None
        with contextlib.suppress(Exception):  # a busy board, a full disk, one just closed: the next call tries again
            deliver_all(board)
            wait = _wait(board)
        board.leave_thread()
        with _starting:
            if wait is None and not wake.is_set():
                del _threads[key]
                return
        wake.wait(wait)


def _wait(board: Board) -> float | None:
    """Return the seconds until the next row comes due; ``None``: there is none."""
    hooks = board.settings.hooks
    if hooks is None:
        return None
    with board._db.read() as tx:
        due = tx.execute(
            "SELECT min(due_at) FROM outbox WHERE status = 'pending' AND target IN (?, ?)", _targets(hooks)
        ).fetchone()[0]
        return None if due is None else max(0.1, (instants.from_text(due) - board._clock()) / instants.SECOND)


# One attempt


class _Taken:
    """A row that is ours for a while, with what it tells of."""

    __slots__ = ("attempt", "id", "message", "target", "task")

    def __init__(self, row: sqlite3.Row, task: TaskRow, message: Message) -> None:
        self.id: str = row["id"]
        self.target: str = row["target"]
        self.attempt: int = row["attempts"]
        self.task = task
        self.message = message


def _deliver(board: Board, hooks: Hooks, *, limit: int | None = None, seconds: float | None = None) -> int:
    """Make attempts until nothing is due, or a limit is reached; return how many deliveries were made."""
    from time import monotonic

    begun, made, delivered = monotonic(), 0, 0
    while (limit is None or made < limit) and (seconds is None or monotonic() - begun < seconds):
        if not _is_anything_due(board, hooks):  # else each idle tick would wait for the write lock
            board.owes_hooks = False
            break
        taken = _take(board, hooks)
        if taken is None:
            continue
        made += 1
        outcome = attempt(board, hooks, taken.target, taken.message)
        _note(board, taken, outcome)
        delivered += outcome.error is None
    return delivered


def attempt(board: Board, hooks: Hooks, target: str, message: Message) -> Outcome:
    """Send a message to one target, once; nothing is written down."""
    if target == "webhook":
        from . import webhook

        return webhook.call(hooks.webhook or "", hooks.secret, message, board._clock())
    from . import command as commands

    directory = os.path.dirname(board.path)
    return commands.run(hooks.command or [], message, directory if os.path.isdir(directory) else os.getcwd())


def _targets(hooks: Hooks) -> tuple[str, str]:
    """Return the targets that there are, as two parameters of a statement."""
    there = hooks.targets()
    return there[0], there[-1]


def _is_anything_due(board: Board, hooks: Hooks) -> bool:
    with board._db.read() as tx:
        values = _due_at(hooks, board._clock())
        found: int = tx.execute(
            f"SELECT EXISTS (SELECT 1 FROM outbox WHERE {_DUE}) OR EXISTS (SELECT 1 FROM outbox WHERE {_ASTRAY})",
            values,
        ).fetchone()[0]
        return bool(found)


def _due_at(hooks: Hooks, now: int) -> dict[str, str]:
    first, second = _targets(hooks)
    horizon = instants.to_text(now + BACKOFF_CAP + instants.MINUTE)
    return {"first": first, "second": second, "now": instants.to_text(now), "horizon": horizon}


def _take(board: Board, hooks: Hooks) -> _Taken | None:
    """Take the row that has been due for longest; ``None`` where others were quicker, or its attempts are used up."""
    with board._db.write() as tx:
        clock = board._clock()
        now = instants.to_text(clock)
        rows = tx.execute(
            f"""
            UPDATE outbox SET attempts = attempts + 1, error = NULL, due_at = :later
             WHERE id = coalesce(
                   (SELECT id FROM outbox INDEXED BY outbox_due WHERE {_DUE} ORDER BY due_at, event_seq LIMIT 1),
                   (SELECT id FROM outbox INDEXED BY outbox_due WHERE {_ASTRAY} ORDER BY due_at, event_seq LIMIT 1))
               AND status = 'pending'
            RETURNING *
            """,
            {**_due_at(hooks, clock), "later": instants.to_text(clock + TAKEN)},
        ).fetchall()
        if not rows:
            return None
        taken = _with_message(tx, rows[0], now)
        if taken.attempt <= ATTEMPTS:
            return taken
        from .command import Outcome

        # The last attempt was begun, and whoever made it did not live to say what came of it.
        taken.attempt = ATTEMPTS
        tx.execute("UPDATE outbox SET attempts = ? WHERE id = ?", (ATTEMPTS, taken.id))
        _write_down(board, tx, taken, Outcome("whoever delivered it was ended before it was done"), clock)
        return None


def _with_message(tx: sqlite3.Connection, row: sqlite3.Row, now: str) -> _Taken:
    from .command import Message

    event = tx.execute("SELECT * FROM event WHERE seq = ?", (row["event_seq"],)).fetchone()
    task = task_rows(tx, f"SELECT {COLUMNS} FROM task WHERE seq = ?", (event["task_seq"],))[0]
    told = {
        "seq": event["seq"],
        "task_id": task["id"],
        "kind": event["kind"],
        "actor": event["actor"],
        "actor_kind": event["actor_kind"],
        "at": event["at"],
        "data": json.loads(event["data"]),
    }
    return _Taken(row, task, Message(row["id"], row["told"], told, Task.from_row(task, now).to_dict()))


def _note(board: Board, taken: _Taken, outcome: Outcome) -> None:
    with board._db.write() as tx:
        _write_down(board, tx, taken, outcome, board._clock())


def _write_down(board: Board, tx: sqlite3.Connection, taken: _Taken, outcome: Outcome, clock: int) -> None:
    """Note what came of an attempt, in the row and as an event of the task.

    The row may be another's by now, if this process was stopped for long: then a failure of ours changes nothing.
    """
    now = instants.to_text(clock)
    if outcome.error is None:
        status, guard = "delivered", ""
    else:
        status = "failed" if taken.attempt >= ATTEMPTS else "pending"
        guard = "AND attempts = :attempt AND error IS NULL"
    ended = status != "pending"
    tx.execute(
        f"""
        UPDATE outbox
           SET status = :status, error = :error, due_at = :due, ended_at = :ended
         WHERE id = :id AND status = 'pending' {guard}
        """,
        {
            "id": taken.id,
            "status": status,
            "error": outcome.error,
            "due": None if ended else instants.to_text(clock + delay(taken.attempt, base=BACKOFF, cap=BACKOFF_CAP)),
            "ended": now if ended else None,
            "attempt": taken.attempt,
        },
    )
    board._record(
        tx,
        taken.task,
        "hook_delivered" if outcome.error is None else "hook_failed",
        identity.Actor(SYSTEM, SYSTEM),
        now,
        {
            "delivery": taken.id,
            "target": taken.target,
            "told": taken.message.told,
            "attempt": taken.attempt,
            **outcome.to_dict(),
            "ended": ended,
        },
    )


@contextlib.contextmanager
def _place(board: Board) -> Iterator[bool]:
    """Give one of the few places of those who deliver, for as long as the block; false where all are taken.

    A burst of changes and a hook that hangs would otherwise make hundreds of processes that wait.
    """
    try:
        import fcntl

        file = os.open(os.path.join(os.path.dirname(board.path), LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    except (ImportError, OSError):
        yield True
        return
    try:
        has_place = False
        for number in range(AT_ONCE):
            with contextlib.suppress(OSError):
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
                has_place = True
                break
        yield has_place
    finally:
        os.close(file)


def _prune(board: Board) -> None:
    """Forget deliveries that ended long ago, some of them."""
    old = "status <> 'pending' AND ended_at <= :before"
    values = {"before": instants.to_text(board._clock() - KEPT), "batch": _BATCH}
    with board._db.read() as tx:
        if tx.execute(f"SELECT 1 FROM outbox WHERE {old} LIMIT 1", values).fetchone() is None:
            return
    with board._db.write() as tx:
        tx.execute(
            f"""
            DELETE FROM outbox
             WHERE id IN (SELECT id FROM outbox INDEXED BY outbox_ended WHERE {old} ORDER BY ended_at LIMIT :batch)
            """,
            values,
        )


# What people ask


def deliveries(board: Board, *, status: str | None = None, limit: int = 100) -> list[dict[str, Any]]:
    """Return deliveries, the newest first: those in a status, or all.

    Each is ``{"id", "task_id", "event_seq", "told", "target", "status", "attempts", "due_at", "error", "created_at",
    "ended_at"}``; ``due_at`` is that of the next attempt.
    """
    inputs.integer(limit, "limit", 1, 10_000)
    where = "1" if status is None else f"outbox.status = '{inputs.one_of(status, 'status', STATUSES)}'"
    with board._db.read() as tx:
        rows = tx.execute(
            f"""
            SELECT outbox.id, task.id AS task_id, event_seq, told, target, outbox.status, outbox.attempts,
                   outbox.due_at, outbox.error, outbox.created_at, ended_at
              FROM outbox JOIN event ON event.seq = event_seq JOIN task ON task.seq = event.task_seq
             WHERE {where}
             ORDER BY event_seq DESC, outbox.id
             LIMIT ?
            """,
            (limit,),
        ).fetchall()
        return [dict(row) for row in rows]


def retry(board: Board, delivery: str | None = None) -> int:
    """Make one delivery due now, or all that are not delivered, with a full number of attempts; return how many.

    Those that somebody delivers at this moment are left alone.

    Raises:
        NotFound: no such delivery.
        Conflict: it is delivered, or being delivered.
    """
    with board._db.write() as tx:
        clock = board._clock()
        now = instants.to_text(clock)
        name = None if delivery is None else inputs.line(delivery, "delivery", inputs.KEY).lower()
        done = tx.execute(
            """
            UPDATE outbox SET status = 'pending', due_at = :now, attempts = 0, error = NULL, ended_at = NULL
             WHERE (:id IS NULL OR id = :id)
               AND (status = 'failed' OR (status = 'pending' AND (
                    attempts = 0 OR error IS NOT NULL OR due_at <= :now OR due_at > :taken)))
            RETURNING id
            """,
            {"id": name, "now": now, "taken": instants.to_text(clock + TAKEN)},
        ).fetchall()
        if name is None or done:
            return len(done)
        row = tx.execute("SELECT status FROM outbox WHERE id = ?", (name,)).fetchone()
        if row is None:
            raise NotFound(f"there is no delivery {name}", hint="`atb hooks list` has their ids.", field="delivery")
        state = "was delivered" if row["status"] == "delivered" else "is being delivered"
        raise Conflict(
            f"delivery {name} {state}", hint="There is nothing to do; see `atb hooks list`.", reason="status"
        )


def try_out(board: Board, task: str | None = None) -> dict[str, Any]:
    """Send one message to each target now, about a task or a made-up one; nothing is written down.

    Returns:
        ``{"delivery", "results": [{"target", "delivered", …}]}``, with what ``Outcome.to_dict`` tells of each.

    Raises:
        InvalidInput: there is no target.
        NotFound: no such task.
    """
    from .command import Message

    hooks = board.settings.hooks
    if hooks is None:
        raise InvalidInput(
            "there is no hook to test", hint="Switch hooks on in the configuration; docs/hooks.md tells how."
        )
    now = instants.to_text(board._clock())
    if task is None:
        found: dict[str, Any] = {**dict.fromkeys(JSON_KEYS), **_SAMPLE, "created_at": now, "updated_at": now}
    else:
        with board._db.read() as tx:
            found = Task.from_row(board._row(tx, task, "task"), now).to_dict()
    event = {"seq": 0, "task_id": found["id"], "kind": "test", "actor": SYSTEM, "actor_kind": SYSTEM, "at": now}
    message = Message(f"test{board._random(14).hex()}", "test", {**event, "data": {}}, found)
    results = []
    for target in hooks.targets():
        outcome = attempt(board, hooks, target, message)
        results.append({"target": target, "delivered": outcome.error is None, **outcome.to_dict()})
    return {"delivery": message.delivery, "results": results}


_SAMPLE: dict[str, Any] = {
    "id": "0" * inputs.ULID,
    "title": "A test of the hooks",
    "body": "",
    "queue": "default",
    "status": "done",
    "priority": 0,
    "tags": [],
    "blocked_by": [],
    "params": {},
    "artifacts": [],
    "needs_approval": False,
    "attempts": 1,
    "max_attempts": 3,
    "fence": 1,
    "version": 1,
    "created_by": SYSTEM,
    **dict.fromkeys(("ready", "blocked", "delayed", "lease_expired", "overdue"), False),
}
"""The task of a test that names none."""
