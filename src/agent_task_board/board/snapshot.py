"""The board as one JSON text, built inside SQLite; the page in the browser loads it."""

from __future__ import annotations

import json

from .. import instants
from ..model import FINAL, JSON_KEYS, STATUSES
from ..printable import escape_json
from .predicates import DERIVED, IS_UNFINISHED
from .returned import returned_tasks
from .rows import AS_JSON
from .stuck import causes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .core import Core, Transaction

SHOWN = 10_000
"""The most tasks in a snapshot."""

SIZE = 15 * 1_048_576
"""Bytes of the tasks in a snapshot, besides those of its last task; a snapshot that reaches it is truncated."""

LEFT_OUT = ("body", "params", "result")
"""The keys of a task that a snapshot leaves out."""

COLUMNS = {
    **AS_JSON,
    **{name: f"iif({condition}, json('true'), json('false'))" for name, condition in DERIVED.items()},
}
"""SQL: the keys of a task's JSON that are not plain columns; parameter ``now``."""
_OBJECT = ", ".join(f"'{key}', {COLUMNS.get(key, key)}" for key in JSON_KEYS if key not in LEFT_OUT)
_UNFINISHED = f"SELECT seq FROM task WHERE {IS_UNFINISHED} ORDER BY {{order}} LIMIT :left"
_FINISHED = """
    SELECT seq FROM task WHERE finished_at IS NOT NULL AND archived_at IS NULL
     ORDER BY finished_at DESC, seq DESC LIMIT :left"""
_FIRST_OF_MANY = "status NOT IN ('claimed', 'running', 'review'), priority DESC, seq"


class Snapshot:
    """The board at one moment.

    ``text`` is the JSON ``{"tasks", "counts", "truncated", "revision", "timezone"}``. Unfinished tasks come in the
    order added, then finished tasks, the latest first. If not all unfinished tasks fit, held tasks and those in
    review come first, then those of larger priority. ``counts`` are by status, of the whole board. If tasks are stuck,
    ``stuck`` has, by id, the failed or cancelled task that each of them waits for: ``{"id", "title", "status"}``. If
    tasks are returned, ``returned`` has who rejected the work of each: ``{"by", "at", "note"}``.
    """

    __slots__ = ("_file", "_since", "_until", "revision", "text")

    def __init__(self, text: str, revision: int, since: int, until: int | None, file: tuple[int, int] | None) -> None:
        self.text = text
        self.revision = revision
        self._since = since
        self._until = until
        self._file = file

    @property
    def tag(self) -> str:
        """Revision, latest passed instant (derived fields change with time alone), and the file's inode number."""
        return f"{self.revision}-{self._since:x}-{self._file[1] if self._file else 0:x}"

    def holds(self, revision: int, now: int, file: tuple[int, int] | None) -> bool:
        """Say whether nothing has changed: no write, no derived field, and the file is the same."""
        return (
            revision == self.revision
            and file == self._file
            and self._since <= now
            and (self._until is None or now < self._until)
        )


def snapshot(core: Core, known: Snapshot | None) -> Snapshot:
    """Return the current board; ``known`` itself if it is still valid."""
    with core.read() as tx:
        revision, file = tx.execute("SELECT revision FROM board").fetchone()[0], core.database.file_id()
        if known is not None and known.holds(revision, tx.instant, file):
            return known
        counts = dict.fromkeys(STATUSES, 0)
        for status, count in tx.execute(
            "SELECT status, sum(tasks) FROM tally WHERE status <> 'archived' GROUP BY status"
        ):
            counts[status] = count
        unfinished = sum(count for status, count in counts.items() if status not in FINAL)
        order = "seq" if unfinished <= SHOWN else _FIRST_OF_MANY  # sorting all would double the cost
        tasks = _select(tx, _UNFINISHED.format(order=order), [])
        if len(tasks) < min(unfinished, SHOWN):  # too large: choose which of them to show
            tasks = _select(tx, _UNFINISHED.format(order=_FIRST_OF_MANY), [])
        tasks = _select(tx, _FINISHED, tasks)
        since, until = _instants_around(tx)
        marks = {"stuck": causes(tx, SHOWN), "returned": returned_tasks(tx, SHOWN)}
    head = {
        "counts": counts,
        "truncated": sum(counts.values()) > len(tasks),
        "revision": revision,
        "timezone": core.settings.timezone,
        **{name: tasks for name, tasks in marks.items() if tasks},
    }
    text = '{"tasks":[' + ",".join(tasks) + "]," + json.dumps(head, separators=(",", ":"))[1:]
    return Snapshot(text, revision, since, until, file)


def _select(tx: Transaction, chosen: str, tasks: list[str]) -> list[str]:
    """Return tasks as JSON, followed by the chosen ones, as many as fit."""
    left = SIZE - sum(map(_bytes_of, tasks))
    rows = tx.execute(
        f"SELECT json_object({_OBJECT}) FROM ({chosen}) CROSS JOIN task USING (seq)",
        {"now": tx.now, "left": SHOWN - len(tasks)},
    )
    while left > 0 and (row := rows.fetchone()):
        tasks.append(escape_json(row[0]))
        left -= _bytes_of(row[0])
    rows.close()  # an open cursor would keep the read transaction open
    return tasks


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _instants_around(tx: Transaction) -> tuple[int, int | None]:
    """Return the latest instant in the past and the next one in the future at which a derived field changes."""
    passed, coming, passed_due, coming_due = tx.execute(
        f"""
        SELECT max(iif(at <= :now, at, NULL)), min(iif(at > :now, at, NULL)),
               max(iif(due_at < :now, due_at, NULL)), min(iif(due_at >= :now, due_at, NULL))
          FROM (SELECT iif(status = 'queued', not_before, lease_expires_at) AS at, due_at
                  FROM task WHERE {IS_UNFINISHED})
        """,
        {"now": tx.now},
    ).fetchone()
    # A task is overdue one millisecond after its deadline; a lease has expired exactly at its end.
    before = [_milliseconds(passed, 0), _milliseconds(passed_due, 1)]
    after = [_milliseconds(coming, 0), _milliseconds(coming_due, 1)]
    return max((at for at in before if at is not None), default=0), min(
        (at for at in after if at is not None), default=None
    )


def _milliseconds(instant: str | None, later: int) -> int | None:
    return None if instant is None else instants.from_text(instant) + later
