"""The verbs that change tasks: update, reassign, retry, cancel, comment."""

from __future__ import annotations

import json

from .. import inputs
from ..errors import InvalidInput, NotPermitted
from ..model import CANCELLED, CLAIMED, FAILED, FINAL, LEASED, QUEUED, REVIEW, RUNNING, STATUSES, Receipt
from ..storage.db import IntegrityError
from . import dependencies, fields, refusals, stuck
from .adding import key_holder
from .expiry import END_LEASE, TO_QUEUE
from .history import changes
from .review import IS_PERSON, require_person
from .rows import to_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..identity import Actor
    from ..model import Event, TaskRow
    from .core import Core, Transaction


def update(
    core: Core,
    task: str,
    given: dict[str, Any],
    *,
    depends_on: Sequence[str] | None,
    add_tags: Sequence[str],
    drop_tags: Sequence[str],
    add_depends_on: Sequence[str],
    drop_depends_on: Sequence[str],
    if_status: str | None,
    if_version: int | None,
    comment: str | None,
    own_only: bool,
    actor: Actor | None,
) -> Receipt:
    """Do what ``Board.update`` promises; ``given`` has the fields to change, and ``None`` resets one to its default.

    If ``depends_on`` is ``None``, the dependencies do not change; an empty list removes them.
    """
    if "assignee" in given:
        given = {**given, "assignee": core.named(given["assignee"], actor)}
    columns = fields.stored(fields.reset(given), fields.Context(core.settings, core.clock()))
    new_tags, lost_tags = inputs.new_tags(add_tags), inputs.tags(drop_tags)
    if if_status is not None:
        inputs.one_of(if_status, "if_status", STATUSES)
    if if_version is not None:
        inputs.version(if_version, "if_version")
    text = None if comment is None else inputs.text(comment, "comment", inputs.TEXT, required=True)
    if depends_on is not None:
        depends_on = inputs.references(depends_on, fields.DEPENDS_ON)
    add_depends_on = inputs.references(add_depends_on, fields.DEPENDS_ON)
    drop_depends_on = inputs.references(drop_depends_on, fields.DEPENDS_ON)
    edits_dependencies = depends_on is not None or add_depends_on or drop_depends_on
    if not (columns or new_tags or lost_tags or edits_dependencies):
        raise InvalidInput("nothing to change", hint="Name at least one field.")
    with core.write(core.caller(actor)) as tx:
        before = tx.find(task)
        if "assignee" in columns:
            columns["assignee"] = tx.assignee(columns["assignee"])
        if new_tags or lost_tags:
            columns["tags"] = _edited_tags(columns.get("tags") or before["tags"], new_tags, lost_tags)
        if columns.get("needs_approval") == 0 and before["needs_approval"]:
            require_person(tx, before)
        added: dict[str, TaskRow] = {}
        dropped: dict[str, TaskRow] = {}
        if edits_dependencies:
            added, dropped = _edited_dependencies(tx, before, depends_on, add_depends_on, drop_depends_on)
        changed = {name: value for name, value in columns.items() if value != before[name]}
        _write_fields(
            tx, before, changed, if_status, if_version,
            touched=bool(changed or added or dropped), reassigns="assignee" in columns, own_only=own_only,
        )  # fmt: skip
        sentences = dependencies.drop(tx, before, dropped)
        if added:
            sentences = dependencies.add(tx, before, added) + sentences
        if added or dropped:
            stuck.settle(tx, before["seq"])
        after = tx.task(before["seq"])
        found = changes(before, after)
        if found["changes"]:
            tx.record(after, "updated", found)
        if text is not None:
            tx.comment(after, text)
        return Receipt(to_task(after, tx.now), warnings=[*sentences, *tx.warnings])


def _edited_tags(stored: str, added: list[str], dropped: list[str]) -> str:
    kept = [tag for tag in [*json.loads(stored), *added] if tag not in dropped]
    return inputs.json_text(inputs.tags(kept), "tags")


def _edited_dependencies(
    tx: Transaction,
    before: TaskRow,
    replaced_by: Sequence[str] | None,
    added: Sequence[str],
    dropped: Sequence[str],
) -> tuple[dict[str, TaskRow], dict[str, TaskRow]]:
    """Return the dependencies to add and those to remove, by id."""
    current = dependencies.find_all(tx, json.loads(before["blocked_by"]))
    wanted = current if replaced_by is None else dependencies.find_all(tx, replaced_by)
    wanted = {**wanted, **dependencies.find_all(tx, added)}
    for id_ in dependencies.find_all(tx, dropped):
        wanted.pop(id_, None)
    return (
        {id_: row for id_, row in wanted.items() if id_ not in current},
        {id_: row for id_, row in current.items() if id_ not in wanted},
    )


def _write_fields(
    tx: Transaction,
    before: TaskRow,
    changed: dict[str, Any],
    if_status: str | None,
    if_version: int | None,
    *,
    touched: bool,
    reassigns: bool,
    own_only: bool,
) -> None:
    """Write changed columns if every condition of the caller holds; else refuse."""
    # The creator of a task never changes, so its name can be compared here, by a key that SQLite cannot compute.
    is_creator = inputs.name_key(before["created_by"]) == inputs.name_key(tx.by.name)
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
               AND (NOT :own_only OR :is_creator OR (claimed_by = :actor AND lease_expires_at > :now))
            RETURNING seq
            """,
            {
                **changed,
                "seq": before["seq"],
                "now": tx.now,
                "touched": touched,
                "reassigns": reassigns,
                "limit": limit,
                "own_only": own_only,
                "is_creator": is_creator,
                "actor": tx.by.name,
                "if_status": if_status,
                "if_version": if_version,
            },
        ).fetchall()
    except IntegrityError as error:
        raise _key_conflict_or_bug(tx, error, changed.get("dedupe_key")) from error
    if rows:
        return
    if before["status"] in FINAL:
        other = if_status not in (None, before["status"])
        raise refusals.status_conflict(before, [if_status or ""] if other else [QUEUED, CLAIMED, RUNNING, REVIEW])
    if if_status not in (None, before["status"]):
        raise refusals.status_conflict(before, [if_status or ""])
    if if_version not in (None, before["version"]):
        raise refusals.version_conflict(before, if_version)
    if reassigns and before["status"] != QUEUED:
        hint = "Use `atb reassign`, which revokes the holder's lease."
        raise refusals.status_conflict(before, [QUEUED], hint=hint)
    is_holder = before["claimed_by"] == tx.by.name and (before["lease_expires_at"] or "") > tx.now
    if own_only and not is_creator and not is_holder:
        holds = f"{refusals.shown(before['claimed_by'])} holds it" if before["status"] in LEASED else "nobody holds it"
        creator, caller = refusals.shown(before["created_by"]), refusals.shown(tx.by.name)
        raise NotPermitted(
            f"only the holder or the creator may change task {before['id']}: {creator} created it, "
            f"{holds}, and you are {caller}",
            hint="Add a comment that says what should change, or claim the task first.",
        )
    raise InvalidInput(f"max_attempts: too small: {limit} ({before['attempts']} already used)", field="max_attempts")


def _key_conflict_or_bug(tx: Transaction, error: IntegrityError, key: str | None) -> Exception:
    """Return the refusal if another unfinished task has the dedupe key; else the error itself."""
    holder = key_holder(tx, key)
    return error if key is None or holder is None else refusals.key_conflict(key, holder)


def reassign(core: Core, task: str, to: str | None, *, note: str | None, actor: Actor | None) -> Receipt:
    """Do what ``Board.reassign`` promises."""
    to = inputs.assignee(core.named(to, actor), "to")
    note = inputs.note(note)
    with core.write(core.caller(actor)) as tx:
        before = tx.find(task)
        after = tx.change(
            before,
            f"""
            assignee = :to, {TO_QUEUE},
            attempts = attempts - coalesce(lease_expires_at > :now OR attempts = max_attempts, 0),
            error = iif(lease_expires_at <= :now, :expired, error)""",
            where="status IN ('queued', 'claimed', 'running')",
            values={"to": tx.assignee(to), "expired": refusals.lease_expired(before)},
        )
        if after is None:
            raise refusals.status_conflict(before, [QUEUED, *LEASED])
        attempt = None
        if before["status"] in LEASED:
            outcome = "revoked" if before["lease_expires_at"] > tx.now else "expired"
            error = after["error"] if outcome == "expired" else None
            attempt = tx.end_attempt(after, outcome, note=note, error=error)
        tx.record(after, "reassigned", {**changes(before, after), "note": note, "attempt": attempt})
        return Receipt(to_task(after, tx.now), warnings=tx.warnings)


def retry(core: Core, task: str, *, actor: Actor | None) -> Receipt:
    """Do what ``Board.retry`` promises."""
    with core.write(core.caller(actor)) as tx:
        before = tx.find(task)
        try:
            after = tx.change(
                before,
                f"{TO_QUEUE}, attempts = 0, finished_at = NULL, archived_at = NULL",
                where="status IN ('failed', 'cancelled')",
            )
        except IntegrityError as error:
            raise _key_conflict_or_bug(tx, error, before["dedupe_key"]) from error
        if after is None:
            raise refusals.status_conflict(before, [FAILED, CANCELLED])
        tx.record(after, "retried", changes(before, after))
        return Receipt(to_task(after, tx.now), warnings=tx.warnings)


def cancel(core: Core, task: str, *, note: str | None, actor: Actor | None) -> Receipt:
    """Do what ``Board.cancel`` promises."""
    note = inputs.note(note)
    with core.write(core.caller(actor)) as tx:
        before = tx.find(task)
        after = tx.change(
            before,
            f"status = 'cancelled', finished_at = :now, stuck = 0, {END_LEASE}",
            where=f"""
            (status IN ('queued', 'claimed', 'running')
             OR (status = 'review' AND :actor_kind <> 'agent' AND {IS_PERSON}))""",
            values={"actor": tx.by.name, "actor_kind": tx.by.kind},
        )
        if after is None:
            if before["status"] == REVIEW:
                require_person(tx, before)
            raise refusals.status_conflict(before, [QUEUED, *LEASED, REVIEW])
        attempt = tx.end_attempt(after, "cancelled", note=note) if before["status"] in LEASED else None
        tx.record(after, "cancelled", {**changes(before, after), "note": note, "attempt": attempt})
        return Receipt(to_task(after, tx.now), warnings=tx.warnings)


def comment(core: Core, task: str, text: str, *, actor: Actor | None) -> Event:
    """Do what ``Board.comment`` promises."""
    text = inputs.text(text, "text", inputs.TEXT, required=True)
    with core.write(core.caller(actor)) as tx:
        row = tx.find(task)
        seq = tx.comment(row, text)
    return {
        "seq": seq,
        "task_id": row["id"],
        "kind": "commented",
        "actor": tx.by.name,
        "actor_kind": tx.by.kind,
        "at": tx.now,
        "data": {"text": text},
    }
