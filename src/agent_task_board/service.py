"""The board: every transition of a task, one method a write transaction, and every read of it.

The methods live beside what they are about, and ``Board`` puts them together:

========================  ==========================================================================
``claiming.py``           claim, resume, heartbeat, complete, fail, release, handoff, tick
``review.py``             approve, reject
``editing.py``            add, update, reassign, retry, cancel, comment
``queries.py``            list_tasks, show, events, agents, stats, revision, nothing_ready
``snapshot.py``           snapshot
``briefing.py``           briefing
``transfer.py``           import_tasks
``core.py``               what they share: tokens, attempts, events, refusals
========================  ==========================================================================
"""

from __future__ import annotations

from .editing import Editing
from .queries import Queries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .briefing import Briefing
    from .identity import Actor
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

    def briefing(self, *, agent: str | None = None) -> Briefing:
        """Return what an agent must know to begin or to go on: what it holds, what is ready for it, how to work.

        Tokens are not in it: ``resume`` gives the holder of a task a new one. Costs the same on any board.
        """
        from .briefing import take

        return take(self, agent)
