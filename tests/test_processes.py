"""Many processes on one board: whatever they do at the same instant, each task is won once."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from agent_task_board import BoardError
from agent_task_board.board import claiming
from agent_task_board.board.predicates import IS_PROMOTED
from agent_task_board.storage import db, fingerprint
from tests.processes import SPAWN, assert_sound, meet, raw, run_together
from tests.support import open_board

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized
    from multiprocessing.synchronize import Barrier, Event
    from pathlib import Path

RACERS = 20


# Ten workers empty a board


def work_until_empty(directory: str, agent: str, start: Barrier) -> list[tuple[str, int, int]]:
    """Claim and complete until nothing is ready; return id, fence and attempts of each claim."""
    board = open_board(directory)
    done = []
    meet(start)
    while claim := board.claim(agent):
        assert claim.lease is not None
        done.append((claim.task.id, claim.lease.fence, claim.task.attempts))
        board.complete(claim.task.id, claim.lease.token, result={"by": agent})
    board.close()
    return done


def test_ten_processes_complete_a_thousand_tasks_each_exactly_once(tmp_path: Path) -> None:
    board = open_board(tmp_path)
    board.import_tasks([{"title": f"task {number}"} for number in range(1_000)])
    ids = {task.id for task in board.list_tasks(limit=1_000).tasks}
    start = SPAWN.Barrier(10)

    worked = run_together(work_until_empty, [(str(tmp_path), f"worker-{number}", start) for number in range(10)])

    claims = [claim for claims in worked for claim in claims]
    assert Counter(id_ for id_, _, _ in claims) == dict.fromkeys(ids, 1)
    assert {(fence, attempts) for _, fence, attempts in claims} == {(1, 1)}
    assert sum(1 for claims in worked if claims) > 1, "one process did it all: nothing was shown"
    tasks = board.list_tasks(limit=1_000, full=True).tasks
    assert {(task.status, task.attempts, task.fence) for task in tasks} == {("done", 1, 1)}
    winner = {id_: f"worker-{number}" for number, claims in enumerate(worked) for id_, _, _ in claims}
    assert {task.id: task.result["by"] for task in tasks} == winner
    with raw(tmp_path) as connection:
        attempts = connection.execute("SELECT number, outcome, count(*) FROM attempt GROUP BY 1, 2").fetchall()
    assert attempts == [(1, "completed", 1_000)]
    board.close()
    assert_sound(tmp_path)


# Twenty processes want one task


def race(directory: str, agent: str, ids: list[str], start: Barrier, guarded: bool) -> list[Any]:
    """Claim each task together with all others; return the fence where this process won, else the refusal."""
    if not guarded:
        # A board without its trigger is none of ours.
        patch.object(db, "fingerprint", lambda *_: next(iter(fingerprint.KNOWN))).start()
        claiming.CLAIM = claiming.CLAIM.replace("{chosen}", "seq = :seq").replace(f"AND {IS_PROMOTED}", "")
        assert "seq = :seq" in claiming.CLAIM
        assert IS_PROMOTED not in claiming.CLAIM
    board = open_board(directory)
    outcomes: list[Any] = []
    for id_ in ids:
        meet(start)
        try:
            claim = board.claim(agent, task=id_)
        except BoardError as refusal:
            outcomes.append(refusal.to_dict())
        except sqlite3.IntegrityError as fault:
            outcomes.append(str(fault))
        else:
            assert claim is not None
            assert claim.lease is not None
            outcomes.append(claim.lease.fence)
    board.close()
    return outcomes


def race_for_each(directory: Path, ids: list[str], *, guarded: bool) -> list[list[Any]]:
    """Return the outcomes of all racers, round by round."""
    start = SPAWN.Barrier(RACERS)
    racers = [(str(directory), f"racer-{number}", ids, start, guarded) for number in range(RACERS)]
    return [list(outcomes) for outcomes in zip(*run_together(race, racers), strict=True)]


def test_one_of_twenty_processes_wins_a_task_and_the_others_learn_who(tmp_path: Path) -> None:
    board = open_board(tmp_path)
    ids = [board.add(f"round {number}").task.id for number in range(50)]

    for id_, outcomes in zip(ids, race_for_each(tmp_path, ids, guarded=True), strict=True):
        winners = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, int)]
        assert len(winners) == 1, outcomes
        holder = f"racer-{winners[0]}"
        details = board.show(id_)
        assert details["task"]["claimed_by"] == holder
        assert [attempt["agent"] for attempt in details["attempts"]] == [holder]
        refusals = [outcome for outcome in outcomes if isinstance(outcome, dict)]
        assert len(refusals) == RACERS - 1
        for refusal in refusals:
            assert (refusal["code"], refusal["details"]["reason"]) == ("conflict", "status")
            assert refusal["details"]["actual"] == {
                key: details["task"][key]
                for key in ("status", "version", "claimed_by", "claimed_at", "lease_expires_at")
            }
            assert holder in refusal["message"]
    board.close()
    assert_sound(tmp_path)


def test_without_the_guard_in_the_statement_the_same_race_has_several_winners(tmp_path: Path) -> None:
    board = open_board(tmp_path)
    ids = [board.add(f"round {number}", max_attempts=1_000).task.id for number in range(10)]
    board.close()
    with raw(tmp_path) as connection:
        connection.execute("DROP TRIGGER one_open_attempt_per_task")

    rounds = race_for_each(tmp_path, ids, guarded=False)

    winners = [sum(isinstance(outcome, int) for outcome in outcomes) for outcomes in rounds]
    assert max(winners) > 1, winners


def test_without_the_guard_the_database_itself_refuses_a_second_holder(tmp_path: Path) -> None:
    board = open_board(tmp_path)
    ids = [board.add(f"round {number}", max_attempts=1_000).task.id for number in range(10)]
    board.close()

    rounds = race_for_each(tmp_path, ids, guarded=False)

    for outcomes in rounds:
        assert sum(isinstance(outcome, int) for outcome in outcomes) == 1, outcomes
        assert outcomes.count("the task already has an open attempt") == RACERS - 1, outcomes


# Added and claimed in one step


def look_for_work(directory: str, looks: Synchronized[int], stop: Event) -> list[str]:
    """Claim and list over and over until told to stop; return whatever was seen."""
    board = open_board(directory)
    seen: list[str] = []
    while not stop.is_set():
        claim = board.claim("magpie")
        if claim is not None:
            seen.append(claim.task.title)
        seen.extend(task.title for task in board.list_tasks(status=["queued"]).tasks)
        with looks.get_lock():
            looks.value += 1
    board.close()
    return seen


def add_under_their_eyes(directory: str, looks: Synchronized[int], stop: Event, claim: bool) -> list[str]:
    """Add tasks until the others have looked 300 times, and 100 tasks at least."""
    board = open_board(directory)
    number = 0
    while number < 100 or looks.value < 300:
        board.add(f"task {number}", claim=claim, agent="wren")
        number += 1
    stop.set()
    board.close()
    return []


def _looked_and_added(job: str, *arguments: Any) -> list[str]:
    return look_for_work(*arguments) if job == "look" else add_under_their_eyes(*arguments)


@pytest.mark.parametrize("claim", [True, False])
def test_a_task_added_with_a_claim_is_never_seen_unclaimed(tmp_path: Path, claim: bool) -> None:
    looks, stop = SPAWN.Value("i", 0), SPAWN.Event()

    seen = run_together(
        _looked_and_added,
        [
            ("add", str(tmp_path), looks, stop, claim),
            ("look", str(tmp_path), looks, stop),
            ("look", str(tmp_path), looks, stop),
        ],
    )

    # Added without a claim they are seen: the others do look closely enough.
    assert bool(seen[1] or seen[2]) is not claim, seen
    assert_sound(tmp_path)


# One key, one task


def add_with_keys(directory: str, rounds: int, start: Barrier) -> list[tuple[str, bool | None]]:
    board = open_board(directory)
    added = []
    for number in range(rounds):
        meet(start)
        receipt = board.add(f"round {number}", dedupe_key=f"key-{number}")
        added.append((receipt.task.id, receipt.created))
    board.close()
    return added


def test_two_processes_with_one_dedupe_key_make_one_task(tmp_path: Path) -> None:
    start = SPAWN.Barrier(2)

    added = run_together(add_with_keys, [(str(tmp_path), 40, start)] * 2)

    for (one, first), (other, second) in zip(*added, strict=True):
        assert one == other
        assert {first, second} == {True, False}
    board = open_board(tmp_path)
    assert len(board.list_tasks().tasks) == 40
    board.close()


# A board that nobody has made yet


def open_new_boards(directories: list[str], start: Barrier) -> list[tuple[str, bool]]:
    """Write to each new board at the same instant as all others; return the new id, and who made the board."""
    added = []
    for directory in directories:
        board = open_board(directory)
        meet(start)
        id_ = board.add("hello").task.id
        added.append((id_, board.created))
        board.close()
    return added


def test_sixteen_processes_may_make_one_board_at_the_same_instant(tmp_path: Path) -> None:
    directories = [str(tmp_path / f"board-{number}") for number in range(8)]
    start = SPAWN.Barrier(16)

    added = run_together(open_new_boards, [(directories, start)] * 16)

    for directory, of_one_board in zip(directories, zip(*added, strict=True), strict=True):
        board = open_board(directory)
        assert {task.id for task in board.list_tasks().tasks} == {id_ for id_, _ in of_one_board}
        board.close()
        assert [created for _, created in of_one_board].count(True) == 1
        with raw(directory) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert connection.execute("SELECT count(*) FROM event").fetchone() == (16,)
        assert_sound(directory)
