"""Adding and changing tasks: add, update, reassign, retry, cancel, comment, and dependencies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Actor
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
    refused,
    revision,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_task_board import Board
    from tests.support import Clock

FINAL = ("done", "failed", "cancelled")


def chain(board: Board, length: int) -> list[str]:
    """Add tasks that each depend on the previous one; return their ids."""
    ids = [f"01ARZ3NDEKTSV4RRFFQ69{number:05d}" for number in range(length)]
    board.import_tasks(
        [{"id": id_, "title": id_, "blocked_by": ids[place - 1 : place]} for place, id_ in enumerate(ids)]
    )
    return ids


# Add


def test_new_task_has_the_defaults_of_the_contract(board: Board) -> None:
    receipt = board.add("  write the parser ")
    task = receipt.task.to_dict()
    assert len(task.pop("id")) == 26
    assert task == {
        "title": "write the parser",
        "body": "",
        "queue": "default",
        "status": "queued",
        "priority": 0,
        "assignee": None,
        "due_at": None,
        "not_before": None,
        "tags": [],
        "dedupe_key": None,
        "blocked_by": [],
        "params": {},
        "result": None,
        "artifacts": [],
        "error": None,
        "progress": None,
        "needs_approval": False,
        "attempts": 0,
        "max_attempts": 3,
        "fence": 0,
        "version": 1,
        "claimed_by": None,
        "lease_expires_at": None,
        "created_by": "maria",
        "schedule_id": None,
        "occurrence_at": None,
        "created_at": "2026-11-30T00:53:20.000+00:00",
        "updated_at": "2026-11-30T00:53:20.000+00:00",
        "claimed_at": None,
        "finished_at": None,
        "max_runtime": None,
        "ready": True,
        "blocked": False,
        "stuck": False,
        "delayed": False,
        "lease_expired": False,
        "overdue": False,
    }
    assert list(receipt.to_dict()) == ["task", "created"]
    derived = ["ready", "blocked", "stuck", "delayed", "lease_expired", "overdue"]
    assert list(receipt.task.to_dict())[-6:] == derived


def test_creation_is_an_event_that_tells_what_was_given(board: Board) -> None:
    other = board.add("other").task
    fields: dict[str, Any] = {"queue": "docs", "priority": 2, "assignee": "bob", "tags": ["a"], "dedupe_key": "k"}
    task = board.add("task", depends_on=[other.id], needs_approval=True, due_at="2026-12-01", **fields).task
    event = last_event(board, task.id)
    assert (event["kind"], event["actor"], event["actor_kind"]) == ("created", "maria", "human")
    told = {field: change["to"] for field, change in event["data"]["changes"].items()}
    assert told == {
        **fields,
        "title": "task",
        "status": "queued",
        "blocked_by": [other.id],
        "needs_approval": True,
        "due_at": "2026-12-01T15:59:59.999+00:00",
        "max_attempts": 3,
    }


def test_bare_dates_are_the_end_of_the_day_when_due_and_its_beginning_to_start(board: Board) -> None:
    task = board.add("task", due_at="2026-12-01", not_before="2026-12-01").task
    assert task.due_at == "2026-12-01T15:59:59.999+00:00"
    assert task.not_before == "2026-11-30T16:00:00.000+00:00"
    assert task.delayed


def test_task_is_overdue_after_its_deadline_until_it_is_finished(board: Board, clock: Clock) -> None:
    task = board.add("task", due_at="2026-11-30T01:00:00Z").task
    clock.advance(seconds=400)
    assert not board.show(task.id)["task"]["overdue"]
    clock.advance(seconds=0.001)
    assert board.show(task.id)["task"]["overdue"]
    assert not board.cancel(task.id).task.overdue


def test_agent_that_adds_is_recorded_as_one(board: Board) -> None:
    board.claim("Ada")
    board.add("first", agent="Ada")
    task = board.add("second", actor=Actor("ada", "agent")).task
    event = last_event(board, task.id)
    assert event["actor_kind"] == "agent"
    assert {event["actor_kind"] for event in board.events()["events"]} == {"agent"}


def test_task_with_the_key_of_an_unfinished_one_is_not_added_again(board: Board) -> None:
    for status in ("queued", "claimed", "running", "review"):
        holder = bring_to(board, status, dedupe_key=status)
        before = everything(board)
        receipt = board.add("again", dedupe_key=status)
        assert (receipt.created, receipt.task.id) == (False, holder.id)
        assert len(receipt.warnings) == 1
        assert holder.id in receipt.warnings[0]
        assert everything(board) == before


@pytest.mark.parametrize("status", FINAL)
def test_key_of_a_finished_task_is_free(board: Board, status: str) -> None:
    holder = bring_to(board, status, dedupe_key="k")
    receipt = board.add("again", dedupe_key="k")
    assert receipt.created
    assert receipt.task.id != holder.id


def test_keys_are_compared_exactly(board: Board) -> None:
    board.add("one", dedupe_key="Key")
    assert board.add("two", dedupe_key="key").created


# Dependencies


def test_task_is_blocked_until_every_dependency_is_done(board: Board) -> None:
    one, two = board.add("one").task, board.add("two").task
    waiting = board.add("waiting", depends_on=[one.id, two.id[-6:].lower(), one.id]).task
    assert waiting.blocked_by == [one.id, two.id]
    assert (waiting.blocked, waiting.ready, waiting.status) == (True, False, "queued")
    for id_, still in ((two.id, True), (one.id, False)):
        held = hold(board, task=id_)
        board.complete(held.id, held.token)
        shown = board.show(waiting.id)["task"]
        assert (shown["blocked"], shown["ready"]) == (still, not still)
    assert shown["blocked_by"] == [one.id, two.id]


@pytest.mark.parametrize("status", ["review", "failed", "cancelled", "claimed", "running"])
def test_dependency_that_is_anything_but_done_blocks(board: Board, status: str) -> None:
    other = bring_to(board, status)
    assert board.add("waiting", depends_on=[other.id]).task.blocked
    assert not board.add("waiting", depends_on=[bring_to(board, "done").id]).task.blocked


def test_dependency_that_fails_and_is_retried_unblocks_in_the_end(board: Board) -> None:
    other = bring_to(board, "failed")
    waiting = board.add("waiting", depends_on=[other.id]).task
    board.retry(other.id)
    held = hold(board)
    assert held.id == other.id
    board.complete(held.id, held.token)
    assert hold(board).id == waiting.id


def test_every_write_of_a_dependency_says_who_waits_for_whom(board: Board) -> None:
    one, two = board.add("one").task, board.add("two").task
    receipt = board.add("waiting", depends_on=[one.id])
    waiting = receipt.task
    name, of_one, of_two = (f'"{task.title}" ({task.id[-6:]})' for task in (waiting, one, two))
    assert receipt.warnings == [f"{name} waits for {of_one}"]
    assert board.update(waiting.id, add_depends_on=[two.id]).warnings == [f"{name} waits for {of_two}"]
    assert board.update(waiting.id, drop_depends_on=[one.id]).warnings == [f"{name} no longer waits for {of_one}"]
    assert board.update(waiting.id, depends_on=[one.id]).warnings == [
        f"{name} waits for {of_one}",
        f"{name} no longer waits for {of_two}",
    ]
    assert board.update(waiting.id, title="waits no more").warnings == []


def test_many_dependencies_are_summed_up(board: Board) -> None:
    others = [board.add(f"other {number}").task.id for number in range(13)]
    warnings = board.add("t" * 500, depends_on=others).warnings
    assert len(warnings) == 11
    assert warnings[-1].endswith("waits for 3 more tasks")
    assert max(map(len, warnings)) < 200


def test_dependencies_keep_the_order_in_which_they_were_added(board: Board) -> None:
    one, two, three = (board.add(str(number)).task.id for number in range(3))
    task = board.add("waiting", depends_on=[three, one]).task
    assert board.update(task.id, add_depends_on=[two, three]).task.blocked_by == [three, one, two]
    assert board.update(task.id, drop_depends_on=[one[-6:]]).task.blocked_by == [three, two]
    assert board.update(task.id, add_depends_on=[one]).task.blocked_by == [three, two, one]
    assert board.update(task.id, depends_on=[]).task.blocked_by == []


def test_dropping_the_last_open_dependency_makes_the_task_ready(board: Board) -> None:
    other = board.add("other", assignee="bob").task
    task = board.add("waiting", depends_on=[other.id]).task
    updated = board.update(task.id, drop_depends_on=[other.id])
    assert updated.task.ready
    assert updated.task.version == task.version + 1
    assert last_event(board, task.id)["data"]["changes"]["blocked_by"] == {"from": [other.id], "to": []}
    assert hold(board).id == task.id


def test_dropping_what_is_no_dependency_changes_nothing(board: Board) -> None:
    other, task = board.add("other").task, board.add("task").task
    assert board.update(task.id, drop_depends_on=[other.id]).task.to_dict() == task.to_dict()
    assert kinds(board, task.id) == ["created"]


def test_task_cannot_wait_for_itself(board: Board) -> None:
    task = board.add("task").task
    before = everything(board)
    with refused("conflict", "cycle") as caught:
        board.update(task.id, add_depends_on=[task.id])
    assert caught.value.details["cycle"] == [task.id, task.id]
    with refused("conflict", "cycle"):
        board.update(task.id, depends_on=[task.id])
    assert everything(board) == before


@pytest.mark.parametrize("length", [2, 3, 1_000])
def test_edit_that_would_close_a_cycle_is_refused_and_names_it(board: Board, length: int) -> None:
    ids = chain(board, length)
    bystander = board.add("bystander", depends_on=[ids[-1]]).task
    before = everything(board)
    with refused("conflict", "cycle") as caught:
        board.update(ids[0], add_depends_on=[ids[-1]], title="new")
    cycle = [ids[0], *reversed(ids)]
    named = cycle if len(ids) <= 12 else cycle[:12]
    assert caught.value.details["cycle"] == named
    assert caught.value.details.get("more", 0) == max(len(ids) - 12, 0)
    assert f"{ids[0]} waits for {ids[-1]}" in caught.value.message
    assert length > 12 or f"{ids[1]} waits for {ids[0]}" in caught.value.message
    assert everything(board) == before
    with refused("conflict", "cycle"):
        board.update(ids[0], add_depends_on=[bystander.id])
    board.update(bystander.id, add_depends_on=[ids[0]])


def test_circle_is_found_whatever_the_statuses_along_it(board: Board) -> None:
    done = bring_to(board, "done")
    middle = board.add("middle", depends_on=[done.id]).task
    with refused("conflict", "status"):  # a finished task cannot be edited
        board.update(done.id, add_depends_on=[middle.id])
    held = bring_to(board, "running")
    waiting = board.add("waiting", depends_on=[held.id]).task
    with refused("conflict", "cycle"):
        board.update(held.id, add_depends_on=[waiting.id])


def test_circle_may_be_turned_around_in_one_edit(board: Board) -> None:
    one = board.add("one").task
    two = board.add("two", depends_on=[one.id]).task
    board.update(two.id, depends_on=[])
    assert board.update(one.id, depends_on=[two.id]).task.blocked


def test_thousand_dependencies_are_the_most(board: Board) -> None:
    board.import_tasks([{"title": str(number)} for number in range(1_001)])
    ids = [task.id for task in board.list_tasks(limit=1_001).tasks]
    task = board.add("waiting", depends_on=ids[:1_000]).task
    assert len(task.blocked_by) == 1_000
    before = everything(board)
    calls: list[Callable[[], object]] = [
        lambda: board.update(task.id, add_depends_on=ids[1_000:]),
        lambda: board.add("waiting", depends_on=ids),
    ]
    for call in calls:
        with refused("invalid_input") as caught:
            call()
        assert caught.value.details["field"] == "depends_on"
    assert everything(board) == before


def test_held_task_that_comes_to_wait_stays_held_and_is_blocked_afterwards(board: Board) -> None:
    other = board.add("other", assignee="bob").task
    held = bring_to(board, "running")
    assert board.update(held.id, add_depends_on=[other.id]).task.status == "running"
    assert board.release(held.id, held.token).task.blocked


# Update


@pytest.mark.parametrize("status", STATUSES)
def test_update_leaves_the_status_and_refuses_finished_tasks(board: Board, status: str) -> None:
    held = bring_to(board, status)
    if status not in FINAL:
        task = board.update(held.id, title="renamed").task
        assert (task.status, task.title, task.version) == (status, "renamed", held.task.version + 1)
        return
    before = everything(board)
    with refused("conflict", "status") as caught:
        board.update(held.id, title="renamed")
    assert caught.value.details["actual"]["status"] == status
    assert everything(board) == before


def test_every_field_can_be_edited_and_is_told(board: Board) -> None:
    task = board.add("task", body="old", tags=["x"]).task
    fields: dict[str, Any] = {
        "title": "new",
        "body": "new body",
        "queue": "docs",
        "priority": -7,
        "assignee": "bob",
        "due_at": "2026-12-24T10:00:00.000+00:00",
        "not_before": "2026-12-01T00:00:00.000+00:00",
        "tags": ["b", "a"],
        "params": {"a": [1]},
        "dedupe_key": "k",
        "max_attempts": 9,
        "needs_approval": True,
    }
    updated = board.update(task.id, **fields).task
    assert {field: getattr(updated, field) for field in fields} == fields
    assert (updated.version, updated.delayed) == (2, True)
    told = last_event(board, task.id)["data"]["changes"]
    assert set(told) == set(fields)
    assert told["tags"] == {"from": ["x"], "to": ["b", "a"]}


@pytest.mark.parametrize(
    ("field", "value", "empty"),
    [
        ("assignee", "bob", None),
        ("due_at", "2026-12-01", None),
        ("not_before", "2026-12-01", None),
        ("dedupe_key", "k", None),
        ("params", {"a": 1}, {}),
        ("max_attempts", 9, 3),
    ],
)
def test_null_clears_a_field(board: Board, field: str, value: Any, empty: Any) -> None:
    task = board.add("task", **{field: value}).task
    nothing: dict[str, Any] = {field: None}
    cleared = board.update(task.id, **nothing).task
    assert getattr(cleared, field) == empty
    assert cleared.ready


@pytest.mark.parametrize("field", ["assignee", "due_at", "not_before", "dedupe_key", "body"])
def test_empty_text_clears_a_field(board: Board, field: str) -> None:
    some: dict[str, Any] = {field: "2026-12-01" if field in ("due_at", "not_before") else "bob"}
    empty: dict[str, Any] = {field: ""}
    task = board.add("task", **some).task
    assert getattr(board.update(task.id, **empty).task, field) == ("" if field == "body" else None)


def test_update_that_changes_nothing_writes_nothing(board: Board) -> None:
    task = board.add("task", tags=["a"], priority=2).task
    before = everything(board)
    task = board.update(task.id, title="task", tags=["a"], priority=2, if_version=1, if_status="queued").task
    assert task.version == 1
    assert everything(board)["event"] == before["event"]
    assert everything(board)["task"] == before["task"]


def test_update_of_nothing_is_refused(board: Board) -> None:
    task = board.add("task").task
    with refused("invalid_input"):
        board.update(task.id)
    with refused("invalid_input"):
        board.update(task.id, if_version=1)


def test_tags_are_added_and_dropped_one_by_one_or_replaced(board: Board) -> None:
    task = board.add("task", tags=["a", "b"]).task
    assert board.update(task.id, add_tags=["c", "a"]).task.tags == ["a", "b", "c"]
    assert board.update(task.id, drop_tags=["b", "x"]).task.tags == ["a", "c"]
    assert board.update(task.id, tags=["z"], add_tags=["y"]).task.tags == ["z", "y"]
    assert board.update(task.id, tags=[]).task.tags == []
    board.update(task.id, tags=[str(number) for number in range(50)])
    with refused("invalid_input"):
        board.update(task.id, add_tags=["one more"])


def test_version_expected_makes_an_update_a_compare_and_set(board: Board) -> None:
    task = board.add("task").task
    assert board.update(task.id, priority=1, if_version=1).task.version == 2
    before = everything(board)
    with refused("conflict", "version") as caught:
        board.update(task.id, priority=2, if_version=1)
    assert caught.value.details["actual"]["version"] == 2
    assert everything(board) == before


def test_status_expected_makes_an_update_a_compare_and_set(board: Board) -> None:
    held = bring_to(board, "claimed")
    before = everything(board)
    with refused("conflict", "status") as caught:
        board.update(held.id, priority=2, if_status="queued")
    assert f'task {held.id} is "claimed", not "queued"' in caught.value.message
    assert caught.value.details["actual"]["claimed_by"] == "ada"
    assert everything(board) == before
    assert board.update(held.id, priority=2, if_status="claimed").task.priority == 2


def test_refusal_of_a_finished_task_never_says_that_it_is_not_what_it_is(board: Board) -> None:
    held = bring_to(board, "cancelled")
    with refused("conflict", "status") as caught:
        board.update(held.id, priority=2, if_status="cancelled")
    assert 'is "cancelled"' in caught.value.message
    assert 'not "cancelled"' not in caught.value.message


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"if_status": "open"}, "if_status"),
        ({"if_status": 5}, "if_status"),
        ({"if_version": -1}, "if_version"),
        ({"if_version": "1"}, "if_version"),
        ({"if_version": True}, "if_version"),
        ({"if_version": 10**30}, "if_version"),
        ({"comment": " "}, "comment"),
        ({"add_tags": "web"}, "add_tags"),
        ({"drop_tags": [5]}, "drop_tags"),
        ({"add_depends_on": "abcd"}, "add_depends_on"),
        ({"drop_depends_on": ["?"]}, "drop_depends_on"),
    ],
)
def test_malformed_update_is_refused_and_changes_nothing(board: Board, options: dict[str, Any], field: str) -> None:
    task = board.add("task").task
    before = everything(board)
    with refused("invalid_input") as caught:
        board.update(task.id, title="new", **options)
    # a field that adds to or drops from a list may be named as that list
    assert caught.value.details["field"] in (field, field.removeprefix("add_").removeprefix("drop_"))
    assert everything(board) == before


def test_unknown_field_is_no_argument(board: Board) -> None:
    task = board.add("task").task
    unknown: dict[str, Any] = {"colour": "red"}
    with pytest.raises(TypeError):
        board.update(task.id, **unknown)
    with pytest.raises(TypeError):
        board.add("task", **unknown)


@pytest.mark.parametrize("status", ["claimed", "running", "review"])
@pytest.mark.parametrize("assignee", ["bob", None])
def test_assignee_is_edited_only_while_queued(board: Board, status: str, assignee: str | None) -> None:
    held = bring_to(board, status)
    before = everything(board)
    with refused("conflict", "status"):
        board.update(held.id, assignee=assignee)
    assert everything(board) == before


def test_budget_cannot_shrink_below_what_is_used(board: Board) -> None:
    task = board.add("task", max_attempts=5).task
    for _ in range(2):
        held = hold(board, task=task.id)
        board.fail(held.id, held.token, "x", retry_in=0)
    before = everything(board)
    with refused("invalid_input") as caught:
        board.update(task.id, max_attempts=2)  # queued: one must be left
    assert caught.value.details["field"] == "max_attempts"
    assert everything(board) == before
    board.update(task.id, max_attempts=3)
    held = hold(board, task=task.id)
    with refused("invalid_input"):
        board.update(task.id, max_attempts=2)
    assert board.update(task.id, max_attempts=4).task.max_attempts == 4
    assert board.update(task.id, max_attempts=3).task.max_attempts == 3  # held: the third may be the last
    assert board.fail(held.id, held.token, "x").task.status == "failed"


def test_key_that_another_unfinished_task_holds_cannot_be_taken(board: Board) -> None:
    holder = board.add("holder", dedupe_key="k").task
    task = board.add("task").task
    before = everything(board)
    with refused("conflict", "dedupe") as caught:
        board.update(task.id, dedupe_key="k", title="new")
    assert caught.value.details["task_id"] == holder.id
    assert everything(board) == before
    board.update(holder.id, dedupe_key="k")
    board.cancel(holder.id)
    assert board.update(task.id, dedupe_key="k").task.dedupe_key == "k"


def test_moving_the_start_delays_and_frees_a_task(board: Board, clock: Clock) -> None:
    task = board.add("task").task
    assert board.update(task.id, not_before="2026-12-01").task.delayed
    assert board.claim("ada") is None
    assert board.update(task.id, not_before="2026-11-29").task.ready
    assert hold(board).id == task.id


def test_start_moved_while_the_task_is_held_counts_when_it_comes_back(board: Board, clock: Clock) -> None:
    held = bring_to(board, "running")
    board.update(held.id, not_before="2026-11-30T02:00:00Z")
    clock.advance(minutes=20)
    assert board.claim("bob") is None
    clock.advance(minutes=60)
    assert hold(board, "bob").id == held.id


def test_update_may_leave_a_comment(board: Board) -> None:
    task = board.add("task").task
    board.update(task.id, priority=5, comment="it burns")
    assert kinds(board, task.id) == ["created", "updated", "commented"]
    assert board.show(task.id)["comments"][0]["data"] == {"text": "it burns"}


# Reassign


@pytest.mark.parametrize("status", STATUSES)
def test_reassign_takes_queued_and_held_tasks(board: Board, status: str) -> None:
    held = bring_to(board, status)
    if status in ("queued", "claimed", "running"):
        task = board.reassign(held.id, "bob", note="ada is away").task
        assert (task.status, task.assignee, task.version) == ("queued", "bob", held.task.version + 1)
        assert (task.claimed_by, task.claimed_at, task.lease_expires_at, task.progress) == (None,) * 4
        event = last_event(board, held.id)
        assert (event["kind"], event["actor_kind"], event["data"]["note"]) == ("reassigned", "human", "ada is away")
        return
    before = everything(board)
    with refused("conflict", "status"):
        board.reassign(held.id, "bob")
    assert everything(board) == before


def test_reassigned_task_revokes_the_lease_and_gives_its_attempt_back(board: Board) -> None:
    held = bring_to(board, "running", max_attempts=1)
    assert board.reassign(held.id, "bob").task.attempts == 0
    assert board.show(held.id)["attempts"][0]["outcome"] == "revoked"
    with refused("lease_lost"):
        board.complete(held.id, held.token)
    assert board.claim("ada") is None
    assert hold(board, "bob").task.attempts == 1


def test_attempt_whose_lease_had_run_out_is_not_given_back(board: Board, clock: Clock) -> None:
    held = bring_to(board, "running")
    clock.advance(minutes=15)
    assert board.reassign(held.id, "bob").task.attempts == 1
    assert board.show(held.id)["attempts"][0]["outcome"] == "expired"


def test_reassigned_task_always_has_an_attempt_left(board: Board, clock: Clock) -> None:
    held = bring_to(board, "running", max_attempts=1)
    clock.advance(minutes=15)
    assert board.reassign(held.id, "bob").task.attempts == 0
    assert hold(board, "bob").id == held.id


@pytest.mark.parametrize("nobody", [None, "", "none", "None"])
def test_reassign_to_nobody_frees_a_task(board: Board, nobody: str | None) -> None:
    task = board.add("task", assignee="bob").task
    assert board.reassign(task.id, nobody).task.assignee is None
    assert hold(board, "ada").id == task.id


@pytest.mark.parametrize(
    ("to", "note", "field"), [("a\nb", None, "to"), ("b" * 101, None, "to"), ("bob", "\x00", "note")]
)
def test_malformed_reassign_is_refused(board: Board, to: str, note: str | None, field: str) -> None:
    held = bring_to(board, "claimed")
    before = everything(board)
    with refused("invalid_input") as caught:
        board.reassign(held.id, to, note=note)
    assert caught.value.details["field"] == field
    assert everything(board) == before


def test_note_of_a_reassignment_reaches_whoever_claims_first(board: Board) -> None:
    task = board.add("task").task
    board.reassign(task.id, "bob", note="you know this module")
    receipt = board.claim("bob")
    assert receipt is not None
    assert left(receipt) == [("reassigned", "maria", "you know this module")]


# Retry


@pytest.mark.parametrize("status", STATUSES)
def test_retry_takes_failed_and_cancelled_tasks(board: Board, status: str) -> None:
    held = bring_to(board, status)
    if status in ("failed", "cancelled"):
        task = board.retry(held.id).task
        assert (task.status, task.attempts, task.finished_at, task.claimed_by) == ("queued", 0, None, None)
        assert task.version == held.task.version + 1
        event = last_event(board, held.id)
        assert (event["kind"], event["actor_kind"]) == ("retried", "human")
        assert hold(board).id == held.id
        return
    before = everything(board)
    with refused("conflict", "status"):
        board.retry(held.id)
    assert everything(board) == before


def test_retried_task_has_a_whole_budget_and_its_first_backoff(board: Board, clock: Clock) -> None:
    task = board.add("task", max_attempts=2).task
    for number in (1, 2, 3):
        held = hold(board, task=task.id)
        assert board.show(task.id)["attempts"][-1]["number"] == number
        after = board.fail(held.id, held.token, "x").task
        if number == 2:
            assert after.status == "failed"
            board.retry(task.id)
        else:
            clock.advance(seconds=29.999)
            assert board.claim("ada") is None
            clock.advance(seconds=0.001)
    assert hold(board).task.attempts == 2


def test_retry_needs_the_dedupe_key_to_be_free_still(board: Board) -> None:
    held = bring_to(board, "failed", dedupe_key="k")
    holder = board.add("again", dedupe_key="k").task
    before = everything(board)
    with refused("conflict", "dedupe") as caught:
        board.retry(held.id)
    assert caught.value.details["task_id"] == holder.id
    assert everything(board) == before
    board.cancel(holder.id)
    assert board.retry(held.id).task.status == "queued"


def test_cancelled_delayed_task_is_still_delayed_when_retried(board: Board, clock: Clock) -> None:
    task = board.add("task", not_before="2026-11-30T02:00:00Z").task
    board.cancel(task.id)
    assert board.retry(task.id).task.delayed
    assert board.claim("ada") is None
    clock.advance(minutes=90)
    assert hold(board).id == task.id


# Cancel


@pytest.mark.parametrize("status", STATUSES)
def test_cancel_ends_what_is_not_finished(board: Board, status: str) -> None:
    held = bring_to(board, status)
    if status not in FINAL:
        task = board.cancel(held.id, note="not needed").task
        assert (task.status, task.lease_expires_at) == ("cancelled", None)
        assert (task.finished_at, task.claimed_by) == (task.updated_at, held.task.claimed_by)
        assert last_event(board, held.id)["data"]["note"] == "not needed"
        outcomes = [attempt["outcome"] for attempt in board.show(held.id)["attempts"]]
        assert outcomes == {"queued": [], "review": ["completed"]}.get(status, ["cancelled"])
        return
    before = everything(board)
    with refused("conflict", "status"):
        board.cancel(held.id)
    assert everything(board) == before


def test_holder_of_a_cancelled_task_has_lost_its_lease(board: Board) -> None:
    held = bring_to(board, "running")
    board.cancel(held.id)
    with refused("lease_lost") as caught:
        board.heartbeat(held.id, held.token)
    assert caught.value.details["actual"]["status"] == "cancelled"


# Comment


@pytest.mark.parametrize("status", STATUSES)
def test_comment_goes_to_a_task_of_any_status_and_changes_no_version(board: Board, status: str) -> None:
    held = bring_to(board, status)
    seen = revision(board)
    event = board.comment(held.id[-6:], "two\nlines")
    assert event == last_event(board, held.id)
    assert (event["kind"], event["actor"], event["actor_kind"]) == ("commented", "maria", "human")
    assert event["data"] == {"text": "two\nlines"}
    assert board.show(held.id)["task"]["version"] == held.task.version
    assert revision(board) > seen


@pytest.mark.parametrize("text", ["", " \n", "c" * 20_001, "a\x00", "\ud800", None, 5])
def test_comment_has_something_to_say(board: Board, text: Any) -> None:
    task = board.add("task").task
    before = everything(board)
    with refused("invalid_input") as caught:
        board.comment(task.id, text)
    assert caught.value.details["field"] == "text"
    assert everything(board) == before


def test_comment_of_an_agent_is_an_event_of_an_agent(board: Board) -> None:
    board.add("first", assignee="Ada")
    task = board.add("task").task
    event = board.comment(task.id, "hm", actor=Actor("ADA", "agent"))
    assert (event["actor"], event["actor_kind"]) == ("Ada", "agent")


# Versions and revisions


def test_every_change_but_renewal_and_progress_is_one_version(board: Board) -> None:
    receipt = board.add("task", needs_approval=True)
    versions = [receipt.task.version]
    id_ = receipt.task.id
    held = hold(board)
    versions.append(held.task.version)
    versions.append(board.heartbeat(id_, held.token).task.version)
    versions.append(board.heartbeat(id_, held.token, progress=5).task.version)
    token = lease_of(board.resume(id_, "ada")).token
    versions.append(board.show(id_)["task"]["version"])
    versions.append(board.update(id_, title="new").task.version)
    versions.append(board.complete(id_, token).task.version)
    versions.append(board.reject(id_, note="x", actor=MARIA).task.version)
    versions.append(board.reassign(id_, "bob").task.version)
    versions.append(board.cancel(id_).task.version)
    versions.append(board.retry(id_).task.version)
    assert versions == [1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10]


def test_null_clears_what_can_be_cleared_and_empty_lists_replace(board: Board) -> None:
    first, second = board.add("first").task, board.add("second").task
    task = board.add(
        "task",
        body="text",
        queue="docs",
        priority=5,
        assignee="ada",
        due_at="2026-12-24",
        not_before="2026-12-01",
        tags=["a", "b"],
        depends_on=[first.id, second.id],
        params={"a": 1},
        dedupe_key="key",
        max_attempts=9,
    ).task
    cleared = board.update(
        task.id,
        body=None,
        queue=None,
        priority=None,
        assignee=None,
        due_at=None,
        not_before=None,
        tags=None,
        depends_on=None,
        params=None,
        dedupe_key=None,
        max_attempts=None,
    ).task
    assert (cleared.body, cleared.queue, cleared.priority, cleared.assignee) == ("", "default", 0, None)
    assert (cleared.due_at, cleared.not_before, cleared.tags, cleared.blocked_by) == (None, None, [], [])
    assert (cleared.params, cleared.dedupe_key, cleared.max_attempts) == ({}, None, 3)


def test_refusal_of_a_long_cycle_names_twelve_tasks_in_message_and_details(board: Board) -> None:
    chain = [board.add("0").task.id]
    for number in range(1, 40):
        chain.append(board.add(str(number), depends_on=[chain[-1]]).task.id)
    with refused("conflict", "cycle") as caught:
        board.update(chain[0], add_depends_on=[chain[-1]])
    named = [chain[0], *reversed(chain)][:12]
    assert caught.value.details["cycle"] == named
    assert caught.value.details["more"] == 28
    assert caught.value.message.endswith(", and 28 more")
    assert [id_ for id_ in chain if id_ in caught.value.message] == sorted(named)


def test_tag_or_dependency_both_added_and_dropped_is_dropped(board: Board) -> None:
    other, task = board.add("other").task, board.add("task").task
    after = board.update(
        task.id, add_tags=["a"], drop_tags=["a"], add_depends_on=[other.id], drop_depends_on=[other.id]
    ).task
    assert (after.tags, after.blocked_by) == ([], [])


def test_holder_of_an_imported_review_is_no_person_who_may_approve_it(board: Board) -> None:
    held = {"status": "review", "claimed_by": "Ada", "claimed_at": "2026-11-30T00:00:00Z"}
    board.import_tasks([{"title": "imported", "id": "01ARZ3NDEKTSV4RRFFQ69G5FAV", **held}])
    with refused("not_permitted"):
        board.approve("01ARZ3NDEKTSV4RRFFQ69G5FAV", actor=Actor("ada", "human"))
    assert board.approve("01ARZ3NDEKTSV4RRFFQ69G5FAV").task.status == "done"
