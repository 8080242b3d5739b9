"""Import tasks from a file: all of them or none.

The file is read element by element into staging tables, without a lock. The board is locked only to compare the staged
tasks with it and to copy them.
"""

from __future__ import annotations

from .. import inputs
from ..board import dependencies, stuck
from ..errors import Busy, Unusable
from ..storage.bulk import bulk
from .merging import Merger
from .records import RecordStager
from .staging import Staging

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..board.core import Core
    from ..identity import Actor
    from .records import ScheduleChecker

    Progress = Callable[[int], object] | None
    Notice = Callable[[int, float], object] | None

FORMATS = ("json", "csv", "beads", "github")
PROGRESS_INTERVAL = 1_000
"""Elements between two calls of ``progress``."""
LARGE = 50_000
"""Rows from which an import says how long it holds the write lock."""
CHECKS = 5
"""How often a file is compared with the board, if the board changes meanwhile in what matters, before it gives up."""


class Imported:
    """The outcome of an import: how many tasks were imported and skipped, and warnings about other differences."""

    __slots__ = ("dry_run", "imported", "skipped", "warnings")

    def __init__(self) -> None:
        self.imported = 0
        self.skipped = 0
        self.warnings: list[str] = []
        self.dry_run = False

    def to_dict(self) -> dict[str, Any]:
        """Return ``{"imported", "skipped"}``; after a dry run also ``"dry_run"``."""
        counts: dict[str, Any] = {"imported": self.imported, "skipped": self.skipped}
        return {**counts, "dry_run": True} if self.dry_run else counts


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
) -> Imported:
    """Import as ``Board.import_tasks`` documents; ``read_schedule`` checks a schedule of the file."""
    file_format = inputs.one_of(file_format, "format", FORMATS)
    outcome = Imported()
    outcome.dry_run = inputs.boolean(dry_run, "dry_run")
    caller = core.caller(actor)
    if core.exists():
        if dry_run:
            with core.read():
                pass  # refused: not a board, or an older one
        else:
            core.create()  # an older board is migrated, and a directory that cannot be written is refused
    staging = Staging(core.database)
    said: list[str] | None = None
    try:
        with staging:
            skipped, warnings = _stage(core, caller, staging, source, file_format, progress, read_schedule)
        merger = Merger(staging)
        for _ in range(1 if dry_run else CHECKS):
            # Without the write lock, and before a board is created: a refused import changes nothing and delays nobody.
            with staging.board.read() as connection:
                staging.move_to(connection)
                outcome.imported, outcome.skipped = merger.check(connection, core.new_id)
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
        outcome.warnings = [*warnings, *merger.warnings, *(said or [])]
        outcome.skipped += skipped
    except MemoryError:
        raise Unusable(
            "there is not enough memory for this import; nothing was imported",
            hint="Free some memory, or raise the memory limit of this process, then import again.",
        ) from None
    finally:
        staging.close()
    return outcome


def _copy(core: Core, caller: Actor, staging: Staging, merger: Merger, before_lock: Notice) -> list[str] | None:
    """Copy the staged tasks to the board, under the write lock; return warnings.

    ``None``: the board has changed in what the check relied on, and nothing was copied.
    """
    staging.move_to(core.database.session(to_write=True).connection)
    if before_lock is not None and merger.rows > LARGE:
        before_lock(merger.rows, merger.seconds)
    with bulk(core.database), core.write(caller) as tx:
        if not merger.is_current(tx.connection):
            return None
        latest = tx.execute("SELECT coalesce(max(seq), 0) FROM task").fetchone()[0]
        merger.copy(tx)
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
) -> tuple[int, list[str]]:
    """Stage everything in a file; return how many of its lines are not tasks, and warnings."""
    if file_format == "json":
        from .document import DocumentReader

        reader = DocumentReader(source)
        records = RecordStager(core, caller, staging, check_schedule, json_is_checked=not reader.is_parsed)
        for count, element in enumerate(reader.elements(), 1):
            records.add_element(*element)
            _report(progress, count)
        records.finish()
        staging.finish(with_events=reader.has_events)
        return 0, reader.warnings
    records = RecordStager(core, caller, staging, check_schedule, json_is_checked=True)
    if file_format == "csv":
        skipped, warnings = _stage_csv(source, records, progress)
    else:
        skipped, warnings = _stage_issues(source, file_format, records, progress)
    records.finish()
    staging.finish(with_events=False)
    return skipped, warnings


def _stage_csv(source: Any, records: RecordStager, progress: Progress) -> tuple[int, list[str]]:
    from .csv import read_rows

    for count, (place, task) in enumerate(read_rows(source), 1):
        records.add_task(place, task, {})
        _report(progress, count)
    return 0, []


def _stage_issues(source: Any, file_format: str, records: RecordStager, progress: Progress) -> tuple[int, list[str]]:
    """Stage the issues of another tracker."""
    from . import beads, github

    skipped = 0
    warnings: list[str] = []
    read = beads.read if file_format == "beads" else github.read
    for count, (place, issue) in enumerate(read(source), 1):
        if issue is None:
            skipped += 1
            continue
        records.add_task(place, issue.task, issue.names)
        warnings += issue.warnings
        for comment in issue.comments:
            records.add_comment(place, comment)
        _report(progress, count)
    return skipped, warnings


def _report(progress: Progress, count: int) -> None:
    if progress is not None and count % PROGRESS_INTERVAL == 0:
        progress(count)
