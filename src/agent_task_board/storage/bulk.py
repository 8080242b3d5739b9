"""Write very many rows in one transaction, in as little time under the write lock as possible."""

from __future__ import annotations

from contextlib import contextmanager, suppress

from .db import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .db import Database

CACHE = 8_192
"""KiB of the file that the connection may keep in memory; with little, pages of indexes are written again and again."""


@contextmanager
def bulk(database: Database) -> Iterator[None]:
    """Prepare this thread's connection for one large write transaction inside the block.

    References are not checked there: the caller has resolved each of them itself.
    """
    connection = database.session(to_write=True).connection
    before = connection.execute("PRAGMA cache_size").fetchone()[0]
    connection.execute(f"PRAGMA cache_size = -{CACHE}")
    connection.execute("PRAGMA foreign_keys = OFF")  # has no effect inside a transaction
    try:
        yield
    finally:
        with suppress(Error):  # closed: the file was replaced
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA cache_size = {before}")
