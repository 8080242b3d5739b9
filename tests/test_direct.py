"""`done`: a task that was finished without being claimed first, in one call."""

from __future__ import annotations

import io
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Actor, BoardError
from tests.history import fold
from tests.support import MARIA, bring_to, everything, hold, kinds, open_board, refused

if TYPE_CHECKING:
    from pathlib import Path

    from agent_task_board import Board
    from tests.support import Clock

NINA = Actor("nina", "human")


def test_done_is_one_attempt_two_events_and_one_step_of_the_version(board: Board) -> None:
    task = board.add("small", needs_approval=True).task
    after = board.done(task.id, agent="ada", result=[1], artifacts=["a"], note="easy").task
    assert (after.status, after.attempts, after.fence, after.version) == ("review", 1, 1, task.version + 1)
    assert (after.claimed_by, after.claimed_at, after.finished_at) == ("ada", after.updated_at, None)
    claimed, completed = board.events(task=task.id)["events"][1:]
    assert (claimed["kind"], claimed["actor"], claimed["actor_kind"]) == ("claimed", "ada", "agent")
    assert claimed["data"]["changes"]["status"] == {"from": "queued", "to": "claimed"}
    assert "result" not in claimed["data"]["changes"]
    assert (completed["kind"], completed["data"]["note"]) == ("completed", "easy")
    assert completed["data"]["changes"].keys() == {"status", "result", "artifacts"}
    assert fold(board.events(task=task.id)["events"])["status"] == "review"
    (attempt,) = board.show(task.id)["attempts"]
    assert (attempt["agent"], attempt["fence"], attempt["outcome"], attempt["result"]) == ("ada", 1, "completed", [1])
    assert (attempt["claimed_at"], attempt["ended_at"]) == (after.updated_at, after.updated_at)
    assert board.approve(task.id).task.status == "done"


def test_person_finishes_what_no_agent_could_claim_and_is_told_so(board: Board) -> None:
    first = board.add("first").task
    task = board.add(
        "small", depends_on=[first.id], not_before="2027-01-01", assignee="bob", needs_approval=True
    ).task  # fmt: skip
    receipt = board.done(task.id, actor=NINA)
    assert (receipt.task.status, receipt.task.claimed_by, receipt.task.claimed_at) == ("done", None, None)
    waited, delayed, assigned = receipt.warnings
    assert "1 not done" in waited
    assert "2026-12-31T16:00:00.000+00:00" in delayed
    assert "bob" in assigned
    assert board.done(first.id, actor=NINA).warnings == []


def test_person_who_finished_one_task_may_judge_another_of_the_same_agent(board: Board) -> None:
    small = board.add("small").task
    board.done(small.id, actor=NINA)
    with refused("conflict", "status"):  # and not because she were a former holder
        board.approve(small.id, actor=NINA)
    held = bring_to(board, "review")
    assert board.approve(held.id, actor=NINA).task.status == "done"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [({"assignee": "bob"}, "assigned"), ({"not_before": "2027-01-01"}, "delayed"), ({}, "blocked")],
)
def test_agent_finishes_only_what_it_could_claim(board: Board, fields: dict[str, Any], reason: str) -> None:
    others = [] if fields else [board.add("first").task.id]
    task = board.add("small", depends_on=others, **fields).task
    before = everything(board)
    for caller in ({"agent": "ada"}, {"actor": Actor("ada", "agent")}):
        with refused("conflict", reason):
            board.done(task.id, **caller)
    assert everything(board) == before


@pytest.mark.parametrize("status", ["claimed", "running", "review", "done", "failed", "cancelled"])
@pytest.mark.parametrize("caller", [{"agent": "bob"}, {"actor": NINA}])
def test_only_a_queued_task_is_finished(board: Board, status: str, caller: dict[str, Any]) -> None:
    held = bring_to(board, status)
    before = everything(board)
    with refused("conflict", "status") as caught:
        board.done(held.id, **caller)
    assert caught.value.details["actual"]["status"] == status
    assert everything(board) == before


def test_due_task_and_dead_lease_are_dealt_with_on_the_way(board: Board, clock: Clock) -> None:
    delayed = board.add("later", not_before="+1h").task
    held = hold(board, task=board.add("held").task.id)
    clock.advance(minutes=61)
    assert board.done(delayed.id, agent="bob").task.status == "done"
    assert kinds(board, held.id)[-1] == "expired"
    assert board.done(held.id, agent="bob").task.fence == 2


def test_former_holder_does_not_pass_its_own_work_as_a_person(board: Board) -> None:
    held = hold(board, task=board.add("small", needs_approval=True).task.id)
    board.release(held.id, held.token)
    after = board.done(held.id, actor=Actor("ADA", "human")).task
    assert (after.status, after.claimed_by) == ("review", "ada")
    assert board.events(task=held.id)["events"][-1]["actor_kind"] == "agent"


def test_one_of_many_at_once_finishes_a_task(tmp_path: Path) -> None:
    with open_board(tmp_path) as board:
        task = board.add("small").task
        barrier, outcomes = threading.Barrier(8), []

        def finish(number: int) -> None:
            barrier.wait()
            try:
                board.done(task.id, agent=f"agent-{number}")
                outcomes.append("done")
            except BoardError as error:
                outcomes.append(error.code)

        threads = [threading.Thread(target=finish, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["conflict"] * 7 + ["done"]
        assert len(board.show(task.id)["attempts"]) == 1


def test_what_was_done_at_once_is_exported_imported_and_found_sound(board: Board, tmp_path: Path) -> None:
    first = board.add("first").task
    board.done(board.add("by a person", depends_on=[first.id], assignee="bob").task.id, actor=MARIA, note="by hand")
    board.done(first.id, agent="ada", result={"a": 1})
    board.done(board.add("reviewed", needs_approval=True).task.id, agent="ada")
    exported = io.BytesIO()
    board.export(exported)
    with open_board(tmp_path / "other") as other:
        other.import_tasks(json.loads(exported.getvalue()))
        for mine, theirs in zip(board.list_tasks(full=True).tasks, other.list_tasks(full=True).tasks, strict=True):
            assert mine.to_dict() == theirs.to_dict()
            assert board.show(mine.id)["attempts"] == other.show(mine.id)["attempts"]
        for one in (board, other):
            errors = [found for found in one.doctor()["findings"] if found["level"] == "error"]
            assert errors == []
