"""Claims that keep their lease: a thread renews it, and the end of the block ends the attempt."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from agent_task_board.errors import LeaseLost
from tests.support import MARIA, hold, open_board, refused
from tests.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from agent_task_board import Board
    from agent_task_board.board.keeping import Held
    from tests.support import Clock


def test_end_of_the_block_completes_the_task_with_its_result(board: Board) -> None:
    board.add("a task")
    with board.claim("ada", keep=True) as held:
        held.result = {"tests": 12}
        held.artifacts = ["report.md"]
        held.heartbeat(progress=40, note="half")
    task = board.show(held.id)["task"]
    assert (task["status"], task["result"], task["artifacts"]) == ("done", {"tests": 12}, ["report.md"])


def test_exception_fails_the_task_and_goes_on(board: Board) -> None:
    board.add("a task", max_attempts=1)
    with pytest.raises(ZeroDivisionError), board.claim("ada", keep=True) as held:
        held.result = 1 // 0
    task = board.show(held.id)["task"]
    assert task["status"] == "failed"
    assert "ZeroDivisionError" in task["error"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_request_to_stop_releases_the_task(board: Board, stop: type[BaseException]) -> None:
    board.add("a task")
    with pytest.raises(stop), board.claim("ada", keep=True) as held:
        raise stop
    task = board.show(held.id)["task"]
    assert (task["status"], task["attempts"]) == ("queued", 0)


def test_nothing_ready_is_refused_as_empty(board: Board) -> None:
    with refused("empty"):
        board.claim("ada", keep=True)


def test_lost_lease_raises_in_the_block_and_at_its_end(board: Board) -> None:
    task = board.add("a task").task.id
    with refused("lease_lost"), board.claim("ada", keep=True) as held:
        board.cancel(task, actor=MARIA)
        with refused("lease_lost"):
            held.heartbeat()


def test_exception_of_the_block_is_seen_although_the_lease_was_lost(board: Board) -> None:
    board.add("a task")

    def work() -> None:
        with board.claim("ada", keep=True) as held:
            board.cancel(held.id, actor=MARIA)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        work()
    assert any("not held" in note for note in caught.value.__notes__)


def test_clock_past_the_end_of_the_lease_is_a_lost_lease(board: Board, clock: Clock) -> None:
    board.add("a task")
    with refused("lease_lost"), board.claim("ada", keep=True) as held:
        held.check()
        clock.advance(minutes=15)
        held.check()
    assert hold(board, "bob").id == held.id


@pytest.mark.parametrize("verb", ["complete", "fail", "release", "handoff"])
def test_attempt_that_the_block_has_ended_stays_as_it_is(board: Board, verb: str) -> None:
    board.add("a task")
    with board.claim("ada", keep=True) as held:
        getattr(held, verb)(*{"fail": ["no network"], "handoff": ["bob"]}.get(verb, []))
        assert held.has_ended
        held.check()
    attempts = board.show(held.id)["attempts"]
    assert [attempt["outcome"] for attempt in attempts] == [
        {"complete": "completed", "fail": "failed", "release": "released", "handoff": "handed_off"}[verb]
    ]


def test_thread_renews_the_lease_while_the_block_runs(tmp_path: Path) -> None:
    with open_board(tmp_path / "data") as board:
        board.add("a task")
        with board.claim("ada", lease="1s", keep=True) as held:
            first = held.lease.expires_at
            eventually(lambda: held.lease.expires_at > first, "a renewal")
            assert held.task.status == "running"
        assert board.show(held.id)["task"]["status"] == "done"


def test_thread_notices_that_the_lease_is_lost(tmp_path: Path) -> None:
    with open_board(tmp_path / "data") as board:
        task = board.add("a task").task.id
        with refused("lease_lost"), board.claim("ada", lease="1s", keep=True) as held:
            board.reassign(task, "bob", actor=MARIA)
            eventually(lambda: not is_kept(held), "the loss")


def is_kept(held: Held) -> bool:
    try:
        held.check()
    except LeaseLost:
        return False
    return True


def test_asynchronous_block_ends_the_attempt_too(board: Board) -> None:
    board.add("a task")
    board.add("another task")

    async def work() -> str:
        async with board.claim("ada", keep=True) as held:
            await asyncio.sleep(0)
            held.result = "done"
        return held.id

    async def stopped() -> None:
        async with board.claim("ada", keep=True):
            await asyncio.Event().wait()

    async def cancelled() -> None:
        task = asyncio.create_task(stopped())
        while not any(one.status == "claimed" for one in board.list_tasks().tasks):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    first = asyncio.run(work())
    assert board.show(first)["task"]["result"] == "done"
    asyncio.run(cancelled())
    assert [one.status for one in board.list_tasks(status=["queued"]).tasks] == ["queued"]
