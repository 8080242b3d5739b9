"""The core that all verbs share: transactions with an instant and an actor, and what verbs do in them.

The verbs in this package and the features on top of it (schedules, hooks, transfer, upkeep, text) take a ``Core``;
``Board`` is one. They write in ``with core.write() as tx`` and read in ``with core.read() as tx``.
"""

from __future__ import annotations

import json
import os

from .. import identity, inputs, instants
from ..errors import Conflict, InvalidInput, NotFound, Unusable
from ..model import ACTOR_KINDS, AGENT, CANCELLED, FAILED, HUMAN, SYSTEM
from ..settings import Settings
from ..storage.db import Database
from ..storage.fingerprint import digest
from .rows import COLUMNS, task_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Any, Self

    from ..identity import Actor
    from ..model import TaskRow
    from ..storage.db import Row

REQUEST_AGE = instants.DAY
"""How long request ids are kept."""
REQUESTS_PRUNED = 200
"""The most expired request ids that one call removes."""

_UNSETTLED = frozenset((FAILED, CANCELLED))
"""The statuses that decide whether the tasks that wait for one are stuck."""
_WITHOUT_TEXT = frozenset(
    ("claimed", "resumed", "started", "progressed", "released", "handed_off", "reassigned", "archived", "unarchived")
)
"""Kinds of events whose changes leave what a search reads as it is."""
_CROCKFORD = frozenset("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
"""The letters of a ULID."""
_HEXADECIMAL = frozenset("0123456789abcdef")
_MIN_PART = 4
"""The fewest first or last characters of an id that can name a task."""


class Core:
    """A board's file with the settings, clock and randomness that its verbs use; ``Board`` has the arguments."""

    def __init__(
        self,
        data_dir: str | os.PathLike[str] = "data",
        *,
        create: bool = True,
        read_only: bool = False,
        settings: Settings | None = None,
        actor: Actor | None = None,
        clock: Callable[[], int] = instants.now,
        random: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.settings = settings or Settings()
        self.database = Database(
            os.fspath(data_dir),
            create=create,
            read_only=read_only,
            busy_timeout=self.settings.busy_timeout / instants.SECOND,
            before_migration=self.back_up_before_migration,
        )
        """The file itself, for backup, doctor and staging, which need more than transactions of the board."""
        self.clock = clock
        self.random = random
        self._actor = actor
        self.has_pending_hooks = False
        """Whether a call on this object has queued a notification for hooks."""

    @property
    def path(self) -> str:
        """The path of the board's file."""
        return self.database.path

    @property
    def created(self) -> bool:
        """Whether this object created the board."""
        return self.database.created

    @property
    def migration_notes(self) -> list[str]:
        """What a migration by this object changed beside the schema, in sentences."""
        return self.database.migration_notes

    @property
    def is_missing(self) -> bool:
        """Whether the latest call found no board and used an empty one instead."""
        return self.database.is_missing

    def exists(self) -> bool:
        """Say whether there is a board at ``path``."""
        return self.database.exists()

    def board_id(self) -> str | None:
        """Return the board's id, 16 hexadecimal digits; ``None`` if there is no board yet.

        It stays the same for the life of a board; a restored backup is a board with a new id.

        Raises:
            Unusable: the id is missing or malformed, or the board cannot be read.
        """
        with self.read() as tx:
            stored = tx.execute("SELECT board_id FROM board").fetchone()
            if self.is_missing:
                return None
        if stored is None or not is_board_id(stored[0]):
            what = "the board's id is missing or malformed"
            raise Unusable(f"{self.path}: {what}", hint="Run `atb doctor --fix counters`.")
        return str(stored[0])

    def create(self) -> None:
        """Create the board if it does not exist, and migrate it to the current schema."""
        with self.database.write():
            pass

    def close(self) -> None:
        """Close the board's connections; the next call opens them again."""
        self.database.close()

    def leave_thread(self) -> None:
        """Close the connection of this thread; a server calls it at the end of each."""
        self.database.leave_thread()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def back_up_before_migration(self) -> None:
        """Run under the write lock before the schema of an older board changes; ``Board`` creates a backup here."""

    # Transactions

    def read(self, stop: Callable[[], bool] | None = None) -> Transaction:
        """Return a context manager: one read transaction, a single view of the board.

        ``stop`` is asked while statements run; when it says so, the transaction ends as ``Busy``.
        """
        return Transaction(self, to_write=False, stop=stop)

    def write(self, by: Actor | None = None) -> Transaction:
        """Return a context manager: one write transaction, committed at its end or rolled back by an exception.

        ``by`` becomes the transaction's actor, with its name as the board first saw it.
        """
        return Transaction(self, to_write=True, by=by)

    # The actor, and random values

    def caller(self, actor: Actor | None) -> Actor:
        """Return the actor of a call: the argument, else the board's actor, else that of the environment.

        Raises:
            InvalidInput: the name or the kind is not allowed.
        """
        who = actor or self._actor
        if who is None:
            who = self._actor = identity.from_environment()
        kind = inputs.one_of(who.kind, "actor_kind", ACTOR_KINDS)
        return identity.Actor(inputs.actor_name(who.name, "actor"), kind)

    def named(self, name: Any, actor: Actor | None, agent: str | None = None) -> Any:
        """Return a name that a caller gave for an agent; ``me`` is ``agent``, else the caller."""
        if isinstance(name, str) and name.strip().casefold() == inputs.CALLER:
            return agent or self.caller(actor).name
        return name

    def new_token(self) -> tuple[str, str]:
        """Return a fresh lease token and its hash."""
        token = self.random(16).hex()
        return token, digest(token)

    @staticmethod
    def new_id() -> str:
        """Return a fresh task id."""
        from ulid import ULID  # imported here: it takes 50 ms, and only commands that create tasks need it

        return str(ULID())


class Transaction:
    """One transaction of the board, with the instant at which it happens.

    ``execute`` and ``executemany`` are those of the connection. ``instant`` is in milliseconds since 1970, ``now``
    its stored form. Both are read once the write lock is held, because waiting for it can take seconds.
    ``by`` is the actor of a write. ``warnings`` are sentences about what its changes did to other tasks.
    """

    __slots__ = (
        *("_core", "_inner", "_texts", "by", "connection", "execute", "executemany", "instant", "now", "warnings"),
    )

    by: Actor

    def __init__(
        self, core: Core, *, to_write: bool, by: Actor | None = None, stop: Callable[[], bool] | None = None
    ) -> None:
        self._core = core
        self._inner = core.database.write() if to_write else core.database.read(stop)
        self.warnings: list[str] = []
        self._texts: set[int] = set()
        if by is not None:
            self.by = by

    def __enter__(self) -> Self:
        connection = self.connection = self._inner.__enter__()
        self.execute = connection.execute
        self.executemany = connection.executemany
        try:
            self.instant = self._core.clock()
            self.now = instants.to_text(self.instant)
            if hasattr(self, "by"):
                self.by = identity.Actor(self.canonical_name(self.by.name), self.by.kind)
        except BaseException as error:
            self._inner.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._texts and error is None:
            try:
                from .indexing import index_changed

                index_changed(self.connection, self._texts)
            except BaseException as failure:
                self._inner.__exit__(type(failure), failure, failure.__traceback__)
                raise
        self._inner.__exit__(kind, error, trace)

    # Tasks

    def tasks(self, sql: str, values: Sequence[Any] | dict[str, Any]) -> list[TaskRow]:
        """Run a statement over ``COLUMNS`` and return all its rows."""
        return task_rows(self.connection, sql, values)

    def task(self, seq: int) -> TaskRow:
        """Return a task by its sequence number."""
        return self.tasks(f"SELECT {COLUMNS} FROM task WHERE seq = ?", (seq,))[0]

    def change(
        self, before: TaskRow, assignments: str, *, where: str, values: dict[str, Any] | None = None
    ) -> TaskRow | None:
        """Change a task if ``where`` holds for its row: the compare-and-set of a verb.

        Sets the columns of ``assignments`` and the next version. Returns the row as it is now, or ``None`` if the
        guard did not hold; nothing has changed then.
        """
        rows = self.tasks(
            f"""
            UPDATE task
               SET {assignments}, version = version + 1, updated_at = :now
             WHERE seq = :seq AND {where}
            RETURNING {COLUMNS}
            """,
            {**(values or {}), "seq": before["seq"], "now": self.now},
        )
        if not rows:
            return None
        after = rows[0]
        old, new = before.get("status"), after["status"]
        if old not in (None, new) and (after["open_dependencies"] or not _UNSETTLED.isdisjoint((old, new))):
            from . import stuck

            after["stuck"] = stuck.settle(self, after["seq"], was_dead_end=old in stuck.ENDS or before["stuck"] == 1)
        return after

    def find(self, reference: str, field: str = "id") -> TaskRow:
        """Return the task with this id, or the only one whose id ends like this, or begins like this.

        A beginning counts only if no id ends so.

        Use the row for the event's ``from`` values and for messages only: the WHERE of a change must check the state.

        Raises:
            NotFound: no such task.
            InvalidInput: the reference is malformed or ambiguous.
        """
        text = inputs.reference(reference, field)
        if is_ulid(text):
            rows = self.tasks(f"SELECT {COLUMNS} FROM task WHERE id = ?", (text,))
        elif _MIN_PART <= len(text) < inputs.ULID and _CROCKFORD.issuperset(text):
            rows = self.tasks(
                f"SELECT {COLUMNS} FROM task WHERE substr(id, -4) = ? AND id LIKE ? ORDER BY seq LIMIT 5",
                (text[-4:], f"%{text}"),
            ) or self.tasks(  # "Z" is the last letter of a ULID
                f"SELECT {COLUMNS} FROM task WHERE id BETWEEN ? AND ? ORDER BY id LIMIT 5", (text, text.ljust(26, "Z"))
            )
        else:
            raise InvalidInput(
                f"{field}: not a task id: {reference[:60]!r}",
                hint="Give an id (26 characters), or at least its first or last 4 characters.",
                field=field,
            )
        if not rows:
            raise NotFound(f"no such task: {text}", field=field)
        if len(rows) > 1:
            raise InvalidInput(
                f"{field}: ambiguous: {text} names several tasks",
                hint="Give more characters of the id.",
                field=field,
                candidates=[row["id"] for row in rows],
            )
        return rows[0]

    # Agents

    def canonical_name(self, name: str) -> str:
        """Return the name of an agent or a person as first written, or as it is given if it is new."""
        key = inputs.name_key(name)
        row = (
            self.execute("SELECT name FROM agent WHERE key = ?", (key,)).fetchone()
            or self.execute("SELECT name FROM actor WHERE key = ?", (key,)).fetchone()
        )
        return row[0] if row else name

    def register_agent(self, name: str) -> None:
        """Add an agent, if it is new; its attempts record when it was last seen."""
        self.execute(
            "INSERT INTO agent (key, name, first_seen_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (inputs.name_key(name), name, self.now),
        )

    def assignee(self, name: str | None) -> str | None:
        """Register an assignee; return its name as first written."""
        if name is None:
            return None
        name = self.canonical_name(name)
        self.register_agent(name)
        return name

    def holder(self, actor: Actor | None, agent: str) -> Actor:
        """Return the actor of a verb under a lease: ``actor`` with its canonical name, else the agent itself."""
        name = self.canonical_name(self._core.caller(actor).name) if actor else agent
        return identity.Actor(name, AGENT)

    # Attempts

    def begin_attempt(self, task: TaskRow, agent: str) -> int:
        """Begin an attempt of an agent under the fence that its task has now; return its number."""
        self.register_agent(agent)
        number: int = self.execute(
            """
            INSERT INTO attempt (task_seq, number, agent, fence, claimed_at)
            SELECT :seq, coalesce(max(number), 0) + 1, :agent, :fence, :now FROM attempt WHERE task_seq = :seq
            RETURNING number
            """,
            {"seq": task["seq"], "agent": agent, "fence": task["fence"], "now": self.now},
        ).fetchall()[0][0]
        return number

    def end_attempt(
        self,
        task: TaskRow,
        outcome: str,
        *,
        token_hash: str | None = None,
        result: str | None = None,
        error: str | None = None,
        note: str | None = None,
    ) -> int:
        """End the open attempt of a task; return its number."""
        rows = self.execute(
            """
            UPDATE attempt
               SET outcome = :outcome, ended_at = :now, token_hash = :token_hash,
                   result = :result, error = :error, note = :note
             WHERE task_seq = :seq AND outcome IS NULL
            RETURNING number
            """,
            {
                "seq": task["seq"],
                "outcome": outcome,
                "now": self.now,
                "token_hash": token_hash,
                "result": result,
                "error": error,
                "note": note,
            },
        ).fetchall()
        number: int = rows[0][0]
        return number

    # Events

    def record(self, task: TaskRow, kind: str, data: dict[str, Any], by: Actor | None = None) -> int:
        """Append an event and queue the notifications that it causes; return its sequence number.

        Entries of ``data`` that are ``None`` are left out. Without ``by``, the actor is that of the transaction.
        """
        by = by or self.by
        if by.kind == HUMAN:
            self.execute(
                "INSERT INTO actor (key, name) VALUES (?, ?) ON CONFLICT DO NOTHING",
                (inputs.name_key(by.name), by.name),
            )
        text = json.dumps(
            {key: value for key, value in data.items() if value is not None},
            ensure_ascii=False,
            separators=(",", ":"),
        )
        cursor = self.execute(
            "INSERT INTO event (task_seq, kind, actor, actor_kind, at, data) VALUES (?, ?, ?, ?, ?, ?)",
            (task["seq"], kind, by.name, by.kind, self.now, text),
        )
        seq = cursor.lastrowid or 0
        if kind not in _WITHOUT_TEXT:
            self._texts.add(task["seq"])
        if self._core.settings.hooks is not None:
            self._enqueue_hooks(seq, _notifications(task, kind, data))
        return seq

    def comment(self, task: TaskRow, text: str, by: Actor | None = None) -> int:
        """Add a comment to a task; return the sequence number of its event."""
        self.execute("UPDATE board SET revision = revision + 1")
        return self.record(task, "commented", {"text": text}, by)

    def _enqueue_hooks(self, event: int, notifications: Sequence[str]) -> None:
        """Queue notifications of an event for hooks, in the transaction of the change."""
        hooks = self._core.settings.hooks
        if hooks is None:
            return
        wanted = [(what, target) for what in notifications if what in hooks.events for target in hooks.targets()]
        for number, (what, target) in enumerate(wanted):
            self.execute(
                "INSERT INTO outbox (id, event_seq, target, told, due_at, created_at) VALUES (?, ?, ?, ?, ?, ?)",
                (f"{self._core.random(8).hex()}{event:014x}{number:02x}", event, target, what, self.now, self.now),
            )
            self._core.has_pending_hooks = True

    # Request ids

    def earlier_request(self, request_id: str | None, arguments: str) -> Row | None:
        """Return what an earlier call with this request id did; ``None`` if this is the first call.

        Raises:
            Conflict: the earlier call had another verb or other arguments.
        """
        if request_id is None:
            return None
        row: Row | None = self.execute(
            "SELECT * FROM request WHERE id = ? AND at > ?", (request_id, self._request_horizon)
        ).fetchone()
        if row is not None and row["arguments"] != arguments:
            raise Conflict(
                f"request_id: already used with other arguments within the last 24 hours: {request_id!r}",
                hint="Use a new request id for each different call.",
                reason="request_id",
            )
        return row

    def remember_request(
        self, request_id: str | None, arguments: str, *, task_seq: int, attempt: int | None, created: bool | None
    ) -> None:
        """Store what a call did under its request id, and remove some expired request ids."""
        if request_id is None:
            return
        self.execute(
            "DELETE FROM request WHERE id IN (SELECT id FROM request WHERE at <= ? ORDER BY at LIMIT ?)",
            (self._request_horizon, REQUESTS_PRUNED),
        )
        self.execute(
            "INSERT OR REPLACE INTO request (id, arguments, at, task_seq, attempt, created) VALUES (?, ?, ?, ?, ?, ?)",
            (request_id, arguments, self.now, task_seq, attempt, created),
        )

    @property
    def _request_horizon(self) -> str:
        return instants.to_text(self.instant - REQUEST_AGE)


def _notifications(task: TaskRow, kind: str, data: dict[str, Any]) -> list[str]:
    """Return the notifications that an event causes: a new status, and ``expired`` and ``commented`` themselves."""
    if kind in ("created", "imported", "archived", "unarchived"):
        return []
    reached = [task["status"]] if "status" in data.get("changes", ()) else []
    return [*reached, *([kind] if kind in ("expired", "commented") else [])]


def request_digest(verb: str, arguments: Sequence[Any]) -> str:
    """Return the digest of a verb and its arguments, to compare calls with the same request id."""
    return digest(json.dumps([verb, *arguments], sort_keys=True))


def is_ulid(text: str) -> bool:
    """Say whether a text is a full ULID in capitals; the first character of 128 bits is 0 to 7."""
    return len(text) == inputs.ULID and text[0] < "8" and _CROCKFORD.issuperset(text)


def is_board_id(value: object) -> bool:
    """Say whether a value has the form of a board's id, which file names and cookies contain."""
    return isinstance(value, str) and len(value) == 16 and _HEXADECIMAL.issuperset(value)


def as_agent(actor: Actor) -> Actor:
    """Return the actor as an agent, for verbs under a lease."""
    return identity.Actor(actor.name, AGENT)


def system() -> Actor:
    """Return the actor of what the board does by itself, such as expiring a lease."""
    return identity.Actor(SYSTEM, SYSTEM)
