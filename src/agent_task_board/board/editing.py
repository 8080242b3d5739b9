"""The verbs that make and change tasks: add, update, reassign, retry, cancel, comment."""

from __future__ import annotations

import json
import sqlite3

from .. import identity, inputs, instants
from ..errors import Conflict, InvalidInput
from ..model import (
    AGENT,
    CANCELLED,
    CLAIMED,
    COLUMNS,
    FAILED,
    FINAL,
    LEASED,
    QUEUED,
    REVIEW,
    RUNNING,
    STATUSES,
    Receipt,
    Task,
    task_rows,
)
from .claiming import Claiming
from .core import (
    BACK_TO_QUEUE,
    LEASE_ENDS,
    actual,
    as_agent,
    call_digest,
    changes,
    in_brief,
    lease_expired,
    lease_of,
    obstacle,
    status_conflict,
    version_conflict,
)
from .review import Reviewing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from typing import Any

    from ..identity import Actor
    from ..model import Event, TaskRow

UNSET: Any = object()
"""An argument that was not given, where ``None`` means to clear the field."""

SENTENCES = 10
"""How many dependencies a receipt spells out."""


class Editing(Claiming, Reviewing):
    """Add, update, reassign, retry, cancel, comment."""

    def add(
        self,
        title: str,
        *,
        body: str = "",
        queue: str = "default",
        priority: int = 0,
        assignee: str | None = None,
        due_at: str | datetime | None = None,
        not_before: str | datetime | None = None,
        tags: Sequence[str] = (),
        depends_on: Sequence[str] = (),
        params: dict[str, Any] | None = None,
        dedupe_key: str | None = None,
        max_attempts: int | None = None,
        needs_approval: bool = False,
        request_id: str | None = None,
        claim: bool = False,
        agent: str | None = None,
        lease: str | float | None = None,
        actor: Actor | None = None,
    ) -> Receipt:
        """Add a task; with ``claim``, the ``agent`` holds it from the very start and nobody ever sees it unclaimed.

        A bare date as ``due_at`` means the end of that day, as ``not_before`` its beginning, in the board's zone.
        A dedupe key that an unfinished task holds returns that task, ``created`` false, instead of adding one.

        Raises:
            NotFound: a dependency does not exist.
            Conflict: with ``claim``: the dedupe key is taken, or the task would not be ready for this agent.
            LeaseLost: the request id repeats an add with ``claim`` whose lease has ended.
        """
        by = self._caller(actor)
        if agent is not None:
            agent = inputs.agent_name(agent, "agent")
            by = as_agent(by) if actor else identity.Actor(agent, AGENT)
        if inputs.boolean(claim, "claim"):
            agent = agent or (by.name if by.kind == AGENT else None)
            if agent is None:
                raise InvalidInput("agent: who claims the task?", hint="Name the agent.", field="agent")
        elif lease is not None:
            raise InvalidInput("lease: goes with claim only", field="lease")
        length = self._lease_length(lease)
        request_id = inputs.key(request_id, "request_id")
        fields = self._fields(
            title=title, body=body, queue=queue, priority=priority, assignee=assignee, due_at=due_at,
            not_before=not_before, tags=tags, params=params, dedupe_key=dedupe_key,
            max_attempts=max_attempts, needs_approval=needs_approval,
        )  # fmt: skip
        depends_on = inputs.references(depends_on, "depends_on")
        arguments = ""
        if request_id is not None:
            told = [
                {**fields, "params": params or {}},
                depends_on,
                [(agent or "").casefold(), length] if claim else None,
            ]
            arguments = call_digest("add", told)
        with self._db.write() as tx:
            instant = self._clock()
            now = instants.to_text(instant)
            earlier = self._repeated(tx, request_id, arguments, instant)
            if earlier is not None:
                return self._add_again(tx, earlier, agent, instant, None if lease is None else length, by)
            row, created = self._insert(tx, fields, by, now)
            if not created:
                if claim:
                    raise _key_taken(fields["dedupe_key"], row)
                self._remember(tx, request_id, arguments, instant, task_seq=row["seq"], attempt=None, created=False)
                said = f"task {row['id']} already holds dedupe key {fields['dedupe_key']!r}; nothing was added"
                return Receipt(Task.from_row(row, now), created=False, warnings=[said])
            sentences = self._wait_for(tx, row, self._others(tx, depends_on))
            row = self._reread(tx, row["seq"])
            self._record(tx, row, "created", by, now, changes(None, row))
            number, lease_granted = None, None
            if claim and agent is not None:
                values = {"seq": row["seq"], "agent": self._known_as(tx, agent)}
                claimed = self._take(tx, "seq = :seq", values, instant, length, as_agent(by))
                if claimed is None:
                    reason, what = obstacle(row, values["agent"])
                    raise Conflict(
                        f"a task to be claimed at once must be ready, and this one {what}",
                        hint="Add it without claiming it.",
                        reason=reason,
                    )
                row, number, token = claimed
                lease_granted = lease_of(row, token)
            self._remember(tx, request_id, arguments, instant, task_seq=row["seq"], attempt=number, created=True)
            return Receipt(Task.from_row(row, now), created=True, lease=lease_granted, warnings=sentences)

    def _fields(self, **given: Any) -> dict[str, Any]:
        """Check the fields given and return what is stored for them, by column."""
        zone = self.settings.timezone
        stored: dict[str, Any] = {}
        for field, value in given.items():
            if field == "title":
                stored[field] = inputs.line(value.strip() if isinstance(value, str) else value, field, inputs.TITLE)
            elif field == "body":
                stored[field] = inputs.text(value, field, inputs.BODY)
            elif field == "queue":
                stored[field] = inputs.name(value, field)
            elif field == "priority":
                stored[field] = inputs.integer(value, field, -inputs.PRIORITY, inputs.PRIORITY)
            elif field == "assignee":
                stored[field] = inputs.assignee(value, field)
            elif field in ("due_at", "not_before"):
                end = field == "due_at"
                none = value is None or value == ""
                stored[field] = None if none else instants.parse_instant(value, zone, field=field, end_of_day=end)
            elif field == "tags":
                stored[field] = inputs.json_text(inputs.tags(value), field)
            elif field == "params":
                stored[field] = inputs.parameters({} if value is None else value)
            elif field == "dedupe_key":
                stored[field] = inputs.key(value, field)
            elif field == "max_attempts":
                limit = self.settings.max_attempts if value is None else value
                stored[field] = inputs.integer(limit, field, 1, inputs.MAX_ATTEMPTS)
            elif field == "needs_approval":
                stored[field] = int(inputs.boolean(value, field))
        return stored

    @staticmethod
    def _new_id() -> str:
        from ulid import ULID  # 50 ms of import that only the making of tasks pays for

        return str(ULID())

    def _insert(self, tx: sqlite3.Connection, fields: dict[str, Any], by: Actor, now: str) -> tuple[TaskRow, bool]:
        """Insert a task under a fresh id; return it and ``True``, or the holder of its dedupe key and ``False``."""
        holder = self._key_holder(tx, fields["dedupe_key"])
        if holder is not None:
            return holder, False
        assignee = self._assign(tx, fields["assignee"], now)
        by.name = self._known_as(tx, by.name)  # as the assignee is written, if that is the same agent's first naming
        values = {"schedule_id": None, "occurrence_at": None, **fields}
        values |= {"assignee": assignee, "now": now, "by": by.name}
        for _ in range(10):  # two forked processes may draw the same id
            rows = task_rows(
                tx,
                f"""
                INSERT INTO task (id, title, body, queue, priority, assignee, due_at, not_before, delayed, tags,
                                  params, dedupe_key, max_attempts, needs_approval, schedule_id, occurrence_at,
                                  created_by, created_at, updated_at)
                VALUES (:id, :title, :body, :queue, :priority, :assignee, :due_at, :not_before,
                        coalesce(:not_before > :now, 0), :tags, :params, :dedupe_key, :max_attempts,
                        :needs_approval, :schedule_id, :occurrence_at, :by, :now, :now)
                    ON CONFLICT (id) DO NOTHING
                RETURNING {COLUMNS}
                """,
                {**values, "id": self._new_id()},
            )
            if rows:
                return rows[0], True
        raise RuntimeError("ten fresh task ids were all taken")

    def _assign(self, tx: sqlite3.Connection, assignee: str | None, now: str) -> str | None:
        """Return an assignee's name as first written, and note that it was named."""
        if assignee is None:
            return None
        name = self._known_as(tx, assignee)
        self._meet(tx, name, now)
        return name

    @staticmethod
    def _key_holder(tx: sqlite3.Connection, key: str | None) -> TaskRow | None:
        """Return the unfinished task that holds a dedupe key."""
        rows = task_rows(
            tx,
            f"""
            SELECT {COLUMNS} FROM task
             WHERE dedupe_key = ? AND dedupe_key IS NOT NULL AND status NOT IN ('done', 'failed', 'cancelled')
            """,
            (key,),
        )
        return rows[0] if rows else None

    def _add_again(
        self,
        tx: sqlite3.Connection,
        earlier: sqlite3.Row,
        agent: str | None,
        instant: int,
        length: int | None,
        by: Actor,
    ) -> Receipt:
        """Answer a repeated add; one with a claim renews the token of its lease."""
        created = bool(earlier["created"])
        by.name = self._known_as(tx, by.name)
        if earlier["attempt"] is not None and agent is not None:
            receipt = self._claim_again(tx, earlier, self._known_as(tx, agent), instant, length, as_agent(by))
            receipt.created = created
            return receipt
        row = self._reread(tx, earlier["task_seq"])
        return Receipt(Task.from_row(row, instants.to_text(instant)), created=created, replayed=True)

    # Dependencies

    def _others(self, tx: sqlite3.Connection, references: Iterable[str]) -> dict[str, TaskRow]:
        """Return the tasks that references name, by id."""
        rows = (self._row(tx, reference, "depends_on") for reference in references)
        return {row["id"]: row for row in rows}

    def _wait_for(self, tx: sqlite3.Connection, row: TaskRow, others: dict[str, TaskRow]) -> list[str]:
        """Let a task wait for others; return who waits for whom, in sentences.

        Raises:
            Conflict: the others wait for the task themselves, directly or along a chain.
        """
        cycle = self._cycle(tx, row, others)
        if cycle:
            raise Conflict(
                f"this would close a circle: {' waits for '.join(in_brief(cycle))}",
                hint="Leave one of these dependencies out, or drop another one first.",
                reason="cycle",
                cycle=cycle,
            )
        tx.executemany(
            """
            INSERT INTO dependency (task_seq, depends_on_seq, position)
            SELECT :seq, :other, coalesce(max(position), 0) + 1 FROM dependency WHERE task_seq = :seq
            """,
            [{"seq": row["seq"], "other": other["seq"]} for other in others.values()],
        )
        count = tx.execute("SELECT count(*) FROM dependency WHERE task_seq = ?", (row["seq"],)).fetchone()[0]
        if count > inputs.DEPENDENCIES:
            raise InvalidInput(
                f"depends_on: {count:,} dependencies are more than {inputs.DEPENDENCIES:,}",
                field="depends_on",
            )
        return _sentences(row, others.values(), "waits for")

    @staticmethod
    def _cycle(tx: sqlite3.Connection, row: TaskRow, others: dict[str, TaskRow]) -> list[str]:
        """Return the ids along the circle that these dependencies would close, its first id again at its end."""
        if not tx.execute("SELECT 1 FROM dependency WHERE depends_on_seq = ? LIMIT 1", (row["seq"],)).fetchone():
            others = {id_: other for id_, other in others.items() if other["seq"] == row["seq"]}
        came_from: dict[int, tuple[int, str]] = {other["seq"]: (row["seq"], other["id"]) for other in others.values()}
        pending = list(came_from)
        while pending and row["seq"] not in came_from:
            at = pending.pop()
            for seq, id_ in tx.execute(
                """
                SELECT task.seq, task.id FROM dependency JOIN task ON task.seq = dependency.depends_on_seq
                 WHERE dependency.task_seq = ?
                """,
                (at,),
            ).fetchall():
                if seq not in came_from:
                    came_from[seq] = (at, id_)
                    pending.append(seq)
        if row["seq"] not in came_from:
            return []
        path = [row["id"]]
        at = came_from[row["seq"]][0]
        while at != row["seq"]:
            at, id_ = came_from[at]
            path.append(id_)
        return [row["id"], *reversed(path[1:]), row["id"]]

    # Changing what is there

    def update(
        self,
        task: str,
        *,
        title: str = UNSET,
        body: str | None = UNSET,
        queue: str | None = UNSET,
        priority: int | None = UNSET,
        assignee: str | None = UNSET,
        due_at: str | datetime | None = UNSET,
        not_before: str | datetime | None = UNSET,
        tags: Sequence[str] | None = UNSET,
        params: dict[str, Any] | None = UNSET,
        dedupe_key: str | None = UNSET,
        max_attempts: int | None = UNSET,
        needs_approval: bool = UNSET,
        depends_on: Sequence[str] | None = UNSET,
        add_tags: Sequence[str] = (),
        drop_tags: Sequence[str] = (),
        add_depends_on: Sequence[str] = (),
        drop_depends_on: Sequence[str] = (),
        if_status: str | None = None,
        if_version: int | None = None,
        comment: str | None = None,
        actor: Actor | None = None,
    ) -> Receipt:
        """Change fields of a task that is not finished; its status stays.

        ``tags`` and ``depends_on`` replace the whole list, ``add_…`` and ``drop_…`` change it. ``None`` clears a field.
        ``if_status`` and ``if_version`` make the call a compare-and-set.

        Raises:
            NotFound: no such task or dependency.
            Conflict: the task is finished or not in the state expected, a dedupe key is taken, a dependency would
                close a circle, or an assignee was given while somebody holds the task.
            NotPermitted: an agent tries to clear ``needs_approval``.
        """
        given = {
            "title": title,
            "body": body,
            "queue": queue,
            "priority": priority,
            "assignee": assignee,
            "due_at": due_at,
            "not_before": not_before,
            "tags": tags,
            "params": params,
            "dedupe_key": dedupe_key,
            "max_attempts": max_attempts,
            "needs_approval": needs_approval,
        }
        cleared = {"body": "", "queue": "default", "priority": 0, "tags": ()}
        fields = self._fields(
            **{
                field: cleared.get(field) if value is None else value
                for field, value in given.items()
                if value is not UNSET
            }
        )
        new_tags, lost_tags = inputs.tags(add_tags), inputs.tags(drop_tags)
        if if_status is not None:
            inputs.one_of(if_status, "if_status", STATUSES)
        if if_version is not None:
            inputs.integer(if_version, "if_version", 0, 2**62)
        text = None if comment is None else inputs.text(comment, "comment", inputs.TEXT, required=True)
        if depends_on is not UNSET:
            depends_on = inputs.references([] if depends_on is None else depends_on, "depends_on")
        add_depends_on = inputs.references(add_depends_on, "depends_on")
        drop_depends_on = inputs.references(drop_depends_on, "depends_on")
        edits_dependencies = depends_on is not UNSET or add_depends_on or drop_depends_on
        if not (fields or new_tags or lost_tags or edits_dependencies):
            raise InvalidInput("there is nothing to change", hint="Name at least one field.")
        by = self._caller(actor)
        with self._db.write() as tx:
            now = instants.to_text(self._clock())
            before = self._row(tx, task)
            by.name = self._known_as(tx, by.name)
            if "assignee" in fields:
                fields["assignee"] = self._assign(tx, fields["assignee"], now)
            if new_tags or lost_tags:
                fields["tags"] = _edited_tags(fields.get("tags") or before["tags"], new_tags, lost_tags)
            if fields.get("needs_approval") == 0 and before["needs_approval"]:
                self._require_person(tx, before, by, "update --no-needs-approval")
            current = self._others(tx, json.loads(before["blocked_by"])) if edits_dependencies else {}
            wanted = current if depends_on is UNSET else self._others(tx, depends_on)
            wanted = {**wanted, **self._others(tx, add_depends_on)}
            for id_ in self._others(tx, drop_depends_on):
                wanted.pop(id_, None)
            added = {id_: row for id_, row in wanted.items() if id_ not in current}
            dropped = {id_: row for id_, row in current.items() if id_ not in wanted}
            changed = {field: value for field, value in fields.items() if value != before[field]}
            self._write_fields(
                tx, before, changed, now, if_status, if_version,
                touched=bool(changed or added or dropped), reassigns="assignee" in fields,
            )  # fmt: skip
            tx.executemany(
                "DELETE FROM dependency WHERE task_seq = ? AND depends_on_seq = ?",
                [(before["seq"], row["seq"]) for row in dropped.values()],
            )
            sentences = _sentences(before, dropped.values(), "no longer waits for")
            if added:
                sentences = self._wait_for(tx, before, added) + sentences
            after = self._reread(tx, before["seq"])
            changed_now = changes(before, after)
            if changed_now["changes"]:
                self._record(tx, after, "updated", by, now, changed_now)
            if text is not None:
                self._comment(tx, after, text, by, now)
            return Receipt(Task.from_row(after, now), warnings=sentences)

    def _write_fields(
        self,
        tx: sqlite3.Connection,
        before: TaskRow,
        changed: dict[str, Any],
        now: str,
        if_status: str | None,
        if_version: int | None,
        *,
        touched: bool,
        reassigns: bool,
    ) -> None:
        """Write changed columns under every expectation of the caller, or refuse."""
        assignments = "".join(f"{column} = :{column}, " for column in changed)
        if "not_before" in changed:
            assignments += "delayed = coalesce(:not_before > :now, 0), "
        limit = changed.get("max_attempts")
        try:
            rows = tx.execute(
                f"""
                UPDATE task
                   SET {assignments} version = version + :touched, updated_at = iif(:touched, :now, updated_at)
                 WHERE seq = :seq AND status NOT IN ('done', 'failed', 'cancelled')
                   AND (:if_status IS NULL OR status = :if_status)
                   AND (:if_version IS NULL OR version = :if_version)
                   AND (NOT :reassigns OR status = 'queued')
                   AND (:limit IS NULL OR attempts + (status = 'queued') <= :limit)
                RETURNING seq
                """,
                {
                    **changed,
                    "seq": before["seq"],
                    "now": now,
                    "touched": touched,
                    "reassigns": reassigns,
                    "limit": limit,
                    "if_status": if_status,
                    "if_version": if_version,
                },
            ).fetchall()
        except sqlite3.IntegrityError as error:
            raise self._taken_or_bug(tx, error, changed.get("dedupe_key")) from error
        if rows:
            return
        if before["status"] in FINAL:
            wrong = if_status not in (None, before["status"])
            raise status_conflict(before, [if_status or ""] if wrong else [QUEUED, CLAIMED, RUNNING, REVIEW])
        if if_status not in (None, before["status"]):
            raise status_conflict(before, [if_status or ""])
        if if_version not in (None, before["version"]):
            raise version_conflict(before, if_version)
        if reassigns and before["status"] != QUEUED:
            refusal = status_conflict(before, [QUEUED])
            refusal.hint = "Use `atb reassign`, which takes the task from its holder."
            raise refusal
        raise InvalidInput(
            f"max_attempts: {before['attempts']} attempts are used already, {limit} would leave none",
            field="max_attempts",
        )

    def _taken_or_bug(self, tx: sqlite3.Connection, error: sqlite3.IntegrityError, key: str | None) -> Exception:
        """Return the refusal of a dedupe key that another unfinished task holds, or the error itself."""
        holder = self._key_holder(tx, key)
        return error if key is None or holder is None else _key_taken(key, holder)

    def reassign(self, task: str, to: str | None, *, note: str | None = None, actor: Actor | None = None) -> Receipt:
        """Put a task back into the queue for another agent, or for anybody (``None`` or ``none``).

        A live lease is revoked and its attempt given back. An attempt whose lease had run out counts as expired,
        and is given back only where none would be left.

        Raises:
            NotFound: no such task.
            Conflict: the task is neither queued nor held.
        """
        to = inputs.assignee(to, "to")
        note = inputs.note(note)
        by = self._caller(actor)
        with self._db.write() as tx:
            now = instants.to_text(self._clock())
            before = self._row(tx, task)
            by.name = self._known_as(tx, by.name)
            rows = task_rows(
                tx,
                f"""
                UPDATE task
                   SET assignee = :to, {BACK_TO_QUEUE},
                       attempts = attempts - coalesce(lease_expires_at > :now OR attempts = max_attempts, 0),
                       error = iif(lease_expires_at <= :now, :expired, error),
                       version = version + 1, updated_at = :now
                 WHERE seq = :seq AND status IN ('queued', 'claimed', 'running')
                RETURNING {COLUMNS}
                """,
                {
                    "seq": before["seq"],
                    "now": now,
                    "to": self._assign(tx, to, now),
                    "expired": lease_expired(before),
                },
            )
            if not rows:
                raise status_conflict(before, [QUEUED, *LEASED])
            data: dict[str, Any] = {**changes(before, rows[0]), "note": note}
            if before["status"] in LEASED:
                outcome = "revoked" if before["lease_expires_at"] > now else "expired"
                error = rows[0]["error"] if outcome == "expired" else None
                data["attempt"] = self._end_attempt(tx, rows[0], outcome, now, note=note, error=error)
            self._record(tx, rows[0], "reassigned", by, now, data)
            return Receipt(Task.from_row(rows[0], now))

    def retry(self, task: str, *, actor: Actor | None = None) -> Receipt:
        """Put a failed or cancelled task back into the queue with a new budget of attempts.

        Raises:
            NotFound: no such task.
            Conflict: the task is neither, or its dedupe key has been taken since.
        """
        by = self._caller(actor)
        with self._db.write() as tx:
            now = instants.to_text(self._clock())
            before = self._row(tx, task)
            by.name = self._known_as(tx, by.name)
            try:
                rows = task_rows(
                    tx,
                    f"""
                    UPDATE task
                       SET {BACK_TO_QUEUE}, attempts = 0, finished_at = NULL, archived_at = NULL,
                           version = version + 1, updated_at = :now
                     WHERE seq = :seq AND status IN ('failed', 'cancelled')
                    RETURNING {COLUMNS}
                    """,
                    {"seq": before["seq"], "now": now},
                )
            except sqlite3.IntegrityError as error:
                raise self._taken_or_bug(tx, error, before["dedupe_key"]) from error
            if not rows:
                raise status_conflict(before, [FAILED, CANCELLED])
            self._record(tx, rows[0], "retried", by, now, changes(before, rows[0]))
            return Receipt(Task.from_row(rows[0], now))

    def cancel(self, task: str, *, note: str | None = None, actor: Actor | None = None) -> Receipt:
        """End a task that is not finished, whoever holds it; what waits for it stays blocked.

        Raises:
            NotFound: no such task.
            Conflict: the task is finished.
        """
        note = inputs.note(note)
        by = self._caller(actor)
        with self._db.write() as tx:
            now = instants.to_text(self._clock())
            before = self._row(tx, task)
            by.name = self._known_as(tx, by.name)
            rows = task_rows(
                tx,
                f"""
                UPDATE task
                   SET status = 'cancelled', finished_at = :now, {LEASE_ENDS},
                       version = version + 1, updated_at = :now
                 WHERE seq = :seq AND status IN ('queued', 'claimed', 'running', 'review')
                RETURNING {COLUMNS}
                """,
                {"seq": before["seq"], "now": now},
            )
            if not rows:
                raise status_conflict(before, [QUEUED, *LEASED, REVIEW])
            data: dict[str, Any] = {**changes(before, rows[0]), "note": note}
            if before["status"] in LEASED:
                data["attempt"] = self._end_attempt(tx, rows[0], "cancelled", now, note=note)
            self._record(tx, rows[0], "cancelled", by, now, data)
            return Receipt(Task.from_row(rows[0], now))

    def comment(self, task: str, text: str, *, actor: Actor | None = None) -> Event:
        """Add a remark to a task, in whatever status; return the event.

        Raises:
            NotFound: no such task.
        """
        text = inputs.text(text, "text", inputs.TEXT, required=True)
        by = self._caller(actor)
        with self._db.write() as tx:
            now = instants.to_text(self._clock())
            row = self._row(tx, task)
            by.name = self._known_as(tx, by.name)
            seq = self._comment(tx, row, text, by, now)
        return {
            "seq": seq,
            "task_id": row["id"],
            "kind": "commented",
            "actor": by.name,
            "actor_kind": by.kind,
            "at": now,
            "data": {"text": text},
        }


def _sentences(row: TaskRow, others: Iterable[TaskRow], verb: str) -> list[str]:
    """Say who waits for whom, so that nobody gets the direction of a dependency wrong."""
    everyone = list(others)
    said = [f"{_shown(row)} {verb} {_shown(other)}" for other in everyone[:SENTENCES]]
    if len(everyone) > SENTENCES:
        said.append(f"{_shown(row)} {verb} {len(everyone) - SENTENCES:,} more tasks")
    return said


def _shown(row: TaskRow) -> str:
    title = row["title"]
    return f'"{title if len(title) <= 60 else title[:59] + "…"}" ({row["id"][-6:]})'


def _edited_tags(stored: str, added: list[str], dropped: list[str]) -> str:
    kept = [tag for tag in [*json.loads(stored), *added] if tag not in dropped]
    return inputs.json_text(inputs.tags(kept), "tags")


def _key_taken(key: str, holder: TaskRow) -> Conflict:
    return Conflict(
        f"task {holder['id']} already holds dedupe key {key!r}",
        reason="dedupe",
        task_id=holder["id"],
        actual=actual(holder),
    )
