"""Importing tasks: all of a file or none, ids kept, existing tasks skipped."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import inputs
from agent_task_board.transfer import merging
from tests.support import STATUSES, bring_to, everything, hold, kinds, last_event, moved, open_board, refused

if TYPE_CHECKING:
    from pathlib import Path

    from agent_task_board import Board
    from tests.support import Clock

A, B, C, D = (f"01ARZ3NDEKTSV4RRFFQ69G5FA{letter}" for letter in "ABCD")


def titles(board: Board) -> list[str]:
    """Return the titles of all tasks, in the order of their making."""
    return [task.title for task in board.list_tasks(limit=1_000).tasks]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda tasks: tasks,
        lambda tasks: {"tasks": tasks},
        lambda tasks: {"tasks": tasks, "next": None},
        lambda tasks: {"ok": True, "data": {"tasks": tasks}, "warnings": []},
        lambda tasks: {"ok": True, "data": tasks, "warnings": []},
    ],
)
def test_tasks_may_come_bare_or_wrapped(board: Board, wrap: Any) -> None:
    outcome = board.import_tasks(wrap([{"title": "one"}, {"title": "two", "id": B.lower()}]))
    assert moved(outcome.to_dict()) == (2, 0)
    assert outcome.warnings == []
    assert titles(board) == ["one", "two"]
    assert board.show(B)["task"]["title"] == "two"


@pytest.mark.parametrize(
    "data", [None, 5, "text", {}, {"ok": True, "data": None}, {"ok": True, "data": {}}, {"tasks": {}}]
)
def test_document_without_tasks_is_refused(board: Board, data: Any) -> None:
    with refused("invalid_input"):
        board.import_tasks(data)


def test_task_needs_no_more_than_a_title_and_has_the_defaults_of_add(board: Board) -> None:
    board.import_tasks([{"title": "task"}])
    imported = board.list_tasks(full=True).tasks[0].to_dict()
    added = board.add("task").task.to_dict()
    assert {**imported, "id": ""} == {**added, "id": ""}
    (event,) = board.events(task=imported["id"])["events"]
    assert (event["kind"], event["actor"], event["actor_kind"]) == ("imported", "maria", "human")


def test_imported_tasks_are_claimed_in_the_order_of_the_file(board: Board) -> None:
    board.import_tasks([{"title": "z"}, {"title": "a", "priority": 1}, {"title": "m"}])
    assert [hold(board).task.title for _ in range(3)] == ["a", "z", "m"]


def test_tasks_that_exist_already_are_skipped_and_counted(board: Board) -> None:
    tasks = [{"title": "one", "id": A}, {"title": "two", "dedupe_key": "k"}]
    board.import_tasks(tasks)
    before = everything(board)
    assert moved(board.import_tasks(tasks).to_dict()) == (0, 2)
    assert everything(board)["task"] == before["task"]
    assert everything(board)["event"] == before["event"]


def test_repeated_id_or_key_within_a_file_is_skipped(board: Board) -> None:
    outcome = board.import_tasks(
        [
            {"title": "one", "id": A},
            {"title": "again", "id": A.lower()},
            {"title": "two", "dedupe_key": "k"},
            {"title": "again", "dedupe_key": "k"},
            {"title": "finished", "dedupe_key": "k", "status": "done"},
        ]
    )
    assert moved(outcome.to_dict()) == (3, 2)
    assert titles(board) == ["one", "two", "finished"]


def test_key_of_a_finished_task_is_in_nobodys_way(board: Board) -> None:
    bring_to(board, "done", dedupe_key="k")
    assert board.import_tasks([{"title": "new", "dedupe_key": "k"}]).imported == 1


def test_what_depends_on_a_task_skipped_for_its_key_depends_on_the_holder_of_the_key(board: Board) -> None:
    holder = board.add("holder", dedupe_key="k").task
    outcome = board.import_tasks(
        [{"title": "same", "id": A, "dedupe_key": "k"}, {"title": "waiting", "id": B, "blocked_by": [A]}]
    )
    assert moved(outcome.to_dict()) == (1, 1)
    redirected, waits = outcome.warnings
    assert all(id_ in redirected for id_ in (A, B, holder.id))
    assert waits == f'"waiting" ({B[-6:]}) waits for "holder" ({holder.id[-6:]})'
    assert board.show(B)["task"]["blocked_by"] == [holder.id]


def test_dependencies_may_point_forward_in_the_file_and_to_the_board(board: Board) -> None:
    there = board.add("there").task
    board.import_tasks([{"title": "first", "id": A, "blocked_by": [B, there.id.lower()]}, {"title": "second", "id": B}])
    task = board.show(A)["task"]
    assert task["blocked_by"] == [B, there.id]
    assert task["blocked"]
    assert last_event(board, A)["data"]["changes"]["blocked_by"]["to"] == [B, there.id]


def test_dependency_that_is_done_does_not_block(board: Board) -> None:
    board.import_tasks([{"title": "waiting", "id": A, "blocked_by": [B]}, {"title": "done", "id": B, "status": "done"}])
    assert hold(board).id == A


@pytest.mark.parametrize(
    "tasks",
    [
        [{"title": "a", "id": A, "blocked_by": [A]}],
        [{"title": "a", "id": A, "blocked_by": [B]}, {"title": "b", "id": B, "blocked_by": [A]}],
        [
            {"title": "a", "id": A, "blocked_by": [D, B]},
            {"title": "b", "id": B, "blocked_by": [C]},
            {"title": "c", "id": C, "blocked_by": [A]},
            {"title": "d", "id": D},
        ],
        [{"title": "a", "id": A, "blocked_by": [C]}],
        [{"title": "a", "id": A, "blocked_by": ["5FAV"]}],
        [{"title": "a", "id": A, "blocked_by": A}],
        [{"title": "a", "id": A, "blocked_by": [5]}],
        [{"title": "a", "id": A, "blocked_by": [None]}],
        [{"title": "a", "id": A, "blocked_by": None}],
        [{"title": "a", "id": A, "blocked_by": [f"01ARZ3NDEKTSV4RRFFQ69{number:05d}" for number in range(1_001)]}],
    ],
)
def test_file_with_a_cycle_or_an_unknown_dependency_is_refused_whole(board: Board, tasks: list[dict[str, Any]]) -> None:
    board.add("there already")
    before = everything(board)
    with refused("invalid_input") as caught:
        board.import_tasks([{"title": "good"}, *tasks])
    assert caught.value.details["field"] == "blocked_by"
    assert everything(board) == before


def test_cycle_in_a_file_is_named_in_the_direction_of_waiting(board: Board) -> None:
    with refused("invalid_input") as caught:
        board.import_tasks(
            [
                {"title": "a", "id": A, "blocked_by": [B]},
                {"title": "b", "id": B, "blocked_by": [C]},
                {"title": "c", "id": C, "blocked_by": [A]},
            ]
        )
    for one, other in ((A, B), (B, C), (C, A)):
        assert f"{one} waits for {other}" in caught.value.message


def test_cycle_through_the_holder_of_a_key_is_refused(board: Board) -> None:
    with refused("invalid_input"):
        board.import_tasks(
            [
                {"title": "holder", "id": A, "dedupe_key": "k", "blocked_by": [B]},
                {"title": "waiting", "id": B, "blocked_by": [C]},
                {"title": "same", "id": C, "dedupe_key": "k"},
            ]
        )


def test_long_chain_is_imported_and_a_long_cycle_refused(board: Board) -> None:
    ids = [f"01ARZ3NDEKTSV4RRFFQ69{number:05d}" for number in range(3_000)]
    tasks: list[dict[str, Any]] = [{"title": "t", "id": id_, "blocked_by": [ids[at - 1]]} for at, id_ in enumerate(ids)]
    with refused("invalid_input") as caught:
        board.import_tasks(tasks)
    assert sum(id_ in caught.value.message for id_ in ids) == 12
    assert caught.value.message.endswith(", and 2,988 more")
    tasks[0]["blocked_by"] = []
    assert board.import_tasks(tasks).imported == 3_000


@pytest.mark.parametrize(
    ("task", "field"),
    [
        ("text", None),
        (None, None),
        ([], None),
        ({}, "title"),
        ({"title": "x", "colour": "red"}, "colour"),
        ({"title": "x", "token": "0" * 32}, "token"),
        ({"title": "x", "depends_on": []}, "depends_on"),
        ({"title": "x", "id": "short"}, "id"),
        ({"title": "x", "id": ""}, "id"),
        ({"title": "x", "id": "8" * 26}, "id"),
        ({"title": "x", "id": 5}, "id"),
        ({"title": "x", "status": "open"}, "status"),
        ({"title": "x", "status": "waiting"}, "status"),
        ({"title": "x", "status": None}, "status"),
        ({"title": "x", "attempts": -1}, "attempts"),
        ({"title": "x", "attempts": 1_001}, "attempts"),
        ({"title": "x", "attempts": 4, "max_attempts": 3, "status": "failed"}, "attempts"),
        ({"title": "x", "fence": -1}, "fence"),
        ({"title": "x", "fence": 10**30}, "fence"),
        ({"title": "x", "version": 0}, "version"),
        ({"title": "x", "progress": 101, "status": "done"}, "progress"),
        ({"title": "x", "result": 10**30}, "result"),
        ({"title": "x", "artifacts": "a.txt"}, "artifacts"),
        ({"title": "x", "error": 5}, "error"),
        ({"title": "x", "claimed_by": "a\nb"}, "claimed_by"),
        ({"title": "x", "created_by": ""}, "created_by"),
        ({"title": "x", "created_at": "yesterday"}, "created_at"),
        ({"title": "x", "created_at": 5}, "created_at"),
        ({"title": "x", "updated_at": ""}, "updated_at"),
        ({"title": "x", "finished_at": True}, "finished_at"),
        ({"title": "x", "occurrence_at": "2026-12-01T00:00:00Z"}, "schedule_id"),
        ({"title": "x", "schedule_id": "s"}, "schedule_id"),
    ],
)
def test_malformed_task_is_refused_by_place_and_field(board: Board, task: Any, field: str | None) -> None:
    board.add("there already")
    before = everything(board)
    with refused("invalid_input") as caught:
        board.import_tasks([{"title": "good", "assignee": "newcomer"}, task])
    assert caught.value.details["field"] == field
    assert caught.value.details["place"] == "tasks[1]"
    assert caught.value.message.startswith("tasks[1]: ")
    assert everything(board) == before


@pytest.mark.parametrize("status", STATUSES)
def test_task_of_any_status_comes_over_and_a_held_one_is_queued(
    board: Board, tmp_path: Path, clock: Clock, status: str
) -> None:
    held = bring_to(board, status, body="text", params={"a": 1}, tags=["x"], due_at="2026-12-01", dedupe_key="k")
    exported = json.loads(json.dumps(board.list_tasks(full=True).to_dict()))
    other = open_board(tmp_path / "other", clock)
    clock.advance(days=1)
    assert other.import_tasks(exported).imported == 1
    there, here = other.show(held.id)["task"], board.show(held.id)["task"]
    if status in ("claimed", "running"):
        assert there["ready"]
        assert (there["attempts"], there["fence"], there["claimed_by"]) == (1, 1, None)
        here |= dict.fromkeys(("claimed_by", "claimed_at", "lease_expires_at")) | {"status": "queued"}
        here |= {"ready": True, "lease_expired": False}
    assert there == here
    assert kinds(other, held.id) == ["imported"]
    other.close()


def test_import_gives_an_attempt_back_only_when_none_is_left(board: Board) -> None:
    board.import_tasks(
        [
            {"title": "last", "id": A, "status": "running", "attempts": 3, "max_attempts": 3},
            {"title": "middle", "id": B, "status": "claimed", "attempts": 2, "max_attempts": 3},
            {"title": "failed", "id": C, "status": "failed", "attempts": 3, "max_attempts": 3},
        ]
    )
    assert [task.attempts for task in board.list_tasks().tasks] == [2, 2, 3]


def test_fence_of_an_imported_task_goes_on_growing(board: Board) -> None:
    board.import_tasks([{"title": "task", "id": A, "status": "running", "fence": 7, "version": 20}])
    held = hold(board)
    assert (held.task.fence, held.task.version) == (8, 21)


def test_imported_task_can_be_worked_on_and_judged(board: Board) -> None:
    board.import_tasks([{"title": "task", "id": A, "status": "review", "claimed_by": "ada", "needs_approval": True,
                         "claimed_at": "2026-11-29T00:00:00Z", "result": [1]}])  # fmt: skip
    assert board.show(A)["task"]["claimed_by"] == "ada"
    assert board.reject(A, note="again").task.attempts == 0
    held = hold(board)
    board.complete(held.id, held.token)
    assert board.approve(A).task.status == "done"


def test_imported_delayed_task_waits(board: Board, clock: Clock) -> None:
    board.import_tasks([{"title": "task", "not_before": "2026-11-30T01:00:00Z"}])
    assert board.claim("ada") is None
    clock.advance(minutes=10)
    hold(board)


def test_names_in_a_file_are_shown_as_first_written(board: Board) -> None:
    board.claim("nobody yet")
    board.add("x", assignee="Ada")
    board.import_tasks(
        [{"title": "task", "id": A, "assignee": "ADA"}, {"title": "nobody", "id": B, "assignee": "none"}]
    )
    assert board.show(A)["task"]["assignee"] == "Ada"
    assert board.show(B)["task"]["assignee"] is None


def test_long_values_are_no_part_of_the_imported_event(board: Board) -> None:
    board.import_tasks(
        [{"title": "t", "body": "secret", "params": {"a": "secret"}, "result": "secret", "status": "done"}]
    )
    assert "secret" not in repr(board.events())


def test_empty_file_imports_nothing(board: Board) -> None:
    assert moved(board.import_tasks([]).to_dict()) == (0, 0)


def test_example_of_a_strict_reader_feeding_the_import(board: Board) -> None:
    source = '[{"title": "one", "title": "two"}]'
    with refused("invalid_input") as caught:
        board.import_tasks(inputs.parse_json(source, "file"))
    assert caught.value.details["field"] == "file"


def test_task_that_depends_on_one_skipped_for_its_own_key_depends_on_nothing(board: Board) -> None:
    done = board.import_tasks(
        [
            {"title": "holds the key", "id": A, "dedupe_key": "k", "blocked_by": [B]},
            {"title": "has it, too", "id": B, "dedupe_key": "k"},
        ]
    )
    assert (done.imported, done.skipped, done.warnings) == (1, 1, [])
    assert board.show(A)["task"]["ready"]


CYCLE = [{"title": "a", "id": A, "blocked_by": [B]}, {"title": "b", "id": B, "blocked_by": [A]}]


def test_cycle_is_found_before_the_board_is_locked(board: Board, tmp_path: Path) -> None:
    board.add("there")
    other = open_board(tmp_path / "data")
    with other.database.write(), refused("invalid_input") as caught:
        board.import_tasks(CYCLE)
    assert "cycle" in caught.value.message
    other.close()


def test_cycle_that_a_skipped_task_breaks_is_imported(board: Board) -> None:
    board.import_tasks([{"title": "there", "id": A}])
    assert moved(board.import_tasks(CYCLE).to_dict()) == (1, 1)
    assert board.show(B)["task"]["blocked_by"] == [A]


def test_board_that_changes_between_the_two_checks_of_an_import_is_compared_anew(
    board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with a cycle is checked before the lock, too; a key is in its way then, and free later."""
    other = open_board(tmp_path / "data")
    holder = board.add("holder", dedupe_key="k").task.id
    check = merging.Merger.check

    def check_and_change(self: merging.Merger, *arguments: Any) -> Any:
        found = check(self, *arguments)
        if other.show(holder)["task"]["status"] == "queued":
            other.cancel(holder)
        return found

    board.import_tasks([{"title": "breaks the cycle", "id": A}])
    monkeypatch.setattr(merging.Merger, "check", check_and_change)
    tasks = [*CYCLE, {"title": "same key", "id": C, "dedupe_key": "k"}, {"title": "waits", "id": D, "blocked_by": [C]}]
    outcome = board.import_tasks(tasks)
    assert moved(outcome.to_dict()) == (3, 1)
    assert all(" waits for " in warning for warning in outcome.warnings)
    assert board.show(D)["task"]["blocked_by"] == [C]
    assert last_event(board, D)["data"]["changes"]["blocked_by"]["to"] == [C]
    assert board.doctor()["healthy"]
    other.close()


def test_page_of_a_longer_list_is_imported_with_a_warning(board: Board) -> None:
    outcome = board.import_tasks({"ok": True, "data": {"tasks": [{"title": "t"}], "next": "age~1~1"}, "warnings": []})
    assert outcome.imported == 1
    assert "'next'" in outcome.warnings[0]


def test_lack_of_memory_is_unusable_and_imports_nothing(board: Board) -> None:
    class File:
        pieces = iter([b'[{"title": "one"},'])

        def read(self, size: int, /) -> bytes:
            for piece in self.pieces:
                return piece
            raise MemoryError

    board.add("there")
    before = everything(board)
    with refused("unusable") as caught:
        board.import_tasks(File())
    assert "memory" in caught.value.message
    assert everything(board) == before
    assert board.import_tasks([{"title": "t"}]).imported == 1
