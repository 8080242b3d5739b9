"""Returned tasks: work that a person rejected looks returned, with the person's note, until it is handed in again."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from agent_task_board.text import compact
from tests.command_line import Terminal
from tests.compact_reader import read
from tests.support import MARIA, bring_to, hold

if TYPE_CHECKING:
    from pathlib import Path

    from agent_task_board import Board


def test_returned_task_looks_returned_until_work_is_handed_in_again(board: Board) -> None:
    task = bring_to(board, "review").id
    assert "returned" not in board.show(task)
    at = board.reject(task, note="the table is missing").task.updated_at
    back = {"by": MARIA.name, "at": at, "note": "the table is missing"}

    def marks() -> tuple[object, object, list[object]]:
        shown = board.show(task)
        on_board = json.loads(board.snapshot().text).get("returned", {}).get(task)
        return shown.get("returned"), on_board, [attempt.get("returned") for attempt in shown["attempts"]]

    assert marks() == (back, back, [True])
    held = hold(board, task=task)
    assert marks() == (back, back, [True, None])
    board.complete(held.id, held.token)
    assert marks() == (None, None, [True, None])
    assert [attempt["outcome"] for attempt in board.show(task)["attempts"]] == ["completed", "completed"]
    board.approve(task)
    assert marks() == (None, None, [True, None])


def test_work_that_was_cancelled_in_review_was_not_returned(board: Board) -> None:
    task = bring_to(board, "review").id
    board.cancel(task)
    board.retry(task)
    assert "returned" not in board.show(task)
    assert "returned" not in board.show(task)["attempts"][0]


def test_returned_task_looks_returned_on_the_command_line(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    task = terminal.add("Write", "--needs-approval")
    _, token = terminal.claim()
    terminal.data("complete", task, "--token", token)
    terminal.data("reject", task, "--note", "the table is missing")
    shown = terminal.atb("show", task, "--format", "table").text
    assert shown.index("returned by ") < shown.index("the table is missing") < shown.index(task)
    assert " returned " in shown[shown.index("attempts:") :]
    assert " completed " not in shown


def test_returned_task_looks_returned_in_compact_text(board: Board) -> None:
    task = bring_to(board, "review").id
    board.reject(task, note="the table is missing")
    text = compact.details(board.show(task), board.attention())
    lines = text.splitlines()
    assert read(text)["notes"] == []  # the board says nothing of it
    assert re.fullmatch(r'left rejected \S+ maria "the table is missing" human', lines[4])
    assert any(line.startswith("attempt 1 ada returned") for line in lines)
