"""Schedules: cron rules with task templates."""

from __future__ import annotations

from .. import inputs, instants
from ..errors import Conflict, InvalidInput, NotFound
from . import recurrence, templates
from .occurrences import create_next

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

    from ..board.core import Core, Transaction
    from ..identity import Actor
    from ..model import Schedule
    from ..storage.db import Row


def add_schedule(
    core: Core,
    name: str,
    *,
    cron: str,
    task: dict[str, Any],
    zone: str | None = None,
    catch_up: int | None = None,
    actor: Actor | None = None,
) -> Schedule:
    """Do what ``Board.add_schedule`` promises."""
    name = inputs.visible(inputs.name(name, "name"), "name")
    zone = core.settings.timezone if zone is None else inputs.line(zone, "zone", inputs.NAME)
    cron = recurrence.check(cron, zone)
    values = {
        "id": core.new_id(),
        "key": inputs.name_key(name),
        "name": name,
        "cron": cron,
        "zone": zone,
        "task": templates.check(core, task, zone),
        "catch_up": templates.catch_up_limit(catch_up),
        "next_at": templates.next_after(cron, zone, core.clock()),
    }
    if values["next_at"] is None:
        raise InvalidInput(f"cron: never occurs in {zone}: {cron!r}", field="cron")
    with core.write(core.caller(actor)) as tx:
        rows = tx.execute(
            """
            INSERT INTO schedule (id, key, name, cron, zone, task, catch_up, next_at,
                                  created_by, created_at, updated_at)
            VALUES (:id, :key, :name, :cron, :zone, :task, :catch_up, :next_at, :by, :now, :now)
                ON CONFLICT (key) DO NOTHING
            RETURNING *
            """,
            {**values, "by": tx.by.name, "now": tx.now},
        ).fetchall()
        if not rows:
            raise Conflict(
                f"name: schedule already exists: {name!r}",
                hint="Remove it first, or choose another name.",
                reason="dedupe",
            )
        return _schedule(rows[0])


def list_schedules(core: Core) -> list[Schedule]:
    """Do what ``Board.schedules`` promises."""
    with core.read() as tx:
        return [_schedule(row) for row in tx.execute("SELECT * FROM schedule ORDER BY key")]


def show_schedule(core: Core, name: str) -> Schedule:
    """Do what ``Board.schedule`` promises."""
    with core.read() as tx:
        return _schedule(_row(tx, name))


def preview_schedule(
    core: Core, name: str, *, count: int = 10, after: str | datetime | None = None
) -> list[dict[str, str]]:
    """Do what ``Board.preview_schedule`` promises."""
    inputs.integer(count, "count", 1, recurrence.COUNT)
    with core.read() as tx:
        row = _row(tx, name)
    if after is not None:
        text = instants.parse_instant(after, core.settings.timezone, field="after", now=tx.instant)
        return recurrence.preview(row["cron"], row["zone"], instants.from_text(text), count)
    start = tx.instant if row["next_at"] is None or row["paused_at"] else instants.from_text(row["next_at"]) - 1
    return recurrence.preview(row["cron"], row["zone"], start, count)


def pause_schedule(core: Core, name: str) -> Schedule:
    """Do what ``Board.pause_schedule`` promises."""
    with core.write() as tx:
        row = _row(tx, name)
        changed = tx.execute(
            """
            UPDATE schedule SET paused_at = :now, version = version + 1, updated_at = :now
             WHERE id = :id AND paused_at IS NULL
            RETURNING *
            """,
            {"id": row["id"], "now": tx.now},
        ).fetchall()
        return _schedule(changed[0] if changed else row)


def resume_schedule(core: Core, name: str) -> Schedule:
    """Do what ``Board.resume_schedule`` promises."""
    while True:
        with core.read() as tx:
            row = _row(tx, name)
        if row["paused_at"] is None:
            return _schedule(row)
        if row["next_at"] is not None and row["next_at"] <= min(row["paused_at"], tx.now):
            create_next(core, row)  # first, what was planned before the pause
            continue
        # Outside the write lock: this can take a second for a rule that occurs very rarely.
        values = {"id": row["id"], "version": row["version"], "now": tx.now}
        values["next_at"] = templates.next_after(row["cron"], row["zone"], tx.instant, row["last_at"])
        with core.write() as tx:
            changed = tx.execute(
                """
                UPDATE schedule
                   SET paused_at = NULL, next_at = :next_at, version = version + 1, updated_at = :now
                 WHERE id = :id AND version = :version
                RETURNING *
                """,
                values,
            ).fetchall()
        if changed:
            return _schedule(changed[0])


def remove_schedule(core: Core, name: str) -> Schedule:
    """Do what ``Board.remove_schedule`` promises."""
    with core.write() as tx:
        row = _row(tx, name)
        tx.execute("DELETE FROM schedule WHERE id = ?", (row["id"],))
        return _schedule(row)


def _row(tx: Transaction, name: str) -> Row:
    text = inputs.name(name, "name")
    row: Row | None = tx.execute("SELECT * FROM schedule WHERE key = ?", (inputs.name_key(text),)).fetchone()
    if row is None:
        raise NotFound(f"no such schedule: {text!r}", hint="See `atb schedule list`.", field="name")
    return row


def _schedule(row: Row) -> Schedule:
    return {
        "id": row["id"],
        "name": row["name"],
        "cron": row["cron"],
        "zone": row["zone"],
        "task": templates.read(row["task"]),
        "catch_up": row["catch_up"],
        "paused": row["paused_at"] is not None,
        "paused_at": row["paused_at"],
        # Planned before the pause, it is still created; the others are skipped until the schedule is resumed.
        "next_at": None if row["paused_at"] and (row["next_at"] or "") > row["paused_at"] else row["next_at"],
        "last_at": row["last_at"],
        "made": row["made"],
        "created_by": row["created_by"],
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
    }
