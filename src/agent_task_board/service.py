"""The board: every transition of a task, one method a write transaction, and every read of it.

The methods live beside what they are about, and ``Board`` puts them together:

========================  ==========================================================================
``claiming.py``           claim, resume, heartbeat, complete, fail, release, handoff
``review.py``             approve, reject
``editing.py``            add, update, reassign, retry, cancel, comment
``queries.py``            list_tasks, show, events, agents, stats, revision, nothing_ready
``snapshot.py``           snapshot
``briefing.py``           briefing
``transfer.py``           import_tasks
``export.py``             export
``schedules.py``          add_schedule, schedules, schedule, preview_schedule, pause_schedule, resume_schedule,
                          remove_schedule
``ticking.py``            tick
``archive.py``            archive, unarchive
``backup.py``             backup
``doctor.py``             doctor
``core.py``               what they share: tokens, attempts, events, refusals
========================  ==========================================================================
"""

from __future__ import annotations

from .board.editing import Editing
from .board.queries import Queries

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from typing import Any, BinaryIO

    from .board.snapshot import Snapshot
    from .identity import Actor
    from .model import Receipt, Schedule
    from .text.briefing import Briefing
    from .transfer.importing import Imported


class Board(Editing, Queries):
    """One task board, in a data directory of this machine.

    Safe to use from several threads and after ``fork``; every method is one transaction. Arguments are checked, and
    refusals are the classes of ``errors.py``.

    Args:
        data_dir: the data directory; ``tasks.db`` in it is the board.
        create: make the board at the first write if it is not there. Otherwise a missing board reads as an empty one.
        read_only: never write.
        settings: defaults for leases, attempts, backoff, time zone and the busy timeout.
        actor: who acts where a call does not say; by default what ``ATB_AGENT``, ``ATB_ACTOR`` or the login name tell.
        clock: milliseconds since 1970, asked once the write lock is held.
        random: bytes for lease tokens.
    """

    def tick(self, *, warnings: list[str] | None = None) -> dict[str, Any]:
        """Do what time alone brings about.

        Leases expire, delayed tasks are promoted, schedules that are due make their tasks, old tasks are archived
        where the settings say so, and hooks are told what they are owed. Works in small transactions; safe to run
        twice at once. Of each schedule it makes so many occurrences at most, and says with ``catchup_pending`` that
        more are due. Sentences about schedules that cannot go on are appended to ``warnings``.

        Returns:
            ``{"expired", "created", "delivered", "catchup_pending"}``: three counts and a boolean.
        """
        from .upkeep.ticking import tick

        return tick(self, [] if warnings is None else warnings)

    def add_schedule(
        self,
        name: str,
        *,
        cron: str,
        task: dict[str, Any],
        zone: str | None = None,
        catch_up: int | None = None,
        actor: Actor | None = None,
    ) -> Schedule:
        """Let ticks add a task at every instant that a cron rule of five fields names in a time zone.

        ``task`` is a template: fields of a task, and ``due_in``, a length of time. ``{date}``, ``{datetime}`` and
        ``{occurrence}`` in its title and params stand for the instant that was planned. ``catch_up`` is how many
        occurrences one tick makes at most.

        Raises:
            InvalidInput: the rule, the zone or the template is malformed, or the rule's date never comes.
            Conflict: there is a schedule of that name.
        """
        from .schedules.registry import add_schedule

        return add_schedule(self, name, cron=cron, task=task, zone=zone, catch_up=catch_up, actor=actor)

    def schedules(self) -> list[Schedule]:
        """Return every schedule, by name."""
        from .schedules.registry import list_schedules

        return list_schedules(self)

    def schedule(self, name: str) -> Schedule:
        """Return one schedule.

        Raises:
            NotFound: no such schedule.
        """
        from .schedules.registry import show_schedule

        return show_schedule(self, name)

    def preview_schedule(self, name: str, *, count: int = 10) -> list[dict[str, str]]:
        """Return the next occurrences of a schedule: ``{"at"}`` in UTC and ``{"local"}`` in its zone.

        Raises:
            NotFound: no such schedule.
        """
        from .schedules.registry import preview_schedule

        return preview_schedule(self, name, count=count)

    def pause_schedule(self, name: str) -> Schedule:
        """Drop the occurrences from now on; those planned before are still made. A paused one stays as it is.

        Raises:
            NotFound: no such schedule.
        """
        from .schedules.registry import pause_schedule

        return pause_schedule(self, name)

    def resume_schedule(self, name: str) -> Schedule:
        """Go on with the first occurrence that lies ahead; what was planned before the pause is made now.

        Raises:
            NotFound: no such schedule.
        """
        from .schedules.registry import resume_schedule

        return resume_schedule(self, name)

    def remove_schedule(self, name: str) -> Schedule:
        """Take a schedule away, and return it as it was; the tasks that it made stay.

        Raises:
            NotFound: no such schedule.
        """
        from .schedules.registry import remove_schedule

        return remove_schedule(self, name)

    def archive(
        self,
        older_than: str | float,
        *,
        status: Sequence[str] = (),
        dry_run: bool = False,
        actor: Actor | None = None,
    ) -> dict[str, Any]:
        """Put tasks out of sight that were finished at least ``older_than`` ago (seconds, or a length such as ``30d``).

        ``status`` names final statuses; none of them means all. Archived tasks are left out of lists, board and
        claims; ``show``, ``events`` and a search find them, and what depends on them still does.

        Returns:
            ``{"archived"}``, how many; with ``dry_run``, how many it would be, and nothing is written.
        """
        from .board.archive import archive

        return archive(self, older_than, status=status, dry_run=dry_run, actor=actor)

    def unarchive(self, task: str, *, actor: Actor | None = None) -> Receipt:
        """Bring a task back from the archive.

        Raises:
            NotFound: no such task.
            Conflict: it is not in the archive.
        """
        from .board.archive import unarchive

        return unarchive(self, task, actor=actor)

    def backup(self, *, output: str | os.PathLike[str] | None = None, keep: int | None = None) -> dict[str, Any]:
        """Put the board as it is now into one ZIP, beside any number of writers.

        ``output`` is the directory for it, by default ``backups`` in the data directory. With ``keep``, the oldest
        backups there are removed until so many are left.

        Returns:
            ``{"path", "tasks", "events", "sha256"}``, the digest that of the board in the ZIP; with ``keep`` also
            ``removed``, how many.

        Raises:
            NotFound: there is no board.
            Unusable: the board is damaged, the disk full, or the directory cannot be written; nothing is left behind.
        """
        from .upkeep.backup import backup

        return backup(self, output=output, keep=keep)

    def doctor(self, *, fix: str | None = None, config: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """Look the board over, and everything around it; writes nothing without ``fix``.

        ``fix`` names a repair that a finding offers; it is made after a backup. ``config`` is a configuration file
        to look at, too.

        Returns:
            ``{"findings", "healthy"}``: each finding has ``check level message remedy fix``, and a board with one
            of level ``error`` is not healthy. With ``fix`` also ``fixed``: ``{"name", "backup", "did"}``.
        """
        from .upkeep.doctor import doctor

        return doctor(self, fix, config)

    def import_tasks(
        self,
        source: Any,
        *,
        file_format: str = "json",
        dry_run: bool = False,
        actor: Actor | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> Imported:
        """Import tasks, and what belongs to them, from a file opened for bytes; all of it or nothing.

        ``source`` may also be a document of JSON that was read already. JSON is an array of tasks, an object with
        ``tasks``, what ``export`` writes, or an envelope around one of them; ``csv``, ``beads`` and ``github`` are the
        other formats. A file may be larger than memory, and the board is not locked while it is read.

        Ids are kept, and made where there are none. A task whose id exists, whose dedupe key an unfinished task
        holds, or whose occurrence another task has, is passed over with its attempts and events, and counted; what
        waits for it waits for the task in its way. Claimed and running tasks come in as queued. ``dry_run`` checks
        everything and writes nothing. ``progress`` is told now and then how many elements were read.

        Raises:
            InvalidInput: a malformed element (its place and field are named), an unknown dependency, a circle.
        """
        from .transfer.importing import import_tasks

        return import_tasks(self, source, actor, file_format=file_format, dry_run=dry_run, progress=progress)

    def export(
        self,
        target: str | os.PathLike[str] | BinaryIO,
        *,
        file_format: str = "json",
        bom: bool = True,
        progress: Callable[[int], object] | None = None,
    ) -> dict[str, Any]:
        """Write the whole board as JSON, or its tasks as CSV, to a file opened for bytes, or to a path.

        A path appears whole or not at all, and replaces a file that is there. ``bom`` lets CSV begin with a byte order
        mark, by which spreadsheets know UTF-8. ``progress`` is told now and then how many rows were written.

        Returns:
            ``{"tasks", "events"}``, two counts; with a path also ``"path"``.

        Raises:
            InvalidInput: the path leads to no file.
            Unusable: the file cannot be written, as on a full disk; nothing of it is left behind.
        """
        from .transfer.export import export

        return export(self, target, file_format=file_format, bom=bom, progress=progress)

    def snapshot(self, known: Snapshot | None = None) -> Snapshot:
        """Return the board as one JSON text; ``known`` itself when that still holds, which costs next to nothing."""
        from .board.snapshot import take

        return take(self, known)

    def briefing(self, *, agent: str | None = None) -> Briefing:
        """Return what an agent must know to begin or to go on: what it holds, what is ready for it, how to work.

        Tokens are not in it: ``resume`` gives the holder of a task a new one. Costs the same on any board.
        """
        from .text.briefing import take

        return take(self, agent)
