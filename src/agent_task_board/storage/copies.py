"""Copies of a board: created for a backup, or unpacked from one and not yet trusted."""

from __future__ import annotations

import sqlite3

from ..errors import Unusable
from . import db
from .db import Connection, uri_path
from .process import process
from .refusals import refuse

FIRST_WITH_ID = 3
"""The first schema version in which a board has an id."""


def open_copy(path: str) -> Connection:
    """Open an empty file that becomes a copy of a board."""
    process.refuse_lost_threads(path)
    db.refuse_old_sqlite(db.SQLITE_VERSION)
    copy = sqlite3.connect(path, isolation_level=None)
    copy.execute("PRAGMA synchronous = OFF")  # the ZIP is what is synced to disk
    copy.execute("PRAGMA locking_mode = EXCLUSIVE")  # otherwise the copy would need shared memory
    distrust(copy)
    return copy


def open_source(path: str) -> Connection:
    """Open a board for reading, in addition to this thread's connection."""
    return sqlite3.connect(f"file://{uri_path(path)}?mode=ro", uri=True)


def open_untrusted(path: str) -> Connection:
    """Open a file of unknown origin for reading; until ``trust`` is called, a statement may take few steps."""
    process.refuse_lost_threads(path)
    db.refuse_old_sqlite(db.SQLITE_VERSION)
    file = sqlite3.connect(f"file://{uri_path(path)}?mode=ro", uri=True, isolation_level=None)
    distrust(file)
    file.execute("PRAGMA cell_size_check = ON")
    file.set_progress_handler(lambda: 1, db.UNKNOWN_STEPS)
    file.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, db.UNKNOWN_LENGTH)
    return file


def distrust(file: Connection) -> None:
    """Prevent the schema of a file from calling functions with side effects."""
    file.execute("PRAGMA trusted_schema = OFF")


def trust(file: Connection) -> None:
    """Remove the limit of ``open_untrusted``, once the schema is known to be that of a board."""
    file.set_progress_handler(None, 0)
    file.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, db.MAX_LENGTH)


def give_new_id(path: str, version: int) -> None:
    """Give a restored board of schema ``version`` a new id, once the file has been checked.

    Its original may live on; then two boards would have one id. An older board gets its id from the migration.
    """
    if version < FIRST_WITH_ID:
        return
    file = sqlite3.connect(path, isolation_level=None)
    try:
        distrust(file)
        file.execute("UPDATE board SET board_id = lower(hex(randomblob(8)))")
    finally:
        file.close()


def copy_board(source: Connection, copy: Connection, path: str, directory: str) -> None:
    """Copy a board in one step: a copy in several steps restarts whenever another process writes, and may never end.

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
    """Remove the write-ahead log of a copy, so that the file alone is the whole board."""
    copy.execute("PRAGMA journal_mode = DELETE")


def schema_of(file: Connection) -> int:
    """Return the schema version stored in a file."""
    version: int = file.execute("PRAGMA user_version").fetchone()[0]
    return version


def faults(file: Connection, limit: int) -> list[str]:
    """Return at most ``limit`` faults that SQLite finds in a file."""
    found = [row[0] for row in file.execute(f"PRAGMA integrity_check({limit})")]
    return [] if found == ["ok"] else found


def refuse_damaged(file: Connection, path: str) -> None:
    """Refuse a damaged file.

    Raises:
        Unusable: SQLite finds a fault; the message names ``path``.
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
