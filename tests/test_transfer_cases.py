"""Small files that people brought, with the right answer for each; ``tests/cases`` has the files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board.transfer.detection import SAMPLE, detect
from agent_task_board.transfer.foreign import id_of
from tests.support import everything, refused

if TYPE_CHECKING:
    from agent_task_board import Board

CASES = Path(__file__).parent / "cases"


def bring(board: Board, name: str, **options: Any) -> Any:
    """Import a file, its format told by its content."""
    with (CASES / name).open("rb") as file:
        form = detect(file.read(SAMPLE), name)
        file.seek(0)
        return board.import_tasks(file, file_format=form, **options)


def tasks(board: Board) -> dict[str, dict[str, Any]]:
    return {task.title: task.to_dict() for task in board.list_tasks(full=True).tasks}


@pytest.mark.parametrize(
    ("name", "counts", "details"),
    [
        ("beads-header.jsonl", (1, 0, 0, 2), {"header": ["line 1"], "memory": ["line 3"]}),
        ("beads-twice.jsonl", (1, 1, 0, 0), {"updated": ["bd-21"]}),
        ("beads-held.jsonl", (6, 0, 0, 0), {"held": ["bd-32", "bd-33", "bd-34", "bd-35", "bd-36"]}),
        ("github-rest.json", (2, 0, 0, 1), {"pull_request": ["#9"]}),
        ("github-list.json", (1, 0, 0, 0), {}),
        ("spreadsheet.csv", (2, 0, 0, 1), {"empty_row": ["line 3"]}),
        ("excel-semicolon.csv", (2, 0, 0, 0), {}),
        ("task-master.json", (3, 0, 0, 1), {"metadata": ["master"]}),
        ("checklist.md", (4, 0, 0, 0), {}),
    ],
)
def test_what_people_bring_comes_in_and_is_counted(
    board: Board, name: str, counts: tuple[int, ...], details: dict[str, list[str]]
) -> None:
    before = everything(board)
    trial = bring(board, name, dry_run=True)
    assert everything(board) == before
    done = bring(board, name)
    assert (done.imported, done.updated, done.skipped, done.ignored) == counts
    assert {reason: detail["ids"] for reason, detail in done.details.items()} == details
    shown = trial.to_dict()
    assert bool(shown.pop("fields", None)) is not name.endswith(".csv")
    assert shown == {**done.to_dict(), "dry_run": True}
    if not name.endswith(".csv"):  # its tasks have no ids
        once = everything(board)
        again = bring(board, name)
        assert (again.imported, again.updated) == (0, 0)
        assert everything(board) == once


def test_the_newer_of_two_rows_of_one_issue_counts(board: Board) -> None:
    bring(board, "beads-twice.jsonl")
    task = tasks(board)["Repair the sign-in"]
    assert (task["status"], task["result"], task["finished_at"]) == ("done", "merged", "2026-05-02T10:00:00.000+00:00")


def test_issues_that_are_not_ready_elsewhere_come_in_held(board: Board) -> None:
    done = bring(board, "beads-held.jsonl")
    claims = [board.claim("ada") for _ in range(6)]
    assert [claim.task.title for claim in claims if claim is not None] == ["Open one"]
    (said,) = (warning for warning in done.warnings if "held" in warning)
    assert all(f"1 {word}" in said for word in ("blocked", "deferred", "pinned", "hooked", "awaiting_review"))
    kept = tasks(board)["On a hook"]["params"]["beads"]
    assert (kept["owner"], kept["metadata"], kept["status"]) == ("mara", {"triage": "hold"}, "hooked")


def test_a_cycle_is_told_in_the_names_of_the_tracker(board: Board, tmp_path: Path) -> None:
    with refused("invalid_input") as caught:
        bring(board, "beads-cycle.jsonl")
    assert "bd-41" in caught.value.message
    assert "bd-42" in caught.value.message
    assert tasks(board) == {}


@pytest.mark.parametrize("closed", ["bd-41", "bd-42"])
def test_a_cycle_with_a_finished_issue_is_none(board: Board, tmp_path: Path, closed: str) -> None:
    path = tmp_path / "issues.jsonl"
    lines = (CASES / "beads-cycle.jsonl").read_text().splitlines()
    path.write_text(
        "\n".join(line.replace('"open"', '"closed"') if f'"id":"{closed}"' in line else line for line in lines)
    )
    with path.open("rb") as file:
        done = board.import_tasks(file, file_format="beads")
    assert done.imported == 2
    assert {task["status"] for task in tasks(board).values()} == {"queued", "done"}
    assert board.claim("ada") is not None


def test_both_shapes_of_github_are_the_same_issue(board: Board) -> None:
    bring(board, "github-rest.json")
    found = tasks(board)
    assert {title: (task["status"], task["created_by"], task["created_at"][:10]) for title, task in found.items()} == {
        "Lamp flickers": ("done", "mara", "2026-09-01"),
        "Add a fan": ("cancelled", "otto", "2026-09-02"),
    }
    again = bring(board, "github-list.json")
    assert (again.imported, again.skipped, len(tasks(board))) == (0, 1, 2)


def test_cells_of_a_spreadsheet_are_understood(board: Board) -> None:
    bring(board, "excel-semicolon.csv")
    assert (tasks(board)["Paint the door"]["tags"], tasks(board)["Paint the door"]["priority"]) == (["ui", "docs"], 3)
    bring(board, "spreadsheet.csv")
    assert tasks(board)["Ship it"]["priority"] == 1


def test_subtasks_of_task_master_are_tasks_that_their_parent_waits_for(board: Board) -> None:
    bring(board, "task-master.json")
    found = tasks(board)
    name = {title: task["id"] for title, task in found.items()}
    assert name["Form"] == id_of("task-master", "2.1")
    assert found["Sign-in"]["blocked_by"] == [name["Set up the database"], name["Form"]]
    assert (found["Set up the database"]["status"], found["Form"]["ready"]) == ("done", True)
    assert found["Set up the database"]["priority"] == 1


def test_indented_items_of_a_checklist_come_before_the_item_above(board: Board) -> None:
    bring(board, "checklist.md")
    found = tasks(board)
    parent = found["Publish the release"]
    assert parent["blocked_by"] == [found["Freeze the branch"]["id"], found["Write the notes"]["id"]]
    assert [title for title, task in found.items() if task["status"] == "done"] == ["Freeze the branch"]
    assert (parent["blocked"], found["Tell the list"]["ready"]) == (True, True)
    assert parent["params"] == {"checklist": {"headings": ["Release"]}}
