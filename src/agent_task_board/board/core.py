"""What every part of the service shares: finding a task, ending an attempt, recording an event, refusing truthfully.

Everything here runs inside a transaction of its caller.
"""

from __future__ import annotations

import json
import os
import sys

from .. import identity, inputs, instants
from ..errors import Conflict, InvalidInput, LeaseLost, NotFound
from ..model import ACTOR_KINDS, AGENT, COLUMNS, LEASED, SYSTEM, Lease, Receipt, Task, task_rows
from ..settings import Hooks, Settings
from ..storage.db import Database

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Self

    from ..identity import Actor
    from ..model import TaskRow

try:  # hashlib loads all of OpenSSL: four milliseconds and three megabytes for every command
    if sys.version_info >= (3, 12):
        from _sha2 import sha256
    else:
        from _sha256 import sha256  # type: ignore[import-not-found, unused-ignore]
except ImportError:  # a Python built without hashes of its own
    from hashlib import sha256

LEASE_LOW = instants.SECOND
LEASE_HIGH = 7 * instants.DAY
WAIT_HIGH = 366 * instants.DAY
REQUEST_AGE = instants.DAY
BATCH = 200
"""Rows that one transaction expires, and promotes, at most."""

HELD = "status IN ('claimed', 'running') AND same_secret(lease_token_hash, :token_hash) AND lease_expires_at > :now"
"""SQL: the guard of whoever acts under a lease."""

ANYTHING_DUE = """
    SELECT EXISTS (SELECT 1 FROM task INDEXED BY task_leased
                    WHERE status IN ('claimed', 'running') AND lease_expires_at <= ?)
        OR EXISTS (SELECT 1 FROM task INDEXED BY task_delayed
                    WHERE status = 'queued' AND delayed = 1 AND not_before <= ?)"""
"""SQL: is there a lease to take back or a task to promote?"""

LEASE_ENDS = "lease_token_hash = NULL, lease_expires_at = NULL, lease_length = NULL"
"""SQL: what every ending of a lease sets."""

BACK_TO_QUEUE = f"status = 'queued', claimed_by = NULL, claimed_at = NULL, progress = NULL, {LEASE_ENDS}"
"""SQL: what every return to the queue sets."""

_CROCKFORD = frozenset("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
"""The letters of a ULID."""

_TRACKED = tuple(
    """
    title queue status priority assignee due_at not_before tags dedupe_key blocked_by needs_approval attempts
    max_attempts fence claimed_by progress artifacts archived_at
    """.split()
)
_DIGESTED = ("body", "params", "result")
_EMPTY: dict[str, Any] = {
    **dict.fromkeys(_TRACKED),
    "priority": 0,
    "tags": "[]",
    "blocked_by": "[]",
    "artifacts": "[]",
    "needs_approval": 0,
    "attempts": 0,
    "fence": 0,
    "body": "",
    "params": "{}",
    "result": None,
}


class Core:
    """The parts of ``Board`` that its verbs are made of."""

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
        self._db = Database(
            os.fspath(data_dir),
            create=create,
            read_only=read_only,
            busy_timeout=self.settings.busy_timeout / instants.SECOND,
            before_migration=self._before_migration,
        )
        self._actor = actor
        self._clock = clock
        self._random = random
        self.owes_hooks = False
        """Whether a call of this object wrote something down that hooks are to be told."""

    @property
    def path(self) -> str:
        """The path of the board's file."""
        return self._db.path

    @property
    def created(self) -> bool:
        """Whether this object made the board."""
        return self._db.created

    def exists(self) -> bool:
        """Say whether there is a board at ``path``."""
        return self._db.exists()

    @property
    def is_missing(self) -> bool:
        """Whether the latest call found no board and worked on an empty one instead."""
        return self._db.is_missing

    def make(self) -> None:
        """Make the board if it is not there, and bring its schema up to date."""
        with self._db.write():
            pass

    def close(self) -> None:
        """Close the board's connections; the next call opens them again."""
        self._db.close()

    def leave_thread(self) -> None:
        """Close the connection of this thread; a server calls it at the end of each."""
        self._db.leave_thread()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _before_migration(self, version: int) -> None:
        """Back the board up; what a new schema changes can then be undone."""
        from ..upkeep.backup import before_migration

        before_migration(self._db, version)

    # Who acts

    def _caller(self, actor: Actor | None) -> Actor:
        """Return who acts: the argument, else whoever the board was opened for, else what the environment says."""
        who = actor or self._actor
        if who is None:
            who = self._actor = identity.from_environment()
        kind = inputs.one_of(who.kind, "actor_kind", ACTOR_KINDS)
        return identity.Actor(inputs.actor_name(who.name, "actor"), kind)

    @staticmethod
    def _known_as(tx: sqlite3.Connection, name: str) -> str:
        """Return an agent's name as it was first written, or as it is given when it is new."""
        row = tx.execute("SELECT name FROM agent WHERE key = ?", (name.casefold(),)).fetchone()
        return row[0] if row else name

    @staticmethod
    def _meet(tx: sqlite3.Connection, name: str, now: str) -> None:
        """Note that an agent was named; its attempts tell when it was last heard of."""
        tx.execute(
            "INSERT INTO agent (key, name, first_seen_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (name.casefold(), name, now),
        )

    # Which task

    @staticmethod
    def _reread(tx: sqlite3.Connection, seq: int) -> TaskRow:
        """Return a task by its sequence number."""
        return task_rows(tx, f"SELECT {COLUMNS} FROM task WHERE seq = ?", (seq,))[0]

    @staticmethod
    def _row(tx: sqlite3.Connection, reference: str, field: str = "id") -> TaskRow:
        """Return the task that a whole ULID or an unambiguous ending of one names.

        It serves the event's ``from`` and a refusal's message; what guards a change is the change's own WHERE.
        """
        text = inputs.reference(reference, field)
        if is_ulid(text):
            rows = task_rows(tx, f"SELECT {COLUMNS} FROM task WHERE id = ?", (text,))
        elif 4 <= len(text) < inputs.ULID and _CROCKFORD.issuperset(text):
            rows = task_rows(
                tx,
                f"SELECT {COLUMNS} FROM task WHERE substr(id, -4) = ? AND id LIKE ? ORDER BY seq LIMIT 5",
                (text[-4:], f"%{text}"),
            )
        else:
            raise InvalidInput(
                f"{field}: {reference[:60]!r} is not a task id",
                hint="Give a whole id of 26 characters, or the last 4 or more of one.",
                field=field,
            )
        if not rows:
            raise NotFound(f"there is no task {text}", field=field)
        if len(rows) > 1:
            raise InvalidInput(
                f"{field}: several tasks end in {text}",
                hint="Give more characters of the id.",
                field=field,
                candidates=[row["id"] for row in rows],
            )
        return rows[0]

    # Leases and attempts

    def _new_token(self) -> tuple[str, str]:
        """Return a fresh lease token and its hash."""
        token = self._random(16).hex()
        return token, digest(token)

    def _lease_length(self, lease: str | float | None) -> int:
        if lease is None:
            return self.settings.lease
        return instants.parse_length(lease, field="lease", low=LEASE_LOW, high=LEASE_HIGH)

    @staticmethod
    def _end_attempt(
        tx: sqlite3.Connection,
        task: TaskRow,
        outcome: str,
        now: str,
        *,
        token_hash: str | None = None,
        result: str | None = None,
        error: str | None = None,
        note: str | None = None,
    ) -> int:
        """End the open attempt of a task; return its number."""
        rows = tx.execute(
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
                "now": now,
                "token_hash": token_hash,
                "result": result,
                "error": error,
                "note": note,
            },
        ).fetchall()
        number: int = rows[0][0]
        return number

    def _expire(self, tx: sqlite3.Connection, before: TaskRow, now: str) -> None:
        """Take back a lease that has run out: the task is queued at once, or failed where no attempt is left."""
        error = lease_expired(before)
        after = task_rows(
            tx,
            f"""
            UPDATE task
               SET {requeue_unless("attempts >= max_attempts")},
                   error = :error, version = version + 1, updated_at = :now
             WHERE seq = :seq AND status IN ('claimed', 'running') AND lease_expires_at <= :now
            RETURNING {COLUMNS}
            """,
            {"seq": before["seq"], "now": now, "error": error},
        )[0]
        number = self._end_attempt(tx, after, "expired", now, error=error)
        system = identity.Actor(SYSTEM, SYSTEM)
        self._record(tx, after, "expired", system, now, {**changes(before, after), "attempt": number, "error": error})

    def _sweep(
        self, tx: sqlite3.Connection, now: str, *, first: str | None = None, values: dict[str, Any] | None = None
    ) -> tuple[int, int]:
        """Expire dead leases and promote delayed tasks whose time has come, at most ``BATCH`` of each.

        Args:
            tx: the write transaction.
            now: the present instant.
            first: SQL over a row of ``task``; rows for which it is true come first, then those of larger priority.
                Without it the rows come in the order of their instants, which costs no sorting.
            values: the parameters of ``first``.

        Returns:
            How many were expired, and how many promoted.
        """
        if not tx.execute(ANYTHING_DUE, (now, now)).fetchone()[0]:
            return 0, 0
        parameters = {**(values or {}), "now": now, "batch": BATCH}
        best_dead, best_delayed = "lease_expires_at", "not_before"
        if first is not None:
            claimable = f"({first}) AND open_dependencies = 0"
            best_dead = (
                f"{claimable} AND attempts < max_attempts AND coalesce(not_before <= :now, 1) DESC, priority DESC, seq"
            )
            best_delayed = f"{claimable} DESC, priority DESC, seq"
        dead = task_rows(
            tx,
            f"""
            SELECT {COLUMNS} FROM task
             WHERE seq IN (
                   SELECT seq FROM task INDEXED BY task_leased
                    WHERE status IN ('claimed', 'running') AND lease_expires_at <= :now
                    ORDER BY {best_dead}
                    LIMIT :batch)
             ORDER BY priority DESC, seq
            """,
            parameters,
        )
        for row in dead:
            self._expire(tx, row, now)
        promoted = tx.execute(
            f"""
            UPDATE task SET delayed = 0
             WHERE status = 'queued' AND delayed = 1 AND seq IN (
                   SELECT seq FROM task INDEXED BY task_delayed
                    WHERE status = 'queued' AND delayed = 1 AND not_before <= :now
                    ORDER BY {best_delayed}
                    LIMIT :batch)
            RETURNING seq
            """,
            parameters,
        ).fetchall()
        return len(dead), len(promoted)

    # Events

    def _record(
        self, tx: sqlite3.Connection, task: TaskRow, kind: str, actor: Actor, now: str, data: dict[str, Any]
    ) -> int:
        """Append an event; return its sequence number. Entries of ``data`` that are ``None`` are left out."""
        text = json.dumps(
            {key: value for key, value in data.items() if value is not None},
            ensure_ascii=False,
            separators=(",", ":"),
        )
        cursor = tx.execute(
            "INSERT INTO event (task_seq, kind, actor, actor_kind, at, data) VALUES (?, ?, ?, ?, ?, ?)",
            (task["seq"], kind, actor.name, actor.kind, now, text),
        )
        seq = cursor.lastrowid or 0
        if self.settings.hooks is not None:
            self._owe(tx, self.settings.hooks, seq, now, _told(task, kind, data))
        return seq

    def _owe(self, tx: sqlite3.Connection, hooks: Hooks, event: int, now: str, told: Iterable[str]) -> None:
        """Write down what hooks are to be told, in the transaction of the change."""
        owed = [(word, target) for word in told if word in hooks.events for target in hooks.targets()]
        for number, (word, target) in enumerate(owed):
            tx.execute(
                "INSERT INTO outbox (id, event_seq, target, told, due_at, created_at) VALUES (?, ?, ?, ?, ?, ?)",
                (f"{self._random(8).hex()}{event:014x}{number:02x}", event, target, word, now, now),
            )
            self.owes_hooks = True

    def _comment(self, tx: sqlite3.Connection, task: TaskRow, text: str, actor: Actor, now: str) -> int:
        tx.execute("UPDATE board SET revision = revision + 1")
        return self._record(tx, task, "commented", actor, now, {"text": text})

    # Requests

    def _repeated(self, tx: sqlite3.Connection, request_id: str | None, arguments: str, now: int) -> sqlite3.Row | None:
        """Return what an earlier call with this request id did, or ``None`` when this is the first.

        Raises:
            Conflict: the earlier call had another verb or other arguments.
        """
        if request_id is None:
            return None
        row: sqlite3.Row | None = tx.execute(
            "SELECT * FROM request WHERE id = ? AND at > ?", (request_id, instants.to_text(now - REQUEST_AGE))
        ).fetchone()
        if row is not None and row["arguments"] != arguments:
            raise Conflict(
                f"request id {request_id!r} was used within the last 24 hours with other arguments",
                hint="Use a fresh request id for each different call.",
                reason="request_id",
            )
        return row

    @staticmethod
    def _remember(
        tx: sqlite3.Connection,
        request_id: str | None,
        arguments: str,
        now: int,
        *,
        task_seq: int,
        attempt: int | None,
        created: bool | None,
    ) -> None:
        """Keep the answer to a call under its request id, and forget some of those older than a day."""
        if request_id is None:
            return
        tx.execute(
            "DELETE FROM request WHERE id IN (SELECT id FROM request WHERE at <= ? ORDER BY at LIMIT ?)",
            (instants.to_text(now - REQUEST_AGE), BATCH),
        )
        tx.execute(
            "INSERT OR REPLACE INTO request (id, arguments, at, task_seq, attempt, created) VALUES (?, ?, ?, ?, ?, ?)",
            (request_id, arguments, instants.to_text(now), task_seq, attempt, created),
        )

    # Refusals

    def _replay_or_refuse(
        self, tx: sqlite3.Connection, row: TaskRow, token_hash: str, outcome: str, now: str
    ) -> Receipt:
        """Answer a repeated ending, or refuse: the reply was lost if this token ended an attempt by the same verb."""
        replayed = tx.execute(
            "SELECT 1 FROM attempt WHERE task_seq = ? AND outcome = ? AND same_secret(token_hash, ?)",
            (row["seq"], outcome, token_hash),
        ).fetchone()
        if replayed:
            return Receipt(Task.from_row(row, now), replayed=True)
        raise lease_lost(row, now)


def _told(task: TaskRow, kind: str, data: dict[str, Any]) -> list[str]:
    """Return what hooks can be told of an event: the status that it led to, and some kinds."""
    if kind in ("created", "imported", "archived", "unarchived"):
        return []
    reached = [task["status"]] if "status" in data.get("changes", ()) else []
    return [*reached, *([kind] if kind in ("expired", "commented") else [])]


def requeue_unless(over: str) -> str:
    """Return SQL that sends a task back to its queue, or to failed where ``over`` is true."""
    return f"""
        status = iif({over}, 'failed', 'queued'), finished_at = iif({over}, :now, NULL),
        claimed_by = iif({over}, claimed_by, NULL), claimed_at = iif({over}, claimed_at, NULL),
        progress = iif({over}, progress, NULL), {LEASE_ENDS}"""


def is_ulid(text: str) -> bool:
    """Say whether a text is a whole ULID in capitals; 128 bits leave the first letter 0 to 7."""
    return len(text) == inputs.ULID and text[0] < "8" and _CROCKFORD.issuperset(text)


def digest(text: str) -> str:
    """Return the SHA-256 of a text in hex."""
    return str(sha256(text.encode()).hexdigest())


def call_digest(verb: str, arguments: Sequence[Any]) -> str:
    """Return what a request id stands for: one verb with one set of arguments."""
    return digest(json.dumps([verb, *arguments], sort_keys=True))


def changes(before: TaskRow | None, after: TaskRow) -> dict[str, Any]:
    """Return ``{"changes": {field: {"from", "to"}}}`` between two states of a row, or since it did not exist.

    Of body, params and result only size and SHA-256 are told: ``{"bytes", "sha256"}``.
    """
    old = _EMPTY if before is None else before
    found = {
        key: {"from": _shown(key, old[key]), "to": _shown(key, after[key])}
        for key in _TRACKED
        if old[key] != after[key]
    }
    for key in _DIGESTED:
        if old[key] != after[key]:
            found[key] = {"from": _size(old[key]), "to": _size(after[key])}
    return {"changes": found}


def _shown(key: str, value: Any) -> Any:
    if key in ("tags", "blocked_by", "artifacts"):
        return json.loads(value)
    return bool(value) if key == "needs_approval" else value


def _size(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    return {"bytes": len(text.encode()), "sha256": digest(text)}


def actual(row: TaskRow) -> dict[str, Any]:
    """Return ``details.actual`` of a refusal: the state that the caller did not expect."""
    return {key: row[key] for key in ("status", "version", "claimed_by", "claimed_at", "lease_expires_at")}


def lease_lost(row: TaskRow, now: str) -> LeaseLost:
    """Return the refusal of a caller that does not hold the task, saying who does."""
    if row["status"] in LEASED:
        until = row["lease_expires_at"]
        state = f'it is "{row["status"]}" by {row["claimed_by"]}, '
        state += f"whose lease ended at {until}" if until <= now else f"with another token, until {until}"
    else:
        state = f'it is "{row["status"]}"'
    return LeaseLost(f"task {row['id']} is not held under this token: {state}", actual=actual(row))


def lease_expired(row: TaskRow) -> str:
    """Return the error of an attempt whose lease ran out."""
    return f"lease of {row['claimed_by']} expired at {row['lease_expires_at']}"


def status_conflict(row: TaskRow, expected: Iterable[str]) -> Conflict:
    """Return the refusal of a verb that needs the task in another status."""
    wanted = " or ".join(f'"{status}"' for status in expected)
    message = f'task {row["id"]} is "{row["status"]}", not {wanted}'
    if row["status"] in LEASED:
        message += f"; {row['claimed_by']} has held it since {row['claimed_at']}"
    return Conflict(message, reason="status", actual=actual(row))


def version_conflict(row: TaskRow, expected: int | None) -> Conflict:
    """Return the refusal of a call that expects an earlier version of the task."""
    return Conflict(
        f"task {row['id']} has version {row['version']}, not {expected}", reason="version", actual=actual(row)
    )


def obstacle(row: TaskRow, agent: str) -> tuple[str, str]:
    """Return why a queued task is not ready for an agent: the reason of a conflict, and the rest of a sentence."""
    if row["open_dependencies"]:
        return "blocked", f"waits for other tasks ({row['open_dependencies']} not done)"
    if row["assignee"] not in (None, agent):
        return "assigned", f"is assigned to {row['assignee']}"
    return "delayed", f"is not to be started before {row['not_before']}"


def in_brief(circle: list[str]) -> list[str]:
    """Return the ids along a circle, those in the middle of a long one left out."""
    if len(circle) <= 12:
        return circle
    return [*circle[:6], f"({len(circle) - 12:,} more)", *circle[-6:]]


def as_agent(actor: Actor) -> Actor:
    """Return the actor of a lease verb: whoever acts under a lease is an agent."""
    return identity.Actor(actor.name, AGENT)


def lease_of(row: TaskRow, token: str) -> Lease:
    """Return the lease that a row of ``task`` stands under."""
    return Lease(token, row["fence"], row["lease_expires_at"])
