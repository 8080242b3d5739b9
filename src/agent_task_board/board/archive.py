"""Put finished tasks out of sight, and back: nothing is ever deleted."""

from __future__ import annotations

from .. import identity, inputs, instants
from ..errors import Conflict, InvalidInput
from ..model import COLUMNS, FINAL, SYSTEM, Receipt, Task, task_rows
from .core import actual, changes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from typing import Any

    from ..identity import Actor
    from ..service import Board

BATCH = 500
"""Tasks that one transaction archives."""
PER_TICK = 2_000
"""Tasks that one tick archives, at most."""
AGE_HIGH = 36_600 * instants.DAY

_OLD = """
    finished_at IS NOT NULL AND archived_at IS NULL AND finished_at <= :before AND updated_at <= :before
    AND status IN ({statuses})"""
"""SQL: finished long ago, and not brought back from the archive since."""


def archive(
    board: Board,
    older_than: str | float,
    *,
    status: Sequence[str] = (),
    dry_run: bool = False,
    actor: Actor | None = None,
) -> dict[str, Any]:
    """Do what ``Board.archive`` promises."""
    age = instants.parse_length(older_than, field="older_than", high=AGE_HIGH)
    old = _OLD.format(statuses=_statuses(status))
    if inputs.boolean(dry_run, "dry_run"):
        with board._db.read() as tx:
            before = instants.to_text(board._clock() - age)
            count = tx.execute(f"SELECT count(*) FROM task WHERE {old}", {"before": before}).fetchone()[0]
        return {"archived": count, "dry_run": True}
    return {"archived": _archive(board, old, age, board._caller(actor), limit=None)}


def archive_by_age(board: Board) -> int:
    """Archive what is older than the settings allow, as a tick does; return how many tasks."""
    age = board.settings.archive_after
    if age is None:
        return 0
    old = _OLD.format(statuses=_statuses(()))
    return _archive(board, old, age, identity.Actor(SYSTEM, SYSTEM), limit=PER_TICK)


def unarchive(board: Board, task: str, *, actor: Actor | None = None) -> Receipt:
    """Do what ``Board.unarchive`` promises."""
    by = board._caller(actor)
    with board._db.write() as tx:
        now = instants.to_text(board._clock())
        before = board._row(tx, task)
        by.name = board._known_as(tx, by.name)
        rows = task_rows(
            tx,
            f"""
            UPDATE task SET archived_at = NULL, version = version + 1, updated_at = :now
             WHERE seq = :seq AND archived_at IS NOT NULL
            RETURNING {COLUMNS}
            """,
            {"seq": before["seq"], "now": now},
        )
        if not rows:
            raise Conflict(f"task {before['id']} is not in the archive", reason="status", actual=actual(before))
        board._record(tx, rows[0], "unarchived", by, now, changes(before, rows[0]))
        return Receipt(Task.from_row(rows[0], now))


def _statuses(given: Sequence[str]) -> str:
    """Return final statuses as SQL has them, all of them where none is given."""
    if isinstance(given, str):
        raise InvalidInput("status: must be a list", field="status")
    return ", ".join(f"'{inputs.one_of(status, 'status', FINAL)}'" for status in given or FINAL)


def _archive(board: Board, old: str, age: int, by: Actor, *, limit: int | None) -> int:
    """Archive in small transactions, so that no claim waits for long; return how many tasks.

    What is old is looked for outside of them: where few tasks of many have the status, that takes a while.
    """
    archived = 0
    values: dict[str, Any] = {"before": instants.to_text(board._clock() - age), "finished_at": "", "seq": 0}
    while limit is None or archived < limit:
        with board._db.read() as tx:
            found = tx.execute(
                f"""
                SELECT finished_at, seq FROM task
                 WHERE {old} AND (finished_at, seq) > (:finished_at, :seq)
                 ORDER BY finished_at, seq
                 LIMIT {BATCH if limit is None else min(BATCH, limit - archived)}
                """,
                values,
            ).fetchall()
        if not found:
            break
        values["finished_at"], values["seq"] = found[-1]
        with board._db.write() as tx:
            now = instants.to_text(board._clock())
            by.name = board._known_as(tx, by.name)
            archived += sum(
                _archive_one(board, tx, old, {**values, "seq": row["seq"], "now": now}, by) for row in found
            )
    return archived


def _archive_one(board: Board, tx: sqlite3.Connection, old: str, values: dict[str, Any], by: Actor) -> bool:
    rows = task_rows(
        tx,
        f"""
        UPDATE task SET archived_at = :now, version = version + 1, updated_at = :now
         WHERE seq = :seq AND {old}
        RETURNING {COLUMNS}
        """,
        values,
    )
    for row in rows:
        changed = {"archived_at": {"from": None, "to": values["now"]}}
        board._record(tx, row, "archived", by, values["now"], {"changes": changed})
    return bool(rows)
