"""Bring tasks in from elsewhere: all of a file, or nothing of it."""

from __future__ import annotations

from . import inputs, instants
from .core import changes, in_brief, is_ulid
from .errors import BoardError, InvalidInput
from .model import FINAL, JSON_KEYS, LEASED, QUEUED, STATUSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any

    from .identity import Actor
    from .service import Board

_DERIVED = frozenset(("ready", "blocked", "delayed", "lease_expired", "overdue", "lease_expires_at"))
"""Fields of an exported task that the board works out anew."""

_EDITABLE: dict[str, Any] = {
    "body": "",
    "queue": "default",
    "priority": 0,
    "assignee": None,
    "due_at": None,
    "not_before": None,
    "tags": (),
    "params": None,
    "dedupe_key": None,
    "max_attempts": None,
    "needs_approval": False,
}
_INSTANTS = ("occurrence_at", "created_at", "updated_at", "claimed_at", "finished_at")
_COLUMNS = (
    "id",
    "title",
    *_EDITABLE,
    "status",
    "result",
    "artifacts",
    "error",
    "progress",
    "attempts",
    "fence",
    *("version", "claimed_by", "created_by", "schedule_id", *_INSTANTS),
)


class Imported:
    """How an import went: tasks brought in, tasks passed over, and sentences about what is not as in the file."""

    __slots__ = ("imported", "skipped", "warnings")

    def __init__(self) -> None:
        self.imported = 0
        self.skipped = 0
        self.warnings: list[str] = []

    def to_dict(self) -> dict[str, Any]:
        """Return ``{"imported", "skipped"}``."""
        return {"imported": self.imported, "skipped": self.skipped}


class _Incoming:
    """One task of the file: its place there, its columns, and the ids that it waits for."""

    __slots__ = ("blocked_by", "columns", "place", "seq")

    def __init__(self, place: str, columns: dict[str, Any], blocked_by: list[str]) -> None:
        self.place = place
        self.columns = columns
        self.blocked_by = blocked_by
        self.seq = 0


def import_tasks(board: Board, data: Any, actor: Actor | None) -> Imported:
    """Do what ``Board.import_tasks`` promises."""
    by = board._caller(actor)
    outcome = Imported()
    incoming = [_read(board, task, f"tasks[{place}]", by) for place, task in enumerate(_tasks_in(data))]
    with board._db.write() as tx:
        now = instants.to_text(board._clock())
        by.name = board._known_as(tx, by.name)
        known: dict[str, int] = {}
        instead: dict[str, str] = {}
        brought: list[_Incoming] = []
        for task in incoming:
            holder = _in_the_way(board, tx, task.columns)
            if holder is None:
                task.seq = _insert(board, tx, task, now)
                known[task.columns["id"]] = task.seq
                brought.append(task)
            else:
                outcome.skipped += 1
                if task.columns["id"] != holder:
                    instead[task.columns["id"]] = holder
        for task in brought:
            _link(tx, task, known, instead, outcome)
        _refuse_circles(tx, brought)
        for task in brought:
            row = board._reread(tx, task.seq)
            board._record(tx, row, "imported", by, now, changes(None, row))
    outcome.imported = len(brought)
    return outcome


def _tasks_in(data: Any) -> list[Any]:
    """Return the array of tasks in a document of any of the shapes that are understood."""
    if isinstance(data, dict) and "ok" in data and "data" in data:
        data = data["data"]
    if isinstance(data, dict) and "tasks" in data:
        data = data["tasks"]
    if not isinstance(data, list):
        raise InvalidInput(
            "the file holds neither an array of tasks nor an object with `tasks`",
            hint="Import what `atb list --full` prints, or an array of objects with the fields of `atb add`.",
        )
    return data


def _read(board: Board, task: Any, place: str, by: Actor) -> _Incoming:
    """Check one task of the file and return it in the form that is stored.

    Raises:
        InvalidInput: a field is unknown, missing or malformed; the message starts with the task's place.
    """
    try:
        return _check(board, task, place, by)
    except BoardError as error:
        field = error.details.get("field")
        raise InvalidInput(f"{place}: {error.message}", hint=error.hint, place=place, field=field) from None


def _check(board: Board, task: Any, place: str, by: Actor) -> _Incoming:
    if not isinstance(task, dict):
        raise InvalidInput("a task must be a JSON object")
    unknown = next((key for key in task if key not in JSON_KEYS), None)
    if unknown is not None:
        raise InvalidInput(f"{unknown[:60]}: there is no such field", field=unknown[:60])
    given = {key: value for key, value in task.items() if key not in _DERIVED}
    zone = board.settings.timezone
    status = inputs.one_of(given.get("status", QUEUED), "status", STATUSES)
    editable = {key: given.get(key, default) for key, default in _EDITABLE.items()}
    columns: dict[str, Any] = {
        **board._fields(title=given.get("title"), **editable),
        "id": _read_id(given.get("id"), "id") or board._new_id(),
        "status": status,
        "result": None if given.get("result") is None else inputs.json_text(given["result"], "result"),
        "artifacts": inputs.json_text(inputs.artifacts(given.get("artifacts", ())), "artifacts"),
        "error": None if given.get("error") is None else inputs.text(given["error"], "error", inputs.TEXT),
        "attempts": inputs.integer(given.get("attempts", 0), "attempts", 0, inputs.MAX_ATTEMPTS),
        "fence": inputs.integer(given.get("fence", 0), "fence", 0, 2**53),
        "version": inputs.integer(given.get("version", 1), "version", 1, 2**53),
        "progress": None,
        "claimed_by": inputs.assignee(given.get("claimed_by"), "claimed_by"),
        "created_by": inputs.name(given.get("created_by", by.name), "created_by"),
        "schedule_id": inputs.key(given.get("schedule_id"), "schedule_id"),
    }
    if given.get("progress") is not None:
        columns["progress"] = inputs.integer(given["progress"], "progress", 0, 100)
    for field in _INSTANTS:
        value = given.get(field)
        columns[field] = instants.parse_instant(value, zone, field=field) if isinstance(value, str) else value
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"{field}: must be text", field=field)
    _settle(columns)
    ids = given.get("blocked_by", [])
    if not isinstance(ids, list):
        raise InvalidInput("blocked_by: must be a list of ids", field="blocked_by")
    blocked_by = [_read_id(id_, "blocked_by") or "" for id_ in dict.fromkeys(map(str, ids))]
    if len(blocked_by) > inputs.DEPENDENCIES:
        raise InvalidInput(f"blocked_by: more than {inputs.DEPENDENCIES:,} dependencies", field="blocked_by")
    return _Incoming(place, columns, blocked_by)


def _settle(columns: dict[str, Any]) -> None:
    """Make the fields of an imported task agree with each other, as the lifecycle wants them."""
    if columns["status"] in LEASED:
        columns["status"] = QUEUED  # its lease lives on the board that it comes from
    if columns["status"] not in FINAL:
        columns["finished_at"] = None
    if columns["status"] == QUEUED:
        columns["claimed_by"] = columns["claimed_at"] = columns["progress"] = None
        columns["attempts"] = min(columns["attempts"], columns["max_attempts"] - 1)
    elif columns["claimed_by"] is None or columns["claimed_at"] is None:
        columns["claimed_by"] = columns["claimed_at"] = None
    if columns["attempts"] > columns["max_attempts"]:
        raise InvalidInput("attempts: more than max_attempts", field="attempts")
    if (columns["schedule_id"] is None) != (columns["occurrence_at"] is None):
        raise InvalidInput("schedule_id and occurrence_at go together", field="schedule_id")


def _read_id(value: object, field: str) -> str | None:
    if value is None:
        return None
    text = inputs.line(value, field, inputs.NAME).upper()
    if not is_ulid(text):
        raise InvalidInput(f"{field}: {text[:60]!r} is not a whole task id", field=field)
    return text


def _in_the_way(board: Board, tx: sqlite3.Connection, columns: dict[str, Any]) -> str | None:
    """Return the id of the task because of which this one is passed over: itself, or the holder of its dedupe key."""
    if tx.execute("SELECT 1 FROM task WHERE id = ?", (columns["id"],)).fetchone():
        return str(columns["id"])
    if columns["dedupe_key"] is None or columns["status"] in FINAL:
        return None
    holder = board._key_holder(tx, columns["dedupe_key"])
    return None if holder is None else str(holder["id"])


def _insert(board: Board, tx: sqlite3.Connection, task: _Incoming, now: str) -> int:
    values = {**task.columns, "now": now}
    values["created_at"] = values["created_at"] or now
    values["updated_at"] = values["updated_at"] or now
    if values["status"] in FINAL:
        values["finished_at"] = values["finished_at"] or values["updated_at"]
    for column in ("assignee", "claimed_by"):
        values[column] = board._assign(tx, values[column], now)
    row = tx.execute(
        f"""
        INSERT INTO task ({", ".join(_COLUMNS)}, delayed)
        VALUES ({", ".join(f":{column}" for column in _COLUMNS)}, coalesce(:not_before > :now, 0))
        RETURNING seq
        """,
        values,
    ).fetchall()[0]
    return row[0]  # type: ignore[no-any-return]


def _link(
    tx: sqlite3.Connection,
    task: _Incoming,
    known: dict[str, int],
    instead: dict[str, str],
    outcome: Imported,
) -> None:
    """Write what a task waits for; one passed over by its dedupe key is replaced by the key's holder."""
    for position, id_ in enumerate(task.blocked_by, 1):
        holder = instead.get(id_)
        if holder is not None:
            outcome.warnings.append(
                f"{task.columns['id']} waits for {holder} instead of {id_}, which holds the same dedupe key"
            )
            id_ = holder  # noqa: PLW2901
        seq = known.get(id_)
        if seq is None:
            row = tx.execute("SELECT seq FROM task WHERE id = ?", (id_,)).fetchone()
            if row is None:
                raise InvalidInput(
                    f"{task.place}: blocked_by: there is no task {id_}, neither in the file nor on the board",
                    place=task.place,
                    field="blocked_by",
                )
            seq = row[0]
        if seq == task.seq and holder is not None:
            outcome.warnings.pop()  # it holds the key itself: there is nothing to wait for
            continue
        if seq == task.seq:
            raise InvalidInput(f"{task.place}: blocked_by: waits for itself", place=task.place, field="blocked_by")
        tx.execute(
            "INSERT OR IGNORE INTO dependency (task_seq, depends_on_seq, position) VALUES (?, ?, ?)",
            (task.seq, seq, position),
        )


def _refuse_circles(tx: sqlite3.Connection, brought: list[_Incoming]) -> None:
    """Refuse tasks that wait for each other; a circle can only lie among the new ones."""
    from graphlib import CycleError, TopologicalSorter

    ids = {task.seq: task.columns["id"] for task in brought}
    waits = {
        task.seq: [
            row[0] for row in tx.execute("SELECT depends_on_seq FROM dependency WHERE task_seq = ?", (task.seq,))
        ]
        for task in brought
        if task.blocked_by
    }
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        circle = [ids[seq] for seq in reversed(error.args[1])]
        raise InvalidInput(
            f"blocked_by: these tasks would wait for each other: {' waits for '.join(in_brief(circle))}",
            field="blocked_by",
        ) from None
