"""Archive finished tasks, and return them from the archive; nothing is ever deleted."""

from __future__ import annotations

from .. import inputs, instants
from ..errors import Conflict, InvalidInput
from ..model import FINAL, Receipt
from ..settings import AGE_HIGH
from .core import system
from .history import changes
from .refusals import actual
from .rows import to_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..identity import Actor
    from .core import Core, Transaction

BATCH = 500
"""Tasks that one transaction archives."""
PER_TICK = 2_000
"""The most tasks that one tick archives."""

_OLD = """
    finished_at IS NOT NULL AND archived_at IS NULL AND finished_at <= :before AND updated_at <= :before
    AND status IN ({statuses})"""
"""SQL: finished long ago, and not returned from the archive since."""


def archive(
    core: Core, older_than: str | float, *, status: Sequence[str], dry_run: bool, actor: Actor | None
) -> dict[str, Any]:
    """Do what ``Board.archive`` promises."""
    age = instants.parse_length(older_than, field="older_than", high=AGE_HIGH)
    old = _OLD.format(statuses=_statuses(status))
    if inputs.boolean(dry_run, "dry_run"):
        with core.read() as tx:
            before = instants.to_text(tx.instant - age)
            count = tx.execute(f"SELECT count(*) FROM task WHERE {old}", {"before": before}).fetchone()[0]
        return {"archived": count, "dry_run": True}
    return {"archived": _archive(core, old, age, core.caller(actor), limit=None)}


def archive_by_age(core: Core) -> int:
    """Archive at most ``PER_TICK`` tasks that are older than ``archive_after``; return how many."""
    age = core.settings.archive_after
    if age is None:
        return 0
    return _archive(core, _OLD.format(statuses=_statuses(())), age, system(), limit=PER_TICK)


def archive_task(core: Core, task: str, *, actor: Actor | None) -> Receipt:
    """Do what ``Board.archive_task`` promises."""
    with core.write(core.caller(actor)) as tx:
        before = tx.find(task)
        after = tx.change(before, "archived_at = :now", where="finished_at IS NOT NULL AND archived_at IS NULL")
        if after is None:
            if before["archived_at"] is not None:
                message, hint = f"task {before['id']} is already archived", None
            else:
                message = f'task {before["id"]} is "{before["status"]}", not finished'
                hint = "Only finished tasks can be archived; `atb cancel` ends one that nobody needs."
            raise Conflict(message, hint=hint, reason="status", actual=actual(before))
        tx.record(after, "archived", changes(before, after))
        return Receipt(to_task(after, tx.now))


def unarchive(core: Core, task: str, *, actor: Actor | None) -> Receipt:
    """Do what ``Board.unarchive`` promises."""
    with core.write(core.caller(actor)) as tx:
        before = tx.find(task)
        after = tx.change(before, "archived_at = NULL", where="archived_at IS NOT NULL")
        if after is None:
            raise Conflict(f"task {before['id']} is not archived", reason="status", actual=actual(before))
        tx.record(after, "unarchived", changes(before, after))
        return Receipt(to_task(after, tx.now))


def _statuses(given: Sequence[str]) -> str:
    """Return final statuses as a list in SQL; all of them if none is given."""
    if isinstance(given, str):
        raise InvalidInput("status: must be a list", field="status")
    return ", ".join(f"'{inputs.one_of(status, 'status', FINAL)}'" for status in given or FINAL)


def _archive(core: Core, old: str, age: int, by: Actor, *, limit: int | None) -> int:
    """Archive in small transactions, so that no claim waits for long; return how many tasks.

    The search runs outside the write transactions: it takes a while if few of many tasks have the status.
    """
    archived = 0
    values: dict[str, Any] = {"before": instants.to_text(core.clock() - age), "finished_at": "", "seq": 0}
    while limit is None or archived < limit:
        with core.read() as tx:
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
        with core.write(by) as tx:
            archived += sum(_archive_one(tx, row["seq"], old, values["before"]) for row in found)
    return archived


def _archive_one(tx: Transaction, seq: int, old: str, before: str) -> bool:
    task: dict[str, Any] = {"seq": seq}
    after = tx.change(task, "archived_at = :now", where=old, values={"before": before})
    if after is not None:
        tx.record(after, "archived", {"changes": {"archived_at": {"from": None, "to": tx.now}}})
    return after is not None
