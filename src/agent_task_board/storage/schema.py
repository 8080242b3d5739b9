"""Compare the schema of a file, word by word, with the one that this program creates; nothing in it is executed."""

from __future__ import annotations

import re
from contextlib import closing
from itertools import combinations

from ..errors import Unusable
from . import fingerprint as fingerprints
from . import fulltext
from .db import SCHEMA_VERSION, Connection, migrate, open_scratch
from .fingerprint import SCHEMA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

Fault = tuple[str, str, str]

OPTIONS: dict[str, tuple[int, Sequence[tuple[str, str, str, str]]]] = {
    "search": (fulltext.SINCE, fulltext.SCHEMA),
}
"""Parts that a board may or may not have, by name: the first schema version that can have it, and what it adds.

An addition is type, name, table and SQL: a SQLite without FTS5 cannot create the tables, and has to compare them.

What is added here is accepted by ``faults``, and its fingerprints are generated.
"""

MISSING, ALTERED, ADDED, TOLERATED = "missing", "altered", "added", "tolerated"
_WORDS = re.compile(
    r"""(?:'[^']*')+|(?:"[^"]*")+|(?:`[^`]*`)+|\[[^\]]*\]|--[^\n]*|/\*.*?(?:\*/|\Z)|[ \t\n\f\r]+|\w+|.""",
    re.ASCII | re.DOTALL,
)
_PLAIN_INDEX = re.compile(
    r"CREATE INDEX \w+ ON \w+ \( \w+(?: (?:ASC|DESC))?(?: , \w+(?: (?:ASC|DESC))?)* \)", re.ASCII | re.IGNORECASE
)
_BEGIN, _END = "# generated: begin", "# generated: end"
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
    found = [tuple(row) for row in connection.execute(SCHEMA)]
    compared = []
    for variant in variants(version):
        expected = {(type_, name): (table, sql) for type_, name, table, sql in variant}
        compared.append(_compare(found, expected))
    return min(compared, key=len)


def _compare(found: list[tuple[Any, ...]], expected: dict[tuple[str, str], tuple[str, str]]) -> list[Fault]:
    faults, seen = [], set()
    for type_, name, table, sql in found:
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


def variants(version: int) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of an empty board of a schema version, for every choice of options that it can have."""
    with closing(open_scratch()) as fresh:
        migrate(fresh, 0, version)
        rows = [tuple(row) for row in fresh.execute(SCHEMA)]
    possible = [added for since, added in OPTIONS.values() if since <= version]
    for count in range(len(possible) + 1):
        for chosen in combinations(possible, count):
            yield [*rows, *(row for added in chosen for row in added)]


def known() -> list[str]:
    """Return the fingerprints of every version and variant, as ``fingerprint.KNOWN`` has to hold them."""
    versions = range(1, SCHEMA_VERSION + 1)
    return sorted({fingerprints.of_rows(rows, version) for version in versions for rows in variants(version)})


def write_known() -> str:
    """Write the fingerprints into the source of ``fingerprint``; return its path."""
    path = fingerprints.__file__
    with open(path, encoding="utf-8") as source:
        text = source.read()
    lines = "".join(f'        "{one}",\n' for one in known())
    new = f"{_BEGIN}\nKNOWN: frozenset[str] = frozenset(\n    (\n{lines}    )\n)\n{_END}"
    with open(path, "w", encoding="utf-8", newline="\n") as source:
        source.write(text[: text.index(_BEGIN)] + new + text[text.index(_END) + len(_END) :])
    return path


def refuse_faults(connection: Connection, version: int, path: str) -> None:
    """Refuse a board whose schema is not ours; statistics and plain indexes of a user are tolerated.

    Raises:
        Unusable: it has a fault; the message names the first one.
    """
    for kind, type_, name in faults(connection, version):
        if kind != TOLERATED:
            raise Unusable(
                f"{path}: not a board of this program: {in_words(kind, type_, name)}",
                hint="Use it only if you know who made it: `atb doctor` lists every difference and its remedy.",
            )


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
