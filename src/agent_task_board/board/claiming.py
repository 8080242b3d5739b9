"""The verbs of an agent: take a task under a lease, keep the lease, and end it."""

from __future__ import annotations

from .. import backoff, inputs, instants
from ..errors import Conflict, InvalidInput
from ..identity import Actor
from ..model import AGENT, COLUMNS, LEASED, QUEUED, STATUSES, Grant, Receipt, Task, task_rows
from .core import (
    BACK_TO_QUEUE,
    HELD,
    LEASE_ENDS,
    WAIT_HIGH,
    Core,
    actual,
    call_digest,
    changes,
    digest,
    lease_lost,
    lease_of,
    obstacle,
    requeue_unless,
    status_conflict,
    version_conflict,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from typing import Any

    from ..model import TaskRow

READY = "status = 'queued' AND open_dependencies = 0 AND delayed = 0"
"""SQL: the WHERE terms of the indexes of ready tasks."""

MINE = "(assignee IS NULL OR assignee = :agent)"

DUE = "(not_before IS NULL OR not_before <= :now)"
"""SQL: not redundant beside ``delayed = 0``: the clock may have been set back since the flag was lowered."""

TAGGED = """NOT EXISTS (
    SELECT 1 FROM json_each(:tags) AS wanted
     WHERE wanted.value NOT IN (SELECT value FROM json_each(task.tags)))"""

CLAIM = f"""
    UPDATE task
       SET status = 'claimed', claimed_by = :agent, claimed_at = :now,
           lease_token_hash = :token_hash, lease_expires_at = :expires_at, lease_length = :length,
           attempts = attempts + 1, fence = fence + 1, version = version + 1, updated_at = :now
     WHERE {{chosen}}
       AND {READY} AND {DUE} AND {MINE}
    RETURNING {COLUMNS}"""
"""SQL: the compare-and-set of every claim."""


class Claiming(Core):
    """Claim, resume, heartbeat, complete, fail, release, hand off, and expire."""

    def claim(
        self,
        agent: str,
        *,
        task: str | None = None,
        queues: Sequence[str] = (),
        tags: Sequence[str] = (),
        lease: str | float | None = None,
        if_status: str | None = None,
        if_version: int | None = None,
        comment: str | None = None,
        request_id: str | None = None,
        actor: Actor | None = None,
    ) -> Grant | None:
        """Take one task under a fresh lease: the one named, or the best that is ready.

        The best is the one of largest priority, then the oldest, over all ``queues`` named (none: every queue) that
        has all ``tags`` and is assigned to nobody or to this agent. ``lease`` is in seconds or a length such as
        ``15m``, 1 second to 7 days. Expired leases are taken back and delayed tasks promoted on the way.
        ``if_status`` and ``if_version`` make the claim of a task that is named a compare-and-set.

        Returns:
            The receipt with the lease, or ``None`` when nothing is ready.

        Raises:
            NotFound: no such task.
            Conflict: the task named is not queued, blocked, delayed or assigned to somebody else.
            LeaseLost: the request id repeats a claim whose lease has ended.
        """
        name = inputs.agent_name(agent, "agent")
        task = None if task is None else inputs.reference(task, "id")
        wanted_queues = inputs.queues(queues)
        wanted_tags = inputs.tags(tags)
        length = self._lease_length(lease)
        request_id = inputs.key(request_id, "request_id")
        text = None if comment is None else inputs.text(comment, "comment", inputs.TEXT, required=True)
        if if_status is not None:
            inputs.one_of(if_status, "if_status", STATUSES)
            if task is None and if_status != QUEUED:
                raise InvalidInput(f'if_status: a claim without an id takes a "{QUEUED}" task', field="if_status")
        if if_version is not None:
            inputs.integer(if_version, "if_version", 0, 2**62)
            if task is None:
                raise InvalidInput("if_version: goes with a task that is named", field="if_version")
        if task is not None and (wanted_queues or wanted_tags):
            raise InvalidInput("a claim names either a task, or queues and tags to choose from", field="id")
        arguments = ""
        if request_id is not None:
            told = [name.casefold(), task, wanted_queues, wanted_tags, length, if_status, if_version, text]
            arguments = call_digest("claim", told)
        with self._db.write() as tx:
            instant = self._clock()
            now = instants.to_text(instant)
            name = self._known_as(tx, name)
            by = self._holder(tx, actor, name)
            earlier = self._repeated(tx, request_id, arguments, instant)
            if earlier is not None:
                return self._claim_again(tx, earlier, name, instant, None if lease is None else length, by)
            if task is not None:
                row = self._row(tx, task)
                chosen = "seq = :seq AND status = :if_status AND version = coalesce(:if_version, version)"
                values = {
                    "seq": row["seq"], "agent": name, "if_status": if_status or QUEUED, "if_version": if_version,
                }  # fmt: skip
                self._sweep(tx, now, first="seq = :seq", values=values)
            else:
                chosen, values = _best(name, wanted_queues, wanted_tags)
                self._sweep(tx, now, first=_claimable(wanted_queues, wanted_tags), values=values)
            claimed = self._take(tx, chosen, values, instant, length, by)
            if claimed is not None:
                after, number, token = claimed
                self._remember(tx, request_id, arguments, instant, task_seq=after["seq"], attempt=number, created=None)
                if text is not None:
                    self._comment(tx, after, text, by, now)
                warnings = self._notes_left(tx, after) if after["version"] > 2 else []
            elif task is not None:
                refusal = _not_claimable(self._row(tx, row["id"]), name, if_status, if_version)
        # Outside the transaction: what the sweep did stays done even if the claim is refused.
        if claimed is not None:
            return Grant(Task.from_row(after, now), lease_of(after, token), warnings=warnings)
        if task is not None:
            raise refusal
        return None

    def _take(
        self,
        tx: sqlite3.Connection,
        chosen: str,
        values: dict[str, Any],
        instant: int,
        length: int,
        by: Actor,
    ) -> tuple[TaskRow, int, str] | None:
        """Claim the task that ``chosen`` names for ``values["agent"]``; return its row, attempt number and token."""
        token, token_hash = self._new_token()
        now, expires_at = instants.to_text(instant), instants.to_text(instant + length)
        rows = task_rows(
            tx,
            CLAIM.format(chosen=chosen),
            {**values, "now": now, "token_hash": token_hash, "expires_at": expires_at, "length": length},
        )
        if not rows:
            return None
        after = rows[0]
        name = after["claimed_by"]
        self._meet(tx, name, now)
        number = tx.execute(
            """
            INSERT INTO attempt (task_seq, number, agent, fence, claimed_at)
            SELECT :seq, coalesce(max(number), 0) + 1, :agent, :fence, :now FROM attempt WHERE task_seq = :seq
            RETURNING number
            """,
            {"seq": after["seq"], "agent": name, "fence": after["fence"], "now": now},
        ).fetchall()[0][0]
        changed = {
            "status": {"from": "queued", "to": "claimed"},
            "attempts": {"from": after["attempts"] - 1, "to": after["attempts"]},
            "fence": {"from": after["fence"] - 1, "to": after["fence"]},
            "claimed_by": {"from": None, "to": name},
        }
        data = {"changes": changed, "attempt": number, "lease_expires_at": expires_at}
        self._record(tx, after, "claimed", by, now, data)
        return after, number, token

    def _claim_again(
        self, tx: sqlite3.Connection, earlier: sqlite3.Row, agent: str, instant: int, length: int | None, by: Actor
    ) -> Grant:
        """Answer a repeated claim: the same attempt under a fresh token, if its lease still lives."""
        row = self._reread(tx, earlier["task_seq"])
        latest = tx.execute("SELECT max(number) FROM attempt WHERE task_seq = ?", (earlier["task_seq"],)).fetchone()[0]
        now = instants.to_text(instant)
        receipt = None
        if latest == earlier["attempt"]:
            receipt = self._renew_token(tx, row, agent, instant, length, by)
        if receipt is None:
            raise lease_lost(row, now)
        receipt.replayed = True
        receipt.warnings = self._notes_left(tx, row)
        return receipt

    def _notes_left(self, tx: sqlite3.Connection, row: TaskRow) -> list[str]:
        """Return the latest note that somebody left with the task, as a sentence for whoever takes it up."""
        left = tx.execute(
            """
            SELECT kind, actor, data ->> 'note' AS note FROM event
             WHERE task_seq = ? AND data ->> 'note' IS NOT NULL
               AND kind IN ('released', 'handed_off', 'rejected', 'reassigned', 'cancelled')
             ORDER BY seq DESC LIMIT 1
            """,
            (row["seq"],),
        ).fetchone()
        return [f"{left['kind'].replace('_', ' ')} by {left['actor']}: {left['note']}"] if left else []

    def resume(self, task: str, agent: str, *, lease: str | float | None = None, actor: Actor | None = None) -> Grant:
        """Give the agent that holds a task a new token for it, after it lost its own; the old token is dead.

        The attempt stays the same, and so does the end of the lease unless ``lease`` asks for another length.

        Raises:
            NotFound: no such task.
            Conflict: the task is not held, or held by somebody else.
            LeaseLost: the agent's lease has ended.
        """
        name = inputs.agent_name(agent, "agent")
        length = None if lease is None else self._lease_length(lease)
        with self._db.write() as tx:
            instant = self._clock()
            now = instants.to_text(instant)
            name = self._known_as(tx, name)
            before = self._row(tx, task)
            by = self._holder(tx, actor, name)
            receipt = self._renew_token(tx, before, name, instant, length, by)
            if receipt is not None:
                return receipt
            if before["status"] not in LEASED:
                raise status_conflict(before, LEASED)
            if before["claimed_by"] == name:
                raise lease_lost(before, now)
            raise Conflict(
                f"task {before['id']} is held by {before['claimed_by']}, not by {name}",
                reason="assigned",
                actual=actual(before),
            )

    def _renew_token(
        self,
        tx: sqlite3.Connection,
        before: TaskRow,
        agent: str,
        instant: int,
        length: int | None,
        by: Actor,
    ) -> Grant | None:
        """Replace the token of a live lease of ``agent``; ``None`` when there is none."""
        token, token_hash = self._new_token()
        now = instants.to_text(instant)
        rows = task_rows(
            tx,
            f"""
            UPDATE task
               SET lease_token_hash = :token_hash, fence = fence + 1, version = version + 1, updated_at = :now,
                   lease_expires_at = iif(:length IS NULL, lease_expires_at, :expires_at),
                   lease_length = coalesce(:length, lease_length)
             WHERE seq = :seq AND status IN ('claimed', 'running')
               AND claimed_by = :agent AND lease_expires_at > :now
            RETURNING {COLUMNS}
            """,
            {
                "seq": before["seq"],
                "agent": agent,
                "now": now,
                "token_hash": token_hash,
                "length": length,
                "expires_at": instants.to_text(instant + (length or 0)),
            },
        )
        if not rows:
            return None
        after = rows[0]
        number = tx.execute(
            "UPDATE attempt SET fence = ? WHERE task_seq = ? AND outcome IS NULL RETURNING number",
            (after["fence"], after["seq"]),
        ).fetchall()[0][0]
        self._seen(tx, agent, now)
        data = {**changes(before, after), "attempt": number, "lease_expires_at": after["lease_expires_at"]}
        self._record(tx, after, "resumed", by, now, data)
        return Grant(Task.from_row(after, now), lease_of(after, token))

    def heartbeat(
        self,
        task: str,
        token: str,
        *,
        lease: str | float | None = None,
        progress: int | None = None,
        note: str | None = None,
        actor: Actor | None = None,
    ) -> Grant:
        """Renew one's own lease, counted from now; the first heartbeat takes the task from claimed to running.

        Without ``lease`` the length is the one last asked for on this claim. ``progress`` is a percentage, 0 to 100.
        A bare renewal leaves no event.

        Raises:
            NotFound: no such task.
            LeaseLost: the token is wrong, expired or replaced.
        """
        token_hash = _token_hash(token)
        length = None if lease is None else self._lease_length(lease)
        if progress is not None:
            inputs.integer(progress, "progress", 0, 100)
        note = inputs.note(note)
        with self._db.write() as tx:
            instant = self._clock()
            now = instants.to_text(instant)
            before = self._row(tx, task)
            expires_at = instants.to_text(instant + (length or before["lease_length"] or 0))
            rows = task_rows(
                tx,
                f"""
                UPDATE task
                   SET status = 'running', lease_expires_at = :expires_at,
                       lease_length = coalesce(:length, lease_length), progress = coalesce(:progress, progress),
                       version = version + (status = 'claimed'),
                       updated_at = iif(status = 'claimed' OR :told, :now, updated_at)
                 WHERE seq = :seq AND {HELD}
                RETURNING {COLUMNS}
                """,
                {
                    "seq": before["seq"],
                    "now": now,
                    "token_hash": token_hash,
                    "expires_at": expires_at,
                    "length": length,
                    "progress": progress,
                    "told": note is not None or progress not in (None, before["progress"]),
                },
            )
            if not rows:
                raise lease_lost(before, now)
            after = rows[0]
            self._seen(tx, after["claimed_by"], now)
            changed = changes(before, after)
            if changed["changes"] or note is not None:
                kind = "started" if before["status"] != after["status"] else "progressed"
                self._record(
                    tx, after, kind, self._holder(tx, actor, before["claimed_by"]), now, {**changed, "note": note}
                )
        return Grant(Task.from_row(after, now), lease_of(after, token))

    def complete(
        self,
        task: str,
        token: str,
        *,
        result: Any = None,
        artifacts: Sequence[str] = (),
        note: str | None = None,
        actor: Actor | None = None,
    ) -> Receipt:
        """Hand in the work done under a lease: the task goes to done, or to review if it needs approval.

        ``result`` is any JSON value and replaces an earlier one; ``artifacts`` are paths.

        Raises:
            NotFound: no such task.
            LeaseLost: the token is wrong, expired or replaced.
        """
        token_hash = _token_hash(token)
        stored = None if result is None else inputs.json_text(result, "result")
        files = inputs.json_text(inputs.artifacts(artifacts), "artifacts")
        note = inputs.note(note)
        with self._db.write() as tx:
            now = instants.to_text(self._clock())
            before = self._row(tx, task)
            rows = task_rows(
                tx,
                f"""
                UPDATE task
                   SET status = iif(needs_approval, 'review', 'done'),
                       finished_at = iif(needs_approval, NULL, :now),
                       result = :result, artifacts = :artifacts, error = NULL, {LEASE_ENDS},
                       version = version + 1, updated_at = :now
                 WHERE seq = :seq AND {HELD}
                RETURNING {COLUMNS}
                """,
                {
                    "seq": before["seq"],
                    "now": now,
                    "token_hash": token_hash,
                    "result": stored,
                    "artifacts": files,
                },
            )
            if not rows:
                return self._replay_or_refuse(tx, before, token_hash, "completed", now)
            self._ended(tx, before, rows[0], "completed", token_hash, actor, now, result=stored, note=note)
        return Receipt(Task.from_row(rows[0], now))

    def fail(
        self,
        task: str,
        token: str,
        error: str,
        *,
        retry_in: str | float | None = None,
        no_retry: bool = False,
        actor: Actor | None = None,
    ) -> Receipt:
        """Give up the work under a lease: the task waits for its next attempt, or fails when none is left.

        The wait doubles with each attempt; ``retry_in`` (seconds or a length) replaces it, ``no_retry`` ends the task.

        Raises:
            NotFound: no such task.
            LeaseLost: the token is wrong, expired or replaced.
        """
        token_hash = _token_hash(token)
        error = inputs.text(error, "error", inputs.TEXT, required=True)
        inputs.boolean(no_retry, "no_retry")
        if no_retry and retry_in is not None:
            raise InvalidInput("retry_in and no_retry exclude each other", field="retry_in")
        wait = None if retry_in is None else instants.parse_length(retry_in, field="retry_in", high=WAIT_HIGH)
        with self._db.write() as tx:
            instant = self._clock()
            now = instants.to_text(instant)
            before = self._row(tx, task)
            if wait is None:
                base, cap = self.settings.backoff_base, self.settings.backoff_cap
                wait = backoff.delay(before["attempts"], base=base, cap=cap)
            rows = task_rows(
                tx,
                f"""
                UPDATE task
                   SET {requeue_unless(":no_retry OR attempts >= max_attempts")},
                       not_before = iif(:no_retry OR attempts >= max_attempts, not_before, :not_before),
                       delayed = iif(:no_retry OR attempts >= max_attempts, delayed, :wait > 0),
                       error = :error, version = version + 1, updated_at = :now
                 WHERE seq = :seq AND {HELD}
                RETURNING {COLUMNS}
                """,
                {
                    "seq": before["seq"],
                    "now": now,
                    "token_hash": token_hash,
                    "error": error,
                    "no_retry": no_retry,
                    "wait": wait,
                    "not_before": instants.to_text(instant + wait),
                },
            )
            if not rows:
                return self._replay_or_refuse(tx, before, token_hash, "failed", now)
            self._ended(tx, before, rows[0], "failed", token_hash, actor, now, error=error)
        return Receipt(Task.from_row(rows[0], now))

    def release(
        self,
        task: str,
        token: str,
        *,
        after: str | float | None = None,
        note: str | None = None,
        actor: Actor | None = None,
    ) -> Receipt:
        """Put a task back into its queue untouched; the attempt does not count.

        ``after`` (seconds or a length) keeps it from being claimed for that long.

        Raises:
            NotFound: no such task.
            LeaseLost: the token is wrong, expired or replaced.
        """
        token_hash = _token_hash(token)
        wait = None if after is None else instants.parse_length(after, field="after", high=WAIT_HIGH)
        note = inputs.note(note)
        with self._db.write() as tx:
            instant = self._clock()
            now = instants.to_text(instant)
            before = self._row(tx, task)
            rows = task_rows(
                tx,
                f"""
                UPDATE task
                   SET {BACK_TO_QUEUE}, attempts = attempts - 1,
                       not_before = iif(:wait IS NULL, not_before, :not_before),
                       delayed = iif(:wait IS NULL, delayed, :wait > 0),
                       version = version + 1, updated_at = :now
                 WHERE seq = :seq AND {HELD}
                RETURNING {COLUMNS}
                """,
                {
                    "seq": before["seq"],
                    "now": now,
                    "token_hash": token_hash,
                    "wait": wait,
                    "not_before": instants.to_text(instant + (wait or 0)),
                },
            )
            if not rows:
                return self._replay_or_refuse(tx, before, token_hash, "released", now)
            self._ended(tx, before, rows[0], "released", token_hash, actor, now, note=note)
        return Receipt(Task.from_row(rows[0], now))

    def handoff(
        self, task: str, token: str, to: str, *, note: str | None = None, actor: Actor | None = None
    ) -> Receipt:
        """Pass a task on to another agent, for which it waits in the queue; the attempt does not count.

        The note travels with the task: whoever claims it next is told.

        Raises:
            NotFound: no such task.
            LeaseLost: the token is wrong, expired or replaced.
            InvalidInput: ``to`` is nobody, or the agent that holds the task.
        """
        token_hash = _token_hash(token)
        to = inputs.agent_name(to, "to")
        note = inputs.note(note)
        with self._db.write() as tx:
            now = instants.to_text(self._clock())
            before = self._row(tx, task)
            to = self._known_as(tx, to)
            rows = task_rows(
                tx,
                f"""
                UPDATE task
                   SET {BACK_TO_QUEUE}, assignee = :to, attempts = attempts - 1,
                       version = version + 1, updated_at = :now
                 WHERE seq = :seq AND {HELD}
                RETURNING {COLUMNS}
                """,
                {"seq": before["seq"], "now": now, "token_hash": token_hash, "to": to},
            )
            if not rows:
                return self._replay_or_refuse(tx, before, token_hash, "handed_off", now)
            if before["claimed_by"] == to:
                raise InvalidInput(f"to: {to} holds the task already", hint="Use `release` to put it back.", field="to")
            self._meet(tx, to, now)
            self._ended(tx, before, rows[0], "handed_off", token_hash, actor, now, note=note)
        return Receipt(Task.from_row(rows[0], now))

    def _ended(
        self,
        tx: sqlite3.Connection,
        before: TaskRow,
        after: TaskRow,
        outcome: str,
        token_hash: str,
        actor: Actor | None,
        now: str,
        *,
        result: str | None = None,
        error: str | None = None,
        note: str | None = None,
    ) -> None:
        """Note that the holder ended its attempt: the attempt's row, the agent's, the event."""
        number = self._end_attempt(
            tx, after, outcome, now, token_hash=token_hash, result=result, error=error, note=note
        )
        data = {**changes(before, after), "attempt": number, "error": error, "note": note}
        self._record(tx, after, outcome, self._holder(tx, actor, before["claimed_by"]), now, data)

    @staticmethod
    def _seen(tx: sqlite3.Connection, agent: str, now: str) -> None:
        tx.execute("UPDATE agent SET last_seen_at = ? WHERE name = ?", (now, agent))

    def _holder(self, tx: sqlite3.Connection, actor: Actor | None, agent: str) -> Actor:
        """Return who acts under a lease: the actor given, as its name was first written, else the agent itself."""
        return Actor(self._known_as(tx, self._caller(actor).name) if actor else agent, AGENT)


def _token_hash(token: str) -> str:
    return digest(inputs.line(token, "token", inputs.KEY))


def _best(agent: str, queues: Sequence[str], tags: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return SQL that names the best ready task of some queues, and its parameters.

    Each combination of queue and assignee is one look at the head of an index, so that neither the tasks of other
    agents nor those of other queues cost anything.
    """
    values: dict[str, Any] = {"agent": agent}
    tagged = ""
    if tags:
        values["tags"] = inputs.json_text(list(tags), "tags")
        tagged = f"AND {TAGGED}"
    heads: list[str] = []
    for number, queue in enumerate(queues):
        values[f"queue{number}"] = queue
    for queued in [f"AND queue = :queue{number}" for number in range(len(queues))] or [""]:
        index = "task_ready_in_queue" if queued else "task_ready"
        heads.extend(
            f"""
            SELECT * FROM (
                SELECT seq, priority FROM task INDEXED BY {index}
                 WHERE {READY} AND {DUE} AND {assigned} {queued} {tagged}
                 ORDER BY priority DESC, seq LIMIT 1)"""
            for assigned in ("assignee IS NULL", "assignee = :agent")
        )
    return (
        f"seq = (SELECT seq FROM ({' UNION ALL '.join(heads)}) ORDER BY priority DESC, seq LIMIT 1)",
        values,
    )


def _claimable(queues: Sequence[str], tags: Sequence[str]) -> str:
    """Return SQL over a row of ``task``: would this claim take it, were it ready? Parameters as of ``_best``."""
    terms = [MINE]
    if queues:
        terms.append(f"queue IN ({', '.join(f':queue{number}' for number in range(len(queues)))})")
    if tags:
        terms.append(TAGGED)
    return " AND ".join(terms)


def _not_claimable(row: TaskRow, agent: str, if_status: str | None, if_version: int | None) -> Conflict:
    """Return the refusal of a claim of one task, naming the first thing that stands in the way."""
    if row["status"] != QUEUED or if_status not in (None, QUEUED):
        return status_conflict(row, [QUEUED if if_status in (None, row["status"]) else if_status])
    if if_version not in (None, row["version"]):
        return version_conflict(row, if_version)
    reason, what = obstacle(row, agent)
    return Conflict(f"task {row['id']} {what}", reason=reason, actual=actual(row))
