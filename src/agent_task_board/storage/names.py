"""The canonical keys of names, for boards of older versions: what has one key becomes one name.

Older versions compared names by ``casefold()`` alone, and people's names letter by letter. SQLite can do neither, so
the migration to schema 3 calls this step.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from sqlite3 import Connection


def settle_names(connection: Connection) -> list[str]:
    """Give every agent and person its canonical key, and merge those who have the same one; return what was merged.

    The name that came first stays. Tasks and attempts follow, each changed task with an event; events keep the names as
    they were written.
    """
    return [*_settle_agents(connection), *_settle_people(connection)]


def _settle_agents(connection: Connection) -> list[str]:
    rows = connection.execute("SELECT key, name FROM agent ORDER BY first_seen_at, name").fetchall()
    groups = _by_key(row[1] for row in rows)
    others = [(name, names[0]) for names in groups.values() for name in names[1:]]
    if others:
        _merge_agents(connection, others)
    old_keys = {row[1]: row[0] for row in rows}
    connection.executemany(
        "UPDATE agent SET key = ? WHERE name = ?",
        [(key, names[0]) for key, names in groups.items() if old_keys[names[0]] != key],
    )
    return [_sentence(names) for names in groups.values() if len(names) > 1]


def _merge_agents(connection: Connection, others: list[tuple[str, str]]) -> None:
    trigger = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'outcome_is_final'").fetchone()[0]
    connection.execute("DROP TRIGGER outcome_is_final")
    (now,) = connection.execute("SELECT strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now')").fetchone()
    for name, kept in others:
        values = {"name": name, "kept": kept, "now": now}
        for column in ("assignee", "claimed_by"):
            connection.execute(
                f"""
                INSERT INTO event (task_seq, kind, actor, actor_kind, at, data)
                SELECT seq, 'updated', 'system', 'system', :now,
                       json_object('changes', json_object('{column}', json_object('from', :name, 'to', :kept)))
                  FROM task WHERE {column} = :name
                """,
                values,
            )
            connection.execute(
                f"""
                UPDATE task SET {column} = :kept, version = version + 1, updated_at = :now WHERE {column} = :name
                """,
                values,
            )
        connection.execute("UPDATE attempt SET agent = :kept WHERE agent = :name", values)
        connection.execute(
            """
            UPDATE agent
               SET completed = agent.completed + other.completed, failed = agent.failed + other.failed,
                   expired = agent.expired + other.expired,
                   last_seen_at = coalesce(max(agent.last_seen_at, other.last_seen_at), agent.last_seen_at,
                                           other.last_seen_at)
              FROM agent AS other WHERE agent.name = :kept AND other.name = :name
            """,
            values,
        )
        connection.execute("DELETE FROM agent WHERE name = :name", values)
    connection.execute(trigger)


def _settle_people(connection: Connection) -> list[str]:
    rows = connection.execute(
        "SELECT actor FROM event WHERE actor_kind = 'human' AND imported = 0 GROUP BY actor ORDER BY min(seq)"
    )
    groups = _by_key(row[0] for row in rows)
    agents = {row[0] for row in connection.execute("SELECT key FROM agent")}
    connection.executemany(
        "INSERT INTO actor (key, name) VALUES (?, ?)",
        [(key, names[0]) for key, names in groups.items() if key not in agents],
    )
    return [_sentence(names) for names in groups.values() if len(names) > 1]


def _by_key(names: Iterable[str]) -> dict[str, list[str]]:
    from ..inputs import name_key

    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name_key(name), []).append(name)
    return groups


def _sentence(names: list[str]) -> str:
    kept, *others = (json.dumps(name) for name in names)  # escaped: what falls together often looks alike
    return f"the migration merged names that are compared as one: {', '.join(others)} into {kept}"
