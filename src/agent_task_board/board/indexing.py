"""Keep the full-text index: a row per task with the words of its texts.

A verb that changes a text of a task indexes it in its own transaction (``Transaction.record`` notes which). Whatever is
not indexed is in the table ``unindexed``: texts written by a program without FTS5, by an import or a migration, and
long ones. Searches read those texts themselves, and ``catch_up`` indexes them.
"""

from __future__ import annotations

import json
from functools import partial
from itertools import islice

from ..storage import fulltext
from ..storage.db import Error, IntegrityError
from ..storage.refusals import is_damage
from . import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from ..storage.db import Connection
    from .core import Core

INLINE = 100_000
"""The most characters of a task's texts that are indexed together with a change; ``catch_up`` indexes longer ones."""
OTHERS = 8
"""The most tasks of others that a change indexes in addition."""
BATCH = 50
"""The most tasks that one transaction of ``catch_up`` indexes."""
BATCH_SIZE = 500_000
"""The characters of texts after which such a transaction ends."""
PER_TICK = 20_000
"""The most tasks that a tick indexes."""
AFTER_IMPORT = 2_000
"""The most tasks that an import indexes; a tick indexes the rest."""

SOURCE = "seq, id, title, tags, body, result, error"
"""The columns of a task that ``document`` reads, in this order."""


def document(row: Any, comments: Iterable[str]) -> tuple[str, str]:
    """Return what the index stores for a row of ``SOURCE``: the words of title and id, and those of all other texts."""
    _, task_id, title, tags, body, result, error = row
    title = f"{words.joined([title])} {words.BREAK} {words.of_id(task_id)}"
    return title, words.joined([*values(tags), body, *values(result), error or "", *comments])


def values(text: str | None) -> list[str]:
    """Return the keys, texts and numbers of a JSON text, in order."""
    if text is None or text in ("[]", "{}"):
        return []
    try:
        return list(_flat(json.loads(text)))
    except (ValueError, RecursionError):  # not written by this program
        return [text]


def _flat(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from _flat(one)
    elif isinstance(value, list):
        for one in value:
            yield from _flat(one)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def comments(tx: Connection, seq: int) -> Iterator[str]:
    """Yield the comments of a task, oldest first."""
    for (text,) in tx.execute(
        "SELECT data ->> '$.text' FROM event WHERE task_seq = ? AND kind = 'commented' ORDER BY seq", (seq,)
    ):
        yield text or ""


def index_changed(tx: Connection, changed: Iterable[int]) -> None:
    """Index the tasks that a write transaction has changed, and a few others, unless there is no index.

    A damaged index fails no write: the tasks stay marked as not indexed.
    """
    if not fulltext.is_usable(tx):
        return
    mine = set(changed)
    others = [seq for seq in _marked(tx, OTHERS + len(mine)) if seq not in mine][:OTHERS]
    _stored(tx, lambda: _index(tx, mine, longest=INLINE) + _index(tx, others, until=INLINE))


def _stored(tx: Connection, write: Callable[[], int]) -> int | None:
    """Write to the index inside a transaction; ``None`` if it is damaged, and then nothing of it has changed."""
    tx.execute("SAVEPOINT indexing")
    try:
        done = write()
        tx.execute("SAVEPOINT indexed")  # FTS5 stores now what it has collected
    except Error as error:
        tx.execute("ROLLBACK TO indexing")
        tx.execute("RELEASE indexing")
        if is_damage(error) or isinstance(error, IntegrityError):
            return None
        raise
    tx.execute("RELEASE indexing")
    return done


def catch_up(core: Core, limit: int | None = None) -> int:
    """Index what is not indexed, at most ``limit`` tasks, in small transactions; return how many tasks that were.

    It creates the index if this SQLite has FTS5 and the board has none.
    """
    if not _is_ready(core):
        return 0
    done = 0
    while limit is None or done < limit:
        room = BATCH if limit is None else min(BATCH, limit - done)
        with core.read() as reading:
            if not _marked(reading.connection, 1):
                break
        with core.database.write() as tx:
            seqs = _marked(tx, room)
            count = _stored(tx, partial(_index, tx, seqs, until=BATCH_SIZE))
        if count is None:
            break  # `atb doctor` names it
        done += count
    return done


def _is_ready(core: Core) -> bool:
    """Create the index if the board has none; return whether there is one that this SQLite can use."""
    with core.read() as tx:
        if core.is_missing or not fulltext.is_available(tx.connection):
            return False
        if fulltext.exists(tx.connection):
            return True
    with core.database.write() as connection:
        fulltext.create(connection)
    return True


def _marked(tx: Connection, limit: int) -> list[int]:
    """Return the first tasks that are not indexed, by number."""
    rows = tx.execute("SELECT task_seq FROM unindexed WHERE task_seq > 0 ORDER BY task_seq LIMIT ?", (limit,))
    return [row[0] for row in rows.fetchall()]


def wrong(tx: Connection, limit: int) -> list[str]:
    """Return tasks, by id or number, whose entry in the index is not what it should be; at most ``limit``."""
    try:
        return list(islice(_wrong(tx), limit))
    except Error as error:
        if is_damage(error):
            return ["all of it"]
        raise


def _wrong(tx: Connection) -> Iterator[str]:
    rows = tx.execute(
        f"SELECT {SOURCE} FROM task WHERE seq NOT IN (SELECT task_seq FROM unindexed) ORDER BY seq",
    )
    for row in rows:
        kept = tx.execute("SELECT title, text FROM search WHERE rowid = ?", (row[0],)).fetchone()
        is_right = kept is not None and tuple(kept) == document(row, comments(tx, row[0]))
        # The words of the row may have been lost, and its texts not.
        name = f'"{words.of_id(row[1]).split()[0]}"'
        if not is_right or not tx.execute("SELECT 1 FROM search WHERE search MATCH ?", (name,)).fetchall():
            yield row[1]
    for row in tx.execute("SELECT rowid FROM search WHERE rowid NOT IN (SELECT seq FROM task)"):
        yield f"row {row[0]}"


def rebuild(tx: Connection) -> bool:
    """Drop the index, create it again if this SQLite has FTS5, and mark every task; return whether there is one now."""
    if not fulltext.is_available(tx):
        return False
    if fulltext.exists(tx):
        tx.execute("DROP TABLE search")
    return fulltext.create(tx)


def _index(tx: Connection, seqs: Iterable[int], *, longest: int | None = None, until: int | None = None) -> int:
    """Index tasks until their texts have ``until`` characters; those with more than ``longest`` stay as they are."""
    done = total = 0
    for seq in seqs:
        row = tx.execute(f"SELECT {SOURCE} FROM task WHERE seq = ?", (seq,)).fetchone()
        said = [] if row is None else _within(comments(tx, seq), sum(len(text or "") for text in row[2:]), longest)
        if said is None:
            continue
        if row is not None:  # else the mark is all that is left
            title, text = document(row, said)
            tx.execute("INSERT OR REPLACE INTO search (rowid, title, text) VALUES (?, ?, ?)", (seq, title, text))
            total += len(title) + len(text)
        tx.execute("DELETE FROM unindexed WHERE task_seq = ?", (seq,))
        done += 1
        if until is not None and total > until:
            break
    return done


def _within(texts: Iterator[str], length: int, longest: int | None) -> list[str] | None:
    """Return texts; ``None`` if they have, after ``length`` characters, more than ``longest`` in total."""
    found = []
    for text in texts:
        length += len(text)
        if longest is not None and length > longest:
            break
        found.append(text)
    return None if longest is not None and length > longest else found
