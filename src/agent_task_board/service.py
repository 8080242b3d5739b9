"""``Board``: every transition and every read of tasks; each method is one or more transactions.

``Board`` combines these parts; no other module knows all of them:

====================  ==============================================================================================
``board/``            ``claiming`` (claim, resume, heartbeat, complete, fail, release, handoff), ``waiting`` (wait,
                      wait_for_person, and claims that wait), ``keeping`` (claims that keep their lease), ``adding``
                      (add, add_lines), ``direct`` (done), ``editing`` (update, reassign, retry, cancel, comment),
                      ``review`` (approve, reject),
                      ``queries`` (list_tasks, show, events, revision), ``stats`` (agents, stats), ``attention``,
                      ``snapshot``, ``archive`` (archive, unarchive)
``schedules/``        add_schedule, schedules, schedule, preview_schedule, pause_schedule, resume_schedule,
                      remove_schedule
``hooks/``            (delivery, which adapters start after an answer)
``transfer/``         import_tasks, export
``upkeep/``           backup, doctor
``text/``             briefing
====================  ==============================================================================================

What every working agent needs is inherited, and loaded with this module. Other methods import their part when they are
called, because each additional module delays every claim.
"""

from __future__ import annotations

from .board.claiming import Claiming
from .board.queries import Queries
from .errors import Empty, NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from typing import Any, BinaryIO, Literal, TypeVar, overload

    from .board.core import Core
    from .board.keeping import Held
    from .board.snapshot import Snapshot
    from .board.waiting import Waited
    from .identity import Actor
    from .model import AgentSummary, Attention, Event, Grant, Receipt, Schedule, Stats, Task, WhyNothing
    from .text.briefing import Briefing
    from .transfer.outcome import Outcome

    Created = TypeVar("Created")


class Unset:
    """The type of ``UNSET``: the argument was not given, while ``None`` resets the field."""


UNSET: Any = Unset()


class Board(Claiming, Queries):
    """One task board, in a data directory of this machine.

    Safe to use from several threads. A process that is forked while its parent has the board open cannot use it: every
    call there is refused as ``unusable``. Open the board in a program started by exec, use the spawn or forkserver
    start method of ``multiprocessing``, or fork before the first call.

    Arguments are checked, and refusals are the classes of ``errors.py``.

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
        """Back up the board under the write lock, so that a migration can be undone."""
        from .upkeep.backup import before_migration

        before_migration(self.database)

    def _creating(self, verb: Callable[[Core], Created]) -> Created:
        """Run a verb that may create the board; a call that is refused creates nothing.

        Where there is no board, the verb first runs against an empty one in memory, which ends in ``no_board`` if
        nothing else refuses it.
        """
        if not self.exists():
            trial = Board(
                self.database.directory,
                create=False,
                settings=self.settings,
                actor=self.caller(None),
                clock=self.clock,
                random=self.random,
            )
            try:
                with trial:
                    done = verb(trial)
                # Another process created the board in the meantime, and the verb wrote to that one.
                self.has_pending_hooks |= trial.has_pending_hooks
                return done
            except NotFound as refusal:
                if "path" not in refusal.details:
                    raise
        return verb(self)

    # Claims

    if TYPE_CHECKING:

        @overload
        def claim(
            self,
            agent: str,
            *,
            task: str | None = None,
            queues: Sequence[str] = (),
            tags: Sequence[str] = (),
            lease: str | float | None = None,
            if_status: str | None = None,
            if_version: int | None = None,
            comment: str | None = None,
            request_id: str | None = None,
            actor: Actor | None = None,
            wait: str | float | None = None,
            until_idle: bool = False,
            keep: Literal[False] = False,
        ) -> Grant | None: ...

        @overload
        def claim(
            self,
            agent: str,
            *,
            task: str | None = None,
            queues: Sequence[str] = (),
            tags: Sequence[str] = (),
            lease: str | float | None = None,
            if_status: str | None = None,
            if_version: int | None = None,
            comment: str | None = None,
            request_id: str | None = None,
            actor: Actor | None = None,
            wait: str | float | None = None,
            until_idle: bool = False,
            keep: Literal[True],
        ) -> Held: ...

    def claim(
        self,
        agent: str,
        *,
        wait: str | float | None = None,
        until_idle: bool = False,
        keep: bool = False,
        **arguments: Any,
    ) -> Grant | Held | None:
        """Claim one task as ``Claiming.claim`` does, and wait for one or keep its lease if asked to.

        Args:
            agent: who claims.
            wait: wait this long for a task that is ready: seconds or a duration, at most 7 days.
            until_idle: wait, but only while a task is held or delayed: otherwise nothing can become ready by itself.
            keep: return a ``Held``: a context manager in which a thread renews the lease, and which ends the attempt.
            arguments: those of ``Claiming.claim``.

        Raises:
            Empty: with ``keep``, nothing is ready.
        """
        if wait is None and not until_idle:
            grant = super().claim(agent, **arguments)
        else:
            from .board import waiting

            limit = waiting.to_seconds(wait)
            grant = waiting.claim(self, agent, seconds=limit, until_idle=until_idle, **arguments)
        if not keep:
            return grant
        if grant is None:
            filters = {name: arguments[name] for name in ("queues", "tags") if name in arguments}
            raise Empty(" ".join(self.nothing_ready(agent, **filters)) or "nothing is ready")
        from .board.keeping import Held

        return Held(self, grant)

    def keep_output(self, task: str, token: str, output: str) -> None:
        """Keep the end of what a command wrote with its attempt: the last 65,536 characters; it may be called again.

        ``token`` is that of the live lease, or the one that ended the attempt.

        Raises:
            NotFound: no such task.
            LeaseLost: the token is neither.
        """
        from .board.claiming import hash_of
        from .board.output import keep_output

        keep_output(self, task, hash_of(token), output)

    def wait(
        self, tasks: Sequence[str], statuses: Sequence[str] = (), *, every: bool = True, wait: str | float | None = None
    ) -> Waited:
        """Wait until tasks have one of some statuses: every one of them, or with ``every`` false, at least one.

        Without ``statuses``: until nobody has them any more and they are not queued either. ``wait`` is in seconds or a
        duration of at most 7 days; without it, there is no limit. The wait ends early when the tasks can no longer get
        there, because they are finished otherwise.

        Raises:
            NotFound: no such task.
        """
        from .board import waiting

        return waiting.wait(self, tasks, statuses, every=every, seconds=waiting.to_seconds(wait))

    def wait_for_person(self, *, wait: str | float | None = None) -> Attention | None:
        """Wait until something needs a person; return what ``attention`` does, or ``None`` if the time is over."""
        from .board import waiting

        return waiting.wait_for_person(self, seconds=waiting.to_seconds(wait))

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
        max_runtime: str | float | None = None,
        needs_approval: bool = False,
        request_id: str | None = None,
        claim: bool = False,
        agent: str | None = None,
        lease: str | float | None = None,
        actor: Actor | None = None,
    ) -> Receipt:
        """Add a task. With ``claim``, the ``agent`` holds it from the start: it is never visible as unclaimed.

        A bare date means the end of that day as ``due_at`` and its beginning as ``not_before``, in the board's zone.
        If an unfinished task has the dedupe key, that task is returned with ``created`` false, and none is added.

        Raises:
            NotFound: a dependency does not exist.
            Conflict: with ``claim``, if the dedupe key is in use or the task would not be ready for this agent.
            LeaseLost: the request id repeats an add with ``claim`` whose lease has ended.
        """
        given = locals()
        from .board import adding, fields

        return self._creating(
            lambda core: adding.add(
                core,
                fields.among(given),
                depends_on=depends_on,
                request_id=request_id,
                claim=claim,
                agent=agent,
                lease=lease,
                actor=actor,
            )
        )

    def add_lines(
        self,
        text: str,
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
        max_attempts: int | None = None,
        max_runtime: str | float | None = None,
        needs_approval: bool = False,
        agent: str | None = None,
        actor: Actor | None = None,
    ) -> tuple[list[Task], list[str]]:
        """Add a task for each line of a text, its title, in one transaction; the fields given are those of each.

        Empty lines and lines that begin with ``#`` are left out. At most 1,000 tasks.

        Returns:
            The tasks in the order of their lines, and sentences about their dependencies.

        Raises:
            InvalidInput: a line is no title, which ``details.field`` names (``line 3``); nothing was added.
            NotFound: a dependency does not exist.
        """
        given = {**locals(), "dedupe_key": None}
        from .board import adding, fields

        return adding.add_lines(self, text, fields.among(given), depends_on=depends_on, agent=agent, actor=actor)

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
        max_runtime: str | float | None = UNSET,
        needs_approval: bool = UNSET,
        depends_on: Sequence[str] | None = UNSET,
        add_tags: Sequence[str] = (),
        drop_tags: Sequence[str] = (),
        add_depends_on: Sequence[str] = (),
        drop_depends_on: Sequence[str] = (),
        if_status: str | None = None,
        if_version: int | None = None,
        comment: str | None = None,
        own_only: bool = False,
        actor: Actor | None = None,
    ) -> Receipt:
        """Change fields of an unfinished task; its status stays the same.

        ``tags`` and ``depends_on`` replace the list, ``add_…`` and ``drop_…`` change it. ``None`` resets a field.
        ``if_status`` and ``if_version`` make the call a compare-and-set. ``own_only`` allows it only to the holder of a
        live lease and to the creator.

        Raises:
            NotFound: no such task or dependency.
            Conflict: the task is finished or not in the expected state, the dedupe key is in use, a dependency would
                create a cycle, or an assignee was given while an agent holds the task.
            NotPermitted: an agent tries to clear ``needs_approval``; with ``own_only``, the actor neither holds nor
                created the task.
        """
        given = {name: value for name, value in locals().items() if value is not UNSET}
        from .board import editing, fields

        replaced_by = None if depends_on is UNSET else () if depends_on is None else depends_on
        return editing.update(
            self, task, fields.among(given), depends_on=replaced_by, add_tags=add_tags, drop_tags=drop_tags,
            add_depends_on=add_depends_on, drop_depends_on=drop_depends_on,
            if_status=if_status, if_version=if_version, comment=comment, own_only=own_only, actor=actor,
        )  # fmt: skip

    def reassign(self, task: str, to: str | None, *, note: str | None = None, actor: Actor | None = None) -> Receipt:
        """Return a task to the queue for another agent, or for any agent (``None`` or ``none``).

        A live lease is revoked, and its attempt does not count. An attempt whose lease had ended is expired; it counts,
        unless no attempt would be left.

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
            Conflict: the task is neither, or another task uses its dedupe key now.
        """
        from .board.editing import retry

        return retry(self, task, actor=actor)

    def cancel(self, task: str, *, note: str | None = None, actor: Actor | None = None) -> Receipt:
        """Cancel an unfinished task, whoever holds it; tasks that depend on it stay blocked.

        Raises:
            NotFound: no such task.
            Conflict: the task is finished.
            NotPermitted: the task is in review, and the caller is an agent, or held a lease on this task.
        """
        from .board.editing import cancel

        return cancel(self, task, note=note, actor=actor)

    def done(
        self,
        task: str,
        *,
        result: Any = None,
        artifacts: Sequence[str] = (),
        note: str | None = None,
        agent: str | None = None,
        actor: Actor | None = None,
    ) -> Receipt:
        """Claim a queued task and complete it in one step: for something small that is done already.

        An agent does it where it could claim the task, and it goes to review if it needs approval. A person does it to
        a blocked, delayed or assigned task, too, which ``warnings`` then say, and holds the task at no time. With
        ``agent`` the caller is that agent. An actor that has held the task counts as an agent.

        Raises:
            NotFound: no such task.
            Conflict: the task is not queued or, for an agent, is blocked, delayed or assigned to another agent.
        """
        from .board.direct import done

        return done(
            self, task, result=result, artifacts=artifacts, note=note, agent=agent, actor=actor
        )  # fmt: skip

    def comment(self, task: str, text: str, *, actor: Actor | None = None) -> Event:
        """Add a comment to a task in any status; return the event.

        Raises:
            NotFound: no such task.
        """
        from .board.editing import comment

        return comment(self, task, text, actor=actor)

    def approve(self, task: str, *, note: str | None = None, actor: Actor | None = None) -> Receipt:
        """Approve work in review: the task is done, and tasks that depend on it can start.

        Raises:
            NotFound: no such task.
            NotPermitted: the caller is an agent, or held a lease on this task.
            Conflict: the task is not in review.
        """
        from .board.review import approve

        return approve(self, task, note=note, actor=actor)

    def reject(self, task: str, *, note: str, actor: Actor | None = None) -> Receipt:
        """Reject work in review: the task returns to the queue with a new budget of attempts and keeps its result.

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
        """Archive tasks that finished at least ``older_than`` ago (seconds, or a duration such as ``30d``).

        ``status`` limits them to some final statuses. Lists and the board leave archived tasks out; ``show``,
        ``events`` and a search find them. Dependencies on them stay.

        Returns:
            ``{"archived"}``, the number of tasks; with ``dry_run`` nothing is written, and ``dry_run`` is true.
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
        """Return a task from the archive.

        Raises:
            NotFound: no such task.
            Conflict: the task is not archived.
        """
        from .board.archive import unarchive

        return unarchive(self, task, actor=actor)

    # Overviews

    def agents(self) -> list[AgentSummary]:
        """Return every agent that claimed or was assigned a task, the latest seen first.

        ``holds`` are its tasks under a lease. ``silent``: no renewal for more than two thirds of the lease, and
        ``silent_at`` is the instant after which that is so.
        """
        from .board.stats import agents

        return agents(self)

    def stats(self, *, days: int = 14) -> Stats:
        """Return counts by status and queue, what is running, and what was finished in the last ``days`` days.

        Lead time is from the creation of a task to its end, cycle time from its last claim to its end; both are in
        seconds, over the tasks done in that time. Days begin at midnight in the board's zone; the last one is today.
        ``running`` has at most the 100 oldest claims.
        """
        from .board.stats import stats

        return stats(self, days)

    def attention(self, *, every_reason: bool = False) -> Attention:
        """Return which tasks need a person and why, with the ids of the first 5 for each reason.

        The reasons are ``review`` (work to approve) and ``expired`` (a lease past its end). With ``every_reason`` also
        ``overdue`` (an unfinished task past its deadline) and ``failed`` (a failed task that is not archived): these
        read all unfinished and all finished tasks. A task counts only for the first of these reasons that applies.
        """
        from .board.attention import attention

        with self.read() as tx:
            return attention(tx, every_reason=every_reason)

    def nothing_ready(self, agent: str, *, queues: Sequence[str] = (), tags: Sequence[str] = ()) -> list[str]:
        """Say why a claim with these arguments finds nothing: which tasks exist, and what they wait for.

        It counts at most 1,000 tasks of a kind, so that the answer costs the same on a large board.
        """
        from .board.attention import nothing_ready

        return nothing_ready(self, agent, queues, tags)

    def why(self, task: str) -> dict[str, Any]:
        """Return a task and ``why`` it is not being worked on: its leading reason and what would change it.

        Raises:
            NotFound: no such task.
        """
        from .board.rows import to_task
        from .board.why import explain

        row, now, found = explain(self, task)
        return {"task": to_task(row, now).to_dict(), "why": found}

    def why_nothing(self) -> WhyNothing:
        """Return why nothing runs: for each leading reason how many unfinished tasks have it, and the first of them."""
        from .board.why import why_nothing

        return why_nothing(self)

    def snapshot(self, known: Snapshot | None = None) -> Snapshot:
        """Return the board as one JSON text; ``known`` itself if it is still valid, which costs almost nothing."""
        from .board.snapshot import snapshot

        return snapshot(self, known)

    def briefing(self, *, agent: str | None = None, command: str = "atb") -> Briefing:
        """Return what an agent must know to start or continue: the tasks that it holds, ready tasks, how to work.

        ``command`` is how the agent runs `atb` in its shell. The briefing has no tokens: ``resume`` gives the holder of
        a task a new one. It costs the same on a large board.
        """
        from .text.briefing import briefing

        return briefing(self, agent, command)

    # Time

    def tick(self, *, warnings: list[str] | None = None) -> dict[str, Any]:
        """Run time-based maintenance.

        It expires leases, promotes delayed tasks, creates the tasks of schedules that are due, archives old tasks if so
        configured, delivers pending hook notifications, and adds to the full-text index what it lacks. It works in
        small transactions, and several ticks can run at once. It creates a limited number of occurrences per schedule;
        ``catchup_pending`` says that more are due.
        For each schedule that cannot continue, for each task whose last attempt expired while others wait for it, and
        for notifications that are given up, it appends a sentence to ``warnings``.

        Returns:
            ``{"expired", "created", "delivered", "catchup_pending"}``: three counts and a boolean.
        """
        from .board.archive import archive_by_age
        from .board.expiry import expire_all
        from .board.indexing import PER_TICK, catch_up
        from .hooks.delivery import deliver_due
        from .schedules.occurrences import run_due

        said = [] if warnings is None else warnings
        expired = expire_all(self, said)
        created, pending = run_due(self, said)
        archive_by_age(self)
        delivered = deliver_due(self, said)
        catch_up(self, PER_TICK)
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
        """Add a schedule: ticks create a task at each instant of a five-field cron rule in a time zone.

        ``cron`` can also be a name such as ``@daily``. ``task`` is a template: fields of a task, and ``due_in``, a
        duration; its ``due_at`` and ``not_before`` are a time of day in the zone, such as ``17:00``, or a duration
        after the occurrence, such as ``+4h``. In its title and params, ``{date}``,
        ``{datetime}`` and ``{occurrence}`` are replaced by the planned instant. ``catch_up`` is the largest number of
        occurrences that one tick creates.

        Raises:
            InvalidInput: the rule, the zone or the template is malformed, or the rule never occurs.
            Conflict: a schedule with that name exists.
        """
        from .schedules.registry import add_schedule

        return self._creating(
            lambda core: add_schedule(core, name, cron=cron, task=task, zone=zone, catch_up=catch_up, actor=actor)
        )

    def schedules(self) -> list[Schedule]:
        """Return all schedules, sorted by name."""
        from .schedules.registry import list_schedules

        return list_schedules(self)

    def schedule(self, name: str) -> Schedule:
        """Return one schedule.

        Raises:
            NotFound: no such schedule.
        """
        from .schedules.registry import show_schedule

        return show_schedule(self, name)

    def preview_schedule(
        self, name: str, *, count: int = 10, after: str | datetime | None = None
    ) -> list[dict[str, str]]:
        """Return the next occurrences of a schedule: ``{"at"}`` in UTC and ``{"local"}`` in its zone.

        With ``after``, those later than an instant: what its rule gives, whatever was created or paused.

        Raises:
            NotFound: no such schedule.
        """
        from .schedules.registry import preview_schedule

        return preview_schedule(self, name, count=count, after=after)

    def pause_schedule(self, name: str) -> Schedule:
        """Pause a schedule: occurrences from now on are skipped; those planned before are still created.

        Raises:
            NotFound: no such schedule.
        """
        from .schedules.registry import pause_schedule

        return pause_schedule(self, name)

    def resume_schedule(self, name: str) -> Schedule:
        """Resume a paused schedule with the next occurrence; those planned before the pause are created now.

        Raises:
            NotFound: no such schedule.
        """
        from .schedules.registry import resume_schedule

        return resume_schedule(self, name)

    def remove_schedule(self, name: str) -> Schedule:
        """Remove a schedule and return it; the tasks that it created stay.

        Raises:
            NotFound: no such schedule.
        """
        from .schedules.registry import remove_schedule

        return remove_schedule(self, name)

    def backup(self, *, output: str | os.PathLike[str] | None = None, keep: int | None = None) -> dict[str, Any]:
        """Back up the board into one ZIP; others can write meanwhile.

        ``output`` is the directory of the ZIP, by default ``backups`` in the data directory. With ``keep``, the oldest
        backups there are removed until that many are left.

        Returns:
            ``{"path", "tasks", "events", "sha256"}``, with the digest of the board in the ZIP; with ``keep`` also
            ``removed``, the number of removed backups.

        Raises:
            NotFound: there is no board.
            Busy: the board stayed locked for the whole busy timeout.
            Unusable: the board is damaged, the disk is full, or the directory cannot be written; nothing is left.
        """
        from .upkeep.backup import backup

        return backup(self, output=output, keep=keep)

    def doctor(
        self,
        *,
        fix: str | None = None,
        config: str | os.PathLike[str] | None = None,
        ignored: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Check the board and everything around it; without ``fix`` it writes nothing.

        ``fix`` is the name of a repair that a finding offers; a backup is created first. ``config`` is a configuration
        file to check, too, and ``ignored`` has sentences about settings and boards that were found and do not count.

        Returns:
            ``{"findings", "healthy"}``: each finding has ``check level message remedy fix``; a board with a finding of
            level ``error`` is not healthy. With ``fix`` also ``fixed``: ``{"name", "backup", "did"}``.

        Raises:
            Busy: the board stayed locked for the whole busy timeout.
        """
        from .schedules.templates import check_stored
        from .upkeep.doctor import doctor

        return doctor(self, fix, config, ignored, check_schedule=check_stored)

    def import_tasks(
        self,
        source: Any,
        *,
        file_format: str = "json",
        dry_run: bool = False,
        actor: Actor | None = None,
        progress: Callable[[int], object] | None = None,
        before_lock: Callable[[int, float], object] | None = None,
    ) -> Outcome:
        """Import tasks with their attempts, events and comments from a file opened for bytes; all of it or nothing.

        ``source`` can also be parsed JSON. JSON is an array of tasks, an object with ``tasks``, the output of
        ``export``, or an envelope around one of them; ``csv``, ``beads`` and ``github`` are the other formats. A file
        can be larger than memory, and the board is not locked while it is read.

        Ids are kept, and created for tasks without one. A task is skipped, with its attempts and events, and counted if
        its id exists, if an unfinished task has its dedupe key, or if another task has its occurrence; tasks that
        depend on it then depend on that other task. Claimed and running tasks are imported as queued. ``dry_run``
        checks everything and writes nothing. ``progress`` is called repeatedly with the number of elements read.

        The file is compared with the board before the write lock is taken, and copied under it. Before that,
        ``before_lock`` is called with the number of rows and about how many seconds the lock will be held, if there are
        more than 50,000 rows.

        Raises:
            InvalidInput: a malformed element (its place and field are named), an unknown dependency, or a cycle.
            Busy: another process holds the write lock, or kept adding tasks that the file also has.
        """
        from .transfer.importing import import_tasks

        done = import_tasks(
            self,
            source,
            actor,
            file_format=file_format,
            dry_run=dry_run,
            progress=progress,
            before_lock=before_lock,
            read_schedule=_read_schedule,
        )
        if not dry_run:
            from .board.indexing import AFTER_IMPORT, catch_up

            catch_up(self, AFTER_IMPORT)
        return done

    def export(
        self,
        target: str | os.PathLike[str] | BinaryIO,
        *,
        file_format: str = "json",
        bom: bool = True,
        progress: Callable[[int], object] | None = None,
    ) -> dict[str, Any]:
        """Write the whole board as JSON, or its tasks as CSV, to a file opened for bytes, or to a path.

        The file appears at the path complete or not at all, and replaces an existing file. With ``bom``, CSV begins
        with a byte order mark, so that spreadsheets recognize UTF-8. ``progress`` is called repeatedly with the
        number of rows written.

        Returns:
            ``{"tasks", "events"}``, two counts; with a path also ``"path"``.

        Raises:
            InvalidInput: the path is not that of a file.
            Unusable: the file cannot be written, for example on a full disk; nothing of it is left behind.
        """
        from .transfer.export import export

        return export(self, target, file_format=file_format, bom=bom, progress=progress)


def _read_schedule(core: Core, given: dict[str, Any]) -> dict[str, Any]:
    """Check a schedule in an imported file."""
    from .schedules.templates import read_imported

    return read_imported(core, given)
