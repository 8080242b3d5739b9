"""Reads: list with every filter and order, show, events, agents, stats; none of them writes."""

from __future__ import annotations

import os
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Actor, Board, Settings
from agent_task_board.board import queries
from agent_task_board.board.queries import ORDERS
from agent_task_board.model import LONG_KEYS
from tests.support import MARIA, STATUSES, bring_to, everything, hold, open_board, refused

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Clock


def titles(board: Board, **options: Any) -> list[str]:
    """Return the titles of a list."""
    return [task.title for task in board.list_tasks(**options).tasks]


def pages(board: Board, limit: int, **options: Any) -> list[list[str]]:
    """Return the titles of a list, page by page to its end."""
    found, after = [], None
    for _ in range(100):
        page = board.list_tasks(limit=limit, after=after, **options)
        found.append([task.title for task in page.tasks])
        after = page.next
        if after is None:
            return found
    raise AssertionError("the pages never end")


READS: dict[str, Callable[[Board], object]] = {
    "attention": lambda board: board.attention(),
    "list": lambda board: board.list_tasks().to_dict(),
    "events": lambda board: board.events(),
    "agents": lambda board: board.agents(),
    "stats": lambda board: board.stats()["tasks"],
    "nothing_ready": lambda board: board.nothing_ready("ada"),
}


# Reads write nothing


def test_reads_write_nothing(board: Board, clock: Clock) -> None:
    held = bring_to(board, "running")
    board.add("later", not_before="2026-11-30T01:00:00Z")
    clock.advance(minutes=30)  # there is a lease to expire and a task to promote
    before = everything(board)
    for read in READS.values():
        read(board)
    board.show(held.id)
    assert everything(board) == before


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("read", READS)
def test_board_that_is_not_there_reads_as_an_empty_one_and_is_not_made(tmp_path: Path, read: str, create: bool) -> None:
    board = Board(tmp_path / "none yet", create=create, actor=MARIA)
    empty: dict[str, Any] = {
        "list": {"tasks": [], "next": None},
        "events": {"events": [], "next": 0},
        "agents": [],
        "attention": {kind: {"count": 0, "ids": []} for kind in ("review", "expired", "stuck")},
        "stats": 0,
        "nothing_ready": [],
    }
    assert READS[read](board) == empty[read]
    for one in (lambda: board.show("01ARZ3NDEKTSV4RRFFQ69G5FAV"), lambda: board.events(task="5FAV")):
        with refused("not_found"):
            one()
    assert not os.path.exists(tmp_path / "none yet")
    assert not board.created
    board.close()


def test_claim_on_a_board_that_must_not_be_made_finds_nothing(tmp_path: Path) -> None:
    board = Board(tmp_path / "none yet", create=False, actor=MARIA)
    assert board.claim("ada") is None
    with refused("not_found"):
        board.claim("ada", task="01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert not os.path.exists(tmp_path / "none yet")
    board.close()


def test_board_opened_before_it_is_made_sees_it_afterwards(tmp_path: Path) -> None:
    reader = Board(tmp_path / "data", create=False, actor=MARIA)
    assert titles(reader) == []
    writer = open_board(tmp_path / "data")
    writer.add("task")
    assert titles(reader) == ["task"]
    reader.close()
    writer.close()


def test_board_opened_for_reading_refuses_every_write(tmp_path: Path) -> None:
    writer = open_board(tmp_path)
    task = writer.add("task").task
    reader = Board(tmp_path, read_only=True, actor=MARIA)
    before = everything(writer)
    calls: list[Callable[[], object]] = [
        lambda: reader.add("x"),
        lambda: reader.claim("ada"),
        lambda: reader.comment(task.id, "x"),
    ]
    for call in calls:
        with refused("unusable"):
            call()
    assert titles(reader) == ["task"]
    assert everything(writer) == before
    reader.close()
    writer.close()


# List


def test_list_is_lean_unless_asked_for_everything(board: Board) -> None:
    board.add("task", body="text", params={"a": 1})
    (lean,) = board.list_tasks().to_dict()["tasks"]
    (full,) = board.list_tasks(full=True).to_dict()["tasks"]
    assert set(full) - set(lean) == set(LONG_KEYS) == {"body", "params", "result", "error"}
    assert full == board.show(full["id"])["task"]
    assert list(lean) == [key for key in full if key in lean]
    with pytest.raises(AttributeError):
        _ = board.list_tasks().tasks[0].body


def test_list_filters_by_status(board: Board) -> None:
    ids = {status: bring_to(board, status).id for status in STATUSES}
    for status in STATUSES:
        assert [task.id for task in board.list_tasks(status=[status]).tasks] == [ids[status]]
    some = board.list_tasks(status=["done", "queued", "done"]).tasks
    assert [task.id for task in some] == [ids["queued"], ids["done"]]
    assert len(board.list_tasks().tasks) == len(STATUSES)


def test_list_filters_by_queue_assignee_holder_and_tags(board: Board) -> None:
    board.add("a", queue="docs", tags=["x", "y"])
    board.add("b", assignee="Ada", tags=["x"])
    board.add("c", queue="docs", assignee="bob")
    assert titles(board, queue="docs") == ["a", "c"]
    assert titles(board, queue="nowhere") == []
    assert titles(board, assignee="ADA") == ["b"]
    assert titles(board, assignee="none") == ["a"]
    assert titles(board, assignee="nobody known") == []
    assert titles(board, tags=["y", "x"]) == ["a"]
    assert titles(board, tags=["x"]) == ["a", "b"]
    assert titles(board, tags=["x", "z"]) == []
    hold(board, "ada", task=board.list_tasks().tasks[0].id)
    assert titles(board, claimed_by="aDa") == ["a"]
    assert titles(board, claimed_by="bob") == []
    assert titles(board, queue="docs", assignee="bob", status=["queued"]) == ["c"]


def test_list_filters_by_what_is_derived_as_the_tasks_show_it(board: Board, clock: Clock) -> None:
    blocker = board.add("blocker", due_at="2026-11-30T01:00:00Z").task
    board.add("blocked", depends_on=[blocker.id])
    board.add("delayed", not_before="2026-11-30T02:00:00Z")
    board.add("delayed less", not_before="2026-11-30T01:00:00Z", due_at="2026-12-01")
    board.add("blocked and delayed", depends_on=[blocker.id], not_before="2026-11-30T02:00:00Z")
    board.cancel(board.add("done with", due_at="2026-11-30T00:00:00Z").task.id)
    for seconds in (0, 400, 0.001, 7_200):  # the second step ends on the deadline and the start exactly
        clock.advance(seconds=seconds)
        everyone = board.list_tasks().tasks
        for name in ("ready", "blocked", "overdue"):
            expected = [task.title for task in everyone if getattr(task, name)]
            assert titles(board, **{name: True}) == expected, (name, seconds)
    assert titles(board, ready=True) == ["blocker", "delayed", "delayed less"]
    assert titles(board, overdue=True) == ["blocker"]


def test_orders_of_a_list(board: Board, clock: Clock) -> None:
    for title, priority, due in (
        ("a", 0, None),
        ("b", 5, "2026-12-03"),
        ("c", -5, "2026-12-01"),
        ("d", 5, None),
        ("e", 0, "2026-12-01"),
    ):
        board.add(title, priority=priority, due_at=due)
        clock.advance(seconds=1)
    board.update(board.list_tasks(order="age").tasks[1].id, body="touched")
    expected = {
        "age": "abcde",
        "priority": "bdaec",
        "updated": "bedca",
        "due": "cebad",
        "newest": "edcba",
        "work": "bdaec",
    }
    assert set(expected) == set(ORDERS)
    for order, all_of_them in expected.items():
        assert "".join(titles(board, order=order)) == all_of_them
        for limit in (1, 2, 3, 4):
            assert "".join(chain.from_iterable(pages(board, limit, order=order))) == all_of_them
        assert pages(board, 5, order=order) == [list(all_of_them)]


@pytest.mark.parametrize("order", ORDERS)
def test_paging_shows_each_task_once_while_the_board_changes(board: Board, clock: Clock, order: str) -> None:
    for number in range(20):
        due = f"2026-12-{number % 5 + 1:02}" if number % 3 else None
        board.add(f"task {number}", priority=number % 4, due_at=due)
        clock.advance(seconds=number % 2)
    start = {task.id for task in board.list_tasks().tasks}
    seen: list[str] = []
    after = None
    for _ in range(100):
        page = board.list_tasks(order=order, limit=3, after=after)
        seen += [task.id for task in page.tasks]
        after = page.next
        if after is None:
            break
        clock.advance(seconds=5)
        board.update(page.tasks[0].id, title="changed since")  # before the cursor
        board.add("new", priority=2, due_at="2026-12-03")
    assert after is None
    assert len(seen) == len(set(seen))
    assert start <= set(seen)


def test_work_that_is_left_comes_first(board: Board, clock: Clock) -> None:
    done = []
    for status in ("done", "failed", "cancelled"):
        done.append(bring_to(board, status).id)
        clock.advance(seconds=1)
    for status in ("review", "running", "claimed"):
        id_ = bring_to(board, status, priority=1 if status == "running" else 0).id
        board.update(id_, title=status)
    board.add("delayed", not_before="2026-12-24", priority=9)
    board.add("blocked", depends_on=[board.add("low", priority=-1).task.id], priority=5)
    board.add("high", priority=3, assignee="eve")
    board.add("soon", not_before="2026-11-30T01:00:00Z", priority=2)
    board.add("plain")
    clock.advance(minutes=20)  # "soon" is due, and no claim has promoted it yet
    expected = ["high", "soon", "plain", "low", "delayed", "blocked", "running", "review", "claimed"]
    assert titles(board)[: len(expected)] == expected
    assert [task.id for task in board.list_tasks().tasks[len(expected) :]] == done[::-1]
    for limit in (1, 2, 3, 5):
        assert list(chain.from_iterable(pages(board, limit))) == titles(board)
    assert titles(board, hide_finished=True) == expected
    page = board.list_tasks(hide_finished=True, limit=2)
    assert (page.hidden, page.more) == (3, 7)
    assert titles(board, status=["done,review"])[0] == "review"
    for statuses in ([], ["queued"], ["done", "failed"], ["review,failed"]):
        for order in ORDERS:
            page = board.list_tasks(status=statuses, order=order, limit=3)
            left = titles(board, status=statuses)
            assert page.more == max(0, len(left) - 3)


@pytest.mark.parametrize("order", ORDERS)
def test_archived_tasks_are_listed_alone(board: Board, clock: Clock, order: str) -> None:
    for status in STATUSES:
        bring_to(board, status)
    archived = bring_to(board, "done").id
    board.archive_task(archived)
    assert [task.id for task in board.list_tasks(archived=True, order=order).tasks] == [archived]
    assert archived not in [task.id for task in board.list_tasks(order=order).tasks]
    assert board.list_tasks(archived=True, ready=True, order=order).tasks == []


def test_work_of_many_assignees_is_merged(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        board.add(str(number), priority=number * 7 % 5, assignee=f"agent {number % 6}" if number % 6 else None)
    expected = [str(number) for number in sorted(range(30), key=lambda number: (-(number * 7 % 5), number))]
    assert titles(board) == expected
    monkeypatch.setattr(queries, "ASSIGNEES", 3)
    assert titles(board) == expected
    assert list(chain.from_iterable(pages(board, 4))) == expected


def test_page_of_work_sorts_nothing_but_its_own_rows(board: Board) -> None:
    board.add("task", assignee="ada")
    with board.read() as tx:
        connection = tx.connection
    asked: list[str] = []
    connection.set_trace_callback(asked.append)
    board.list_tasks(hide_finished=True)
    connection.set_trace_callback(None)
    ready = next(sql for sql in asked if "assignee IS NULL AND" in sql)
    steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {ready}")]
    plan = steps[: next(place for place, step in enumerate(steps) if step.startswith("CORRELATED"))]
    assert sum("task_ready" in step for step in plan) == 2  # one for nobody, one for ada
    assert not any(step == "SCAN task" for step in plan)
    assert sum("TEMP B-TREE" in step for step in plan) == 1, plan  # of the rows that were chosen


def test_last_page_has_no_cursor_even_when_it_is_full(board: Board) -> None:
    for number in range(4):
        board.add(str(number))
    assert pages(board, 2) == [["0", "1"], ["2", "3"]]
    assert board.list_tasks(limit=4).next is None


@pytest.mark.parametrize("limit", [1, 100_000])
def test_limit_of_a_list_includes_its_bounds(board: Board, limit: int) -> None:
    board.add("task")
    assert titles(board, limit=limit) == ["task"]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 100_001}, "limit"),
        ({"limit": "5"}, "limit"),
        ({"limit": True}, "limit"),
        ({"status": ["open"]}, "status"),
        ({"status": "queued"}, "status"),
        ({"status": [None]}, "status"),
        ({"status": ["queued' OR 1 --"]}, "status"),
        ({"queue": ""}, "queue"),
        ({"assignee": "a\n"}, "assignee"),
        ({"assignee": "a\nb"}, "assignee"),
        ({"claimed_by": "none"}, "claimed_by"),
        ({"tags": "web"}, "tags"),
        ({"search": "s" * 501}, "search"),
        ({"search": "a\x00"}, "search"),
        ({"search": "\ud800"}, "search"),
        ({"order": "random"}, "order"),
        ({"order": 1}, "order"),
        ({"after": "age~1"}, "after"),
        ({"after": "age~1~x"}, "after"),
        ({"after": "age~x~1"}, "after"),
        ({"after": "age~1~-1"}, "after"),
        ({"after": "age~1~" + "9" * 30}, "after"),
        ({"after": "priority~1~1"}, "after"),
        ({"after": "~"}, "after"),
        ({"after": "\ud800"}, "after"),
        ({"after": 5}, "after"),
        ({"order": "priority", "after": "priority~" + "9" * 30 + "~1"}, "after"),
        ({"order": "priority", "after": "priority~~1"}, "after"),
        ({"order": "due", "after": "due~soon~1"}, "after"),
        ({"order": "updated", "after": "updated~\ud800~1"}, "after"),
    ],
)
def test_malformed_list_is_refused_by_field(board: Board, options: dict[str, Any], field: str) -> None:
    board.add("task")
    if options == {"assignee": "a\n"}:  # spaces around a name are ignored, and a line break is one
        assert titles(board, **options) == []
        return
    with refused("invalid_input") as caught:
        board.list_tasks(**options)
    assert caught.value.details["field"] == field


# Show


def test_show_tells_attempts_comments_and_dependencies_both_ways(board: Board, clock: Clock) -> None:
    two, one = board.add("two").task, board.add("one").task
    task = board.add("task", depends_on=[one.id, two.id]).task
    later = board.add("later", depends_on=[task.id]).task
    for id_ in (one.id, two.id):
        held = hold(board, "bob", task=id_)
        board.complete(held.id, held.token)
    held = hold(board, task=task.id)
    board.comment(task.id, "first")
    clock.advance(seconds=30)
    board.fail(held.id, held.token, "broken", retry_in=0)
    board.comment(task.id, "second", actor=Actor("bob", "agent"))
    shown = board.show(task.id[-5:])
    assert list(shown) == ["task", "attempts", "dependencies", "dependents", "comments"]
    assert shown["task"]["id"] == task.id
    assert shown["attempts"] == [
        {
            "number": 1,
            "agent": "ada",
            "fence": 1,
            "claimed_at": "2026-11-30T00:53:20.000+00:00",
            "ended_at": "2026-11-30T00:53:50.000+00:00",
            "outcome": "failed",
            "error": "broken",
            "note": None,
            "result": None,
        }
    ]
    assert [link["title"] for link in shown["dependencies"]] == ["one", "two"]
    assert shown["dependents"] == [{"id": later.id, "title": "later", "status": "queued"}]
    assert [(event["actor"], event["data"]["text"]) for event in shown["comments"]] == [
        ("maria", "first"),
        ("bob", "second"),
    ]


# Events


def test_events_are_numbered_without_a_gap_and_paged_by_number(board: Board) -> None:
    for status in STATUSES:
        bring_to(board, status)
    with refused("invalid_input"):
        board.add("")
    everyone = board.events(limit=1_000)
    numbers = [event["seq"] for event in everyone["events"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert everyone["next"] == numbers[-1]
    found, after = [], 0
    while page := board.events(after=after, limit=4)["events"]:
        found += page
        after = page[-1]["seq"]
    assert found == everyone["events"]
    assert board.events(after=after) == {"events": [], "next": after}
    assert board.events(after=after + 5)["next"] == after + 5


def test_events_of_one_task_have_the_keys_of_the_contract(board: Board) -> None:
    board.add("other")
    task = board.add("task").task
    board.add("another")
    board.comment(task.id, "hello")
    page = board.events(task=task.id[-6:].lower())
    assert [(event["seq"], event["kind"]) for event in page["events"]] == [(2, "created"), (4, "commented")]
    assert page["next"] == 4
    assert list(page["events"][0]) == ["seq", "task_id", "kind", "actor", "actor_kind", "at", "data"]
    assert page["events"][0]["at"] == "2026-11-30T00:53:20.000+00:00"
    assert board.events(task=task.id, after=2, limit=1)["next"] == 4


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"after": -1}, "after"),
        ({"after": "1"}, "after"),
        ({"after": 10**30}, "after"),
        ({"limit": 0}, "limit"),
        ({"limit": 10_001}, "limit"),
        ({"task": "?"}, "id"),
        ({"task": ""}, "id"),
    ],
)
def test_malformed_events_are_refused_by_field(board: Board, options: dict[str, Any], field: str) -> None:
    board.add("task")
    with refused("invalid_input") as caught:
        board.events(**options)
    assert caught.value.details["field"] == field


# Agents


def test_agents_tell_what_they_hold_and_did_latest_seen_first(board: Board, clock: Clock) -> None:
    board.add("for carol", assignee="carol", priority=-1)
    bring_to(board, "done", agent="bob")
    clock.advance(seconds=1)
    held = bring_to(board, "running", agent="ada")
    board.heartbeat(held.id, held.token, progress=30, note="half way")
    board.heartbeat(held.id, held.token)
    bring_to(board, "failed", agent="ada")
    board.add("given back")
    other = hold(board, "ada")
    board.release(other.id, other.token)
    ada, bob, carol = board.agents()
    assert [agent["name"] for agent in (ada, bob, carol)] == ["ada", "bob", "carol"]
    assert (bob["completed"], bob["failed"], bob["expired"], bob["holds"]) == (1, 0, 0, [])
    assert (ada["completed"], ada["failed"], ada["expired"]) == (0, 1, 0)
    assert ada["holds"] == [
        {
            "id": held.id,
            "title": "a task",
            "status": "running",
            "progress": 30,
            "claimed_at": "2026-11-30T00:53:21.000+00:00",
            "lease_expires_at": "2026-11-30T01:08:21.000+00:00",
            "lease_expired": False,
            "renewed_at": "2026-11-30T00:53:21.000+00:00",
            "silent": False,
            "silent_at": "2026-11-30T01:03:21.000+00:00",
            "note": "half way",
        }
    ]
    assert carol["last_seen_at"] is None
    assert carol["first_seen_at"] == "2026-11-30T00:53:20.000+00:00"


def test_holder_is_silent_once_two_thirds_of_its_lease_passed_without_a_renewal(board: Board, clock: Clock) -> None:
    def silent() -> list[bool]:
        return [task["silent"] for agent in board.agents() for task in agent["holds"]]

    held = hold(board, "ada", task=bring_to(board, "queued").id, lease="15m")
    clock.advance(minutes=10)
    assert silent() == [False]
    clock.advance(seconds=0.001)
    assert silent() == [True]
    board.heartbeat(held.id, held.token)
    assert silent() == [False]
    clock.advance(minutes=15)
    assert silent() == [True]


def test_attention_counts_each_task_for_the_first_reason_that_applies(board: Board, clock: Clock) -> None:
    past = {"due_at": "2026-11-30T00:00:00+00:00"}
    review = bring_to(board, "review", **past).id
    days = [f"2026-11-{day}T12:00:00+00:00" for day in range(20, 27)]
    overdue = [board.add("a task", due_at=day).task.id for day in days]
    held = hold(board, "ada", task=overdue[1], lease="1h").id
    expired = bring_to(board, "running", **past).id
    failed = [bring_to(board, "failed", **past).id for _ in range(2)]
    for status in ("done", "cancelled"):
        bring_to(board, status, **past)
    board.add("in time", due_at="2030-01-01")
    stuck = board.add("a task", depends_on=[failed[0]], due_at=past["due_at"]).task.id
    clock.advance(minutes=16)
    assert board.attention(every_reason=True) == {
        "review": {"count": 1, "ids": [review]},
        "expired": {"count": 1, "ids": [expired]},
        "stuck": {"count": 1, "ids": [stuck]},
        "overdue": {"count": 7, "ids": [overdue[0], held, *overdue[2:5]]},
        "failed": {"count": 2, "ids": failed[::-1]},
    }
    board.archive(0, status=["failed"])
    assert board.attention(every_reason=True)["failed"] == {"count": 0, "ids": []}
    assert board.attention().keys() == {"review", "expired", "stuck"}


def test_note_of_an_earlier_holder_is_not_told_as_the_present_one_s(board: Board, clock: Clock) -> None:
    held = bring_to(board, "running")
    board.heartbeat(held.id, held.token, note="ada was here")
    clock.advance(seconds=1)
    board.reassign(held.id, "bob")
    hold(board, "bob", task=held.id)
    notes = {agent["name"]: [task["note"] for task in agent["holds"]] for agent in board.agents()}
    assert notes == {"ada": [], "bob": [None]}


def test_agent_is_seen_at_each_lease_verb_but_not_when_its_lease_is_taken(board: Board, clock: Clock) -> None:
    held = bring_to(board, "claimed")

    def seen() -> str | None:
        (agent,) = board.agents()
        return agent["last_seen_at"]

    assert seen() == "2026-11-30T00:53:20.000+00:00"
    clock.advance(minutes=1)
    board.heartbeat(held.id, held.token)
    assert seen() == "2026-11-30T00:54:20.000+00:00"
    clock.advance(minutes=1)
    board.resume(held.id, "ada")
    assert seen() == "2026-11-30T00:55:20.000+00:00"
    clock.advance(minutes=30)
    assert board.agents()[0]["holds"][0]["lease_expired"]
    board.tick()
    assert seen() == "2026-11-30T00:55:20.000+00:00"
    assert board.agents()[0]["expired"] == 1
    assert board.agents()[0]["holds"] == []


# Stats


def test_stats_count_by_status_and_queue(board: Board, clock: Clock) -> None:
    for status in STATUSES:
        bring_to(board, status, queue="docs" if status in ("done", "queued") else "default")
    blocked = board.add("blocked", depends_on=[board.list_tasks().tasks[0].id]).task
    board.add("delayed", not_before="2026-11-30T01:00:00Z")
    stats = board.stats()
    assert stats["tasks"] == 9
    assert stats["by_status"] == {**dict.fromkeys(STATUSES, 1), "queued": 3}
    assert stats["by_queue"]["docs"] == {**dict.fromkeys(STATUSES, 0), "queued": 1, "done": 1}
    assert (stats["ready"], stats["blocked"], stats["lease_expired"]) == (1, 1, 0)
    clock.advance(minutes=20)
    stats = board.stats()
    assert (stats["ready"], stats["blocked"], stats["lease_expired"]) == (2, 1, 2)
    board.update(blocked.id, queue="ops")
    assert board.stats()["by_queue"]["ops"]["queued"] == 1
    for status in STATUSES:
        assert stats["by_status"][status] == len(board.list_tasks(status=[status]).tasks)


def test_stats_tell_how_long_work_takes(board: Board, clock: Clock) -> None:
    for minutes in (1, 2, 3, 10):
        task = board.add("task").task
        clock.advance(minutes=5)
        held = hold(board, task=task.id)
        clock.advance(minutes=minutes)
        board.complete(held.id, held.token)
    board.cancel(board.add("no").task.id)
    stats = board.stats()
    assert stats["cycle_time"] == {"tasks": 4, "median": 120.0, "p90": 180.0}
    assert stats["lead_time"] == {"tasks": 4, "median": 420.0, "p90": 480.0}
    assert board.stats(days=1)["finished"] == [
        {"day": "2026-11-30", "done": 4, "failed": 0, "cancelled": 1, "lead_time": 420.0, "cycle_time": 120.0}
    ]
    assert stats["by_agent"] == [
        {
            "agent": "ada",
            "done": 4,
            "failed": 0,
            "cancelled": 0,
            "cycle_time": {"tasks": 4, "median": 120.0, "p90": 180.0},
        }
    ]


def test_stats_count_the_same_days_everywhere(board: Board, clock: Clock) -> None:
    held = hold(board, task=board.add("task").task.id)
    board.complete(held.id, held.token)
    for hours in range(0, 49, 6):
        stats = board.stats(days=2)
        counted = sum(day["done"] for day in stats["finished"])
        assert (counted, len(stats["by_agent"])) == (stats["lead_time"]["tasks"],) * 2, f"after {hours} hours"
        clock.advance(minutes=360)
    assert board.stats(days=2)["lead_time"]["tasks"] == 0


def test_stats_tell_what_is_running_the_oldest_first(board: Board, clock: Clock) -> None:
    first, second = (board.add(title).task.id for title in ("first", "second"))
    hold(board, "bob", task=second)
    clock.advance(seconds=90)
    hold(board, task=first)
    assert [(row["id"], row["claimed_by"], row["age"]) for row in board.stats()["running"]] == [
        (second, "bob", 90.0),
        (first, "ada", 0.0),
    ]


def test_attention_counts_reviews_and_dead_leases_and_names_the_first_of_each(board: Board, clock: Clock) -> None:
    nothing = {"count": 0, "ids": []}
    assert board.attention() == {"review": nothing, "expired": nothing, "stuck": nothing}
    reviews = [bring_to(board, "review").id for _ in range(7)]
    late = []
    for minutes in (30, 10, 20):
        task = board.add("a task").task.id
        hold(board, "ada", task=task, lease=f"{minutes}m")
        late.append(task)
    for status in ("queued", "done", "failed", "cancelled"):
        bring_to(board, status)
    assert board.attention() == {"review": {"count": 7, "ids": reviews[:5]}, "expired": nothing, "stuck": nothing}
    clock.advance(minutes=20)
    assert board.attention()["expired"] == {"count": 2, "ids": [late[1], late[2]]}
    board.approve(reviews[0])
    board.cancel(late[1])
    told = board.attention()
    assert (told["review"]["count"], told["expired"]["ids"]) == (6, [late[2]])


def test_stats_of_an_empty_board_have_no_times(board: Board) -> None:
    board.cancel(board.add("no").task.id)
    assert board.stats()["lead_time"] == {"tasks": 0, "median": None, "p90": None}


def test_days_of_the_stats_are_those_of_the_zone_latest_last(tmp_path: Path, clock: Clock) -> None:
    east = Board(tmp_path, actor=MARIA, clock=clock)
    west = Board(tmp_path, actor=MARIA, clock=clock, settings=Settings(timezone="America/New_York"))
    bring_to(east, "done")  # 00:53 UTC: the 30th in Shanghai, the 29th in New York
    clock.advance(days=1)
    bring_to(east, "failed")
    days_east = [(day["day"], day["done"], day["failed"]) for day in east.stats(days=3)["finished"]]
    days_west = [(day["day"], day["done"], day["failed"]) for day in west.stats(days=3)["finished"]]
    assert days_east == [("2026-11-29", 0, 0), ("2026-11-30", 1, 0), ("2026-12-01", 0, 1)]
    assert days_west == [("2026-11-28", 0, 0), ("2026-11-29", 1, 0), ("2026-11-30", 0, 1)]
    clock.advance(days=3)
    assert sum(day["done"] for day in east.stats(days=3)["finished"]) == 0
    assert len(east.stats(days=366)["finished"]) == 366
    for days in (0, 367, "3", True):
        with refused("invalid_input") as caught:
            east.stats(days=days)  # type: ignore[arg-type]
        assert caught.value.details["field"] == "days"
    east.close()
    west.close()
