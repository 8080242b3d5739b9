"""Compare the schema of a file, word by word, with the one that this program creates; nothing in it is executed."""

from __future__ import annotations

import re
from contextlib import closing

from .db import Connection, migrate, open_scratch

Fault = tuple[str, str, str]

MISSING, ALTERED, ADDED, TOLERATED = "missing", "altered", "added", "tolerated"
_WORDS = re.compile(
    r"""(?:'[^']*')+|(?:"[^"]*")+|(?:`[^`]*`)+|\[[^\]]*\]|--[^\n]*|/\*.*?(?:\*/|\Z)|[ \t\n\f\r]+|\w+|.""",
    re.ASCII | re.DOTALL,
)
_PLAIN_INDEX = re.compile(
    r"CREATE INDEX \w+ ON \w+ \( \w+(?: (?:ASC|DESC))?(?: , \w+(?: (?:ASC|DESC))?)* \)", re.ASCII | re.IGNORECASE
)
_STATISTICS = {  # created by ANALYZE
    "sqlite_stat1": "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    "sqlite_stat4": "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
}


def faults(connection: Connection, version: int) -> list[Fault]:
    """Compare the schema of a file with schema ``version`` of this program.

    Comments and spaces are ignored, so that a comment in a migration can change. A plain index on columns is tolerated,
    because it executes nothing. The tables that ANALYZE creates are not a fault.

    Returns:
        ``(kind, type, name)`` of each fault. ``kind`` is ``missing``, ``altered``, ``added`` or ``tolerated``.
    """
    asked = "SELECT type, name, tbl_name, sql FROM sqlite_schema"
    with closing(open_scratch()) as fresh:
        migrate(fresh, 0, version)
        expected = {(row[0], row[1]): (row[2], row[3]) for row in fresh.execute(asked)}
    faults, seen = [], set()
    for type_, name, table, sql in connection.execute(asked):
        key = (type_, name)
        if key in expected and key not in seen:
            seen.add(key)
            if table != expected[key][0] or not same_words(sql, expected[key][1]):
                faults.append((ALTERED, type_, name))
        elif type_ == "index" and _PLAIN_INDEX.fullmatch(" ".join(_words(sql))):
            faults.append((TOLERATED, type_, str(name)))
        elif type_ != "table" or sql is None or _STATISTICS.get(name) != sql:
            faults.append((ADDED, str(type_), str(name)))
    return sorted([(MISSING, *key) for key in expected.keys() - seen] + faults)


def in_words(kind: str, type_: str, name: str) -> str:
    """Describe a fault in words."""
    words = {
        MISSING: "is missing",
        ALTERED: "differs from the one that this program creates",
        ADDED: "is not one of ours",
        TOLERATED: "is not one of ours",
    }
    return f"the {type_[:20]} {name[:60]} {words[kind]}"


def same_words(sql: object, expected: str | None) -> bool:
    """Return whether two statements have the same words."""
    return sql == expected or (expected is not None and _words(sql) == _words(expected))


def _words(sql: object) -> list[str]:
    """Split SQL into words as SQLite does, without comments; a value that is too long or not text has no words."""
    if not isinstance(sql, str) or len(sql) > 65_536:
        return []
    return [word for word in _WORDS.findall(sql) if word[0] not in " \t\n\f\r" and word[:2] not in ("--", "/*")]
