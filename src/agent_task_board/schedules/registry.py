"""Schedules: a cron rule with the template of a task, and the tasks that it makes, each occurrence once, ever.

Time is a column here, too: ``next_at`` is the first occurrence that was not made yet, and a tick makes those that lie
behind. A tick that comes late makes them late, marked with the instant that was planned.
"""

from __future__ import annotations

import json
import re

from .. import identity, inputs, instants
from ..board.core import changes
from ..errors import BoardError, Conflict, InvalidInput, NotFound
from ..model import SYSTEM

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from typing import Any

    from ..identity import Actor
    from ..model import Schedule
    from ..service import Board

TEMPLATE: dict[str, Any] = {
    "title": None,
    "body": "",
    "queue": "default",
    "priority": 0,
    "assignee": None,
    "tags": (),
    "params": None,
    "max_attempts": None,
    "needs_approval": False,
}
"""The fields of a task that a template may have, and ``due_in``: a length of time after the occurrence."""
DUE_IN = "due_in"
CATCH_UP = 1_000
_DUE_HIGH = 366 * instants.DAY
_LATEST = 253_402_214_400_000  # the last day of the year 9999 begins: a sample that is as long as any
_WORD = re.compile(r"\{(date|datetime|occurrence)\}")
_DUE = "next_at <= min(:now, coalesce(paused_at, :now))"
"""SQL: an occurrence is due; one that was planned before a pause is made all the same."""


def add_schedule(
    board: Board,
    name: str,
    *,
    cron: str,
    task: dict[str, Any],
    zone: str | None = None,
    catch_up: int | None = None,
    actor: Actor | None = None,
) -> Schedule:
    """Do what ``Board.add_schedule`` promises."""
    from . import recurrence

    name = inputs.name(name, "name")
    zone = board.settings.timezone if zone is None else inputs.line(zone, "zone", inputs.NAME)
    cron = recurrence.check(cron, zone)
    if catch_up is not None:
        inputs.integer(catch_up, "catch_up", 1, CATCH_UP)
    template = _check(board, task, zone)
    by = board._caller(actor)
    values = {
        "id": board._new_id(), "key": name.casefold(), "name": name, "cron": cron, "zone": zone, "task": template,
        "catch_up": catch_up, "next_at": _after(cron, zone, board._clock()),
    }  # fmt: skip
    if values["next_at"] is None:
        raise InvalidInput(f"cron: no clock of {zone} ever shows {cron!r}", field="cron")
    with board._db.write() as tx:
        values["by"], values["now"] = board._known_as(tx, by.name), instants.to_text(board._clock())
        rows = tx.execute(
            """
            INSERT INTO schedule (id, key, name, cron, zone, task, catch_up, next_at,
                                  created_by, created_at, updated_at)
            VALUES (:id, :key, :name, :cron, :zone, :task, :catch_up, :next_at, :by, :now, :now)
                ON CONFLICT (key) DO NOTHING
            RETURNING *
            """,
            values,
        ).fetchall()
        if not rows:
            raise Conflict(
                f"there is a schedule {name!r} already",
                hint="Remove it first, or take another name.",
                reason="dedupe",
            )
        return _schedule(rows[0])


def list_schedules(board: Board) -> list[Schedule]:
    """Do what ``Board.schedules`` promises."""
    with board._db.read() as tx:
        return [_schedule(row) for row in tx.execute("SELECT * FROM schedule ORDER BY key")]


def show_schedule(board: Board, name: str) -> Schedule:
    """Do what ``Board.schedule`` promises."""
    with board._db.read() as tx:
        return _schedule(_row(tx, name))


def preview_schedule(board: Board, name: str, *, count: int = 10) -> list[dict[str, str]]:
    """Do what ``Board.preview_schedule`` promises."""
    from . import recurrence

    inputs.integer(count, "count", 1, recurrence.COUNT)
    with board._db.read() as tx:
        row = _row(tx, name)
        now = board._clock()
    start = now if row["next_at"] is None or row["paused_at"] else instants.from_text(row["next_at"]) - 1
    return recurrence.preview(row["cron"], row["zone"], start, count)


def pause_schedule(board: Board, name: str) -> Schedule:
    """Do what ``Board.pause_schedule`` promises."""
    with board._db.write() as tx:
        now = instants.to_text(board._clock())
        row = _row(tx, name)
        changed = tx.execute(
            """
            UPDATE schedule SET paused_at = :now, version = version + 1, updated_at = :now
             WHERE id = :id AND paused_at IS NULL
            RETURNING *
            """,
            {"id": row["id"], "now": now},
        ).fetchall()
        return _schedule(changed[0] if changed else row)


def resume_schedule(board: Board, name: str) -> Schedule:
    """Do what ``Board.resume_schedule`` promises."""
    while True:
        with board._db.read() as tx:
            row = _row(tx, name)
            instant = board._clock()
        if row["paused_at"] is None:
            return _schedule(row)
        now = instants.to_text(instant)
        if row["next_at"] is not None and row["next_at"] <= min(row["paused_at"], now):
            _make(board, row)  # what was planned before the pause comes first
            continue
        # Outside of the write lock: a rule that hardly ever fits may take a second.
        values = {"id": row["id"], "version": row["version"], "now": now}
        values["next_at"] = _after(row["cron"], row["zone"], instant, row)
        with board._db.write() as tx:
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


def remove_schedule(board: Board, name: str) -> Schedule:
    """Do what ``Board.remove_schedule`` promises."""
    with board._db.write() as tx:
        row = _row(tx, name)
        tx.execute("DELETE FROM schedule WHERE id = ?", (row["id"],))
        return _schedule(row)


def run_due(board: Board, warnings: list[str]) -> tuple[int, bool]:
    """Make the tasks of schedules that are due; return how many, and whether more are due.

    A schedule that cannot be computed (its zone is not on this machine, say) holds up no other; ``warnings`` name it.
    Any number of ticks may do this at once: a schedule moves on by a compare-and-set, and an occurrence is a unique
    key of ``task``.
    """
    with board._db.read() as tx:
        now = instants.to_text(board._clock())
        due = tx.execute(f"SELECT * FROM schedule WHERE {_DUE} ORDER BY next_at, key", {"now": now}).fetchall()
    created, unmade = 0, set()
    for row in due:
        try:
            created += _make(board, row)
        except InvalidInput as error:
            unmade.add(row["id"])
            warnings.append(f"schedule {row['name']!r} cannot go on: {error.message}")
    if not due:
        return 0, False
    with board._db.read() as tx:
        left = tx.execute(f"SELECT id FROM schedule WHERE {_DUE}", {"now": now}).fetchall()
    return created, any(row["id"] not in unmade for row in left)


def _make(board: Board, row: sqlite3.Row) -> int:
    """Make the next occurrences of a schedule, as many as one tick may; return how many tasks came of it."""
    planned, following = _planned(board, row)
    if not planned:
        return 0
    board._new_id()  # the first one imports a library: not while the write lock is held
    with board._db.write() as tx:
        now = instants.to_text(board._clock())
        moved = tx.execute(
            """
            UPDATE schedule
               SET next_at = :following, last_at = :last, made = made + :made, updated_at = :now
             WHERE id = :id AND next_at = :next_at AND version = :version
            RETURNING id
            """,
            {
                "id": row["id"], "next_at": row["next_at"], "version": row["version"], "following": following,
                "last": planned[-1], "made": len(planned), "now": now,
            },
        ).fetchall()  # fmt: skip
        if not moved:  # another tick made them, or somebody changed the schedule
            return 0
        return sum(_make_one(board, tx, row, at, now) for at in planned)


def _planned(board: Board, row: sqlite3.Row) -> tuple[list[str], str | None]:
    """Return the occurrences that this tick makes, and the one that follows."""
    limit = row["catch_up"] or board.settings.catch_up
    end = min(instants.to_text(board._clock()), row["paused_at"] or "9")
    planned: list[str] = []
    for at in _from(row):
        if at > end or len(planned) == limit:
            return planned, at
        planned.append(at)
    return planned, None


def _from(row: sqlite3.Row) -> Iterator[str]:
    from . import recurrence

    yield row["next_at"]
    for instant in recurrence.occurrences(row["cron"], row["zone"], instants.from_text(row["next_at"])):
        yield instants.to_text(instant)


def _make_one(board: Board, tx: sqlite3.Connection, row: sqlite3.Row, at: str, now: str) -> int:
    """Make the task of one occurrence, unless it is there; return how many tasks were made."""
    if tx.execute("SELECT 1 FROM task WHERE schedule_id = ? AND occurrence_at = ?", (row["id"], at)).fetchone():
        return 0  # it came in with an import
    template = _template(row["task"])
    if not isinstance(template, dict):
        raise InvalidInput("task: is not a JSON object", field="task")
    fields = _fill(board, template, at, row["zone"])
    fields |= {"schedule_id": row["id"], "occurrence_at": at, "dedupe_key": f"schedule {row['id']} {at}"}
    if board._key_holder(tx, fields["dedupe_key"]) is not None:
        fields["dedupe_key"] = None
    system = identity.Actor(SYSTEM, SYSTEM)
    task, _ = board._insert(tx, fields, system, now)
    told = {"name": row["name"], "id": row["id"], "planned_at": at}
    board._record(tx, task, "created", system, now, {**changes(None, task), "schedule": told})
    return 1


# Templates


def _check(board: Board, task: object, zone: str) -> str:
    """Return a template as it is stored.

    Raises:
        InvalidInput: a field is unknown or malformed, also where its words stand for an occurrence.
    """
    if not isinstance(task, dict):
        raise InvalidInput("task: must be a JSON object with the fields of a task", field="task")
    for field in task:
        if field not in TEMPLATE and field not in (DUE_IN, "dedupe_key"):
            hint = "A deadline goes as `due_in`, a length of time." if field == "due_at" else None
            what = "does not go into a template" if field in ("due_at", "not_before", "blocked_by") else "no such field"
            raise InvalidInput(f"task: {str(field)[:60]}: {what}", hint=hint, field="task")
    template = {key: value for key, value in task.items() if value is not None and key != "dedupe_key"}
    try:
        _fill(board, template, instants.to_text(_LATEST), zone)
    except BoardError as error:
        raise InvalidInput(f"task: {error.message}", hint=error.hint, field="task") from None
    return inputs.json_text(template, "task")


def _fill(board: Board, template: dict[str, Any], at: str, zone: str) -> dict[str, Any]:
    """Return the columns of the task that a template makes of an occurrence."""
    from datetime import UTC, datetime

    instant = instants.from_text(at)
    local = datetime.fromtimestamp(instant / 1000, UTC).astimezone(instants.load_zone(zone))
    words = {"date": local.date().isoformat(), "datetime": local.isoformat(timespec="seconds"), "occurrence": at}
    given = {field: template.get(field, default) for field, default in TEMPLATE.items()}
    for field in ("title", "params"):
        given[field] = _with_words(given[field], words)
    due = template.get(DUE_IN)
    if due is not None:
        length = instants.parse_length(due, field=DUE_IN, high=_DUE_HIGH)
        due = instants.to_text(min(instant + length, _LATEST))
    return board._fields(**given, due_at=due, not_before=None, dedupe_key=None)


def _with_words(value: Any, words: dict[str, str]) -> Any:
    """Return a value with the words of an occurrence in its texts; keys of objects stay as they are."""
    if isinstance(value, str):
        return _WORD.sub(lambda found: words[found[1]], value)
    if isinstance(value, list):
        return [_with_words(item, words) for item in value]
    if isinstance(value, dict):
        return {key: _with_words(item, words) for key, item in value.items()}
    return value


# Rows


def _row(tx: sqlite3.Connection, name: str) -> sqlite3.Row:
    text = inputs.name(name, "name")
    row: sqlite3.Row | None = tx.execute("SELECT * FROM schedule WHERE key = ?", (text.casefold(),)).fetchone()
    if row is None:
        raise NotFound(f"there is no schedule {text!r}", hint="See `atb schedule list`.", field="name")
    return row


def _after(cron: str, zone: str, instant: int, row: sqlite3.Row | None = None) -> str | None:
    """Return the first occurrence after an instant, and after the latest one that was made: clocks are set back."""
    from . import recurrence

    if row is not None and row["last_at"] is not None:
        instant = max(instant, instants.from_text(row["last_at"]))
    following = next(recurrence.occurrences(cron, zone, instant), None)
    return None if following is None else instants.to_text(following)


def _template(text: str) -> Any:
    """Return a stored template; one that is no JSON as its text, so that it can be seen and removed."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _schedule(row: sqlite3.Row) -> Schedule:
    return {
        "id": row["id"],
        "name": row["name"],
        "cron": row["cron"],
        "zone": row["zone"],
        "task": _template(row["task"]),
        "catch_up": row["catch_up"],
        "paused": row["paused_at"] is not None,
        "paused_at": row["paused_at"],
        "next_at": row["next_at"],
        "last_at": row["last_at"],
        "made": row["made"],
        "created_by": row["created_by"],
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
    }
