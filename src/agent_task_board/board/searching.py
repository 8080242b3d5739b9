"""Find the tasks that a search asks for, and the part of a text that shows why.

The full-text index answers for the tasks that it has; the texts of the others are read one by one, with the same rules
(``words``). Without an index, all tasks are read.
"""

from __future__ import annotations

import json

from ..errors import Busy
from ..storage import fulltext
from ..storage.db import Error
from ..storage.refusals import is_damage
from . import indexing, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from ..storage.db import Connection, Row
    from .core import Transaction

SNIPPET = 120
"""About how many characters a snippet has."""
LOOKED_AT = 20_000
"""The characters of a text, from its beginning, in which a snippet is looked for."""


class Search:
    """The tasks that match, as SQL: ``hits`` is a query of ``seq``.

    Raises:
        Busy: ``stop`` said so, while texts that are not indexed were read.
    """

    def __init__(self, tx: Transaction, search: str, stop: Callable[[], bool] | None = None) -> None:
        self.query = words.Query(search)
        self._tx = tx
        self._has_index = bool(self.query.terms) and _can_match(tx.connection, self.query)
        self._scanned = self._scan(stop)

    @property
    def levels(self) -> tuple[int, ...]:
        """How well tasks can match, best first."""
        return self.query.levels

    @property
    def warnings(self) -> list[str]:
        """A sentence if the search has nothing to look for."""
        return [] if self.query.terms else ["nothing to search for: no letters, digits or symbols"]

    def hits(self, level: int | None = None) -> tuple[str, dict[str, Any]]:
        """Return SQL for ``seq`` of the tasks of a level (or of all), beyond ``:seq``, and its other parameters."""
        parts, values = [], {}
        if self._has_index:
            values["match"] = self.query.match(level)
            known = " AND rowid NOT IN (SELECT task_seq FROM unindexed)" if self._is_behind else ""
            parts.append(f"SELECT rowid AS seq FROM search WHERE search MATCH :match AND rowid > :seq{known}")
        scanned = [seq for seq, of in self._scanned if level in (None, of)]
        if scanned or not parts:
            values["scanned"] = json.dumps(scanned)
            parts.append("SELECT value AS seq FROM json_each(:scanned) WHERE value > :seq")
        return " UNION ALL ".join(parts), values

    def _scan(self, stop: Callable[[], bool] | None) -> list[tuple[int, int]]:
        """Read the texts that are not indexed; return number and level of the tasks that match."""
        tx, query = self._tx, self.query
        self._is_behind = bool(tx.execute("SELECT 1 FROM unindexed LIMIT 1").fetchone())
        if not query.terms or (self._has_index and not self._is_behind):
            return []
        which = "seq IN (SELECT task_seq FROM unindexed)" if self._has_index else "1"
        found = []
        rows = tx.execute(f"SELECT {indexing.SOURCE} FROM task WHERE {which} ORDER BY seq")
        for row in rows:
            if stop is not None and stop():
                rows.close()  # an open cursor would keep the read transaction open
                raise Busy(
                    "the search took too long and was stopped: many tasks are not in the full-text index",
                    hint="Run `atb tick`, which indexes them, or `atb list --search`, which takes its time.",
                )
            level = query.level(*indexing.document(row, indexing.comments(tx.connection, row[0])))
            if level is not None:
                found.append((row[0], level))
        return found

    def snippets(self, ids: Iterable[str]) -> dict[str, str]:
        """Return by id the part of a text that matches, for some of the tasks found."""
        rows = self._tx.execute(
            f"SELECT {indexing.SOURCE} FROM task WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(ids)),),
        ).fetchall()
        return {row["id"]: self._snippet(row) for row in rows}

    def _snippet(self, row: Row) -> str:
        """Return the first text but the title that has what no earlier one has; the title if none has any of it."""
        for text in self._texts(row):
            found = f" {words.joined([text[:LOOKED_AT]])} "
            terms = [term for term in self.query.terms if term.is_in(found)]
            if terms:
                return _cut(words.composed(text[:LOOKED_AT]), terms)
        return _cut(words.composed(row["title"]), [])

    def _texts(self, row: Row) -> Iterator[str]:
        yield row["body"]
        yield from indexing.values(row["result"])
        yield row["error"] or ""
        yield from indexing.comments(self._tx.connection, row["seq"])
        yield from indexing.values(row["tags"])


def _can_match(tx: Connection, query: words.Query) -> bool:
    """Return whether the board has an index that answers a query; a damaged one does not."""
    if not fulltext.is_usable(tx):
        return False
    try:
        tx.execute("SELECT rowid FROM search WHERE search MATCH ? LIMIT 1", (query.match(),)).fetchall()
    except Error as error:
        if is_damage(error):
            return False
        raise
    return True


def _cut(text: str, terms: Sequence[words.Term]) -> str:
    """Return about ``SNIPPET`` characters of a text, on one line, around the first words that match."""
    at = _first(text, terms) if terms else 0
    begin = max(0, at - SNIPPET // 3)
    if begin:  # at the beginning of a word
        begin = next((place + 1 for place in range(begin, at) if text[place].isspace()), begin)
    end = min(len(text), begin + SNIPPET)
    if end < len(text):
        end = next((place for place in range(end, max(at + 1, end - SNIPPET // 4), -1) if text[place].isspace()), end)
    one_line = " ".join(text[begin:end].split())
    return f"{'… ' if begin else ''}{one_line}{' …' if end < len(text) else ''}"


def _first(text: str, terms: Sequence[words.Term]) -> int:
    """Return where in a text the first of the terms begins."""
    places, found = [], []
    for begin, end in words.spans(text):
        for word in words.words(text[begin:end]):
            places.append(begin)
            found.append(word)
    everything = f" {' '.join(found)} "
    best = len(text)
    for term in terms:
        at = term.begins_at(everything)
        if at is not None:
            best = min(best, places[everything.count(" ", 0, at)])
    return best if best < len(text) else 0
