"""The full-text index: FTS5, which not every SQLite has.

A board has the table ``search`` if a program with FTS5 has written to it. One without FTS5 can read and write every
other table of such a board. Which tasks the index lacks is in the table ``unindexed``, kept by triggers; the texts are
written by ``board/indexing.py``, since SQLite refuses triggers that write to FTS5 under ``trusted_schema = OFF``.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .db import Connection

SINCE = 3
"""The first schema version that can have the index."""

CREATE = "CREATE VIRTUAL TABLE search USING fts5 (title, text, tokenize = 'ascii', columnsize = 0)"
"""The words are separated by spaces and folded before they are stored, so the simplest tokenizer reads them back."""

SCHEMA = (
    ("table", "search", "search", CREATE),
    ("table", "search_data", "search_data", "CREATE TABLE 'search_data'(id INTEGER PRIMARY KEY, block BLOB)"),
    (
        "table",
        "search_idx",
        "search_idx",
        "CREATE TABLE 'search_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID",
    ),
    (
        "table",
        "search_content",
        "search_content",
        "CREATE TABLE 'search_content'(id INTEGER PRIMARY KEY, c0, c1)",
    ),
    ("table", "search_config", "search_config", "CREATE TABLE 'search_config'(k PRIMARY KEY, v) WITHOUT ROWID"),
)
"""What ``CREATE`` adds to the schema: type, name, table and SQL. A SQLite without FTS5 cannot create it to compare."""


def is_available(connection: Connection) -> bool:
    """Return whether this SQLite has FTS5."""
    return connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone() is not None


def exists(connection: Connection) -> bool:
    """Return whether the board has the index."""
    return connection.execute("SELECT 1 FROM main.sqlite_master WHERE name = 'search'").fetchone() is not None


def is_usable(connection: Connection) -> bool:
    """Return whether the board has the index, and this SQLite can read it."""
    return exists(connection) and is_available(connection)


def create(connection: Connection) -> bool:
    """Create the index if the board lacks it and SQLite has FTS5, in a write transaction; return whether it did.

    It is empty: every task has to be in ``unindexed``.
    """
    if exists(connection) or not is_available(connection):
        return False
    connection.execute("INSERT OR IGNORE INTO unindexed (task_seq) SELECT seq FROM task")
    connection.execute(CREATE)
    return True
