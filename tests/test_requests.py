"""Request ids: a repeated call gets the same answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Actor
from tests.support import everything, hold, kinds, lease_of, left, refused

if TYPE_CHECKING:
    from agent_task_board import Board
    from tests.support import Clock

ADD: dict[str, Any] = {
    "title": "task",
    "body": "text",
    "queue": "docs",
    "priority": 3,
    "tags": ["a", "b"],
    "params": {"b": 1, "a": 2},
    "due_at": "2026-12-01",
    "request_id": "add-1",
}


def test_repeated_add_answers_with_the_same_task_and_writes_nothing(board: Board) -> None:
    first = board.add(**ADD)
    assert (first.created, first.replayed) == (True, False)
    before = everything(board)
    again = board.add(**ADD)
    assert (again.created, again.replayed) == (True, True)
    assert again.task.id == first.task.id
    assert again.to_dict() == {"task": first.task.to_dict(), "created": True, "replayed": True}
    assert everything(board) == before


def test_repeated_add_shows_the_task_as_it_is_now(board: Board) -> None:
    first = board.add("task", request_id="r")
    hold(board)
    again = board.add("task", request_id="r")
    assert again.task.id == first.task.id
    assert again.task.status == "claimed"
    assert again.lease is None


def test_order_of_names_in_an_object_does_not_make_another_call(board: Board) -> None:
    board.add(**ADD)
    assert board.add(**{**ADD, "params": {"a": 2, "b": 1}}).replayed


@pytest.mark.parametrize(
    "other",
    [
        {"title": "tasks"},
        {"body": ""},
        {"queue": "default"},
        {"priority": 4},
        {"assignee": "bob"},
        {"tags": ["b", "a"]},
        {"tags": ["a"]},
        {"params": {"b": 1}},
        {"due_at": "2026-12-02"},
        {"not_before": "2026-12-01"},
        {"dedupe_key": "k"},
        {"max_attempts": 9},
        {"needs_approval": True},
        {"claim": True, "agent": "ada"},
    ],
)
def test_same_request_id_with_other_arguments_is_a_conflict(board: Board, other: dict[str, Any]) -> None:
    board.add(**ADD)
    before = everything(board)
    with refused("conflict", "request_id"):
        board.add(**{**ADD, **other})
    assert everything(board) == before


def test_same_request_id_with_other_dependencies_is_a_conflict(board: Board) -> None:
    other = board.add("other").task
    board.add("task", request_id="r")
    with refused("conflict", "request_id"):
        board.add("task", depends_on=[other.id], request_id="r")


def test_request_id_of_one_verb_is_taken_for_another(board: Board) -> None:
    board.add("task", request_id="r")
    with refused("conflict", "request_id"):
        board.claim("ada", request_id="r")
    hold(board, request_id="s")
    with refused("conflict", "request_id"):
        board.add("task", request_id="s")


def test_add_that_met_a_taken_key_answers_so_again_even_when_the_key_is_free(board: Board) -> None:
    holder = board.add("holder", dedupe_key="k").task
    assert board.add("task", dedupe_key="k", request_id="r").created is False
    board.cancel(holder.id)
    again = board.add("task", dedupe_key="k", request_id="r")
    assert (again.created, again.replayed, again.task.id) == (False, True, holder.id)


def test_refused_call_does_not_use_up_its_request_id(board: Board) -> None:
    task = board.add("for bob", assignee="bob").task
    with refused("conflict"):
        board.claim("ada", task=task.id, request_id="r")
    with refused("conflict"):
        board.add("x", claim=True, agent="ada", assignee="bob", request_id="r")
    board.reassign(task.id, None)
    assert hold(board, task=task.id, request_id="r").id == task.id


@pytest.mark.parametrize("depends_on", [[5], [object()], "5FAV", None])
def test_malformed_dependencies_are_refused_under_a_request_id_too(board: Board, depends_on: Any) -> None:
    with refused("invalid_input") as caught:
        board.add("task", depends_on=depends_on, request_id="r")
    assert caught.value.details["field"] == "depends_on"


def test_empty_request_id_is_none(board: Board) -> None:
    one, two = board.add("task", request_id=""), board.add("task", request_id="")
    assert one.task.id != two.task.id


# Claims


def test_repeated_claim_answers_with_the_same_attempt_under_a_fresh_token(board: Board, clock: Clock) -> None:
    board.add("one")
    board.add("two")
    first = hold(board, request_id="r", lease="10m")
    clock.advance(minutes=4)
    receipt = board.claim("ADA", request_id="r", lease="10m")
    assert receipt is not None
    assert receipt.replayed
    assert receipt.task.id == first.id
    assert lease_of(receipt).token != first.token
    assert lease_of(receipt).fence == receipt.task.fence == 2
    assert receipt.task.attempts == 1
    assert len(board.show(first.id)["attempts"]) == 1
    with refused("lease_lost"):
        board.heartbeat(first.id, first.token)
    assert board.complete(first.id, lease_of(receipt).token).task.status == "done"


def test_repeated_claim_of_one_task_answers_again_too(board: Board) -> None:
    task = board.add("one").task
    hold(board, task=task.id, request_id="r")
    again = board.claim("ada", task=task.id, request_id="r")
    assert again is not None
    assert again.replayed
    assert kinds(board, task.id) == ["created", "claimed", "resumed"]


@pytest.mark.parametrize(
    "ending", ["complete", "release", "expiry", "revoked", "taken over", "cancelled", "own new claim"]
)
def test_repeated_claim_has_lost_the_lease_once_that_has_ended(board: Board, clock: Clock, ending: str) -> None:
    board.add("one", max_attempts=9)
    board.add("spare")
    held = hold(board, request_id="r")
    if ending == "complete":
        board.complete(held.id, held.token)
    elif ending == "release":
        board.release(held.id, held.token)
    elif ending == "revoked":
        board.reassign(held.id, None)
    elif ending == "cancelled":
        board.cancel(held.id)
    elif ending == "own new claim":
        board.release(held.id, held.token)
        hold(board, "ada", task=held.id)
    else:
        clock.advance(minutes=15)
        if ending == "taken over":
            hold(board, "bob", task=held.id)
    before = everything(board)
    with refused("lease_lost"):
        board.claim("ada", request_id="r")
    assert everything(board) == before


def test_claim_that_found_nothing_may_find_something_when_repeated(board: Board) -> None:
    assert board.claim("ada", request_id="r") is None
    board.add("task")
    receipt = board.claim("ada", request_id="r")
    assert receipt is not None
    assert not receipt.replayed


@pytest.mark.parametrize(
    "other",
    [
        {"agent": "bob"},
        {"lease": "1h"},
        {"queues": ["default"]},
        {"tags": ["a"]},
        {"comment": "x"},
        {"if_status": "queued"},
    ],
)
def test_claim_with_the_same_request_id_and_other_arguments_is_a_conflict(board: Board, other: dict[str, Any]) -> None:
    board.add("one", tags=["a"])
    board.add("two", tags=["a"])
    hold(board, request_id="r")
    before = everything(board)
    with refused("conflict", "request_id"):
        board.claim(**{"agent": "ada", "request_id": "r", **other})
    assert everything(board) == before


# Add and claim


def test_repeated_add_and_claim_renews_the_token_of_the_one_task_made(board: Board) -> None:
    options: dict[str, Any] = {"claim": True, "agent": "ada", "request_id": "r", "lease": "5m"}
    first = board.add("mine", **options)
    again = board.add("mine", **options)
    assert (again.created, again.replayed, again.task.id) == (True, True, first.task.id)
    assert lease_of(again).token != lease_of(first).token
    assert len(board.list_tasks().tasks) == 1
    with refused("lease_lost"):
        board.complete(first.task.id, lease_of(first).token)
    board.complete(first.task.id, lease_of(again).token)
    with refused("lease_lost"):
        board.add("mine", **options)
    assert len(board.list_tasks().tasks) == 1


def test_add_and_claim_repeated_by_another_agent_is_a_conflict(board: Board) -> None:
    board.add("mine", claim=True, agent="ada", request_id="r")
    with refused("conflict", "request_id"):
        board.add("mine", claim=True, agent="bob", request_id="r")
    with refused("conflict", "request_id"):
        board.add("mine", request_id="r", actor=Actor("ada", "agent"))


# A day


def test_request_id_is_kept_for_a_day(board: Board, clock: Clock) -> None:
    first = board.add("task", request_id="r")
    clock.advance(days=1, seconds=-0.001)
    assert board.add("task", request_id="r").task.id == first.task.id
    clock.advance(seconds=0.001)
    fresh = board.add("other task", request_id="r")
    assert (fresh.created, fresh.replayed) == (True, False)
    assert board.add("other task", request_id="r").task.id == fresh.task.id


def test_old_request_ids_are_forgotten_on_the_way(board: Board, clock: Clock) -> None:
    for number in range(5):
        board.add("task", request_id=f"old {number}")
    clock.advance(days=2)
    board.add("task", request_id="new")
    assert [row[0] for row in everything(board)["request"]] == ["new"]


def test_repeated_claim_keeps_the_end_of_a_lease_that_was_renewed_meanwhile(board: Board) -> None:
    board.add("task")
    held = hold(board, request_id="r")
    longer = board.heartbeat(held.id, held.token, lease="2h")
    again = board.claim("ada", request_id="r")
    assert again is not None
    assert again.lease.expires_at == longer.lease.expires_at


def test_repeated_claim_is_told_the_note_again(board: Board) -> None:
    board.add("task")
    held = hold(board, "bob")
    board.handoff(held.id, held.token, "ada", note="mind the gap")
    first, again = board.claim("ada", request_id="r"), board.claim("ada", request_id="r")
    assert left(first) == left(again) == [("handed_off", "bob", "mind the gap")]
