"""Files that are copies of a board: made for a backup, or unpacked from one and not trusted yet."""

from __future__ import annotations

import sqlite3

from ..errors import Unusable
from .db import Connection, refuse, uri_path

STEPS = 1_000_000
"""Steps of SQLite within which the schema of any board is read."""


def open_copy(path: str) -> Connection:
    """Open an empty file that becomes a copy of a board."""
    copy = sqlite3.connect(path, isolation_level=None)
    copy.execute("PRAGMA synchronous = OFF")  # the ZIP is what is brought to disk
    copy.execute("PRAGMA locking_mode = EXCLUSIVE")  # without it the copy would need shared memory
    distrust(copy)
    return copy


def open_source(path: str) -> Connection:
    """Open a board for reading, beside the connection of this thread."""
    return sqlite3.connect(f"file://{uri_path(path)}?mode=ro", uri=True)


def open_untrusted(path: str) -> Connection:
    """Open a file of unknown origin for reading; what it runs ends after ``STEPS`` until ``trust`` lifts the limit."""
    file = sqlite3.connect(f"file://{uri_path(path)}?mode=ro", uri=True, isolation_level=None)
    distrust(file)
    file.execute("PRAGMA cell_size_check = ON")
    file.set_progress_handler(lambda: 1, STEPS)
    return file


def distrust(file: Connection) -> None:
    """Let the schema of a file use no function with side effects."""
    file.execute("PRAGMA trusted_schema = OFF")


def trust(file: Connection) -> None:
    """Lift the limit of ``open_untrusted`` once the schema was found to be ours."""
    file.set_progress_handler(None, 0)


def copy_board(source: Connection, copy: Connection, path: str, directory: str) -> None:
    """Copy a board in one step: a copy in several starts over whenever another process writes, without end.

    Raises:
        Unusable: the board at ``path`` is damaged, or ``directory`` cannot hold the copy.
        Busy: the board is locked.
    """
    try:
        source.backup(copy, pages=-1)
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        ours = code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        refuse(error, path if ours else directory)


def close_log(copy: Connection) -> None:
    """Leave a copy without a write-ahead log, so that the file alone is the whole board."""
    copy.execute("PRAGMA journal_mode = DELETE")


def schema_of(file: Connection) -> int:
    """Return the schema version that a file states."""
    version: int = file.execute("PRAGMA user_version").fetchone()[0]
    return version


def faults(file: Connection, limit: int) -> list[str]:
    """Return what SQLite finds damaged in a file, at most ``limit`` faults; none in a sound one."""
    found = [row[0] for row in file.execute(f"PRAGMA integrity_check({limit})")]
    return [] if found == ["ok"] else found


def refuse_damaged(file: Connection, path: str) -> None:
    """Refuse a damaged file.

    Raises:
        Unusable: SQLite finds a fault; ``path`` is named.
    """
    found = faults(file, 1)
    if found:
        raise Unusable(
            f"{path}: the file is damaged: {found[0]}",
            hint="Stop all writers and restore the newest undamaged backup.",
        )


def broken_references(file: Connection) -> dict[str, int]:
    """Return how many rows of each table refer to a row that does not exist."""
    return dict(file.execute('SELECT "table", count(*) FROM pragma_foreign_key_check GROUP BY 1').fetchall())
