"""How a holder ends an attempt: complete, fail, release, handoff, and the replay of a lost reply."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Board, Settings, instants
from tests.support import (
    MARIA,
    STATUSES,
    bring_to,
    everything,
    hold,
    kinds,
    last_event,
    lease_of,
    left,
    open_board,
    refused,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_task_board import Receipt
    from tests.support import Clock

ENDINGS: dict[str, Callable[[Board, str, str], Receipt]] = {
    "complete": lambda board, task, token: board.complete(task, token),
    "fail": lambda board, task, token: board.fail(task, token, "broken"),
    "release": lambda board, task, token: board.release(task, token),
    "handoff": lambda board, task, token: board.handoff(task, token, "carol"),
}
GOES_TO = {"complete": "done", "fail": "queued", "release": "queued", "handoff": "queued"}
OUTCOME = {"complete": "completed", "fail": "failed", "release": "released", "handoff": "handed_off"}


@pytest.mark.parametrize("verb", ENDINGS)
@pytest.mark.parametrize("status", STATUSES)
def test_holder_of_a_claimed_or_running_task_may_end_it_and_nobody_else(board: Board, verb: str, status: str) -> None:
    held = bring_to(board, status)
    if status in ("claimed", "running"):
        task = ENDINGS[verb](board, held.id, held.token).task
        assert task.status == GOES_TO[verb]
        assert task.version == held.task.version + 1
        assert task.lease_expires_at is None
        (attempt,) = board.show(held.id)["attempts"]
        assert attempt["outcome"] == OUTCOME[verb]
        assert attempt["ended_at"] == task.updated_at
        event = last_event(board, held.id)
        assert (event["kind"], event["actor"], event["actor_kind"]) == (OUTCOME[verb], "ada", "agent")
        assert event["data"]["changes"]["status"] == {"from": status, "to": GOES_TO[verb]}
        return
    before = everything(board)
    if (verb, status) in (("complete", "review"), ("complete", "done"), ("fail", "failed")):
        assert ENDINGS[verb](board, held.id, held.token).replayed
    else:
        with refused("lease_lost") as caught:
            ENDINGS[verb](board, held.id, held.token)
        assert caught.value.details["actual"]["status"] == status
    assert everything(board) == before


# Complete


def test_completed_task_is_done_and_remembers_who_did_it(board: Board, clock: Clock) -> None:
    held = bring_to(board, "running")
    board.heartbeat(held.id, held.token, progress=90)
    clock.advance(minutes=3)
    task = board.complete(held.id, held.token, result=[1, {"a": None}], artifacts=["out/a.txt", "b"], note="ok").task
    assert (task.status, task.claimed_by, task.progress) == ("done", "ada", 100)
    assert task.finished_at == "2026-11-30T00:56:20.000+00:00"
    assert task.claimed_at == "2026-11-30T00:53:20.000+00:00"
    assert task.result == [1, {"a": None}]
    assert task.artifacts == ["out/a.txt", "b"]
    (attempt,) = board.show(held.id)["attempts"]
    assert attempt["result"] == [1, {"a": None}]
    assert attempt["note"] == "ok"


def test_completed_task_that_needs_approval_goes_to_review_and_keeps_its_holder(board: Board) -> None:
    held = bring_to(board, "review")
    assert (held.task.claimed_by, held.task.finished_at, held.task.lease_expires_at) == ("ada", None, None)


def test_complete_without_a_result_replaces_an_earlier_one(board: Board) -> None:
    held = bring_to(board, "review")
    assert held.task.result == {"ok": True}
    assert board.reject(held.id, note="again").task.result == {"ok": True}
    again = hold(board, task=held.id)
    assert again.task.result == {"ok": True}
    assert board.complete(again.id, again.token).task.result is None


def test_complete_clears_the_error_of_an_earlier_attempt(board: Board) -> None:
    held = bring_to(board, "claimed")
    assert board.fail(held.id, held.token, "flaky", retry_in=0).task.error == "flaky"
    again = hold(board)
    assert again.task.error == "flaky"
    assert board.complete(again.id, again.token).task.error is None


def test_what_waited_for_a_done_task_is_ready_and_what_waits_for_a_reviewed_one_is_not(board: Board) -> None:
    reviewed = bring_to(board, "review")
    waiting = board.add("waiting", depends_on=[reviewed.id]).task
    assert waiting.blocked
    board.approve(reviewed.id)
    assert hold(board).id == waiting.id


def test_long_values_are_told_in_events_as_size_and_digest_only(board: Board) -> None:
    body = "é secret"
    task = board.add("task", body=body, params={"k": "secret"}).task
    held = hold(board)
    board.complete(held.id, held.token, result="secret")
    created, _, completed = board.events()["events"]
    told = created["data"]["changes"]
    assert told["body"]["to"] == {"bytes": 9, "sha256": hashlib.sha256(body.encode()).hexdigest()}
    assert told["params"]["to"]["bytes"] == len('{"k":"secret"}')
    digest = hashlib.sha256(b'"secret"').hexdigest()
    assert completed["data"]["changes"]["result"] == {"from": None, "to": {"bytes": 8, "sha256": digest}}
    board.update(board.add("more").task.id, body="another secret", params={"k": "secret"})
    assert "secret" not in repr(board.events())
    assert board.show(task.id)["task"]["body"] == body


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"result": float("nan")}, "result"),
        ({"result": float("-inf")}, "result"),
        ({"result": 10**30}, "result"),
        ({"result": 2**63}, "result"),
        ({"result": -(2**63) - 1}, "result"),
        ({"result": {"a": "\ud800"}}, "result"),
        ({"result": {"\udfff": 1}}, "result"),
        ({"result": {1: 1}}, "result"),
        ({"result": {1, 2}}, "result"),
        ({"result": "x" * 1_048_575}, "result"),
        ({"artifacts": "out.txt"}, "artifacts"),
        ({"artifacts": [""]}, "artifacts"),
        ({"artifacts": ["a\nb"]}, "artifacts"),
        ({"artifacts": ["p" * 4_097]}, "artifacts"),
        ({"artifacts": [str(number) for number in range(1_001)]}, "artifacts"),
        ({"note": "n" * 20_001}, "note"),
        ({"note": "a\x00"}, "note"),
        ({"note": 5}, "note"),
    ],
)
def test_malformed_complete_is_refused_by_field(board: Board, options: dict[str, Any], field: str) -> None:
    held = bring_to(board, "claimed")
    before = everything(board)
    with refused("invalid_input") as caught:
        board.complete(held.id, held.token, **options)
    assert caught.value.details["field"] == field
    assert everything(board) == before


@pytest.mark.parametrize("result", [0, False, "", [], {}, "x" * 1_048_574, -(2**63), 2**63 - 1, 1.5, {"": [None]}])
def test_result_is_any_json_value_up_to_a_mebibyte(board: Board, result: Any) -> None:
    held = bring_to(board, "claimed")
    task = board.complete(held.id, held.token, result=result, artifacts=["p" * 4_096]).task
    assert task.result == result
    assert type(task.result) is type(result)


# Fail


def test_failed_attempt_waits_twice_as_long_each_time_and_then_the_task_fails(board: Board, clock: Clock) -> None:
    task = board.add("task", max_attempts=4).task
    for wait in (30, 60, 120):
        held = hold(board, task=task.id)
        after = board.fail(held.id, held.token, f"broke before {wait}").task
        assert (after.status, after.delayed, after.ready) == ("queued", True, False)
        assert (after.claimed_by, after.claimed_at, after.progress) == (None, None, None)
        assert after.error == f"broke before {wait}"
        clock.advance(seconds=wait - 0.001)
        assert board.claim("ada") is None
        clock.advance(seconds=0.001)
    held = hold(board)
    assert held.task.attempts == 4
    last = board.fail(held.id, held.token, "for good").task
    assert (last.status, last.error, last.claimed_by, last.attempts) == ("failed", "for good", "ada", 4)
    assert last.finished_at == last.updated_at
    attempts = board.show(task.id)["attempts"]
    assert [attempt["number"] for attempt in attempts] == [1, 2, 3, 4]
    assert [attempt["outcome"] for attempt in attempts] == ["failed"] * 4
    assert attempts[3]["error"] == "for good"


def test_wait_is_capped_at_a_day(board: Board, clock: Clock) -> None:
    board.add("task", max_attempts=20)
    waits = []
    for _ in range(14):
        held = hold(board)
        after = board.fail(held.id, held.token, "x").task
        assert after.not_before is not None
        waits.append((instants.from_text(after.not_before) - clock.now) // instants.SECOND)
        clock.advance(days=1)
    assert waits == [30 * 2**doublings for doublings in range(12)] + [86_400, 86_400]


def test_base_and_cap_of_the_wait_are_settings(tmp_path: Path, clock: Clock) -> None:
    settings = Settings(backoff_base=1_000, backoff_cap=2_500)
    board = Board(str(tmp_path), settings=settings, clock=clock, actor=MARIA)
    board.add("task", max_attempts=9)
    waits = []
    for _ in range(3):
        held = hold(board)
        waits.append(board.fail(held.id, held.token, "x").task.not_before)
        clock.advance(seconds=10)
    assert waits == [
        "2026-11-30T00:53:21.000+00:00",
        "2026-11-30T00:53:32.000+00:00",
        "2026-11-30T00:53:42.500+00:00",
    ]
    board.close()


def test_retry_in_replaces_the_wait(board: Board, clock: Clock) -> None:
    held = bring_to(board, "claimed")
    assert board.fail(held.id, held.token, "x", retry_in="2h").task.not_before == "2026-11-30T02:53:20.000+00:00"
    clock.advance(minutes=120)
    again = hold(board)
    now = board.fail(again.id, again.token, "x", retry_in=0).task
    assert now.ready
    last = hold(board)
    assert board.fail(last.id, last.token, "x", retry_in="1h").task.status == "failed"


def test_no_retry_ends_the_task_with_attempts_left(board: Board) -> None:
    held = bring_to(board, "running", max_attempts=9)
    task = board.fail(held.id, held.token, "hopeless", no_retry=True).task
    assert (task.status, task.attempts, task.not_before) == ("failed", 1, None)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"error": ""}, "error"),
        ({"error": " \n"}, "error"),
        ({"error": "e" * 20_001}, "error"),
        ({"error": "a\x00"}, "error"),
        ({"error": "\udc80"}, "error"),
        ({"error": None}, "error"),
        ({"retry_in": "soon"}, "retry_in"),
        ({"retry_in": -1}, "retry_in"),
        ({"retry_in": "367d"}, "retry_in"),
        ({"retry_in": float("nan")}, "retry_in"),
        ({"retry_in": 10**30}, "retry_in"),
        ({"retry_in": "1m", "no_retry": True}, "retry_in"),
        ({"no_retry": "yes"}, "no_retry"),
        ({"no_retry": 1}, "no_retry"),
    ],
)
def test_malformed_fail_is_refused_by_field(board: Board, options: dict[str, Any], field: str) -> None:
    held = bring_to(board, "claimed")
    before = everything(board)
    with refused("invalid_input") as caught:
        board.fail(held.id, held.token, **{"error": "x", **options})
    assert caught.value.details["field"] == field
    assert everything(board) == before


# Release and handoff


@pytest.mark.parametrize("verb", ["release", "handoff"])
def test_attempt_given_back_does_not_count_but_keeps_its_number(board: Board, verb: str) -> None:
    task = board.add("task", max_attempts=1).task
    for number in range(1, 4):
        held = hold(board, "bob" if verb == "handoff" and number % 2 == 0 else "ada", task=task.id)
        assert held.task.attempts == 1
        if verb == "release":
            after = board.release(held.id, held.token).task
        else:
            after = board.handoff(held.id, held.token, "bob" if number % 2 else "ada").task
        assert (after.status, after.attempts, after.fence) == ("queued", 0, number)
        assert (after.claimed_by, after.claimed_at, after.progress) == (None, None, None)
    assert [attempt["number"] for attempt in board.show(task.id)["attempts"]] == [1, 2, 3]


def test_released_task_is_ready_at_once_or_after_the_wait_asked_for(board: Board, clock: Clock) -> None:
    held = bring_to(board, "running")
    assert board.release(held.id, held.token).task.ready
    again = hold(board)
    after = board.release(again.id, again.token, after="10m", note="waiting for the licence").task
    assert after.not_before == "2026-11-30T01:03:20.000+00:00"
    assert board.claim("ada") is None
    clock.advance(minutes=10)
    receipt = board.claim("bob")
    assert receipt is not None
    assert left(receipt) == [("released", "ada", "waiting for the licence")]


@pytest.mark.parametrize("after", ["soon", -1, "367d", True, 10**30])
def test_release_after_a_malformed_wait_is_refused(board: Board, after: Any) -> None:
    held = bring_to(board, "claimed")
    before = everything(board)
    with refused("invalid_input") as caught:
        board.release(held.id, held.token, after=after)
    assert caught.value.details["field"] == "after"
    assert everything(board) == before


def test_handoff_assigns_the_task_and_its_note_travels(board: Board) -> None:
    held = bring_to(board, "running")
    task = board.handoff(held.id, held.token, "bob", note="tests are red in parser.py").task
    assert (task.status, task.assignee) == ("queued", "bob")
    assert board.claim("ada") is None
    receipt = board.claim("BOB")
    assert receipt is not None
    assert left(receipt) == [("handed_off", "ada", "tests are red in parser.py")]
    assert last_event(board, held.id)["kind"] == "claimed"
    assert board.show(held.id)["attempts"][0]["note"] == "tests are red in parser.py"
    handed = board.events(task=held.id)["events"][-2]
    assert handed["data"]["note"] == "tests are red in parser.py"
    assert handed["data"]["changes"]["assignee"] == {"from": None, "to": "bob"}


@pytest.mark.parametrize("to", ["ada", "ADA", " Ada "])
def test_holder_cannot_hand_off_to_itself(board: Board, to: str) -> None:
    held = bring_to(board, "claimed")
    before = everything(board)
    with refused("invalid_input") as caught:
        board.handoff(held.id, held.token, to)
    assert caught.value.details["field"] == "to"
    assert everything(board) == before


@pytest.mark.parametrize("to", ["", " ", "none", "a\tb\x00", "b" * 101, None])
def test_handoff_to_nobody_is_refused(board: Board, to: Any) -> None:
    held = bring_to(board, "claimed")
    before = everything(board)
    with refused("invalid_input") as caught:
        board.handoff(held.id, held.token, to)
    assert caught.value.details["field"] == "to"
    assert everything(board) == before


@pytest.mark.parametrize("verb", ["fail", "release", "handoff", "reassign", "reject", "retry"])
def test_task_that_comes_back_has_no_progress_left(board: Board, verb: str) -> None:
    held = bring_to(board, "running")
    board.update(held.id, needs_approval=verb == "reject")
    assert board.heartbeat(held.id, held.token, progress=60).task.progress == 60
    if verb in ENDINGS:
        back = ENDINGS[verb](board, held.id, held.token)
    elif verb == "reassign":
        back = board.reassign(held.id, None)
    elif verb == "reject":
        assert board.complete(held.id, held.token).task.progress == 100
        back = board.reject(held.id, note="again")
    else:
        assert board.cancel(held.id).task.progress == 60
        back = board.retry(held.id)
    assert (back.task.status, back.task.progress) == ("queued", None)


# Replay


@pytest.mark.parametrize("verb", ENDINGS)
def test_repeating_an_ending_with_its_token_answers_again_and_writes_nothing(board: Board, verb: str) -> None:
    held = bring_to(board, "running")
    first = ENDINGS[verb](board, held.id, held.token)
    assert not first.replayed
    assert "replayed" not in first.to_dict()
    before = everything(board)
    again = ENDINGS[verb](board, held.id, held.token)
    assert again.replayed
    assert again.to_dict() == {"task": first.task.to_dict(), "replayed": True}
    assert everything(board) == before


@pytest.mark.parametrize("verb", ENDINGS)
@pytest.mark.parametrize("other", [*ENDINGS, "heartbeat"])
def test_any_other_verb_with_a_spent_token_has_lost_the_lease(board: Board, verb: str, other: str) -> None:
    if verb == other:
        return
    held = bring_to(board, "claimed")
    ENDINGS[verb](board, held.id, held.token)
    before = everything(board)
    with refused("lease_lost"):
        if other == "heartbeat":
            board.heartbeat(held.id, held.token)
        else:
            ENDINGS[other](board, held.id, held.token)
    assert everything(board) == before


def test_replay_does_not_compare_arguments_and_shows_the_task_as_it_is_now(board: Board) -> None:
    held = bring_to(board, "claimed")
    board.release(held.id, held.token)
    hold(board, "bob", task=held.id)
    again = board.release(held.id, held.token, after="1h", note="other")
    assert again.replayed
    assert (again.task.status, again.task.claimed_by) == ("claimed", "bob")
    assert again.lease is None


def test_replay_works_for_each_attempt_of_a_task(board: Board) -> None:
    task = board.add("task").task
    one = hold(board, task=task.id)
    board.fail(one.id, one.token, "x", retry_in=0)
    two = hold(board, task=task.id)
    board.fail(two.id, two.token, "x", retry_in=0)
    assert board.fail(one.id, one.token, "x").replayed
    assert board.fail(two.id, two.token, "x").replayed


def test_token_replaced_by_resume_is_no_replay(board: Board) -> None:
    held = bring_to(board, "claimed")
    fresh = lease_of(board.resume(held.id, "ada")).token
    board.complete(held.id, fresh)
    with refused("lease_lost"):
        board.complete(held.id, held.token)


def test_token_of_a_revoked_lease_is_no_replay(board: Board) -> None:
    held = bring_to(board, "claimed")
    board.reassign(held.id, "bob")
    for verb in ENDINGS.values():
        with refused("lease_lost"):
            verb(board, held.id, held.token)


def test_fail_of_a_task_that_was_never_claimed_has_no_lease_to_lose(board: Board) -> None:
    task = board.add("task").task
    with refused("lease_lost"):
        board.fail(task.id, "0" * 32, "x")
    assert kinds(board, task.id) == ["created"]


def test_reply_survives_the_process_that_asked(tmp_path: Path, clock: Clock) -> None:
    first = open_board(tmp_path, clock)
    held = bring_to(first, "claimed")
    first.complete(held.id, held.token)
    first.close()
    second = open_board(tmp_path, clock)
    assert second.complete(held.id, held.token).replayed
    second.close()


def test_repeated_ending_names_what_it_does_not_take(board: Board, clock: Clock) -> None:
    held = bring_to(board, "claimed")
    board.complete(held.id, held.token, result={"a": 1, "b": 2}, artifacts=["x"], note="n")
    clock.advance(seconds=5)
    for more, named in (
        ({}, None), ({"result": {"b": 2, "a": 1}, "artifacts": ["x"], "note": "n"}, None),
        ({"result": 2}, "result"), ({"artifacts": ["y"], "note": "m"}, "note, artifacts"),
    ):  # fmt: skip
        again = board.complete(held.id, held.token, **more)
        assert again.replayed
        assert [warning.rpartition(": ")[2] for warning in again.warnings] == ([named] if named else [])
    failed = bring_to(board, "claimed")
    board.fail(failed.id, failed.token, "e", retry_in=60)
    assert board.fail(failed.id, failed.token, "e", retry_in=60).warnings == []
    assert board.fail(failed.id, failed.token, "f", retry_in=90).warnings[0].endswith(": error, retry_in")
    assert board.fail(failed.id, failed.token, "e", no_retry=True).warnings[0].endswith(": no_retry")
    given = bring_to(board, "claimed")
    board.handoff(given.id, given.token, "bob")
    assert board.handoff(given.id, given.token, "Bob").warnings == []
    assert board.handoff(given.id, given.token, "eve").warnings[0].endswith(": to")
    back = bring_to(board, "claimed")
    board.release(back.id, back.token, after=60)
    assert board.release(back.id, back.token, after=60).warnings == []
    assert board.release(back.id, back.token, after=61, note="n").warnings[0].endswith(": note, after")


def test_done_task_has_all_of_its_progress(board: Board) -> None:
    held = bring_to(board, "claimed")
    board.heartbeat(held.id, held.token, progress=40)
    assert board.complete(held.id, held.token).task.progress == 100
    other = bring_to(board, "claimed")
    assert board.complete(other.id, other.token).task.progress is None


def test_lost_lease_of_a_finished_task_does_not_say_claim_it_again(board: Board) -> None:
    held = bring_to(board, "done")
    with refused("lease_lost") as caught:
        board.heartbeat(held.id, held.token)
    assert "finished" in caught.value.hint
