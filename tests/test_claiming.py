"""Claims: which task an agent gets, under what lease, and why a claim finds nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Actor, Board, BoardError
from tests.support import (
    MARIA,
    STATUSES,
    WRONG_TOKEN,
    bring_to,
    everything,
    hold,
    kinds,
    last_event,
    lease_of,
    refused,
    revision,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Clock


def test_stale_holder_cannot_complete_after_takeover(board: Board, clock: Clock) -> None:
    board.add("write the parser")
    first = hold(board, "ada")
    clock.advance(minutes=16)
    hold(board, "bob")
    with refused("lease_lost") as caught:
        board.complete(first.id, first.token)
    assert caught.value.details["actual"]["claimed_by"] == "bob"


# What a claim grants


def test_claim_grants_a_lease_of_fifteen_minutes_unless_asked_otherwise(board: Board) -> None:
    board.add("first")
    board.add("second")
    usual = board.claim("ada")
    assert usual is not None
    assert usual.task.status == "claimed"
    assert usual.task.claimed_by == "ada"
    assert usual.task.claimed_at == "2026-11-30T00:53:20.000+00:00"
    assert usual.task.lease_expires_at == lease_of(usual).expires_at == "2026-11-30T01:08:20.000+00:00"
    assert usual.task.attempts == usual.task.fence == lease_of(usual).fence == 1
    assert usual.task.version == 2
    longer = board.claim("ada", lease="1h30m")
    assert lease_of(longer).expires_at == "2026-11-30T02:23:20.000+00:00"


def test_each_claim_has_a_fresh_token_of_sixteen_random_bytes_in_hex(tmp_path: Path, clock: Clock) -> None:
    asked: list[int] = []

    def random(count: int) -> bytes:
        asked.append(count)
        return bytes([len(asked)]) * count

    board = Board(str(tmp_path), actor=MARIA, clock=clock, random=random)
    board.add("one")
    board.add("two")
    assert hold(board).token == "01" * 16
    assert hold(board).token == "02" * 16
    assert asked == [16, 16]
    board.close()


@pytest.mark.parametrize("lease", [1, 1.0, "1", "1s", 604_800, "7d", "6d24h"])
def test_lease_may_last_from_one_second_to_seven_days(board: Board, lease: str | float) -> None:
    board.add("task")
    assert hold(board, lease=lease).task.status == "claimed"


@pytest.mark.parametrize("lease", [0, 0.999, -1, "0s", 604_801, "7d1s", "8d", 10**30, True, "", "soon", "1w", "1.5h"])
def test_lease_of_another_length_is_refused_everywhere_and_changes_nothing(board: Board, lease: Any) -> None:
    board.add("free")
    held = bring_to(board, "claimed")
    before = everything(board)
    calls: list[Callable[[], object]] = [
        lambda: board.claim("ada", lease=lease),
        lambda: board.resume(held.id, "ada", lease=lease),
        lambda: board.heartbeat(held.id, held.token, lease=lease),
        lambda: board.add("more", claim=True, agent="ada", lease=lease),
    ]
    for call in calls:
        with refused("invalid_input") as caught:
            call()
        assert caught.value.details["field"] == "lease"
    assert everything(board) == before


def test_claim_is_recorded_as_event_and_attempt(board: Board) -> None:
    held = bring_to(board, "claimed")
    event = last_event(board, held.id)
    assert (event["kind"], event["actor"], event["actor_kind"]) == ("claimed", "ada", "agent")
    assert event["data"]["changes"] == {
        "status": {"from": "queued", "to": "claimed"},
        "attempts": {"from": 0, "to": 1},
        "fence": {"from": 0, "to": 1},
        "claimed_by": {"from": None, "to": "ada"},
    }
    (attempt,) = board.show(held.id)["attempts"]
    assert (attempt["number"], attempt["agent"], attempt["fence"]) == (1, "ada", 1)
    assert attempt["outcome"] is None
    assert attempt["ended_at"] is None


def test_claim_may_leave_a_comment_in_the_same_call(board: Board) -> None:
    board.add("task")
    held = hold(board, comment="picking this up")
    (comment,) = board.show(held.id)["comments"]
    assert comment["data"] == {"text": "picking this up"}
    assert (comment["actor"], comment["actor_kind"]) == ("ada", "agent")


# Which task a claim takes


def test_larger_priority_goes_first_and_equal_ones_in_the_order_added(board: Board, clock: Clock) -> None:
    for title, priority in (("a", 0), ("b", 5), ("c", -3), ("d", 5), ("e", 0)):
        board.add(title, priority=priority)
        clock.advance(seconds=-60)  # the order does not depend on the clock
    assert [hold(board).task.title for _ in range(5)] == ["b", "d", "a", "e", "c"]


def test_several_queues_have_one_order_over_all(board: Board) -> None:
    board.add("docs low", queue="docs")
    board.add("ops high", queue="ops", priority=9)
    board.add("web top", queue="web", priority=99)
    board.add("docs mid", queue="docs", priority=5)
    board.add("ops low", queue="ops")
    found = [hold(board, queues=["docs", "ops", "docs"]).task.title for _ in range(4)]
    assert found == ["ops high", "docs mid", "docs low", "ops low"]
    assert board.claim("ada", queues=["docs", "ops"]) is None
    assert hold(board).task.title == "web top"


def test_claim_without_queues_takes_from_any(board: Board) -> None:
    board.add("low", queue="docs")
    board.add("high", queue="ops", priority=1)
    assert [hold(board).task.title for _ in range(2)] == ["high", "low"]


def test_claim_wants_all_of_several_tags(board: Board) -> None:
    board.add("python", tags=["python"], priority=3)
    board.add("both", tags=["web", "python", "css"])
    board.add("other queue", tags=["web", "python"], queue="ops", priority=9)
    assert hold(board, tags=["python", "web"], queues=["default"]).task.title == "both"
    assert board.claim("ada", tags=["python", "web"], queues=["default"]) is None
    assert hold(board, tags=["python", "web"]).task.title == "other queue"


def test_assigned_task_goes_to_its_assignee_only(board: Board) -> None:
    board.add("for bob", assignee="bob", priority=9)
    board.add("for anybody")
    assert hold(board, "ada").task.title == "for anybody"
    assert board.claim("ada") is None
    assert hold(board, "bob").task.title == "for bob"


def test_own_and_free_tasks_share_one_order(board: Board) -> None:
    board.add("free low")
    board.add("mine", assignee="ada", priority=1)
    board.add("free high", priority=2)
    board.add("mine too", assignee="ada")
    assert [hold(board).task.title for _ in range(4)] == ["free high", "mine", "free low", "mine too"]


def test_paused_work_is_passed_over_blocked_and_delayed(board: Board, clock: Clock) -> None:
    blocker = board.add("blocker").task
    board.add("blocked", depends_on=[blocker.id], priority=9)
    board.add("delayed", not_before="2026-11-30T01:00:00+00:00", priority=9)
    assert hold(board).id == blocker.id
    assert board.claim("ada") is None
    clock.advance(minutes=6, seconds=39.999)
    assert board.claim("ada") is None
    clock.advance(seconds=0.001)
    assert hold(board, "bob").task.title == "delayed"


def test_delayed_task_is_delayed_again_when_the_clock_is_set_back(board: Board, clock: Clock) -> None:
    task = board.add("later", not_before="2026-11-30T01:00:00+00:00").task
    clock.advance(minutes=10)
    board.tick()
    assert board.list_tasks(ready=True).tasks
    clock.advance(minutes=-9)
    assert board.claim("ada") is None
    assert not board.list_tasks(ready=True).tasks
    with refused("conflict", "delayed"):
        board.claim("ada", task=task.id)
    (said,) = board.nothing_ready("ada")
    assert "1 delayed, the first until 2026-11-30T01:00:00.000+00:00" in said


def test_agent_names_are_compared_without_case_and_shown_as_first_written(board: Board) -> None:
    board.add("one", assignee="Straße")
    assert hold(board, "STRASSE").task.claimed_by == "Straße"
    board.add("two")
    board.add("three", assignee="ADA")
    assert hold(board, "ada").task.claimed_by == "ADA"
    assert hold(board, " Ada ").task.claimed_by == "ADA"
    assert sorted(agent["name"] for agent in board.agents()) == ["ADA", "Straße"]


@pytest.mark.parametrize("name", ["none", "None", "NONE", " none "])
def test_no_agent_may_be_called_none(board: Board, name: str) -> None:
    held = bring_to(board, "claimed")
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: board.claim(name), "agent"),
        (lambda: board.resume(held.id, name), "agent"),
        (lambda: board.add("x", claim=True, agent=name), "agent"),
        (lambda: board.handoff(held.id, held.token, name), "to"),
    ]
    for call, field in calls:
        with refused("invalid_input") as caught:
            call()
        assert caught.value.details["field"] == field


# A claim of one task


@pytest.mark.parametrize("status", STATUSES)
def test_claim_of_one_task_takes_a_queued_one_only(board: Board, status: str) -> None:
    held = bring_to(board, status)
    if status == "queued":
        assert hold(board, "bob", task=held.id).id == held.id
        return
    before = everything(board)
    with refused("conflict", "status") as caught:
        board.claim("bob", task=held.id)
    actual = caught.value.details["actual"]
    assert actual == {
        "status": status,
        "version": held.task.version,
        "claimed_by": held.task.claimed_by,
        "claimed_at": held.task.claimed_at,
        "lease_expires_at": held.task.lease_expires_at,
    }
    assert f'task {held.id} is "{status}", not "queued"' in caught.value.message
    assert everything(board) == before


def test_claim_of_one_task_says_what_stands_in_its_way(board: Board) -> None:
    blocker = board.add("blocker", assignee="bob").task
    blocked = board.add("blocked", depends_on=[blocker.id]).task
    delayed = board.add("delayed", not_before="2026-12-01").task
    for reason, id_ in (("assigned", blocker.id), ("blocked", blocked.id), ("delayed", delayed.id)):
        before = everything(board)
        with refused("conflict", reason) as caught:
            board.claim("ada", task=id_)
        assert caught.value.details["actual"]["status"] == "queued"
        assert everything(board) == before


def test_claim_of_one_task_takes_back_its_dead_lease_first(board: Board, clock: Clock) -> None:
    held = bring_to(board, "running")
    clock.advance(minutes=15)
    taken = hold(board, "bob", task=held.id)
    assert (taken.task.claimed_by, taken.task.fence, taken.task.progress) == ("bob", 2, None)
    assert [attempt["outcome"] for attempt in board.show(held.id)["attempts"]] == ["expired", None]


def test_claim_of_one_task_may_name_it_by_an_ending_in_any_case(board: Board) -> None:
    task = board.add("task").task
    assert hold(board, task=task.id[-6:].lower()).id == task.id


@pytest.mark.parametrize("if_status", ["queued", "claimed"])
def test_claim_under_an_expected_status_is_a_compare_and_set(board: Board, if_status: str) -> None:
    task = board.add("task").task
    if if_status == "queued":
        assert hold(board, task=task.id, if_status=if_status).id == task.id
        return
    before = everything(board)
    with refused("conflict", "status"):
        board.claim("ada", task=task.id, if_status=if_status)
    assert everything(board) == before


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"agent": ""}, "agent"),
        ({"agent": "  "}, "agent"),
        ({"agent": "a\x00b"}, "agent"),
        ({"agent": "a\nb"}, "agent"),
        ({"agent": "\ud800"}, "agent"),
        ({"agent": "a" * 101}, "agent"),
        ({"agent": None}, "agent"),
        ({"agent": 7}, "agent"),
        ({"queues": [""]}, "queue"),
        ({"queues": ["q" * 101]}, "queue"),
        ({"queues": [f"q{number}" for number in range(101)]}, "queue"),
        ({"tags": ["t" * 65]}, "tags"),
        ({"tags": "web"}, "tags"),
        ({"if_status": "done"}, "if_status"),
        ({"if_status": "ready"}, "if_status"),
        ({"request_id": "r" * 201}, "request_id"),
        ({"comment": "  "}, "comment"),
        ({"comment": "c" * 20_001}, "comment"),
        ({"task": "nope"}, "id"),
        ({"task": "01ARZ3NDEKTSV4RRFFQ69G5FA!"}, "id"),
        ({"task": ""}, "id"),
    ],
)
def test_malformed_claim_is_refused_by_field(board: Board, options: dict[str, Any], field: str) -> None:
    board.add("task")
    before = everything(board)
    with refused("invalid_input") as caught:
        board.claim(**{"agent": "ada", **options})
    assert caught.value.details["field"] == field
    assert everything(board) == before


def test_claim_names_a_task_or_what_to_choose_from_not_both(board: Board) -> None:
    task = board.add("task", tags=["web"]).task
    choices: list[dict[str, Any]] = [{"queues": ["default"]}, {"tags": ["web"]}]
    for options in choices:
        with refused("invalid_input"):
            board.claim("ada", task=task.id, **options)


def test_text_where_a_list_of_queues_is_due_is_refused(board: Board) -> None:
    board.add("task")
    with refused("invalid_input") as caught:
        board.claim("ada", queues="default")
    assert caught.value.details["field"] == "queue"


def test_number_where_an_id_is_due_is_refused(board: Board) -> None:
    task: Any = 5
    for request_id in (None, "r"):
        with refused("invalid_input") as caught:
            board.claim("ada", task=task, request_id=request_id)
        assert caught.value.details["field"] == "id"


@pytest.mark.parametrize("reference", ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "5FAV"])
def test_unknown_task_is_not_found_by_any_verb(board: Board, reference: str) -> None:
    board.add("task")
    before = everything(board)
    calls: list[Callable[[], object]] = [
        lambda: board.claim("ada", task=reference),
        lambda: board.resume(reference, "ada"),
        lambda: board.heartbeat(reference, WRONG_TOKEN),
        lambda: board.complete(reference, WRONG_TOKEN),
        lambda: board.fail(reference, WRONG_TOKEN, "x"),
        lambda: board.release(reference, WRONG_TOKEN),
        lambda: board.handoff(reference, WRONG_TOKEN, "bob"),
        lambda: board.approve(reference),
        lambda: board.reject(reference, note="x"),
        lambda: board.reassign(reference, "bob"),
        lambda: board.retry(reference),
        lambda: board.cancel(reference),
        lambda: board.update(reference, title="x"),
        lambda: board.comment(reference, "x"),
        lambda: board.show(reference),
        lambda: board.events(task=reference),
        lambda: board.add("x", depends_on=[reference]),
    ]
    for call in calls:
        with refused("not_found"):
            call()
    assert everything(board) == before


def test_ambiguous_ending_is_refused_with_the_candidates(board: Board) -> None:
    ids = ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "01BRZ3NDEKTSV4RRFFQ69G5FAV", "01CRZ3NDEKTSV4RRFFQ69GAFAV"]
    board.import_tasks([{"id": id_, "title": id_} for id_ in ids])
    with refused("invalid_input") as caught:
        board.claim("ada", task="g5fav")
    assert caught.value.details["field"] == "id"
    assert caught.value.details["candidates"] == ids[:2]
    with refused("invalid_input"):
        board.show("FAV")  # three characters are too few
    assert board.show("gafav")["task"]["id"] == ids[2]
    assert hold(board, task="1BRZ3NDEKTSV4RRFFQ69G5FAV").id == ids[1]


# Adding and claiming at once


def test_add_and_claim_is_one_step_of_one_agent(board: Board) -> None:
    receipt = board.add("mine", claim=True, agent="ada", lease="1h")
    assert receipt.created is True
    assert (receipt.task.status, receipt.task.claimed_by, receipt.task.created_by) == ("claimed", "ada", "ada")
    assert lease_of(receipt).expires_at == "2026-11-30T01:53:20.000+00:00"
    assert kinds(board, receipt.task.id) == ["created", "claimed"]
    assert {event["actor_kind"] for event in board.events()["events"]} == {"agent"}
    assert board.complete(receipt.task.id, lease_of(receipt).token).task.status == "done"


def test_add_and_claim_takes_the_actor_for_the_agent_if_it_is_one(board: Board) -> None:
    receipt = board.add("mine", claim=True, actor=Actor("ada", "agent"))
    assert receipt.task.claimed_by == "ada"
    with refused("invalid_input") as caught:
        board.add("whose?", claim=True)
    assert caught.value.details["field"] == "agent"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"depends_on": True}, "blocked"),
        ({"not_before": "2026-12-24"}, "delayed"),
        ({"assignee": "bob"}, "assigned"),
        ({"dedupe_key": "held"}, "dedupe"),
    ],
)
def test_add_and_claim_of_a_task_that_is_not_ready_writes_nothing(
    board: Board, fields: dict[str, Any], reason: str
) -> None:
    other = board.add("other", dedupe_key="held").task
    if "depends_on" in fields:
        fields = {"depends_on": [other.id]}
    before = everything(board)
    with refused("conflict", reason):
        board.add("mine", claim=True, agent="ada", **fields)
    assert everything(board) == before


def test_add_and_claim_of_a_task_assigned_to_the_agent_itself_works(board: Board) -> None:
    assert board.add("mine", claim=True, agent="Ada", assignee="ADA").task.claimed_by == "ADA"


def test_lease_goes_with_a_claim_only(board: Board) -> None:
    with refused("invalid_input") as caught:
        board.add("task", lease="1h")
    assert caught.value.details["field"] == "lease"


# Resume


def test_resume_gives_a_new_token_for_the_same_attempt_and_end(board: Board, clock: Clock) -> None:
    held = bring_to(board, "running")
    clock.advance(minutes=5)
    receipt = board.resume(held.id, "ADA")
    assert lease_of(receipt).token != held.token
    assert receipt.task.fence == lease_of(receipt).fence == 2
    assert (receipt.task.status, receipt.task.attempts) == ("running", 1)
    assert receipt.task.lease_expires_at == held.task.lease_expires_at
    assert receipt.task.version == held.task.version + 1
    (attempt,) = board.show(held.id)["attempts"]
    assert (attempt["number"], attempt["fence"]) == (1, 2)
    assert kinds(board, held.id)[-1] == "resumed"
    with refused("lease_lost"):
        board.heartbeat(held.id, held.token)
    board.complete(held.id, lease_of(receipt).token)


def test_resume_may_ask_for_another_length(board: Board, clock: Clock) -> None:
    held = bring_to(board, "claimed")
    clock.advance(minutes=5)
    receipt = board.resume(held.id, "ada", lease="1h")
    assert lease_of(receipt).expires_at == "2026-11-30T01:58:20.000+00:00"
    clock.advance(minutes=10)
    again = board.heartbeat(held.id, lease_of(receipt).token)
    assert lease_of(again).expires_at == "2026-11-30T02:08:20.000+00:00"


@pytest.mark.parametrize("status", STATUSES)
def test_resume_needs_a_held_task(board: Board, status: str) -> None:
    held = bring_to(board, status)
    if status in ("claimed", "running"):
        assert board.resume(held.id, "ada").task.status == status
        return
    before = everything(board)
    with refused("conflict", "status"):
        board.resume(held.id, "ada")
    assert everything(board) == before


def test_resume_by_anybody_else_is_a_conflict_naming_the_holder(board: Board) -> None:
    held = bring_to(board, "claimed")
    before = everything(board)
    with refused("conflict", "assigned") as caught:
        board.resume(held.id, "bob")
    assert caught.value.details["actual"]["claimed_by"] == "ada"
    assert everything(board) == before


def test_resume_of_a_dead_lease_is_lost(board: Board, clock: Clock) -> None:
    held = bring_to(board, "claimed")
    clock.advance(minutes=15)
    with refused("lease_lost"):
        board.resume(held.id, "ada")


# Heartbeat


def test_first_heartbeat_starts_the_work_and_bare_renewals_leave_no_trace(board: Board, clock: Clock) -> None:
    held = bring_to(board, "claimed")
    clock.advance(minutes=1)
    first = board.heartbeat(held.id, held.token)
    assert (first.task.status, first.task.version) == ("running", held.task.version + 1)
    assert kinds(board, held.id) == ["created", "claimed", "started"]
    seen = revision(board)
    clock.advance(minutes=1)
    second = board.heartbeat(held.id, held.token)
    assert second.task.version == first.task.version
    assert second.task.updated_at == first.task.updated_at
    assert second.task.fence == 1
    assert len(kinds(board, held.id)) == 3
    assert revision(board) > seen


def test_heartbeat_renews_from_now_by_the_length_last_asked_for(board: Board, clock: Clock) -> None:
    board.add("task")
    held = hold(board, lease="10m")
    clock.advance(minutes=4)
    assert lease_of(board.heartbeat(held.id, held.token)).expires_at == "2026-11-30T01:07:20.000+00:00"
    assert lease_of(board.heartbeat(held.id, held.token, lease="30s")).expires_at == "2026-11-30T00:57:50.000+00:00"
    clock.advance(seconds=29)
    renewed = lease_of(board.heartbeat(held.id, held.token))
    assert renewed.expires_at == "2026-11-30T00:58:19.000+00:00"
    assert renewed.token == held.token


def test_next_claim_does_not_inherit_the_length_of_the_one_before(board: Board) -> None:
    board.add("task")
    held = hold(board, lease="10m")
    board.heartbeat(held.id, held.token, lease="2d")
    board.release(held.id, held.token)
    again = hold(board)
    assert again.task.lease_expires_at == "2026-11-30T01:08:20.000+00:00"
    assert lease_of(board.heartbeat(again.id, again.token)).expires_at == "2026-11-30T01:08:20.000+00:00"


def test_heartbeat_with_progress_or_a_note_is_an_event_but_no_new_version(board: Board) -> None:
    held = bring_to(board, "running")
    first = board.heartbeat(held.id, held.token, progress=40)
    assert (first.task.progress, first.task.version) == (40, held.task.version)
    event = last_event(board, held.id)
    assert event["kind"] == "progressed"
    assert event["data"]["changes"] == {"progress": {"from": None, "to": 40}}
    board.heartbeat(held.id, held.token, progress=40)
    assert kinds(board, held.id).count("progressed") == 1
    board.heartbeat(held.id, held.token, note="half of it")
    assert last_event(board, held.id)["data"]["note"] == "half of it"
    assert board.heartbeat(held.id, held.token).task.progress == 40


@pytest.mark.parametrize("progress", [-1, 101, 10**30, 50.0, True, "50"])
def test_progress_is_a_whole_percentage(board: Board, progress: Any) -> None:
    held = bring_to(board, "running")
    before = everything(board)
    with refused("invalid_input") as caught:
        board.heartbeat(held.id, held.token, progress=progress)
    assert caught.value.details["field"] == "progress"
    assert everything(board) == before


@pytest.mark.parametrize("progress", [0, 100])
def test_progress_includes_both_ends(board: Board, progress: int) -> None:
    held = bring_to(board, "claimed")
    assert board.heartbeat(held.id, held.token, progress=progress).task.progress == progress


@pytest.mark.parametrize("status", STATUSES)
def test_heartbeat_keeps_a_held_task_and_no_other(board: Board, status: str) -> None:
    held = bring_to(board, status)
    if status in ("claimed", "running"):
        assert board.heartbeat(held.id, held.token).task.status == "running"
        return
    before = everything(board)
    with refused("lease_lost") as caught:
        board.heartbeat(held.id, held.token)
    assert caught.value.details["actual"]["status"] == status
    assert everything(board) == before


def test_lease_verbs_may_be_told_on_behalf_of_an_actor_and_stay_acts_of_an_agent(board: Board) -> None:
    held = bring_to(board, "claimed")
    board.heartbeat(held.id, held.token, progress=1, actor=Actor("wrapper", "human"))
    event = last_event(board, held.id)
    assert (event["actor"], event["actor_kind"]) == ("wrapper", "agent")


# Fence and tokens


def test_fence_grows_with_every_claim_and_resume_and_is_never_lowered(board: Board, clock: Clock) -> None:
    task = board.add("task", max_attempts=9).task
    fences = []
    for agent in ("ada", "bob", "ada"):
        held = hold(board, agent, task=task.id)
        fences.append(held.task.fence)
        fences.append(board.resume(task.id, agent).task.fence)
        clock.advance(minutes=20)
    assert fences == [1, 2, 3, 4, 5, 6]
    board.cancel(task.id)
    assert board.retry(task.id).task.fence == 6
    assert hold(board, task=task.id).task.fence == 7


def test_token_of_another_task_opens_nothing(board: Board) -> None:
    one, two = bring_to(board, "claimed"), bring_to(board, "claimed")
    calls: list[Callable[[], object]] = [
        lambda: board.heartbeat(one.id, two.token),
        lambda: board.complete(one.id, two.token),
        lambda: board.fail(one.id, two.token, "x"),
        lambda: board.release(one.id, two.token),
        lambda: board.handoff(one.id, two.token, "bob"),
        lambda: board.complete(one.id, one.token.upper()[:-1]),
    ]
    for call in calls:
        with refused("lease_lost") as caught:
            call()
        assert caught.value.details["actual"]["claimed_by"] == "ada"


@pytest.mark.parametrize("token", ["", "  ", "a\nb", "a\x00", "\ud800", "t" * 201, None, 7])
def test_malformed_token_is_refused_by_every_lease_verb(board: Board, token: Any) -> None:
    held = bring_to(board, "claimed")
    before = everything(board)
    calls: list[Callable[[], object]] = [
        lambda: board.heartbeat(held.id, token),
        lambda: board.complete(held.id, token),
        lambda: board.fail(held.id, token, "x"),
        lambda: board.release(held.id, token),
        lambda: board.handoff(held.id, token, "bob"),
    ]
    for call in calls:
        with refused("invalid_input") as caught:
            call()
        assert caught.value.details["field"] == "token"
    assert everything(board) == before


def test_tokens_stand_nowhere_but_in_what_granted_them(board: Board, tmp_path: Path, clock: Clock) -> None:
    tokens: list[str] = []
    board.add("one", request_id="r")
    board.add("two")
    for _ in range(2):
        held = hold(board, request_id=f"claim {len(tokens)}")
        tokens.append(held.token)
        again = board.resume(held.id, "ada")
        tokens.append(lease_of(again).token)
        beat = board.heartbeat(held.id, tokens[-1], progress=50, note="on it")
        assert tokens[-1] not in repr((again, again.lease, beat, beat.task))
    answers: list[Any] = [board.list_tasks(full=True).to_dict(), board.events(), board.agents(), board.stats()]
    done = board.complete(held.id, tokens[-1], result={})
    answers += [done.to_dict(), board.show(held.id), board.complete(held.id, tokens[-1]).to_dict(), repr(done)]
    with refused("lease_lost") as caught:
        board.heartbeat(held.id, tokens[-1])
    answers.append(caught.value.to_dict())
    clock.advance(minutes=60)
    board.tick()
    answers += [board.events(), everything(board)]
    board.close()
    files = [file.read_bytes() for file in (tmp_path / "data").iterdir() if file.is_file()]
    for token in tokens:
        assert token not in repr(answers)
        assert not any(token.encode() in file or bytes.fromhex(token) in file for file in files)


# A claim that finds nothing


def test_claim_that_finds_nothing_says_what_there_is_and_what_it_waits_for(board: Board) -> None:
    assert board.claim("ada") is None
    assert board.nothing_ready("ada") == ["nothing is ready: no task is queued or leased"]
    blocker = board.add("leased").task
    hold(board, "bob", task=blocker.id, lease="1h")
    hold(board, "bob", task=board.add("leased for less").task.id, lease="5m")
    board.add("blocked", depends_on=[blocker.id])
    board.add("blocked and assigned", depends_on=[blocker.id], assignee="bob")
    board.add("delayed", not_before="2026-12-02T00:00:00+00:00")
    board.add("delayed less", not_before="2026-12-01T00:00:00+00:00")
    board.add("of bob", assignee="bob")
    assert board.claim("ada") is None
    (said,) = board.nothing_ready("ADA")
    assert said == (
        "nothing is ready: 2 waiting for other tasks; 2 delayed, the first until 2026-12-01T00:00:00.000+00:00; "
        "1 assigned to other agents; 2 leased, the first until 2026-11-30T00:58:20.000+00:00"
    )


def test_reasons_are_counted_within_the_queues_and_tags_asked_for(board: Board) -> None:
    board.add("of bob", assignee="bob", queue="docs", tags=["web", "css"])
    board.add("of bob too", assignee="bob", queue="ops", tags=["web"])
    board.add("of bob as well", assignee="bob", queue="web")
    assert "2 assigned" in board.nothing_ready("ada", queues=["docs", "ops"])[0]
    assert "1 assigned" in board.nothing_ready("ada", queues=["docs", "ops"], tags=["css"])[0]
    assert "2 assigned" in board.nothing_ready("ada", tags=["web"])[0]
    assert "no task is queued or leased" in board.nothing_ready("bob", tags=["sql"])[0]


def test_own_assignments_are_no_reason(board: Board) -> None:
    board.add("of ada", assignee="Ada", not_before="2026-12-01")
    board.add("of ada too", assignee="Ada")
    (said,) = board.nothing_ready("ADA")
    assert "1 delayed" in said
    assert "assigned" not in said


def test_claim_that_finds_nothing_stores_nothing(board: Board) -> None:
    board.add("of bob", assignee="bob")
    before = everything(board)
    assert board.claim("ada", request_id="r") is None
    assert everything(board) == before


def test_board_errors_know_their_exit_code_and_status(board: Board) -> None:
    with pytest.raises(BoardError) as caught:
        board.resume(bring_to(board, "queued").id, "ada")
    assert (caught.value.exit_code, caught.value.http_status) == (4, 409)
    assert set(caught.value.to_dict()) == {"code", "message", "hint", "details"}


# What the agent itself released


def claimed_titles(board: Board, agent: str, count: int, **options: Any) -> list[str | None]:
    """Claim and release again and again; return what was claimed."""
    titles: list[str | None] = []
    for _ in range(count):
        receipt = board.claim(agent, **options)
        titles.append(None if receipt is None else receipt.task.title)
        if receipt is not None:
            board.release(receipt.task.id, lease_of(receipt).token)
    return titles


def test_released_task_goes_behind_its_equals_for_the_agent_that_released_it(board: Board) -> None:
    board.add("A")
    board.add("B")
    held = hold(board, "bob")
    board.release(held.id, held.token)
    first, second = hold(board, "bob"), hold(board, "bob")
    assert (first.task.title, second.task.title) == ("B", "A")
    assert board.claim("bob") is None


def test_agent_that_releases_everything_takes_its_equals_in_turn(board: Board, clock: Clock) -> None:
    for title in "ABC":
        board.add(title)
    assert claimed_titles(board, "bob", 3) == ["A", "B", "C"]
    clock.advance(seconds=1)
    assert claimed_titles(board, "bob", 4) == ["A", "B", "C", "A"]


def test_order_of_other_agents_does_not_change(board: Board) -> None:
    board.add("A")
    board.add("B")
    assert claimed_titles(board, "bob", 1) == ["A"]
    assert hold(board, "ada").task.title == "A"


def test_released_task_comes_back_if_it_is_the_only_one_or_the_best(board: Board) -> None:
    board.add("A", priority=1)
    board.add("B")
    assert claimed_titles(board, "bob", 3) == ["A", "A", "A"]


def test_released_task_is_in_front_again_after_the_first_wait(board: Board, clock: Clock) -> None:
    board.add("A")
    board.add("B")
    assert claimed_titles(board, "bob", 1) == ["A"]
    clock.advance(seconds=30)
    assert hold(board, "bob").task.title == "A"


@pytest.mark.parametrize("options", [{"queues": ["docs", "default"]}, {"tags": ["x"]}, {"queues": ["docs"]}])
def test_equals_of_a_released_task_are_those_that_the_claim_asks_for(board: Board, options: dict[str, Any]) -> None:
    board.add("other queue", queue="web", tags=["y"])
    board.add("A", queue="docs", tags=["x"])
    board.add("for somebody", queue="docs", tags=["x"], assignee="ada")
    board.add("B", queue="docs", tags=["x"], assignee="bob")
    assert claimed_titles(board, "bob", 3, **options) == ["A", "B", "A"]


def test_claim_of_a_named_task_is_not_kept_from_it(board: Board) -> None:
    task = board.add("A").task.id
    board.add("B")
    assert claimed_titles(board, "bob", 1) == ["A"]
    assert hold(board, "bob", task=task).task.title == "A"


def test_tick_forgets_releases_of_long_ago(board: Board, clock: Clock) -> None:
    board.add("A")
    assert claimed_titles(board, "bob", 1) == ["A"]
    clock.advance(seconds=30)
    board.tick()
    assert everything(board)["released"] == []
