"""Read rows of ``task``: their columns, and how a row becomes a ``Task``."""

from __future__ import annotations

import json

from ..model import DERIVED, JSON_COLUMNS, JSON_KEYS, LONG_KEYS, Task
from .predicates import derive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..model import Event, TaskRow
    from ..storage.db import Connection, Row

BLOCKED_BY = """
    (SELECT json_group_array(id)
       FROM (SELECT other.id
               FROM dependency JOIN task AS other ON other.seq = dependency.depends_on_seq
              WHERE dependency.task_seq = task.seq
              ORDER BY dependency.position))"""
"""SQL: the ids of all dependencies of a row of ``task``, as a JSON array in the order added."""

LEAN_NAMES = tuple(
    """
    seq id title queue status priority assignee due_at not_before tags dedupe_key blocked_by artifacts progress
    needs_approval attempts max_attempts fence version claimed_by lease_expires_at created_by schedule_id occurrence_at
    created_at updated_at claimed_at finished_at max_runtime archived_at open_dependencies stuck
    """.split()
)
"""The columns that a list reads."""

NAMES = (*LEAN_NAMES, *LONG_KEYS, "lease_length")
"""The columns of a full task."""

_LISTED = dict.fromkeys(LEAN_NAMES) | {"blocked_by": f"{BLOCKED_BY} AS blocked_by"}
LEAN_COLUMNS = ", ".join(sql or name for name, sql in _LISTED.items())
"""SQL: the columns of ``LEAN_NAMES``."""

COLUMNS = ", ".join([LEAN_COLUMNS, *NAMES[len(LEAN_NAMES) :]])
"""SQL: the columns of ``NAMES``, for SELECT and RETURNING alike."""

AS_JSON = {
    "tags": "json(tags)",
    "blocked_by": f"json({BLOCKED_BY})",
    "artifacts": "json(artifacts)",
    "needs_approval": "iif(needs_approval, json('true'), json('false'))",
}
"""SQL: the columns that ``json_object`` needs converted."""

EVENT_COLUMNS = "event.seq, kind, actor, actor_kind, at, data, imported"
"""SQL: the columns of ``event`` that ``to_event`` reads."""

_STORED = frozenset(JSON_KEYS) - DERIVED - JSON_COLUMNS


def task_rows(tx: Connection, sql: str, values: Sequence[Any] | dict[str, Any]) -> list[TaskRow]:
    """Run a statement over ``COLUMNS`` and return all its rows.

    The rows are dicts: ``sqlite3.Row`` searches for the name at every access.
    """
    return [dict(zip(NAMES, row, strict=True)) for row in tx.execute(sql, values)]


def to_task(row: TaskRow, now: str) -> Task:
    """Return the task of a row, with its derived fields as of ``now``."""
    task = Task()
    for key, value in row.items():
        if key in _STORED:
            setattr(task, key, value)
        elif key in JSON_COLUMNS:
            # A fast path: most are empty, and each row of a list has three.
            setattr(task, key, [] if value == "[]" else None if value is None else json.loads(value))
    task.needs_approval = bool(row["needs_approval"])
    for key, holds in derive(row, now).items():
        setattr(task, key, holds)
    return task


def to_event(row: Row, task_id: str) -> Event:
    """Return the event of a row of ``EVENT_COLUMNS``; ``imported`` is only in one that an import copied."""
    event: Event = {
        "seq": row["seq"],
        "task_id": task_id,
        "kind": row["kind"],
        "actor": row["actor"],
        "actor_kind": row["actor_kind"],
        "at": row["at"],
        "data": json.loads(row["data"]),
    }
    if row["imported"]:
        event["imported"] = True
    return event
