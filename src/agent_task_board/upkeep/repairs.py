"""The doctor's repairs; none of them loses anything."""

from __future__ import annotations

import os
import stat

from ..board import indexing, stuck
from ..board.core import is_board_id
from ..errors import Unusable
from ..folder import Folder, LeadsOut
from ..reach import limits_of, reach
from ..storage.workdir import sweep
from .contents import ATTEMPTS_BY_OUTCOME, OPEN_DEPENDENCIES, TASKS_BY_STATUS, revision_and_least
from .surroundings import exposed_configs, own_files, workplaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .finding import Checkup

_LEAP = 1 << 32
"""How far a lost revision is set above the least possible one, so that it was never used before."""


def _fix_counters(checkup: Checkup) -> list[str]:
    with checkup.core.database.write() as tx:
        revision, least = revision_and_least(tx)
        is_lost = revision is None or revision < least
        if is_lost:  # clients compare revisions for equality
            tx.execute(
                """
                INSERT INTO board (id, revision) VALUES (1, :revision)
                    ON CONFLICT (id) DO UPDATE SET revision = :revision
                """,
                {"revision": max(revision or 0, least) + _LEAP},
            )
            tx.execute(
                """
                UPDATE board SET last_event = max(last_event, (SELECT coalesce(max(seq), 0) FROM event)),
                                 last_event_revision = revision
                """
            )
        has_no_id = not is_board_id(tx.execute("SELECT board_id FROM board").fetchone()[0])
        if has_no_id:
            tx.execute("UPDATE board SET board_id = lower(hex(randomblob(8)))")
        tx.execute("DELETE FROM tally")
        tx.execute(f"INSERT INTO tally (queue, status, tasks) {TASKS_BY_STATUS}")
        tasks = tx.execute(
            f"""
            UPDATE task SET open_dependencies = {OPEN_DEPENDENCIES}
             WHERE open_dependencies <> {OPEN_DEPENDENCIES}
            RETURNING seq
            """
        ).fetchall()
        marked, unmarked = stuck.settle_all(tx)
        agents = tx.execute(
            f"""
            UPDATE agent
               SET completed = counted.completed, failed = counted.failed, expired = counted.expired
              FROM (SELECT key, coalesce(seen.completed, 0) AS completed, coalesce(seen.failed, 0) AS failed,
                           coalesce(seen.expired, 0) AS expired
                      FROM agent LEFT JOIN ({ATTEMPTS_BY_OUTCOME}) AS seen ON seen.agent = name) AS counted
             WHERE counted.key = agent.key
            RETURNING key
            """
        ).fetchall()
    return [
        "recounted the tasks of every queue",
        f"recounted the open dependencies: {len(tasks):,} tasks were wrong",
        f"marked the stuck tasks: {len(marked) + unmarked:,} were wrong",
        f"recounted the attempts of {len(agents):,} agents",
        *(["set the board's revision to a number that was never used"] if is_lost else []),
        *(["gave the board a new id"] if has_no_id else []),
    ]


def _fix_leftovers(checkup: Checkup) -> list[str]:
    return [f"removed {path}" for place in workplaces(checkup) for path in sweep(place)]


def _fix_permissions(checkup: Checkup) -> list[str]:
    did = []
    above = os.path.abspath(checkup.directory)
    with Folder(above) as folder:
        found = stat.S_IMODE(folder.stat().st_mode)
        if found & 0o022:
            folder.restrict(found & ~0o022)
            did.append(f"removed the access of other users to {above}")
    for path in own_files(checkup)[1:]:
        did += _restrict(path, above)
    for path in exposed_configs(checkup):
        did += _restrict(path, limits_of(path))
    return did


def _restrict(path: str, within: str) -> list[str]:
    """Take the access of other users to a file or directory away; a link that leads out stays, with its target."""
    try:
        with reach(path, within) as spot:
            found = spot.folder.stat(spot.name).st_mode
            unwanted = 0o022 if stat.S_ISDIR(found) else 0o077
            if not found & unwanted:
                return []
            spot.folder.chmod(spot.name, stat.S_IMODE(found) & ~unwanted)
    except (FileNotFoundError, LeadsOut):
        return []
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}", hint="Repeat this as the owner of the file.") from error
    return [f"removed the access of other users to {path}"]


def _fix_search(checkup: Checkup) -> list[str]:
    with checkup.core.database.write() as tx:
        indexing.rebuild(tx)
    return [f"created the full-text index again: {indexing.catch_up(checkup.core):,} tasks"]


FIXES: dict[str, Callable[[Checkup], list[str]]] = {
    "counters": _fix_counters,
    "leftovers": _fix_leftovers,
    "permissions": _fix_permissions,
    "search": _fix_search,
}
"""The repairs by name; each returns sentences that say what it did."""
