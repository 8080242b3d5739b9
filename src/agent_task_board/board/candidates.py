"""What a shell can complete from the board: names, and the tasks that a command may be meant for."""

from __future__ import annotations

from ..model import FINAL, STATUSES
from .predicates import IS_UNFINISHED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .core import Core, Transaction

OFFERED = 100
"""Tasks or names, at most."""
LOOKED_AT = 10_000
"""Tasks that are looked at, at most; the newest."""
SHOWN = 6
"""Characters of an id's ending that people see."""


class Candidate:
    """A task that a command may be meant for, and the shortest name that says which."""

    __slots__ = ("name", "status", "title")

    def __init__(self, name: str, title: str, status: str) -> None:
        self.name = name
        self.title = title
        self.status = status


def queues(core: Core) -> list[str]:
    """Return the names of the queues that hold or held tasks."""
    with core.read() as tx:
        return _column(tx, "SELECT DISTINCT queue FROM tally ORDER BY queue LIMIT :most")


def agents(core: Core) -> list[str]:
    """Return the names of agents, the one seen last first."""
    with core.read() as tx:
        return _column(tx, "SELECT name FROM agent ORDER BY last_seen_at IS NULL, last_seen_at DESC, name LIMIT :most")


def tags(core: Core) -> list[str]:
    """Return the tags of the newest unfinished tasks."""
    with core.read() as tx:
        return _column(
            tx,
            f"""
            SELECT DISTINCT value
              FROM (SELECT tags FROM task WHERE {IS_UNFINISHED} ORDER BY seq DESC LIMIT {LOOKED_AT}) AS some,
                   json_each(some.tags)
             ORDER BY value LIMIT :most
            """,
        )


def schedules(core: Core) -> list[str]:
    """Return the names of the schedules."""
    with core.read() as tx:
        return _column(tx, "SELECT name FROM schedule ORDER BY name LIMIT :most")


def tasks(
    core: Core, beginning: str, *, status: Sequence[str] = (), agent: str | None = None, archived: bool = False
) -> list[Candidate]:
    """Return tasks whose shown ending, or whole id, begins with a text; unfinished ones first, then the newest.

    ``agent`` is who holds them. A name is the ending that people see, or the whole id where the ending names several;
    each begins with the text.
    """
    beginning = beginning.upper()
    wanted = [one for one in STATUSES if not status or one in status]
    unfinished = f"{IS_UNFINISHED} AND {_among([one for one in wanted if one not in FINAL])}"
    finished = f"finished_at IS NOT NULL AND archived_at IS NULL AND {_among([one for one in wanted if one in FINAL])}"
    halves = (
        [("archived_at IS NOT NULL", "finished_at")] if archived else [(unfinished, "seq"), (finished, "finished_at")]
    )
    found: list[Candidate] = []
    with core.read() as tx:
        name = None if agent is None else tx.canonical_name(agent)
        for where, order in halves:
            rows = tx.execute(
                f"""
                SELECT id, title, status
                  FROM (SELECT * FROM task WHERE {where} ORDER BY {order} DESC LIMIT {LOOKED_AT})
                 WHERE (substr(id, -{SHOWN}, length(:text)) = :text OR substr(id, 1, length(:text)) = :text)
                   AND (:agent IS NULL OR claimed_by = :agent)
                 LIMIT :most
                """,
                {"text": beginning, "agent": name, "most": OFFERED - len(found)},
            ).fetchall()
            for id_, title, state in rows:
                name = _name(tx, id_, beginning)
                if name.startswith(beginning):  # not so where several tasks have the ending that is typed
                    found.append(Candidate(name, title, state))
    return found


def _name(tx: Transaction, id_: str, beginning: str) -> str:
    """Return the ending that people see, or the whole id: if several end so, or the text is the id's own beginning."""
    ending = id_[-SHOWN:]
    alike = "SELECT count(*) FROM task WHERE substr(id, -4) = ? AND substr(id, ?) = ?"
    is_only = tx.execute(alike, (id_[-4:], -SHOWN, ending)).fetchone()[0] == 1
    return ending if is_only and ending.startswith(beginning) else id_


def _among(statuses: Sequence[str]) -> str:
    return f"status IN ({', '.join(repr(one) for one in statuses)})"


def _column(tx: Transaction, sql: str) -> list[str]:
    return [row[0] for row in tx.execute(sql, {"most": OFFERED}).fetchall()]
