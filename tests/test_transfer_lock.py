"""What an import does under the write lock, and what it does before, while others write."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Board
from agent_task_board.settings import Settings
from agent_task_board.transfer import importing
from agent_task_board.transfer.merging import Merger
from tests.command_line import Terminal
from tests.processes import assert_sound
from tests.support import MARIA, refused

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

A, B = "01KB8K5NQX0000000000000001", "01KB8K5NQX0000000000000002"


def meanwhile(monkeypatch: pytest.MonkeyPatch, acts: list[Callable[[], object]]) -> list[str]:
    """Do something else after each comparison of the file with the board; return when what was called."""
    calls: list[str] = []
    check, copy = Merger.check, Merger.copy

    def checking(self: Merger, *arguments: Any) -> Any:
        outcome = check(self, *arguments)
        calls.append("check")
        if acts:
            acts.pop(0)()
        return outcome

    def copying(tx: Any) -> None:
        calls.append("copy")
        copy(tx)

    monkeypatch.setattr(Merger, "check", checking)
    monkeypatch.setattr(Merger, "copy", staticmethod(copying))
    return calls


@pytest.fixture
def other(board: Board) -> Board:
    """Return the same board as another process has it: it waits for no lock."""
    return Board(board.database.directory, actor=MARIA, settings=Settings(busy_timeout=0))


def test_file_is_compared_with_the_board_while_others_write(
    board: Board, other: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.add("there before")
    calls = meanwhile(monkeypatch, [lambda: other.add("meanwhile"), lambda: pytest.fail("compared twice")])
    assert board.import_tasks([{"id": A, "title": "a", "blocked_by": [B]}, {"id": B, "title": "b"}]).imported == 2
    assert calls == ["check", "copy"]
    assert [task.title for task in board.list_tasks(order="age").tasks] == ["there before", "meanwhile", "a", "b"]
    assert board.show(A)["task"]["blocked_by"] == [B]
    assert board.doctor()["healthy"]


@pytest.mark.parametrize(
    ("what", "imported", "skipped"),
    [
        (lambda other: other.import_tasks([{"id": A, "title": "theirs"}]), 1, 1),
        (lambda other: other.add("theirs", dedupe_key="k"), 1, 1),
        (lambda other: other.add("theirs", assignee="ADA"), 2, 0),
    ],
    ids=["the same id", "the same dedupe key", "an agent by another spelling"],
)
def test_what_others_write_between_comparison_and_lock_counts(
    what: Callable[[Board], object],
    imported: int,
    skipped: int,
    board: Board,
    other: Board,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board.add("there before")
    calls = meanwhile(monkeypatch, [lambda: what(other)])
    file = [{"id": A, "title": "a", "dedupe_key": "k"}, {"id": B, "title": "b", "blocked_by": [A], "assignee": "ada"}]
    done = board.import_tasks(file)
    assert (done.imported, done.skipped) == (imported, skipped)
    assert calls[-2:] == ["check", "copy"]
    assert calls.count("check") > 1
    assert board.doctor()["healthy"]
    assert_sound(board.database.directory)
    task = board.show(B)["task"]
    assert len(task["blocked_by"]) == 1
    assert task["assignee"] == ("ADA" if skipped == 0 else "ada")


def test_import_gives_up_where_the_board_never_stops_changing(
    board: Board, other: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.add("there before")

    def change() -> None:
        task = other.add("theirs", dedupe_key="k").task
        other.cancel(task.id)

    calls = meanwhile(monkeypatch, [change] * importing.CHECKS)
    with refused("busy"):
        board.import_tasks([{"title": "a", "dedupe_key": "k"}])
    assert calls == ["check"] * importing.CHECKS
    assert board.import_tasks([{"title": "a", "dedupe_key": "k"}]).imported == 1


def test_references_are_checked_again_after_an_import(board: Board) -> None:
    board.import_tasks([{"title": "a"}])
    connection = board.database.session().connection
    assert connection.execute("PRAGMA foreign_keys").fetchone()[0] == 1
    assert_sound(board.database.directory)


def test_large_import_says_before_the_lock_how_long_it_holds_it(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "LARGE", 3)
    said: list[tuple[int, float]] = []
    calls = meanwhile(monkeypatch, [])
    board.import_tasks([{"title": "a"}], before_lock=lambda *given: pytest.fail(str(given)))

    def hear(rows: int, seconds: float) -> None:
        calls.append("said")
        said.append((rows, seconds))

    board.import_tasks([{"title": "a"}, {"title": "b"}], before_lock=hear)
    assert calls == ["check", "copy", "check", "said", "copy"]
    [(rows, seconds)] = said
    assert rows == 4
    assert 0 < seconds < 1


def test_command_says_so_on_standard_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(tmp_path)
    monkeypatch.setattr(importing, "LARGE", 3)
    file = terminal.directory / "large.json"
    file.write_text(json.dumps([{"title": "a"}, {"title": "b"}]))
    said = "import: 4 rows, the board is locked for about 1 s; other writers wait\n"
    assert terminal.atb("import", str(file)).err.endswith(said)
    assert terminal.atb("import", str(file), "--quiet").err == ""
