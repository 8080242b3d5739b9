"""A search among many tasks, and what the full-text index costs the verbs that write to it."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest import mock

from agent_task_board import Board
from agent_task_board.board import indexing
from agent_task_board.storage import fulltext
from tests.benchmarks.measuring import in_turn, row

if TYPE_CHECKING:
    from pathlib import Path

    from agent_task_board import Grant

WORDS = 20_000
AT = "2026-11-30T06:14:05.123+00:00"


class Writer:
    """Texts in which, as in a language, few words are frequent and many are rare."""

    def __init__(self) -> None:
        self._random = random.Random(1)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self.words = ["".join(self._random.choices(letters, k=self._random.randint(3, 10))) for _ in range(WORDS)]
        self._weights = [1 / (rank + 10) for rank in range(WORDS)]

    def text(self, count: int) -> str:
        """Return a text of so many words."""
        return " ".join(self._random.choices(self.words, self._weights, k=count))


def measure(directory: Path, runs: int, *, tasks: int = 100_000) -> list[str]:
    """Return the rows of the table: searches of several kinds, and verbs with the index over those without."""
    writer = Writer()
    board = _make(directory / "search", tasks, writer)
    first, second = writer.words[:2]
    searches = {
        "a rare word": writer.words[WORDS * 3 // 4],
        "two words": f"{writer.words[100]} {writer.words[200]}",
        "the most frequent word": first,
        "the two most frequent words": f"{first} {second}",
        "the beginning of a word, 3 letters": writer.words[100][:3],
        "a phrase": f'"{first} {second}"',
        "the end of an id": board.list_tasks(limit=1).tasks[0].id[-6:],
    }
    took = in_turn({name: partial(board.list_tasks, search=text) for name, text in searches.items()}, runs)
    rows = [
        row(
            f"search among {tasks:,} tasks: {name}, p50, p95",
            "",
            f"{one.median * 1e3:.1f}, {one.percentile(95) * 1e3:.1f} ms",
        )
        for name, one in took.items()
    ]
    plain = _make(directory / "plain", tasks, writer, index=False)
    calls: dict[str, Any] = {}
    for name, one in (("indexed", board), ("plain", plain)):
        calls |= {f"{verb} {name}": call for verb, call in _verbs(one, writer, is_indexed=name == "indexed").items()}
    took = in_turn(calls, runs * 4)
    for verb in ("add", "claim", "heartbeat", "complete"):
        mine, other = took[f"{verb} indexed"], took[f"{verb} plain"]
        what = f"{verb}, {tasks:,} tasks in the full-text index"
        rows.append(row(what, "the same without an index", mine.milliseconds, other.milliseconds, mine.over(other)))
    board.close()
    plain.close()
    return rows


def _verbs(board: Board, writer: Writer, *, is_indexed: bool) -> dict[str, Any]:
    """Return calls that belong together: the lease of a claim is renewed, then ended."""
    held: list[Grant] = []

    def claim() -> None:
        grant = board.claim("bench")
        assert grant is not None
        held.append(grant)

    def complete() -> None:
        grant = held.pop()
        board.complete(grant.task.id, grant.lease.token, result={"summary": writer.text(20)})

    def without(call: Any) -> Any:
        def run() -> None:
            with mock.patch.object(fulltext, "is_available", return_value=False):
                call()

        return run

    calls = {
        "add": lambda: board.add(writer.text(6), body=writer.text(40)),
        "claim": claim,
        "heartbeat": lambda: board.heartbeat(held[-1].task.id, held[-1].lease.token),
        "complete": complete,
    }
    return calls if is_indexed else {verb: without(call) for verb, call in calls.items()}


def _make(place: Path, tasks: int, writer: Writer, *, index: bool = True) -> Board:
    board = Board(place)
    board.create()
    with board.write() as tx:
        tx.executemany(
            """
            INSERT INTO task (id, title, body, max_attempts, created_by, created_at, updated_at)
            VALUES (printf('%026X', ?), ?, ?, 3, 'bench', ?, ?)
            """,
            ((number, writer.text(6), writer.text(40), AT, AT) for number in range(tasks)),
        )
    if index:
        indexing.catch_up(board)
    return board
