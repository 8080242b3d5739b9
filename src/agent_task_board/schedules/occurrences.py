"""Create the tasks of schedules; each occurrence is created once, ever.

``next_at`` is the first occurrence that has not been created yet. A tick creates the occurrences that have passed; a
late tick creates them late, marked with the planned instant.
"""

from __future__ import annotations

from .. import instants
from ..board.adding import insert, key_holder
from ..board.core import system
from ..board.history import changes
from ..errors import InvalidInput
from . import recurrence, templates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..board.core import Core, Transaction
    from ..storage.db import Row

_DUE = "next_at <= min(:now, coalesce(paused_at, :now))"
"""SQL: an occurrence is due; those planned before a pause are still created."""


def run_due(core: Core, warnings: list[str]) -> tuple[int, bool]:
    """Create the tasks of schedules that are due; return how many, and whether more are due.

    A schedule that cannot be computed, for example because its zone is missing on this machine, gets a warning and does
    not delay the others. Several ticks can run at once: a schedule advances by compare-and-set, and an occurrence is a
    unique key of ``task``.
    """
    with core.read() as tx:
        now = tx.now
        due = tx.execute(f"SELECT * FROM schedule WHERE {_DUE} ORDER BY next_at, key", {"now": now}).fetchall()
    created, failed = 0, set()
    for row in due:
        try:
            created += create_next(core, row)
        except InvalidInput as error:
            failed.add(row["id"])
            warnings.append(f"schedule {row['name']!r} cannot continue: {error.message}")
    if not due:
        return 0, False
    with core.read() as tx:
        left = tx.execute(f"SELECT id FROM schedule WHERE {_DUE}", {"now": now}).fetchall()
    return created, any(row["id"] not in failed for row in left)


def create_next(core: Core, row: Row) -> int:
    """Create the tasks of a schedule's next occurrences, up to the limit of one tick; return how many."""
    planned, following = _planned(core, row)
    if not planned:
        return 0
    core.new_id()  # the first call imports a library: do that before taking the write lock
    with core.write(system()) as tx:
        moved = tx.execute(
            """
            UPDATE schedule
               SET next_at = :following, last_at = :last, made = made + :made, updated_at = :now
             WHERE id = :id AND next_at = :next_at AND version = :version
            RETURNING id
            """,
            {
                "id": row["id"], "next_at": row["next_at"], "version": row["version"], "following": following,
                "last": planned[-1], "made": len(planned), "now": tx.now,
            },
        ).fetchall()  # fmt: skip
        if not moved:  # another tick has created them, or the schedule has changed
            return 0
        return sum(_create_one(core, tx, row, at) for at in planned)


def _planned(core: Core, row: Row) -> tuple[list[str], str | None]:
    """Return the occurrences that this tick creates, and the next one."""
    limit = row["catch_up"] or core.settings.catch_up
    end = min(instants.to_text(core.clock()), row["paused_at"] or "9")
    planned: list[str] = []
    for at in _from(row):
        if at > end or len(planned) == limit:
            return planned, at
        planned.append(at)
    return planned, None


def _from(row: Row) -> Iterator[str]:
    yield row["next_at"]
    for instant in recurrence.occurrences(row["cron"], row["zone"], instants.from_text(row["next_at"])):
        yield instants.to_text(instant)


def _create_one(core: Core, tx: Transaction, row: Row, at: str) -> int:
    """Create the task of one occurrence, unless it exists; return how many tasks were created."""
    if tx.execute("SELECT 1 FROM task WHERE schedule_id = ? AND occurrence_at = ?", (row["id"], at)).fetchone():
        return 0  # it was imported
    template = templates.read(row["task"])
    if not isinstance(template, dict):
        raise InvalidInput("task: not a JSON object", field="task")
    columns = templates.fill(core, template, at, row["zone"])
    columns |= {"schedule_id": row["id"], "occurrence_at": at, "dedupe_key": f"schedule {row['id']} {at}"}
    if key_holder(tx, columns["dedupe_key"]) is not None:
        columns["dedupe_key"] = None
    task, _ = insert(core, tx, columns)
    planned = {"name": row["name"], "id": row["id"], "planned_at": at}
    tx.record(task, "created", {**changes(None, task), "schedule": planned})
    return 1
