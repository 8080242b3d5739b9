"""The board: every transition of a task, one method a write transaction, and every read of it.

The methods live beside what they are about, and ``Board`` puts them together:

========================  ==========================================================================
``claiming.py``           claim, resume, heartbeat, complete, fail, release, handoff
``review.py``             approve, reject
``editing.py``            add, update, reassign, retry, cancel, comment
``queries.py``            list_tasks, show, events, agents, stats, revision, nothing_ready
``snapshot.py``           snapshot
``transfer.py``           import_tasks
``ticking.py``            tick
``archive.py``            archive, unarchive
``core.py``               what they share: tokens, attempts, events, refusals
========================  ==========================================================================
"""

from __future__ import annotations

from .editing import Editing
from .queries import Queries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .identity import Actor
    from .model import Receipt
    from .snapshot import Snapshot
    from .transfer import Imported


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

    def tick(self) -> dict[str, Any]:
        """Do what time alone brings about.

        Leases expire, delayed tasks are promoted, schedules that are due make their tasks, old tasks are archived
        where the settings say so, and hooks are told what they are owed. Works in small transactions; safe to run
        twice at once. Of each schedule it makes so many occurrences at most, and says with ``catchup_pending`` that
        more are due.

        Returns:
            ``{"expired", "created", "delivered", "catchup_pending"}``: three counts and a boolean.
        """
        from .ticking import tick

        return tick(self)

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
        from .archive import archive

        return archive(self, older_than, status=status, dry_run=dry_run, actor=actor)

    def unarchive(self, task: str, *, actor: Actor | None = None) -> Receipt:
        """Bring a task back from the archive.

        Raises:
            NotFound: no such task.
            Conflict: it is not in the archive.
        """
        from .archive import unarchive

        return unarchive(self, task, actor=actor)

    def import_tasks(self, data: Any, *, actor: Actor | None = None) -> Imported:
        """Import an array of tasks, an object with ``tasks``, or an envelope around either; all of it or nothing.

        Ids are kept, and made where there are none. A task whose id exists, or whose dedupe key an unfinished task
        holds, is passed over and counted; what waits for one passed over by its key waits for the key's holder.
        Claimed and running tasks come in as queued.

        Raises:
            InvalidInput: a malformed task (its place and field are named), an unknown dependency, a circle.
        """
        from .transfer import import_tasks

        return import_tasks(self, data, actor)

    def snapshot(self, known: Snapshot | None = None) -> Snapshot:
        """Return the board as one JSON text; ``known`` itself when that still holds, which costs next to nothing."""
        from .snapshot import take

        return take(self, known)
