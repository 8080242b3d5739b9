"""The verbs of agents: claim a task, renew its lease, and end the attempt."""

from __future__ import annotations

import json

from .. import backoff, inputs, instants
from ..errors import Conflict, InvalidInput
from ..model import LEASED, QUEUED, STATUSES, Grant, Lease, Receipt
from ..settings import LEASE_HIGH, LEASE_LOW, WAIT_HIGH
from ..storage.fingerprint import digest
from .core import Core, request_digest
from .expiry import END_LEASE, TO_QUEUE, sweep, to_queue_unless
from .history import changes
from .predicates import HAS_RELEASES, HAS_TAGS, HELD, IS_CLAIMABLE_BY, IS_DUE, IS_LEASED, IS_PROMOTED, in_queues
from .refusals import actual, lease_lost, obstacle, shown, status_conflict, version_conflict
from .rows import COLUMNS, EVENT_COLUMNS, to_event, to_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..identity import Actor
    from ..model import Note, TaskRow
    from ..storage.db import Row
    from .core import Transaction

CLAIM = f"""
    UPDATE task
       SET status = 'claimed', claimed_by = :agent, claimed_at = :now,
           lease_token_hash = :token_hash, lease_expires_at = :expires_at, lease_length = :length,
           attempts = attempts + 1, fence = fence + 1, version = version + 1, updated_at = :now
     WHERE {{chosen}}
       AND {IS_PROMOTED} AND {IS_DUE} AND {IS_CLAIMABLE_BY}
    RETURNING {COLUMNS}"""
"""SQL: the compare-and-set of every claim."""


class Claiming(Core):
    """Claim, resume, heartbeat, complete, fail, release, handoff."""

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
        """Claim one task under a new lease: the named one, or the best one that is ready.

        The best task has the largest priority; among equals it is the oldest. It is in one of ``queues`` (in any, if
        none is given), has all ``tags``, and is unassigned or assigned to this agent. ``lease`` is in seconds or a
        duration such as ``15m``, 1 second to 7 days. First, expired leases are ended and due tasks are promoted.
        ``if_status`` and ``if_version`` make the claim of a named task a compare-and-set.

        Returns:
            The receipt with the lease, or ``None`` if nothing is ready.

        Raises:
            NotFound: no such task.
            Conflict: the named task is not queued, or is blocked, delayed or assigned to another agent.
            LeaseLost: the request id repeats a claim whose lease has ended.
        """
        name = inputs.agent_name(agent, "agent")
        task = None if task is None else inputs.reference(task, "id")
        wanted_queues = inputs.queues(queues)
        wanted_tags = inputs.tags(tags)
        length = lease_length(self, lease)
        request_id = inputs.key(request_id, "request_id")
        text = None if comment is None else inputs.text(comment, "comment", inputs.TEXT, required=True)
        if if_status is not None:
            inputs.one_of(if_status, "if_status", STATUSES)
            if task is None and if_status != QUEUED:
                raise InvalidInput(f'if_status: must be "{QUEUED}" without a task id', field="if_status")
        if if_version is not None:
            inputs.version(if_version, "if_version")
            if task is None:
                raise InvalidInput("if_version: requires a task id", field="if_version")
        if task is not None and (wanted_queues or wanted_tags):
            raise InvalidInput("id: cannot be combined with queues or tags", field="id")
        arguments = ""
        if request_id is not None:
            given = [inputs.name_key(name), task, wanted_queues, wanted_tags, length, if_status, if_version, text]
            arguments = request_digest("claim", given)
        with self.write() as tx:
            name = tx.canonical_name(name)
            by = tx.holder(actor, name)
            earlier = tx.earlier_request(request_id, arguments)
            if earlier is not None:
                return claim_again(self, tx, earlier, name, None if lease is None else length, by)
            if task is None:
                claimed = _claim_best(self, tx, name, wanted_queues, wanted_tags, length, by)
                refusal = None
            else:
                claimed, refusal = _claim_one(self, tx, task, name, if_status, if_version, length, by)
            if claimed is not None:
                row, number, token = claimed
                tx.remember_request(request_id, arguments, task_seq=row["seq"], attempt=number, created=None)
                if text is not None:
                    tx.comment(row, text, by)
                notes = _notes_left(tx, row) if row["version"] > 2 else []
        # Outside the transaction: the changes of the sweep stay even if the claim is refused.
        if refusal is not None:
            raise refusal
        if claimed is None:
            return None
        return Grant(to_task(row, tx.now), lease_of(row, token), warnings=tx.warnings, notes=notes)

    def resume(self, task: str, agent: str, *, lease: str | float | None = None, actor: Actor | None = None) -> Grant:
        """Give the holder of a task a new token, if it has lost its own; the old token stops working.

        The attempt stays the same. So does the end of the lease, unless ``lease`` asks for another length.

        Raises:
            NotFound: no such task.
            Conflict: nobody holds the task, or another agent does.
            LeaseLost: the agent's lease has ended.
        """
        name = inputs.agent_name(agent, "agent")
        length = None if lease is None else lease_length(self, lease)
        with self.write() as tx:
            name = tx.canonical_name(name)
            before = tx.find(task)
            receipt = _renew_token(self, tx, before, name, length, tx.holder(actor, name))
            if receipt is not None:
                return receipt
            if before["status"] not in LEASED:
                raise status_conflict(before, LEASED)
            if before["claimed_by"] == name:
                raise lease_lost(before, tx.now)
            raise Conflict(
                f"task {before['id']} is held by {shown(before['claimed_by'])}, not by {shown(name)}",
                reason="assigned",
                actual=actual(before),
            )

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
        """Renew the lease, counted from now; the first heartbeat changes the task from claimed to running.

        Without ``lease``, the length is the last one that was asked for under this claim. ``progress`` is a percentage,
        0 to 100. A renewal without news is not an event.

        Raises:
            NotFound: no such task.
            LeaseLost: the token is wrong, expired or replaced.
        """
        token_hash = hash_of(token)
        length = None if lease is None else lease_length(self, lease)
        if progress is not None:
            inputs.percentage(progress, "progress")
        note = inputs.note(note)
        with self.write() as tx:
            before = tx.find(task)
            expires_at = instants.to_text(tx.instant + (length or before["lease_length"] or 0))
            rows = tx.tasks(
                f"""
                UPDATE task
                   SET status = 'running', lease_expires_at = :expires_at,
                       lease_length = coalesce(:length, lease_length), progress = coalesce(:progress, progress),
                       version = version + (status = 'claimed'),
                       updated_at = iif(status = 'claimed' OR :has_news, :now, updated_at)
                 WHERE seq = :seq AND {HELD}
                RETURNING {COLUMNS}
                """,
                {
                    "seq": before["seq"],
                    "now": tx.now,
                    "token_hash": token_hash,
                    "expires_at": expires_at,
                    "length": length,
                    "progress": progress,
                    "has_news": note is not None or progress not in (None, before["progress"]),
                },
            )
            if not rows:
                raise lease_lost(before, tx.now)
            after = rows[0]
            _update_last_seen(tx, after["claimed_by"])
            changed = changes(before, after)
            if changed["changes"] or note is not None:
                kind = "started" if before["status"] != after["status"] else "progressed"
                tx.record(after, kind, {**changed, "note": note}, tx.holder(actor, before["claimed_by"]))
        return Grant(to_task(after, tx.now), lease_of(after, token))

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
        """Submit the work done under a lease: the task is done, or in review if it needs approval.

        ``result`` is any JSON value and replaces the previous one; ``artifacts`` are paths.

        Raises:
            NotFound: no such task.
            LeaseLost: the token is wrong, expired or replaced.
        """
        token_hash = hash_of(token)
        stored = None if result is None else inputs.json_text(result, "result")
        files = inputs.json_text(inputs.artifacts(artifacts), "artifacts")
        note = inputs.note(note)
        with self.write() as tx:
            return _end(
                tx, task, token_hash, "completed",
                """
                status = iif(needs_approval, 'review', 'done'), finished_at = iif(needs_approval, NULL, :now),
                result = :result, artifacts = :artifacts, error = NULL,
                progress = iif(progress IS NULL, NULL, 100), """ + END_LEASE,
                {"result": stored, "artifacts": files},
                actor, result=stored, note=note, asked={"artifacts": files if artifacts else None},
            )  # fmt: skip

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
        """Report that the attempt failed: the task waits for its next attempt, or is failed if none is left.

        The wait doubles with each attempt; ``retry_in`` (seconds or a duration) overrides it. If ``no_retry``
        is true, the task is failed.

        Raises:
            NotFound: no such task.
            LeaseLost: the token is wrong, expired or replaced.
        """
        token_hash = hash_of(token)
        error = inputs.text(error, "error", inputs.TEXT, required=True)
        inputs.boolean(no_retry, "no_retry")
        if no_retry and retry_in is not None:
            raise InvalidInput("retry_in: cannot be combined with no_retry", field="retry_in")
        wait = None if retry_in is None else instants.parse_length(retry_in, field="retry_in", high=WAIT_HIGH)
        is_last = ":no_retry OR attempts >= max_attempts"
        with self.write() as tx:
            before = tx.find(task)
            if wait is None:
                base, cap = self.settings.backoff_base, self.settings.backoff_cap
                wait = backoff.delay(before["attempts"], base=base, cap=cap)
            return _end(
                tx, before, token_hash, "failed",
                f"""
                {to_queue_unless(is_last)}, error = :error,
                not_before = iif({is_last}, not_before, :not_before), delayed = iif({is_last}, delayed, :wait > 0)""",
                {"error": error, "no_retry": no_retry, "wait": wait, "not_before": _instant_after(tx, wait)},
                actor, error=error,
                asked={"retry_in": None if retry_in is None else wait, "no_retry": no_retry or None},
            )  # fmt: skip

    def release(
        self,
        task: str,
        token: str,
        *,
        after: str | float | None = None,
        note: str | None = None,
        actor: Actor | None = None,
    ) -> Receipt:
        """Return a task to its queue; the attempt does not count.

        For the time ``after`` (seconds or a duration) it cannot be claimed. Without it, this agent's claims take other
        tasks of the same priority first, for as long as the first wait after a failure.

        Raises:
            NotFound: no such task.
            LeaseLost: the token is wrong, expired or replaced.
        """
        token_hash = hash_of(token)
        wait = None if after is None else instants.parse_length(after, field="after", high=WAIT_HIGH)
        note = inputs.note(note)
        with self.write() as tx:
            before = tx.find(task)
            receipt = _end(
                tx, before, token_hash, "released",
                f"""
                {TO_QUEUE}, attempts = attempts - 1,
                not_before = iif(:wait IS NULL, not_before, :not_before),
                delayed = iif(:wait IS NULL, delayed, :wait > 0)""",
                {"wait": wait, "not_before": _instant_after(tx, wait or 0)},
                actor, note=note, asked={"after": wait},
            )  # fmt: skip
            if not (wait or receipt.replayed):
                from .releases import remember

                remember(tx, before, self.settings.backoff_base)
            return receipt

    def handoff(
        self, task: str, token: str, to: str, *, note: str | None = None, actor: Actor | None = None
    ) -> Receipt:
        """Return a task to its queue for another agent; the attempt does not count.

        The next claim of the task returns the note among its ``notes``.

        Raises:
            NotFound: no such task.
            LeaseLost: the token is wrong, expired or replaced.
            InvalidInput: ``to`` is ``none``, or the agent that holds the task.
        """
        token_hash = hash_of(token)
        to = inputs.agent_name(to, "to")
        note = inputs.note(note)
        with self.write() as tx:
            to = tx.canonical_name(to)
            before = tx.find(task)
            receipt = _end(
                tx, before, token_hash, "handed_off",
                f"{TO_QUEUE}, assignee = :to, attempts = attempts - 1",
                {"to": to},
                actor, note=note, asked={"to": to},
            )  # fmt: skip
            if not receipt.replayed:
                if before["claimed_by"] == to:
                    raise InvalidInput(
                        f"to: {shown(to)} already holds the task",
                        hint="Release the task to return it to the queue.",
                        field="to",
                    )
                tx.register_agent(to)
            return receipt


def lease_length(core: Core, lease: str | float | None) -> int:
    """Return the length of a lease in milliseconds; ``None`` means the default of the settings."""
    if lease is None:
        return core.settings.lease
    return instants.parse_length(lease, field="lease", low=LEASE_LOW, high=LEASE_HIGH)


def lease_of(row: TaskRow, token: str) -> Lease:
    """Return the lease of a row of ``task``."""
    return Lease(token, row["fence"], row["lease_expires_at"])


# Claims


def _claim_one(
    core: Core,
    tx: Transaction,
    task: str,
    agent: str,
    if_status: str | None,
    if_version: int | None,
    length: int,
    by: Actor,
) -> tuple[tuple[TaskRow, int, str] | None, Conflict | None]:
    """Claim the named task; return the result of ``grant``, or the refusal."""
    row = tx.find(task)
    values = {"seq": row["seq"], "agent": agent, "if_status": if_status or QUEUED, "if_version": if_version}
    sweep(tx, first="seq = :seq", values=values)
    chosen = "seq = :seq AND status = :if_status AND version = coalesce(:if_version, version)"
    claimed = grant(core, tx, chosen, values, length, by)
    return claimed, None if claimed else _not_claimable(tx.task(row["seq"]), agent, if_status, if_version)


def _claim_best(
    core: Core, tx: Transaction, agent: str, queues: Sequence[str], tags: Sequence[str], length: int, by: Actor
) -> tuple[TaskRow, int, str] | None:
    """Claim the best ready task in some queues; return the result of ``grant``."""
    within, values = in_queues(queues)
    values["agent"] = agent
    if tags:
        within += f" AND {HAS_TAGS}"
        values["tags"] = inputs.json_text(list(tags), "tags")
    sweep(tx, first=f"{IS_CLAIMABLE_BY} AND {within}", values=values)
    tagged = HAS_TAGS if tags else "1"
    claimed = grant(core, tx, f"{best_ready(queues, tagged)} AND NOT EXISTS ({HAS_RELEASES})", values, length, by)
    if claimed is None and tx.execute(HAS_RELEASES, {"agent": agent, "now": tx.now}).fetchone():
        from .releases import best_in_turn

        heads = _heads(queues)
        seq = best_in_turn(tx, _best(heads, tagged), heads, tagged, values)
        return None if seq is None else grant(core, tx, "seq = :seq", {**values, "seq": seq}, length, by)
    return claimed


def best_ready(queues: Sequence[str], tagged: str) -> str:
    """Return SQL that is true for the best ready task of some queues."""
    return f"seq = (SELECT seq FROM ({_best(_heads(queues), tagged)}))"


def _heads(queues: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of an index of ready tasks and a condition, each of which selects tasks in the order of a claim.

    Each combination of queue and assignee reads the first row of an index, so that tasks of other agents and of other
    queues cost nothing.
    """
    index = "task_ready_in_queue" if queues else "task_ready"
    return [
        (index, f"{assigned} AND {queued}")
        for queued in [f"queue = :queue{number}" for number in range(len(queues))] or ["1"]
        for assigned in ("assignee IS NULL", "assignee = :agent")
    ]


def _best(heads: Sequence[tuple[str, str]], tagged: str) -> str:
    """Return SQL that selects the best ready task: its sequence number and priority."""
    first = " UNION ALL ".join(
        f"""
        SELECT * FROM (
            SELECT seq, priority FROM task INDEXED BY {index}
             WHERE {IS_PROMOTED} AND {IS_DUE} AND {condition} AND {tagged}
             ORDER BY priority DESC, seq LIMIT 1)"""
        for index, condition in heads
    )
    return f"SELECT seq, priority FROM ({first}) ORDER BY priority DESC, seq LIMIT 1"


def grant(
    core: Core, tx: Transaction, chosen: str, values: dict[str, Any], length: int, by: Actor
) -> tuple[TaskRow, int, str] | None:
    """Claim the task that the SQL ``chosen`` selects for ``values["agent"]``; return row, attempt number and token."""
    token, token_hash = core.new_token()
    expires_at = _instant_after(tx, length)
    rows = tx.tasks(
        CLAIM.format(chosen=chosen),
        {**values, "now": tx.now, "token_hash": token_hash, "expires_at": expires_at, "length": length},
    )
    if not rows:
        return None
    after = rows[0]
    name = after["claimed_by"]
    number = tx.begin_attempt(after, name)
    changed = {
        "status": {"from": "queued", "to": "claimed"},
        "attempts": {"from": after["attempts"] - 1, "to": after["attempts"]},
        "fence": {"from": after["fence"] - 1, "to": after["fence"]},
        "claimed_by": {"from": None, "to": name},
    }
    tx.record(after, "claimed", {"changes": changed, "attempt": number, "lease_expires_at": expires_at}, by)
    return after, number, token


def claim_again(core: Core, tx: Transaction, earlier: Row, agent: str, length: int | None, by: Actor) -> Grant:
    """Answer a repeated claim: the same attempt with a new token, if its lease is still live."""
    row = tx.task(earlier["task_seq"])
    latest = tx.execute("SELECT max(number) FROM attempt WHERE task_seq = ?", (earlier["task_seq"],)).fetchone()[0]
    receipt = None
    if latest == earlier["attempt"]:
        receipt = _renew_token(core, tx, row, agent, length, by)
    if receipt is None:
        raise lease_lost(row, tx.now)
    receipt.replayed = True
    receipt.notes = _notes_left(tx, row)
    return receipt


def _notes_left(tx: Transaction, row: TaskRow) -> list[Note]:
    """Return the latest note for the next holder of a task, as a list of at most one."""
    left = tx.execute(
        f"""
        SELECT {EVENT_COLUMNS} FROM event
         WHERE task_seq = ? AND data ->> 'note' IS NOT NULL
           AND kind IN ('released', 'handed_off', 'rejected', 'reassigned', 'cancelled')
         ORDER BY seq DESC LIMIT 1
        """,
        (row["seq"],),
    ).fetchone()
    if left is None:
        return []
    event = to_event(left, row["id"])
    note: Note = {
        "kind": event["kind"],
        "actor": event["actor"],
        "actor_kind": event["actor_kind"],
        "at": event["at"],
        "text": event["data"]["note"],
    }
    if "imported" in event:
        note["imported"] = True
    return [note]


def _not_claimable(row: TaskRow, agent: str, if_status: str | None, if_version: int | None) -> Conflict:
    """Return the refusal of the claim of a named task; it names the first obstacle."""
    if row["status"] != QUEUED or if_status not in (None, QUEUED):
        return status_conflict(row, [QUEUED if if_status in (None, row["status"]) else if_status])
    if if_version not in (None, row["version"]):
        return version_conflict(row, if_version)
    reason, what = obstacle(row, agent)
    return Conflict(f"task {row['id']} {what}", reason=reason, actual=actual(row))


# Leases


def _renew_token(
    core: Core, tx: Transaction, before: TaskRow, agent: str, length: int | None, by: Actor
) -> Grant | None:
    """Replace the token of the live lease of ``agent``; return ``None`` if it has none."""
    token, token_hash = core.new_token()
    after = tx.change(
        before,
        """
        lease_token_hash = :token_hash, fence = fence + 1,
        lease_expires_at = iif(:length IS NULL, lease_expires_at, :expires_at),
        lease_length = coalesce(:length, lease_length)""",
        where=f"{IS_LEASED} AND claimed_by = :agent AND lease_expires_at > :now",
        values={
            "agent": agent,
            "token_hash": token_hash,
            "length": length,
            "expires_at": _instant_after(tx, length or 0),
        },
    )
    if after is None:
        return None
    number = tx.execute(
        "UPDATE attempt SET fence = ? WHERE task_seq = ? AND outcome IS NULL RETURNING number",
        (after["fence"], after["seq"]),
    ).fetchall()[0][0]
    _update_last_seen(tx, agent)
    data = {**changes(before, after), "attempt": number, "lease_expires_at": after["lease_expires_at"]}
    tx.record(after, "resumed", data, by)
    return Grant(to_task(after, tx.now), lease_of(after, token))


def _end(
    tx: Transaction,
    task: str | TaskRow,
    token_hash: str,
    outcome: str,
    assignments: str,
    values: dict[str, Any],
    actor: Actor | None,
    *,
    result: str | None = None,
    error: str | None = None,
    note: str | None = None,
    asked: dict[str, Any],
) -> Receipt:
    """End a lease: change the task by ``assignments``, end the attempt, record the event. Or replay, or refuse.

    ``asked`` has the verb's other arguments, ``None`` where one was not given.

    Raises:
        NotFound: no such task.
        LeaseLost: the token is wrong, expired or replaced.
    """
    before = tx.find(task) if isinstance(task, str) else task
    after = tx.change(before, assignments, where=HELD, values={**values, "token_hash": token_hash})
    if after is None:
        asked = {"result": result, "error": error, "note": note, **asked}
        return _replay_or_refuse(tx, before, token_hash, outcome, asked)
    number = tx.end_attempt(after, outcome, token_hash=token_hash, result=result, error=error, note=note)
    data = {**changes(before, after), "attempt": number, "error": error, "note": note}
    tx.record(after, outcome, data, tx.holder(actor, before["claimed_by"]))
    return Receipt(to_task(after, tx.now), warnings=tx.warnings)


def _replay_or_refuse(tx: Transaction, row: TaskRow, token_hash: str, outcome: str, asked: dict[str, Any]) -> Receipt:
    """Replay an ending if this token ended an attempt with the same verb, since the reply was lost; else refuse.

    A warning names the arguments that the first call did not have: they are not taken.
    """
    attempt = tx.execute(
        """
        SELECT number, result, error, note FROM attempt
         WHERE task_seq = ? AND outcome = ? AND same_secret(token_hash, ?)
        """,
        (row["seq"], outcome, token_hash),
    ).fetchone()
    if attempt is None:
        raise lease_lost(row, tx.now)
    receipt = Receipt(to_task(row, tx.now), replayed=True)
    given = {name: value for name, value in asked.items() if value is not None}
    if given:
        others = _not_taken(tx, row, attempt, outcome, given)
        if others:
            receipt.warnings = [f"repeated call: not taken, since the first one had another value: {', '.join(others)}"]
    return receipt


def _not_taken(tx: Transaction, row: TaskRow, attempt: Row, outcome: str, given: dict[str, Any]) -> list[str]:
    """Return the arguments of a repeated ending that differ from those of the first call."""
    at, text = tx.execute(
        "SELECT at, data FROM event WHERE task_seq = ? AND kind = ? AND data ->> 'attempt' = ?",
        (row["seq"], outcome, attempt["number"]),
    ).fetchone() or (tx.now, "{}")
    changed = {name: change["to"] for name, change in json.loads(text).get("changes", {}).items()}
    begins = changed.get("not_before")
    wait = None if begins is None else instants.from_text(begins) - instants.from_text(at)
    # What an event does not say, since it changed nothing, is as the task had it.
    first = {
        "error": attempt["error"],
        "note": attempt["note"],
        "artifacts": changed.get("artifacts", json.loads(row["artifacts"])),
        "retry_in": wait,
        "after": wait,
        "no_retry": changed.get("status") == "failed" or None,
        "to": changed.get("assignee", given.get("to")),
    }
    if attempt["result"] is not None:
        first["result"] = json.loads(attempt["result"])
    return [
        name
        for name, value in given.items()
        if (json.loads(value) if name in ("result", "artifacts") else value) != first.get(name)
    ]


def _instant_after(tx: Transaction, length: int) -> str:
    """Return the stored form of the transaction's instant plus some milliseconds."""
    return instants.to_text(tx.instant + length)


def _update_last_seen(tx: Transaction, agent: str) -> None:
    tx.execute("UPDATE agent SET last_seen_at = ? WHERE name = ?", (tx.now, agent))


def hash_of(token: str) -> str:
    """Return what is stored of a lease token that a caller gave."""
    return digest(inputs.line(token, "token", inputs.KEY))
