"""Import tasks from a file: all of them or none.

The file is read element by element into staging tables, without a lock. The board is locked only to compare the staged
tasks with it and to copy them.
"""

from __future__ import annotations

from .. import inputs
from ..board import dependencies, stuck
from ..errors import Busy, Unusable
from ..storage.bulk import bulk
from . import joining, updating
from .formats import FORMATS, reader_of, table_of
from .issues import IssueStager
from .merging import Merger
from .outcome import Outcome
from .records import RecordStager
from .staging import Staging

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..board.core import Core
    from ..identity import Actor
    from ..storage.db import Connection
    from .records import ScheduleChecker

    Progress = Callable[[int], object] | None
    Notice = Callable[[int, float], object] | None

PROGRESS_INTERVAL = 1_000
"""Elements between two calls of ``progress``."""
LARGE = 50_000
"""Rows from which an import says how long it holds the write lock."""
CHECKS = 5
"""How often a file is compared with the board, if the board changes meanwhile in what matters, before it gives up."""


def import_tasks(
    core: Core,
    source: Any,
    actor: Actor | None,
    *,
    file_format: str,
    dry_run: bool,
    progress: Progress,
    before_lock: Notice,
    read_schedule: ScheduleChecker,
) -> Outcome:
    """Import as ``Board.import_tasks`` documents; ``read_schedule`` checks a schedule of the file."""
    file_format = inputs.one_of(file_format, "format", FORMATS)
    staged = Outcome()
    staged.dry_run = inputs.boolean(dry_run, "dry_run")
    caller = core.caller(actor)
    if core.exists() and not _is_ready(core, dry_run=staged.dry_run):
        core.create()  # an older board is migrated, and a directory that cannot be written is refused
    staging = Staging(core.database)
    said: list[str] | None = None
    try:
        with staging:
            _stage(core, caller, staging, source, file_format, progress, read_schedule, staged)
        merger = Merger(staging)
        for _ in range(1 if dry_run else CHECKS):
            # Without the write lock, and before a board is created: a refused import changes nothing and delays nobody.
            with staging.board.read() as connection:
                staging.move_to(connection)
                outcome = staged.copy()
                _check(connection, core, merger, outcome)
                staging.keep(connection)
            if dry_run:
                break
            said = _copy(core, caller, staging, merger, before_lock)
            if said is not None:
                break
        else:
            raise Busy(
                "the board kept changing in what the file is compared with; nothing was imported",
                hint="Import again while nobody adds the same tasks.",
            )
        outcome.warnings += said or []
    except MemoryError:
        raise Unusable(
            "there is not enough memory for this import; nothing was imported",
            hint="Free some memory, or raise the memory limit of this process, then import again.",
        ) from None
    finally:
        staging.close()
    return outcome


def _is_ready(core: Core, *, dry_run: bool) -> bool:
    """Say whether a board can be compared with a file as it is, without waiting for whoever is writing.

    Raises:
        Unusable: this is a dry run, and it is not a board, or an older one.
    """
    try:
        with core.read():
            pass
    except Unusable:
        if dry_run:
            raise
        return False
    return dry_run or not core.database.session().is_momentary


def _check(connection: Connection, core: Core, merger: Merger, outcome: Outcome) -> None:
    """Decide what becomes of each staged task, and count it."""
    outcome.imported, _ = merger.check(connection, core.new_id)
    outcome.warnings += merger.warnings
    updating.plan(connection)
    joining.refuse_cycles(connection)
    updating.report(connection, outcome)
    merger.report(connection, outcome)


def _copy(core: Core, caller: Actor, staging: Staging, merger: Merger, before_lock: Notice) -> list[str] | None:
    """Copy the staged tasks to the board, under the write lock; return warnings.

    ``None``: the board has changed in what the check relied on, and nothing was copied.
    """
    if staging.is_separate:
        core.create()  # before the tables are moved: a connection may take few steps until its schema was compared
    staging.move_to(core.database.session(to_write=True).connection)
    if before_lock is not None and merger.rows > LARGE:
        before_lock(merger.rows, merger.seconds)
    with bulk(core.database), core.write(caller) as tx:
        if not merger.is_current(tx.connection):
            return None
        latest = tx.execute("SELECT coalesce(max(seq), 0) FROM task").fetchone()[0]
        joining.refuse_cycles(tx.connection)  # again: others may have added dependencies since the check
        merger.copy(tx)
        updating.apply(tx, latest)
        joining.join(tx, latest)
        about_stuck = stuck.imported(tx)
        if staging.has_histories:  # an export of ours has its dependencies as they were
            return []
        return [*dependencies.of_new_tasks(tx, latest), *about_stuck]


def _stage(
    core: Core,
    caller: Actor,
    staging: Staging,
    source: Any,
    file_format: str,
    progress: Progress,
    check_schedule: ScheduleChecker,
    outcome: Outcome,
) -> None:
    """Stage everything in a file."""
    if file_format == "json":
        from .document import DocumentReader

        reader = DocumentReader(source)
        records = RecordStager(core, caller, staging, check_schedule, json_is_checked=not reader.is_parsed)
        for count, element in enumerate(reader.elements(), 1):
            records.add_element(*element)
            _report(progress, count)
        records.finish()
        staging.finish(with_events=reader.has_events)
        outcome.warnings += reader.warnings
        return
    records = RecordStager(core, caller, staging, check_schedule, json_is_checked=True)
    if file_format == "csv":
        _stage_csv(source, records, progress, outcome)
        records.finish()
        staging.finish(with_events=False)
        return
    outcome.fields = table_of(file_format)
    issues = IssueStager(file_format, records, staging, outcome)
    for count in issues.add_all(reader_of(file_format)(source)):
        _report(progress, count)
    records.finish()
    staging.finish(with_events=False, prepare=issues.settle)


def _stage_csv(source: Any, records: RecordStager, progress: Progress, outcome: Outcome) -> None:
    from .csv import read_rows

    def pass_over(place: str) -> None:
        outcome.ignore("empty_row", place)

    for count, (place, task) in enumerate(read_rows(source, pass_over), 1):
        records.add_task(place, task, {})
        _report(progress, count)


def _report(progress: Progress, count: int) -> None:
    if progress is not None and count % PROGRESS_INTERVAL == 0:
        progress(count)
