"""What only people can do: approve work, reject it, remove the need for approval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Actor
from tests.old_boards import turn_into_schema_1
from tests.processes import raw
from tests.support import MARIA, STATUSES, bring_to, everything, hold, kinds, last_event, left, refused

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_task_board import Board, Receipt
    from tests.support import Clock

JUDGEMENTS: dict[str, Callable[[Board, str, Actor | None], Receipt]] = {
    "approve": lambda board, task, actor: board.approve(task, actor=actor),
    "reject": lambda board, task, actor: board.reject(task, note="more tests", actor=actor),
}


@pytest.mark.parametrize("verb", JUDGEMENTS)
@pytest.mark.parametrize("status", STATUSES)
def test_only_work_in_review_is_judged(board: Board, verb: str, status: str) -> None:
    held = bring_to(board, status)
    if status == "review":
        task = JUDGEMENTS[verb](board, held.id, None).task
        assert task.status == {"approve": "done", "reject": "queued"}[verb]
        assert task.version == held.task.version + 1
        return
    before = everything(board)
    with refused("conflict", "status") as caught:
        JUDGEMENTS[verb](board, held.id, None)
    assert caught.value.details["actual"]["status"] == status
    assert everything(board) == before


def test_approved_work_is_done_and_keeps_its_result_and_holder(board: Board, clock: Clock) -> None:
    held = bring_to(board, "review")
    clock.advance(minutes=90)
    task = board.approve(held.id, note="well done").task
    assert (task.status, task.claimed_by, task.result) == ("done", "ada", {"ok": True})
    assert task.finished_at == "2026-11-30T02:23:20.000+00:00"
    event = last_event(board, held.id)
    assert (event["kind"], event["actor"], event["actor_kind"]) == ("approved", "maria", "human")
    assert event["data"]["note"] == "well done"
    assert event["data"]["changes"] == {"status": {"from": "review", "to": "done"}}


def test_rejected_work_has_a_new_budget_and_keeps_its_result(board: Board) -> None:
    task = board.add("task", needs_approval=True, max_attempts=1).task
    for round_ in range(1, 4):
        held = hold(board, task=task.id)
        assert held.task.attempts == 1
        board.complete(held.id, held.token, result=round_)
        after = board.reject(held.id, note=f"round {round_}").task
        assert (after.status, after.attempts, after.result) == ("queued", 0, round_)
        assert (after.claimed_by, after.claimed_at, after.progress) == (None, None, None)
        assert after.needs_approval
    assert [attempt["number"] for attempt in board.show(task.id)["attempts"]] == [1, 2, 3]
    assert {attempt["outcome"] for attempt in board.show(task.id)["attempts"]} == {"completed"}


def test_note_of_a_rejection_reaches_whoever_takes_the_task_up(board: Board) -> None:
    held = bring_to(board, "review")
    board.reject(held.id, note="add a test for the empty file")
    receipt = board.claim("bob")
    assert receipt is not None
    assert left(receipt) == [("rejected", "maria", "add a test for the empty file")]


@pytest.mark.parametrize("note", ["", "  \n", "n" * 20_001, "a\x00b", "\ud800", None, 5])
def test_rejection_needs_a_note(board: Board, note: Any) -> None:
    held = bring_to(board, "review")
    before = everything(board)
    with refused("invalid_input") as caught:
        board.reject(held.id, note=note)
    assert caught.value.details["field"] == "note"
    assert everything(board) == before


@pytest.mark.parametrize("verb", JUDGEMENTS)
@pytest.mark.parametrize(
    "actor",
    [
        Actor("bob", "agent"),
        Actor("maria", "agent"),
        Actor("ada", "human"),
        Actor("ADA", "human"),
        Actor(" Ada", "human"),
    ],
)
def test_agents_and_whoever_held_the_task_may_not_judge_it(board: Board, verb: str, actor: Actor) -> None:
    held = bring_to(board, "review")
    before = everything(board)
    with refused("not_permitted") as caught:
        JUDGEMENTS[verb](board, held.id, actor)
    told = f"{caught.value.message} {caught.value.hint}"
    assert "a person" in caught.value.hint
    assert not any(recipe in told for recipe in ("ATB_", "--actor", "unset", "`atb", "name of their own"))
    assert everything(board) == before


@pytest.mark.parametrize("ending", ["release", "handoff", "expiry", "reassign"])
def test_whoever_once_held_the_task_may_not_judge_what_another_made_of_it(
    board: Board, clock: Clock, ending: str
) -> None:
    task = board.add("task", needs_approval=True).task
    held = hold(board, "Straße", task=task.id)
    if ending == "release":
        board.release(held.id, held.token)
    elif ending == "handoff":
        board.handoff(held.id, held.token, "bob")
    elif ending == "expiry":
        clock.advance(minutes=16)
    else:
        board.reassign(held.id, "bob")
    other = hold(board, "bob", task=task.id)
    board.complete(other.id, other.token)
    for name in ("strasse", "BOB"):
        with refused("not_permitted"):
            board.approve(task.id, actor=Actor(name, "human"))
    assert board.approve(task.id).task.status == "done"


def test_whoever_held_another_task_may_judge_this_one(board: Board) -> None:
    bring_to(board, "claimed", agent="bob")
    held = bring_to(board, "review", agent="ada")
    assert board.approve(held.id, actor=Actor("bob", "human")).task.status == "done"


def test_process_that_says_it_is_an_agent_may_not_judge(
    board: Board, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent_task_board import Board as AnotherBoard

    held = bring_to(board, "review")
    monkeypatch.setenv("ATB_AGENT", "carol")
    agents_board = AnotherBoard(board.path.removesuffix("/tasks.db"), clock=clock)
    for judge in JUDGEMENTS.values():
        with refused("not_permitted"):
            judge(agents_board, held.id, None)
    agents_board.close()


# The need for approval


def test_need_for_approval_may_be_raised_by_anybody_and_lifted_by_people_only(board: Board) -> None:
    held = bring_to(board, "running")
    agent = Actor("ada", "agent")
    assert board.update(held.id, needs_approval=True, actor=agent).task.needs_approval
    before = everything(board)
    for actor in (agent, Actor("bob", "agent"), Actor("ADA", "human")):
        with refused("not_permitted"):
            board.update(held.id, needs_approval=False, title="and more", actor=actor)
    assert everything(board) == before
    assert not board.update(held.id, needs_approval=False, actor=MARIA).task.needs_approval
    assert board.complete(held.id, held.token).task.status == "done"


def test_agent_may_say_again_that_no_approval_is_needed(board: Board) -> None:
    task = board.add("task").task
    assert not board.update(task.id, needs_approval=False, actor=Actor("ada", "agent")).task.needs_approval


def test_need_for_approval_raised_under_way_counts_at_the_end(board: Board) -> None:
    held = bring_to(board, "claimed")
    board.update(held.id, needs_approval=True)
    assert board.complete(held.id, held.token).task.status == "review"
    assert kinds(board, held.id)[-2:] == ["updated", "completed"]


@pytest.mark.parametrize("actor", [Actor("bob", "agent"), Actor("ada", "human"), Actor(" ADA", "human")])
def test_agents_and_whoever_held_the_task_may_not_cancel_it_in_review(board: Board, actor: Actor) -> None:
    held = bring_to(board, "review")
    before = everything(board)
    with refused("not_permitted"):
        board.cancel(held.id, actor=actor)
    assert everything(board) == before
    assert board.cancel(held.id).task.status == "cancelled"


@pytest.mark.parametrize("status", ["queued", "claimed", "running"])
def test_agents_may_cancel_what_nobody_reviews(board: Board, status: str) -> None:
    held = bring_to(board, status)
    assert board.cancel(held.id, actor=Actor("ada", "agent")).task.status == "cancelled"


@pytest.mark.parametrize(
    ("holder", "name"), [("Zoé", "Zoe\u0301"), ("Zoe\u0301", "ZOÉ"), ("\u1e9e", "ss"), ("\u212bsa", "åsa")]
)
def test_the_holder_is_known_by_its_name_however_it_is_spelled(board: Board, holder: str, name: str) -> None:
    held = bring_to(board, "review", agent=holder)
    for verb in (board.approve, board.cancel):
        with refused("not_permitted"):
            verb(held.id, actor=Actor(name, "human"))


def test_the_holder_is_known_where_an_older_version_wrote_its_name(board: Board, tmp_path: Path) -> None:
    held = bring_to(board, "review", agent="Zoe\u0301")
    board.close()
    turn_into_schema_1(tmp_path / "data")
    with raw(tmp_path / "data") as old:  # an older version did not normalize the key
        old.execute("UPDATE agent SET key = ?", ("zoe\u0301",))
    for verb in (board.approve, board.cancel):
        with refused("not_permitted"):
            verb(held.id, actor=Actor("Zoé", "human"))
    assert board.add("next", assignee="ZOÉ").task.assignee == "Zoe\u0301"


def test_need_for_approval_survives_cancel_and_retry(board: Board) -> None:
    held = bring_to(board, "review")
    board.cancel(held.id)
    assert board.retry(held.id, actor=Actor("ada", "agent")).task.needs_approval
