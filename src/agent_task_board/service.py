"""The board: every transition of a task and every read of it, each method one or more transactions.

``Board`` puts the parts together; nothing else knows them all:

====================  ==============================================================================================
``board/``            ``claiming`` (claim, resume, heartbeat, complete, fail, release, handoff), ``adding`` (add),
                      ``editing`` (update, reassign, retry, cancel, comment), ``review`` (approve, reject),
                      ``queries`` (list_tasks, show, events, revision), ``stats`` (agents, stats), ``attention``,
                      ``snapshot``, ``archive`` (archive, unarchive)
``schedules/``        add_schedule, schedules, schedule, preview_schedule, pause_schedule, resume_schedule,
                      remove_schedule
``hooks/``            (delivery, for the adapters that deliver after an answer)
``transfer/``         import_tasks, export
``upkeep/``           backup, doctor
``text/``             briefing
====================  ==============================================================================================

What an agent at work needs is inherited, and loaded with this module. Everything else is imported by the method that
runs it, since every module more is a delay of every claim.
"""

from __future__ import annotations

from .board.claiming import Claiming
from .board.queries import Queries

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from typing import Any, BinaryIO

    from .board.core import Core
    from .board.snapshot import Snapshot
    from .identity import Actor
    from .model import AgentSummary, Attention, Event, Receipt, Schedule, Stats
    from .text.briefing import Briefing
    from .transfer.importing import Imported


class Unset:
    """The type of ``UNSET``: an argument that was not given, where ``None`` resets the field."""


UNSET: Any = Unset()


class Board(Claiming, Queries):
    """One task board, in a data directory of this machine.

    Safe to use from several threads and after ``fork``. Arguments are checked, and refusals are the classes of
    ``errors.py``.

    Args:
        data_dir: the data directory; ``tasks.db`` in it is the board.
        create: create the board at the first write if it does not exist. Otherwise a missing board reads as an empty
            one.
        read_only: never write.
        settings: defaults for leases, attempts, backoff, time zone and the busy timeout.
        actor: who acts where a call does not say; by default what ``ATB_AGENT``, ``ATB_ACTOR`` or the login name say.
        clock: milliseconds since 1970, read once the write lock is held.
        random: bytes for lease tokens.
    """

    def back_up_before_migration(self) -> None:
        """Back the board up under the write lock, so that a migration can be undone."""
        from .upkeep.backup import before_migration

        before_migration(self.database)

    # Tasks

    def add(
        self,
        title: str,
        *,
        body: str = "",
        queue: str = "default",
        priority: int = 0,
        assignee: str | None = None,
        due_at: str | datetime | None = None,
        not_before: str | datetime | None = None,
        tags: Sequence[str] = (),
        depends_on: Sequence[str] = (),
        params: dict[str, Any] | None = None,
        dedupe_key: str | None = None,
        max_attempts: int | None = None,
        needs_approval: bool = False,
        request_id: str | None = None,
        claim: bool = False,
        agent: str | None = None,
        lease: str | float | None = None,
        actor: Actor | None = None,
    ) -> Receipt:
        """Add a task; with ``claim``, the ``agent`` holds it from the start and nobody ever sees it unclaimed.

        A bare date as ``due_at`` means the end of that day, as ``not_before`` its beginning, in the board's zone.
        A dedupe key that an unfinished task holds returns that task, ``created`` false, instead of adding one.

        Raises:
            NotFound: a dependency does not exist.
            Conflict: with ``claim``: the dedupe key is taken, or the task would not be ready for this agent.
            LeaseLost: the request id repeats an add with ``claim`` whose lease has ended.
        """
        given = locals()
        from .board import adding, fields

        return adding.add(
            self,
            fields.among(given),
            depends_on=depends_on,
            request_id=request_id,
            claim=claim,
            agent=agent,
            lease=lease,
            actor=actor,
        )

    def update(
        self,
        task: str,
        *,
        title: str = UNSET,
        body: str | None = UNSET,
        queue: str | None = UNSET,
        priority: int | None = UNSET,
        assignee: str | None = UNSET,
        due_at: str | datetime | None = UNSET,
        not_before: str | datetime | None = UNSET,
        tags: Sequence[str] | None = UNSET,
        params: dict[str, Any] | None = UNSET,
        dedupe_key: str | None = UNSET,
        max_attempts: int | None = UNSET,
        needs_approval: bool = UNSET,
        depends_on: Sequence[str] | None = UNSET,
        add_tags: Sequence[str] = (),
        drop_tags: Sequence[str] = (),
        add_depends_on: Sequence[str] = (),
        drop_depends_on: Sequence[str] = (),
        if_status: str | None = None,
        if_version: int | None = None,
        comment: str | None = None,
        actor: Actor | None = None,
    ) -> Receipt:
        """Change fields of a task that is not finished; its status stays.

        ``tags`` and ``depends_on`` replace the whole list, ``add_…`` and ``drop_…`` change it. ``None`` resets a field.
        ``if_status`` and ``if_version`` make the call a compare-and-set.

        Raises:
            NotFound: no such task or dependency.
            Conflict: the task is finished or not in the expected state, a dedupe key is taken, a dependency would
                close a cycle, or an assignee was given while an agent holds the task.
            NotPermitted: an agent tries to clear ``needs_approval``.
        """
        given = {name: value for name, value in locals().items() if value is not UNSET}
        from .board import editing, fields

        replaced_by = None if depends_on is UNSET else () if depends_on is None else depends_on
        return editing.update(
            self, task, fields.among(given), depends_on=replaced_by, add_tags=add_tags, drop_tags=drop_tags,
            add_depends_on=add_depends_on, drop_depends_on=drop_depends_on,
            if_status=if_status, if_version=if_version, comment=comment, actor=actor,
        )  # fmt: skip

    def reassign(self, task: str, to: str | None, *, note: str | None = None, actor: Actor | None = None) -> Receipt:
        """Return a task to the queue for another agent, or for anybody (``None`` or ``none``).

        A live lease is revoked and its attempt given back. An attempt whose lease had ended counts as expired, and is
        given back only if none would be left.

        Raises:
            NotFound: no such task.
            Conflict: the task is neither queued nor held.
        """
        from .board.editing import reassign

        return reassign(self, task, to, note=note, actor=actor)

    def retry(self, task: str, *, actor: Actor | None = None) -> Receipt:
        """Return a failed or cancelled task to the queue with a new budget of attempts.

        Raises:
            NotFound: no such task.
            Conflict: the task is neither, or its dedupe key has been taken since.
        """
        from .board.editing import retry

        return retry(self, task, actor=actor)

    def cancel(self, task: str, *, note: str | None = None, actor: Actor | None = None) -> Receipt:
        """Cancel a task that is not finished, whoever holds it; what waits for it stays blocked.

        Raises:
            NotFound: no such task.
            Conflict: the task is finished.
        """
        from .board.editing import cancel

        return cancel(self, task, note=note, actor=actor)

    def comment(self, task: str, text: str, *, actor: Actor | None = None) -> Event:
        """Add a comment to a task in any status; return the event.

        Raises:
            NotFound: no such task.
        """
        from .board.editing import comment

        return comment(self, task, text, actor=actor)

    def approve(self, task: str, *, note: str | None = None, actor: Actor | None = None) -> Receipt:
        """Accept work in review: the task is done, and what waits for it may start.

        Raises:
            NotFound: no such task.
            NotPermitted: the caller is an agent, or held a lease on this task.
            Conflict: the task is not in review.
        """
        from .board.review import approve

        return approve(self, task, note=note, actor=actor)

    def reject(self, task: str, *, note: str, actor: Actor | None = None) -> Receipt:
        """Return work in review to the queue with a new budget of attempts; its result stays for inspection.

        Raises:
            NotFound: no such task.
            NotPermitted: the caller is an agent, or held a lease on this task.
            Conflict: the task is not in review.
        """
        from .board.review import reject

        return reject(self, task, note=note, actor=actor)

    def archive(
        self,
        older_than: str | float,
        *,
        status: Sequence[str] = (),
        dry_run: bool = False,
        actor: Actor | None = None,
    ) -> dict[str, Any]:
        """Archive tasks that finished at least ``older_than`` ago (seconds, or a length such as ``30d``).

        ``status`` names final statuses; without it all count. Archived tasks are left out of lists, board and claims;
        ``show``, ``events`` and a search find them, and what depends on them still does.

        Returns:
            ``{"archived"}``, how many; with ``dry_run``, how many it would be, and nothing is written.
        """
        from .board.archive import archive

        return archive(self, older_than, status=status, dry_run=dry_run, actor=actor)

    def archive_task(self, task: str, *, actor: Actor | None = None) -> Receipt:
        """Archive one finished task, however long ago it finished.

        Raises:
            NotFound: no such task.
            Conflict: it is not finished, or already archived.
        """
        from .board.archive import archive_task

        return archive_task(self, task, actor=actor)

    def unarchive(self, task: str, *, actor: Actor | None = None) -> Receipt:
        """Bring a task back from the archive.

        Raises:
            NotFound: no such task.
            Conflict: it is not in the archive.
        """
        from .board.archive import unarchive

        return unarchive(self, task, actor=actor)

    # What there is

    def agents(self) -> list[AgentSummary]:
        """Return every agent that claimed or was assigned work, with what it holds, latest seen first."""
        from .board.stats import agents

        return agents(self)

    def stats(self, *, days: int = 14) -> Stats:
        """Return counts by status and queue, what is running, and what was finished in the last ``days`` days.

        Lead time runs from the creation of a task to its end, cycle time from its last claim to its end; both in
        seconds, over the tasks done in that time. Days are those of the board's zone, from midnight to midnight, the
        present one last. ``running`` holds the 100 oldest claims at most.
        """
        from .board.stats import stats

        return stats(self, days)

    def attention(self) -> Attention:
        """Return what somebody should look at: tasks in review and expired leases; 5 of each are named."""
        from .board.attention import attention

        with self.read() as tx:
            return attention(tx)

    def nothing_ready(self, agent: str, *, queues: Sequence[str] = (), tags: Sequence[str] = ()) -> list[str]:
        """Say in sentences why a claim with these arguments finds nothing: what there is, and what it waits for.

        Counts end at 1,000, so that the answer costs the same on any board.
        """
        from .board.attention import nothing_ready

        return nothing_ready(self, agent, queues, tags)

    def snapshot(self, known: Snapshot | None = None) -> Snapshot:
        """Return the board as one JSON text; ``known`` itself if it still holds, which costs next to nothing."""
        from .board.snapshot import snapshot

        return snapshot(self, known)

    def briefing(self, *, agent: str | None = None) -> Briefing:
        """Return what an agent must know to start or to continue: what it holds, what is ready for it, how to work.

        Tokens are not in it: ``resume`` gives the holder of a task a new one. Costs the same on any board.
        """
        from .text.briefing import briefing

        return briefing(self, agent)

    # Time

    def tick(self, *, warnings: list[str] | None = None) -> dict[str, Any]:
        """Run time-based maintenance.

        Leases expire, delayed tasks are promoted, schedules that are due create their tasks, old tasks are archived if
        the settings say so, and pending hook notifications are delivered. Works in small transactions; two ticks may
        run at once. It creates a limited number of occurrences of each schedule, and says with ``catchup_pending`` that
        more are due. Sentences about schedules that cannot continue are appended to ``warnings``.

        Returns:
            ``{"expired", "created", "delivered", "catchup_pending"}``: three counts and a boolean.
        """
        from .board.archive import archive_by_age
        from .board.expiry import expire_all
        from .hooks.delivery import deliver_due
        from .schedules.occurrences import run_due

        expired = expire_all(self)
        created, pending = run_due(self, [] if warnings is None else warnings)
        archive_by_age(self)
        delivered = deliver_due(self)
        return {"expired": expired, "created": created, "delivered": delivered, "catchup_pending": pending}

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
        ``{occurrence}`` in its title and params stand for the planned instant. ``catch_up`` is how many occurrences
        one tick creates at most.

        Raises:
            InvalidInput: the rule, the zone or the template is malformed, or the rule never occurs.
            Conflict: a schedule with that name exists.
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
        """Skip the occurrences from now on; those planned before are still created. A paused schedule stays as it is.

        Raises:
            NotFound: no such schedule.
        """
        from .schedules.registry import pause_schedule

        return pause_schedule(self, name)

    def resume_schedule(self, name: str) -> Schedule:
        """Continue with the next occurrence; those planned before the pause are created now.

        Raises:
            NotFound: no such schedule.
        """
        from .schedules.registry import resume_schedule

        return resume_schedule(self, name)

    def remove_schedule(self, name: str) -> Schedule:
        """Remove a schedule and return it as it was; the tasks that it created stay.

        Raises:
            NotFound: no such schedule.
        """
        from .schedules.registry import remove_schedule

        return remove_schedule(self, name)

    def backup(self, *, output: str | os.PathLike[str] | None = None, keep: int | None = None) -> dict[str, Any]:
        """Back the board up into one ZIP; others may write meanwhile.

        ``output`` is the directory for it, by default ``backups`` in the data directory. With ``keep``, the oldest
        backups there are removed until that many are left.

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
        """Check the board and everything around it; writes nothing without ``fix``.

        ``fix`` names a repair that a finding offers; a backup is made first. ``config`` is a configuration file to
        check as well.

        Returns:
            ``{"findings", "healthy"}``: each finding has ``check level message remedy fix``, and a board with one
            of level ``error`` is not healthy. With ``fix`` also ``fixed``: ``{"name", "backup", "did"}``.
        """
        from .schedules.templates import check_stored
        from .upkeep.doctor import doctor

        return doctor(self, fix, config, check_schedule=check_stored)

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

        ``source`` may also be parsed JSON. JSON is an array of tasks, an object with ``tasks``, what ``export``
        writes, or an envelope around one of them; ``csv``, ``beads`` and ``github`` are the other formats. A file may
        be larger than memory, and the board is not locked while it is read.

        Ids are kept, and created where there are none. A task is skipped, with its attempts and events, and counted
        if its id exists, an unfinished task holds its dedupe key, or another task has its occurrence; what waits for
        it then waits for that other task. Claimed and running tasks come in as queued. ``dry_run`` checks everything
        and writes nothing. ``progress`` is called now and then with the number of elements read.

        Raises:
            InvalidInput: a malformed element (its place and field are named), an unknown dependency, a cycle.
        """
        from .transfer.importing import import_tasks

        return import_tasks(
            self,
            source,
            actor,
            file_format=file_format,
            dry_run=dry_run,
            progress=progress,
            read_schedule=_read_schedule,
        )

    def export(
        self,
        target: str | os.PathLike[str] | BinaryIO,
        *,
        file_format: str = "json",
        bom: bool = True,
        progress: Callable[[int], object] | None = None,
    ) -> dict[str, Any]:
        """Write the whole board as JSON, or its tasks as CSV, to a file opened for bytes, or to a path.

        A file appears at the path whole or not at all, and replaces an existing one. With ``bom``, CSV begins with a
        byte order mark, by which spreadsheets recognize UTF-8. ``progress`` is called now and then with the number of
        rows written.

        Returns:
            ``{"tasks", "events"}``, two counts; with a path also ``"path"``.

        Raises:
            InvalidInput: the path is not that of a file.
            Unusable: the file cannot be written, as on a full disk; nothing of it is left behind.
        """
        from .transfer.export import export

        return export(self, target, file_format=file_format, bom=bom, progress=progress)


def _read_schedule(core: Core, given: dict[str, Any]) -> dict[str, Any]:
    """Check a schedule of an imported file; loaded only for a file that has one."""
    from .schedules.templates import read_imported

    return read_imported(core, given)
