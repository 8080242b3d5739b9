"""Stage the issues of another tracker, and settle among them what only the whole file says.

One id twice in a file: the row with the newest ``updated_at`` counts. What belongs to an issue waits for what that
issue waits for, and is held with it.
"""

from __future__ import annotations

import json

from .foreign import FAR, HELD, Ignored, Issue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..storage.db import Connection
    from .outcome import Outcome
    from .records import RecordStager
    from .staging import Staging

    Row = tuple[str, Issue | Ignored]

GENERATIONS = 10
"""How far a parent's dependencies and hold reach: children, their children, and so on."""
INHERITED = 1_000_000
"""Places in the list of dependencies from here on are those of a parent."""
WARNINGS = 100
"""Maximum number of warnings about single issues."""


class IssueStager:
    """Stages issues, and reports what is ignored to an outcome."""

    def __init__(self, tracker: str, records: RecordStager, staging: Staging, outcome: Outcome) -> None:
        self._tracker = tracker
        self._records = records
        self._staging = staging
        self._outcome = outcome
        self._count = 0

    def add_all(self, rows: Iterable[Row]) -> Iterator[int]:
        """Stage rows, and yield after each how many there were."""
        for count, (place, row) in enumerate(rows, 1):
            if isinstance(row, Ignored):
                self._outcome.ignore(row.reason, row.name or place)
            else:
                self._add(place, row)
            yield count

    def _add(self, place: str, issue: Issue) -> None:
        self._records.add_task(place, issue.task, issue.names)
        self._count += 1
        self._staging.add("staged_issue", (self._count, issue.display[:100], issue.held, issue.spreads))
        if issue.parent_id is not None:
            self._staging.add("staged_parent", (self._count, issue.parent_id))
        for warning in issue.warnings:
            self._outcome.warn(warning)
        for comment in issue.comments:
            self._records.add_comment(place, comment)

    def settle(self, connection: Connection, has_cycle: Callable[[], bool]) -> None:
        """Settle what the whole file says, once all of it is staged."""
        self._keep_newest(connection)
        if connection.execute("SELECT 1 FROM staged_parent LIMIT 1").fetchone():
            self._inherit(connection)
        if has_cycle():
            self._break_cycles(connection, has_cycle)

    def _keep_newest(self, connection: Connection) -> None:
        losers = connection.execute(
            """
            SELECT position, best, name FROM (
                   SELECT position, name,
                          first_value(position) OVER (
                              PARTITION BY id ORDER BY coalesce(updated_at, '') DESC, position) AS best
                     FROM staged_key JOIN staged_task USING (position) JOIN staged_issue USING (position)
                    WHERE id IN (SELECT id FROM staged_key GROUP BY id HAVING count(*) > 1))
             WHERE position <> best
            """
        ).fetchall()
        for position, best, name in losers:
            if position < best:
                connection.execute("UPDATE staged_issue SET replaced = replaced + 1 WHERE position = ?", (best,))
            else:
                self._outcome.skip("repeated", name)
        gone = json.dumps([row[0] for row in losers])
        if losers:
            for table in ("staged_key", "staged_task", "staged_dependency", "staged_issue", "staged_parent"):
                connection.execute(f"DELETE FROM {table} WHERE position IN (SELECT value FROM json_each(?))", (gone,))
            connection.execute(
                """
                DELETE FROM staged_comment
                 WHERE place NOT IN (SELECT min(place) FROM staged_comment GROUP BY task_id, actor, at, data)
                """
            )

    def _inherit(self, connection: Connection) -> None:
        """Let what belongs to an unfinished issue wait for what that waits for, and be held with it."""
        path = f'$."{self._tracker}"'
        family = f"""
            WITH RECURSIVE family (child, parent, generation) AS (
              SELECT staged_parent.position, parent.position, 1
                FROM staged_parent JOIN staged_key AS parent USING (id)
               WHERE parent.final = 0 AND parent.position <> staged_parent.position
               UNION ALL
              SELECT child, parent.position, generation + 1
                FROM family JOIN staged_parent ON staged_parent.position = family.parent
                JOIN staged_key AS parent USING (id)
               WHERE parent.final = 0 AND parent.position <> child AND generation < {GENERATIONS})"""
        connection.execute(
            f"""
            {family}
            INSERT INTO staged_dependency (position, place, id, name)
            SELECT child, {INHERITED} + row_number() OVER (PARTITION BY child), id, name
              FROM (SELECT DISTINCT child, other.id, other.name
                      FROM family JOIN staged_dependency AS other ON other.position = family.parent
                      JOIN staged_key AS mine ON mine.position = child
                     WHERE mine.final = 0 AND other.id <> mine.id
                       AND NOT EXISTS (SELECT 1 FROM staged_dependency AS own
                                        WHERE own.position = child AND own.id = other.id)
                       AND NOT EXISTS (SELECT 1 FROM staged_key AS finished
                                        WHERE finished.id = other.id AND finished.final)
                       AND NOT EXISTS (SELECT 1 FROM family AS sibling JOIN staged_key ON position = sibling.child
                                        WHERE sibling.parent = family.parent AND staged_key.id = other.id))
            """
        )
        held = connection.execute(
            f"""
            {family}
            SELECT DISTINCT child FROM family JOIN staged_issue ON staged_issue.position = parent
              JOIN staged_key ON staged_key.position = child
             WHERE held IS NOT NULL AND spreads AND final = 0
               AND (SELECT held FROM staged_issue WHERE position = child) IS NULL
            """
        ).fetchall()
        for (position,) in held:
            connection.execute(
                f"""
                UPDATE staged_task
                   SET tags = json_insert(tags, '$[#]', '{HELD}'), not_before = '{FAR}',
                       params = iif(not_before IS NULL, params, json_set(params, '{path}.not_before', not_before))
                 WHERE position = ?
                """,
                (position,),
            )
            connection.execute("UPDATE staged_issue SET held = 'of a held parent' WHERE position = ?", (position,))

    def _break_cycles(self, connection: Connection, has_cycle: Callable[[], bool]) -> None:
        """Leave out dependencies that close a cycle and decide nothing: inherited ones, those of finished issues."""
        inherited = connection.execute(f"DELETE FROM staged_dependency WHERE place >= {INHERITED}").rowcount
        if inherited:
            self._outcome.warn("children do not wait for what their parents wait for, since that would be a cycle")
            if not has_cycle():
                return
        path = f'$."{self._tracker}".waits_for'
        finished = "position IN (SELECT position FROM staged_key WHERE final)"
        connection.execute(
            f"""
            UPDATE staged_task
               SET params = json_set(params, '{path}', (
                       SELECT json_group_array(name) FROM staged_dependency AS own
                        WHERE own.position = staged_task.position))
             WHERE {finished} AND position IN (SELECT position FROM staged_dependency)
            """
        )
        left = connection.execute(f"DELETE FROM staged_dependency WHERE {finished}").rowcount
        if left:
            self._outcome.warn(
                f"{left:,} dependencies of finished issues are kept in `params` only: with them there is a cycle"
            )
