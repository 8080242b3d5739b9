"""Expired leases: useless to their holder at once, ended by the next claim or tick, whatever the clock does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import bring_to, everything, hold, kinds, last_event, lease_of, refused
from tests.test_ending import ENDINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_task_board import Board, Receipt
    from tests.support import Clock

HOLDERS: dict[str, Callable[[Board, str, str], Receipt]] = {
    **ENDINGS,
    "heartbeat": lambda board, task, token: board.heartbeat(task, token),
}


@pytest.mark.parametrize("verb", HOLDERS)
@pytest.mark.parametrize("status", ["claimed", "running"])
def test_holder_is_refused_from_the_very_end_of_its_lease_before_anybody_reclaims(
    board: Board, clock: Clock, verb: str, status: str
) -> None:
    held = bring_to(board, status)
    clock.advance(minutes=15)
    before = everything(board)
    with refused("lease_lost") as caught:
        HOLDERS[verb](board, held.id, held.token)
    assert caught.value.details["actual"] == {
        "status": status,
        "version": held.task.version,
        "claimed_by": "ada",
        "claimed_at": held.task.claimed_at,
        "lease_expires_at": held.task.lease_expires_at,
    }
    assert everything(board) == before


@pytest.mark.parametrize("verb", HOLDERS)
def test_holder_may_act_until_the_last_millisecond(board: Board, clock: Clock, verb: str) -> None:
    held = bring_to(board, "running")
    clock.advance(minutes=14, seconds=59.999)
    HOLDERS[verb](board, held.id, held.token)


@pytest.mark.parametrize("verb", HOLDERS)
def test_stale_holder_is_refused_after_takeover(board: Board, clock: Clock, verb: str) -> None:
    held = bring_to(board, "running")
    clock.advance(minutes=20)
    other = hold(board, "bob", task=held.id)
    before = everything(board)
    with refused("lease_lost") as caught:
        HOLDERS[verb](board, held.id, held.token)
    assert caught.value.details["actual"]["claimed_by"] == "bob"
    assert everything(board) == before
    assert HOLDERS[verb](board, other.id, other.token).task.fence == 2


@pytest.mark.parametrize("verb", HOLDERS)
def test_stale_holder_is_refused_after_the_sweep_put_its_task_back(board: Board, clock: Clock, verb: str) -> None:
    held = bring_to(board, "running")
    clock.advance(minutes=20)
    board.tick()
    before = everything(board)
    with refused("lease_lost") as caught:
        HOLDERS[verb](board, held.id, held.token)
    assert caught.value.details["actual"]["status"] == "queued"
    assert everything(board) == before


@pytest.mark.parametrize("verb", HOLDERS)
def test_stale_holder_is_refused_when_it_holds_the_task_anew(board: Board, clock: Clock, verb: str) -> None:
    held = bring_to(board, "running")
    clock.advance(minutes=20)
    again = hold(board, "ada", task=held.id)
    with refused("lease_lost"):
        HOLDERS[verb](board, held.id, held.token)
    HOLDERS[verb](board, again.id, again.token)


@pytest.mark.parametrize("verb", HOLDERS)
def test_clock_set_back_gives_no_lease_back_that_was_taken(board: Board, clock: Clock, verb: str) -> None:
    held = bring_to(board, "running")
    clock.advance(minutes=20)
    hold(board, "bob", task=held.id)
    clock.advance(minutes=-19)
    with refused("lease_lost"):
        HOLDERS[verb](board, held.id, held.token)
    assert board.show(held.id)["task"]["claimed_by"] == "bob"


def test_clock_set_back_keeps_a_live_lease_from_others(board: Board, clock: Clock) -> None:
    held = bring_to(board, "running")
    clock.advance(days=-2)
    assert board.claim("bob") is None
    assert board.tick()["expired"] == 0
    renewed = board.heartbeat(held.id, held.token)
    assert lease_of(renewed).expires_at == "2026-11-28T01:08:20.000+00:00"
    assert board.complete(held.id, held.token).task.status == "done"


def test_clock_jumping_ahead_takes_leases_back_once_only(board: Board, clock: Clock) -> None:
    held = bring_to(board, "running")
    clock.advance(days=400)
    assert board.tick() == {"expired": 1, "created": 0, "delivered": 0, "catchup_pending": False}
    assert board.tick()["expired"] == 0
    assert kinds(board, held.id).count("expired") == 1


def test_expired_task_is_ready_at_once_with_its_attempt_used(board: Board, clock: Clock) -> None:
    held = bring_to(board, "running")
    board.heartbeat(held.id, held.token, progress=70)
    clock.advance(minutes=16)
    assert board.tick()["expired"] == 1
    task = board.list_tasks(full=True).tasks[0]
    assert (task.status, task.ready, task.attempts, task.fence) == ("queued", True, 1, 1)
    assert (task.claimed_by, task.claimed_at, task.progress, task.lease_expires_at) == (None, None, None, None)
    assert task.version == held.task.version + 1
    (attempt,) = board.show(held.id)["attempts"]
    assert (attempt["outcome"], attempt["ended_at"]) == ("expired", "2026-11-30T01:09:20.000+00:00")
    assert attempt["error"] == task.error
    event = last_event(board, held.id)
    assert (event["kind"], event["actor"], event["actor_kind"]) == ("expired", "system", "system")
    assert event["data"]["changes"]["claimed_by"] == {"from": "ada", "to": None}


def test_expired_task_without_an_attempt_left_has_failed_and_names_its_last_holder(board: Board, clock: Clock) -> None:
    held = bring_to(board, "running", max_attempts=1)
    clock.advance(minutes=16)
    assert board.claim("bob") is None
    task = board.list_tasks().tasks[0]
    assert (task.status, task.attempts, task.claimed_by) == ("failed", 1, "ada")
    assert task.finished_at == "2026-11-30T01:09:20.000+00:00"
    assert last_event(board, held.id)["data"]["changes"]["status"] == {"from": "running", "to": "failed"}


def test_lease_past_its_end_is_shown_as_expired_before_anybody_reclaims(board: Board, clock: Clock) -> None:
    bring_to(board, "running")
    assert not board.list_tasks().tasks[0].lease_expired
    clock.advance(minutes=15)
    task = board.list_tasks().tasks[0]
    assert (task.status, task.lease_expired, task.ready) == ("running", True, False)


def test_heartbeat_moves_the_end_of_the_lease(board: Board, clock: Clock) -> None:
    held = bring_to(board, "claimed")
    for _ in range(5):
        clock.advance(minutes=14)
        board.heartbeat(held.id, held.token)
        assert board.claim("bob") is None
    clock.advance(minutes=15)
    assert hold(board, "bob").id == held.id


def test_refused_claim_of_one_task_leaves_what_it_swept_on_the_way(board: Board, clock: Clock) -> None:
    stale = bring_to(board, "running")
    other = board.add("for bob", assignee="bob").task
    clock.advance(minutes=16)
    with refused("conflict", "assigned"):
        board.claim("ada", task=other.id)
    assert kinds(board, stale.id)[-1] == "expired"


def due_tasks(board: Board, count: int, **fields: object) -> None:
    """Add tasks that are delayed until tomorrow."""
    task = {"title": "due", "not_before": "2026-12-01T00:00:00+00:00", **fields}
    board.import_tasks([task] * count)


def leased_tasks(board: Board, count: int, *, agent: str, claimant: str | None = None, **fields: object) -> None:
    """Add tasks and let an agent hold all of them; assign them to ``claimant`` meanwhile, if one is given."""
    board.import_tasks([{"title": "leased", **fields}] * count)
    for _ in range(count):
        hold(board, agent)
    if claimant is not None:
        with board.database.write() as tx:
            tx.execute("UPDATE task SET assignee = ? WHERE title = 'leased'", (claimant,))


def statuses(board: Board) -> dict[str, int]:
    """Return the number of tasks by status."""
    return board.stats()["by_status"]


def test_claim_promotes_at_most_two_hundred_due_tasks(board: Board, clock: Clock) -> None:
    due_tasks(board, 250)
    clock.advance(days=2)
    hold(board)
    with board.database.read() as tx:
        assert tx.execute("SELECT count(*) FROM task WHERE delayed = 1").fetchone()[0] == 50
    assert len(board.list_tasks(ready=True, limit=1_000).tasks) == 249
    board.tick()
    with board.database.read() as tx:
        assert tx.execute("SELECT count(*) FROM task WHERE delayed = 1").fetchone()[0] == 0


def test_due_tasks_of_others_do_not_hide_the_one_of_this_agent(board: Board, clock: Clock) -> None:
    due_tasks(board, 250, assignee="bob", priority=9)
    due_tasks(board, 1, title="mine", assignee="ada")
    clock.advance(days=2)
    assert hold(board, "ada").task.title == "mine"


@pytest.mark.parametrize("choice", [{"queues": ["mine"]}, {"tags": ["mine"]}])
def test_due_tasks_of_other_queues_and_tags_do_not_hide_the_one_asked_for(
    board: Board, clock: Clock, choice: dict[str, list[str]]
) -> None:
    due_tasks(board, 250, priority=9)
    due_tasks(board, 1, title="mine", queue="mine", tags=["mine"])
    clock.advance(days=2)
    assert hold(board, "ada", **choice).task.title == "mine"


def test_blocked_due_tasks_do_not_hide_a_free_one(board: Board, clock: Clock) -> None:
    blocker = board.add("blocker", assignee="carol").task
    due_tasks(board, 250, priority=9, blocked_by=[blocker.id])
    due_tasks(board, 1, title="free")
    clock.advance(days=2)
    assert hold(board, "ada").task.title == "free"


def test_best_of_many_due_tasks_is_found_first(board: Board, clock: Clock) -> None:
    due_tasks(board, 250)
    due_tasks(board, 1, title="best", priority=1)
    clock.advance(days=2)
    assert hold(board, "ada").task.title == "best"


def test_claim_takes_back_at_most_two_hundred_leases_and_tick_the_rest(board: Board, clock: Clock) -> None:
    leased_tasks(board, 210, agent="bob")
    clock.advance(minutes=16)
    hold(board, "ada")
    assert statuses(board)["queued"] == 199
    assert statuses(board)["claimed"] == 11
    assert board.tick()["expired"] == 10
    assert statuses(board)["queued"] == 209


def test_dead_leases_for_others_do_not_hide_the_one_for_this_agent(board: Board, clock: Clock) -> None:
    leased_tasks(board, 210, agent="bob", claimant="bob", priority=9)
    mine = bring_to(board, "claimed", agent="carol")
    clock.advance(minutes=16)
    assert hold(board, "ada").id == mine.id


def test_dead_leases_without_an_attempt_left_do_not_hide_a_task_to_be_had(board: Board, clock: Clock) -> None:
    leased_tasks(board, 210, agent="bob", priority=9, max_attempts=1)
    mine = bring_to(board, "claimed", agent="carol")
    clock.advance(minutes=16)
    assert hold(board, "ada").id == mine.id


def test_dead_leases_of_tasks_that_have_become_blocked_do_not_hide_one_to_be_had(board: Board, clock: Clock) -> None:
    leased_tasks(board, 210, agent="bob", priority=9)
    blocker = board.add("blocker", assignee="carol").task
    for task in board.list_tasks(status=["claimed"], limit=1_000).tasks:
        board.update(task.id, add_depends_on=[blocker.id])
    mine = bring_to(board, "claimed", agent="carol")
    clock.advance(minutes=16)
    assert hold(board, "ada").id == mine.id


def test_best_of_many_dead_leases_is_found_first(board: Board, clock: Clock) -> None:
    leased_tasks(board, 210, agent="bob")
    best = bring_to(board, "claimed", agent="bob", priority=1)
    clock.advance(minutes=16)
    assert hold(board, "ada").id == best.id


def test_claim_of_one_task_finds_it_behind_many_dead_leases(board: Board, clock: Clock) -> None:
    leased_tasks(board, 210, agent="bob", priority=9)
    low = bring_to(board, "claimed", agent="bob")
    clock.advance(minutes=16)
    assert hold(board, "ada", task=low.id).id == low.id


def test_tick_does_everything_that_is_due_however_much(board: Board, clock: Clock) -> None:
    leased_tasks(board, 410, agent="bob")
    due_tasks(board, 650)
    clock.advance(days=2)
    assert board.tick()["expired"] == 410
    assert statuses(board)["queued"] == 1_060
    with board.database.read() as tx:
        assert tx.execute("SELECT count(*) FROM task WHERE delayed = 1").fetchone()[0] == 0
