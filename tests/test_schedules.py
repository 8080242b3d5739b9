"""Schedules: every occurrence once, also late ones, with pauses, restarts and concurrent ticks."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Actor, Board
from agent_task_board.instants import from_text, to_text
from agent_task_board.schedules import recurrence
from agent_task_board.settings import Settings
from tests.command_line import Terminal
from tests.processes import SPAWN, run_together
from tests.support import MARIA, Clock, kinds, open_board, refused

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier
    from pathlib import Path

QUARTERLY = "*/15 * * * *"
TITLE = {"title": "Check the links"}


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """Return a command line in an empty directory."""
    return Terminal(tmp_path)


def occurrences(board: Board) -> list[str]:
    """Return the planned instants of all tasks that schedules created, in the order created."""
    return [task.occurrence_at or "" for task in board.list_tasks(limit=100_000).tasks if task.schedule_id]


def tick_until_done(board: Board) -> int:
    """Tick until nothing is left to catch up with; return how many tasks were created."""
    created = 0
    while True:
        told = board.tick()
        created += int(told["created"])
        if not told["catchup_pending"]:
            return created


# Creating tasks


def test_a_tick_makes_what_is_due_once_and_nothing_early(board: Board, clock: Clock) -> None:
    made = board.add_schedule("links", cron=QUARTERLY, task=TITLE, zone="UTC")
    assert (made["next_at"], made["made"], made["paused"]) == ("2026-11-30T01:00:00.000+00:00", 0, False)
    assert board.tick()["created"] == 0

    clock.now = from_text("2026-11-30T01:00:00.000+00:00")
    assert board.tick() == {"expired": 0, "created": 1, "delivered": 0, "catchup_pending": False}
    assert board.tick()["created"] == 0

    (task,) = board.list_tasks(full=True).tasks
    assert (task.title, task.occurrence_at, task.created_by) == (TITLE["title"], made["next_at"], "system")
    assert task.schedule_id == made["id"]
    after = board.schedule("LINKS")
    assert (after["next_at"], after["last_at"], after["made"]) == (
        "2026-11-30T01:15:00.000+00:00",
        made["next_at"],
        1,
    )


def test_a_late_tick_makes_every_missed_occurrence_marked_with_the_planned_instant(board: Board, clock: Clock) -> None:
    board.add_schedule("links", cron=QUARTERLY, task=TITLE, zone="UTC", catch_up=3)
    clock.advance(minutes=120)

    told = [board.tick() for _ in range(4)]

    assert [one["created"] for one in told] == [3, 3, 2, 0]
    assert [one["catchup_pending"] for one in told] == [True, True, False, False]
    assert occurrences(board) == [f"2026-11-30T{hour:02}:{minute:02}:00.000+00:00"
                                  for hour in (1, 2) for minute in (0, 15, 30, 45)]  # fmt: skip


def test_the_bound_of_a_tick_is_the_settings_where_a_schedule_has_none(tmp_path: Path, clock: Clock) -> None:
    board = Board(str(tmp_path), actor=MARIA, clock=clock, settings=Settings(catch_up=2))
    board.add_schedule("links", cron=QUARTERLY, task=TITLE)
    clock.advance(days=1)
    assert board.tick()["created"] == 2


def test_template_reaches_the_task_with_the_words_of_its_occurrence(board: Board, clock: Clock) -> None:
    template = {
        "title": "Report of {date}, {other}",
        "body": "{date} stays",
        "queue": "docs",
        "priority": 5,
        "assignee": "ada",
        "tags": ["a"],
        "params": {"at": "{occurrence}", "deep": [{"{date}": "{datetime}"}], "n": 1},
        "max_attempts": 2,
        "needs_approval": True,
        "due_in": "4h",
    }
    board.add_schedule("report", cron="0 9 * * *", zone="Asia/Shanghai", task=template)
    clock.advance(days=1)
    board.tick()

    (task,) = board.list_tasks(full=True).tasks
    assert task.title == "Report of 2026-11-30, {other}"
    assert (task.body, task.queue, task.priority, task.assignee) == ("{date} stays", "docs", 5, "ada")
    assert task.params == {
        "at": "2026-11-30T01:00:00.000+00:00",
        "deep": [{"{date}": "2026-11-30T09:00:00+08:00"}],
        "n": 1,
    }
    assert (task.tags, task.max_attempts, task.needs_approval) == (["a"], 2, True)
    assert task.due_at == "2026-11-30T05:00:00.000+00:00"
    created = board.events(task=task.id)["events"][0]
    assert (created["kind"], created["actor"], created["actor_kind"]) == ("created", "system", "system")
    assert created["data"]["schedule"]["name"] == "report"


@pytest.mark.parametrize(
    ("cron", "zone", "field", "value", "expected"),
    [
        ("0 9 * * *", "Asia/Shanghai", "due_at", "17:00", "2026-11-30T09:00:00.000+00:00"),
        ("0 9 * * *", "Asia/Shanghai", "due_at", "9:00", "2026-12-01T01:00:00.000+00:00"),
        ("0 9 * * *", "Asia/Shanghai", "due_at", "08:30", "2026-12-01T00:30:00.000+00:00"),
        ("0 9 * * *", "Asia/Shanghai", "due_at", "+90m", "2026-11-30T02:30:00.000+00:00"),
        ("0 9 * * *", "Asia/Shanghai", "not_before", "09:00", "2026-11-30T01:00:00.000+00:00"),
        ("0 9 * * *", "Asia/Shanghai", "not_before", "+ 1h", "2026-11-30T02:00:00.000+00:00"),
        ("0 22 27 3 *", "Europe/Berlin", "due_at", "02:30", "2027-03-28T01:00:00.000+00:00"),  # the clock skips it
    ],
)
def test_dates_of_a_template_are_times_of_day_in_its_zone_or_durations(
    board: Board, clock: Clock, cron: str, zone: str, field: str, value: str, expected: str
) -> None:
    board.add_schedule("report", cron=cron, zone=zone, task={**TITLE, field: value})
    (occurrence, *_) = board.preview_schedule("report", count=1)
    clock.now = from_text(occurrence["at"])
    board.tick()
    (task,) = board.list_tasks().tasks
    assert getattr(task, field) == expected


def test_preview_after_an_instant_ignores_what_was_created_or_paused(board: Board) -> None:
    board.add_schedule("daily", cron="@daily", zone="UTC", task=TITLE)
    board.pause_schedule("daily")
    for after, first in (("2027-03-01T12:00:00Z", "2027-03-02"), ("2020-01-01T00:00:00Z", "2020-01-02")):
        found = board.preview_schedule("daily", count=2, after=after)
        assert found[0]["at"] == f"{first}T00:00:00.000+00:00"
    with refused("invalid_input") as caught:
        board.preview_schedule("daily", after="soon")
    assert caught.value.details["field"] == "after"


def test_an_occurrence_has_a_dedupe_key_of_its_own(board: Board, clock: Clock) -> None:
    board.add_schedule("links", cron=QUARTERLY, task={**TITLE, "dedupe_key": "links"}, zone="UTC")
    board.add("by hand", dedupe_key="links")
    clock.advance(minutes=30)
    assert board.tick()["created"] == 2
    keys = [task.dedupe_key for task in board.list_tasks().tasks]
    assert len(set(keys)) == 3


def test_an_occurrence_that_came_in_with_an_import_is_not_made_again(board: Board, clock: Clock) -> None:
    made = board.add_schedule("links", cron=QUARTERLY, task=TITLE, zone="UTC")
    board.import_tasks([{"title": "there", "schedule_id": made["id"], "occurrence_at": made["next_at"]}])
    clock.advance(minutes=30)
    assert board.tick()["created"] == 1
    assert occurrences(board) == ["2026-11-30T01:00:00.000+00:00", "2026-11-30T01:15:00.000+00:00"]


# Pauses, and clocks that are set back


def test_a_pause_drops_what_lies_in_it_and_nothing_else(board: Board, clock: Clock) -> None:
    board.add_schedule("links", cron=QUARTERLY, task=TITLE, zone="UTC", catch_up=1)
    clock.now = from_text("2026-11-30T01:20:00.000+00:00")
    paused = board.pause_schedule("links")
    assert (paused["paused"], paused["paused_at"]) == (True, "2026-11-30T01:20:00.000+00:00")
    assert board.pause_schedule("links") == paused

    clock.now = from_text("2026-11-30T02:10:00.000+00:00")
    assert tick_until_done(board) == 2  # planned before the pause
    assert board.schedule("links")["paused"] is True

    resumed = board.resume_schedule("links")
    assert (resumed["paused"], resumed["next_at"]) == (False, "2026-11-30T02:15:00.000+00:00")
    assert board.resume_schedule("links") == resumed
    clock.now = from_text("2026-11-30T02:15:00.000+00:00")
    assert board.tick()["created"] == 1
    assert [at[11:16] for at in occurrences(board)] == ["01:00", "01:15", "02:15"]


def test_resume_makes_first_what_was_planned_before_the_pause(board: Board, clock: Clock) -> None:
    board.add_schedule("links", cron=QUARTERLY, task=TITLE, zone="UTC", catch_up=1)
    clock.now = from_text("2026-11-30T01:40:00.000+00:00")
    board.pause_schedule("links")
    clock.now = from_text("2026-11-30T05:00:00.000+00:00")
    assert board.resume_schedule("links")["next_at"] == "2026-11-30T05:15:00.000+00:00"
    assert [at[11:16] for at in occurrences(board)] == ["01:00", "01:15", "01:30"]


def test_a_clock_that_is_set_back_repeats_nothing(board: Board, clock: Clock) -> None:
    board.add_schedule("links", cron=QUARTERLY, task=TITLE, zone="UTC")
    clock.advance(minutes=60)
    tick_until_done(board)
    clock.advance(minutes=-60)
    assert tick_until_done(board) == 0
    board.pause_schedule("links")
    assert board.resume_schedule("links")["next_at"] == "2026-11-30T02:00:00.000+00:00"
    clock.advance(minutes=75)
    tick_until_done(board)
    assert len(set(occurrences(board))) == len(occurrences(board)) == 5


def test_resume_ends_though_the_clock_was_set_back_beyond_what_is_due(board: Board, clock: Clock) -> None:
    board.add_schedule("links", cron=QUARTERLY, task=TITLE, zone="UTC")
    clock.advance(minutes=30)
    board.pause_schedule("links")
    clock.advance(minutes=-30)
    assert board.resume_schedule("links")["paused"] is False


def test_a_schedule_that_was_removed_leaves_its_tasks_and_its_name(board: Board, clock: Clock) -> None:
    first = board.add_schedule("links", cron=QUARTERLY, task=TITLE, zone="UTC")
    clock.advance(minutes=30)
    board.tick()
    assert board.remove_schedule("Links")["made"] == 2
    with refused("not_found"):
        board.schedule("links")
    again = board.add_schedule("links", cron=QUARTERLY, task=TITLE, zone="UTC")
    assert again["id"] != first["id"]
    clock.advance(minutes=15)
    board.tick()
    assert len(occurrences(board)) == 3


# Simulated weeks


@pytest.mark.parametrize(
    ("zone", "start"),
    [
        ("America/New_York", "2026-10-29T00:00:00.000+00:00"),
        ("America/New_York", "2026-03-05T00:00:00.000+00:00"),
        ("Australia/Lord_Howe", "2026-10-01T00:00:00.000+00:00"),
    ],
)
def test_a_week_of_ticks_over_a_daylight_saving_change_makes_exactly_what_was_promised(
    tmp_path: Path, zone: str, start: str
) -> None:
    clock = Clock()
    clock.now = from_text(start)
    board = open_board(tmp_path, clock)
    rules = {"night": "30 2 * * *", "early": "30 1 * * *", "often": "0 */6 * * *", "gap": "15,45 2 * * sun"}
    for name, rule in rules.items():
        board.add_schedule(name, cron=rule, task={"title": f"{name} {{datetime}}"}, zone=zone)
    for step in range(7 * 24 * 2):  # a tick every half hour, with some gaps of hours
        clock.advance(minutes=30)
        if step % 40 < 31:
            board.tick()
    tick_until_done(board)

    names = {one["id"]: one["name"] for one in board.schedules()}
    made: dict[str, list[str]] = {name: [] for name in rules}
    for task in board.list_tasks(limit=1_000).tasks:
        made[names[task.schedule_id or ""]].append(task.occurrence_at or "")
    for name, rule in rules.items():
        promised = []
        for at in recurrence.occurrences(rule, zone, from_text(start)):
            if at > clock.now:
                break
            promised.append(to_text(at))
        assert made[name] == promised, name
    assert len(made["night"]) == 7


def test_a_schedule_that_cannot_go_on_holds_up_no_other_and_is_named(board: Board, clock: Clock) -> None:
    for name in ("astray", "links"):
        board.add_schedule(name, cron=QUARTERLY, task=TITLE, zone="UTC")
    with board.database.write() as tx:
        tx.execute("UPDATE schedule SET zone = 'No/Where' WHERE key = 'astray'")
    clock.advance(minutes=30)
    warnings: list[str] = []
    told = board.tick(warnings=warnings)
    assert (told["created"], told["catchup_pending"]) == (2, False)
    assert len(warnings) == 1
    assert "'astray'" in warnings[0]
    assert "No/Where" in warnings[0]


def test_a_template_that_somebody_spoiled_can_be_seen_and_removed(board: Board, clock: Clock) -> None:
    board.add_schedule("links", cron=QUARTERLY, task=TITLE, zone="UTC")
    for spoiled in ("{", "[]"):
        with board.database.write() as tx:
            tx.execute("UPDATE schedule SET task = ?", (spoiled,))
        clock.advance(minutes=15)
        warnings: list[str] = []
        assert board.tick(warnings=warnings)["created"] == 0
        assert "'links'" in warnings[0]
        assert str(board.schedule("links")["task"]) == spoiled
    assert board.remove_schedule("links")["name"] == "links"


# Many at once


def _tick_at_once(directory: str, barrier: Barrier, now: int) -> int:
    with Board(directory, actor=MARIA, clock=lambda: now) as board:
        barrier.wait()
        return sum(board.tick()["created"] for _ in range(3))


def _claim_at_once(directory: str, barrier: Barrier, now: int, agent: str) -> list[str]:
    found = []
    with Board(directory, actor=Actor(agent, "agent"), clock=lambda: now) as board:
        barrier.wait()
        for _ in range(20):
            grant = board.claim(agent, lease="1h")
            if grant is not None:
                found.append(grant.task.id)
    return found


def _both(kind: str, *arguments: Any) -> Any:
    return _tick_at_once(*arguments) if kind == "tick" else _claim_at_once(*arguments)


def test_ticks_and_claims_at_once_make_and_hold_everything_once(tmp_path: Path) -> None:
    clock = Clock()
    board = open_board(tmp_path, clock)
    for name in ("a", "b", "c"):
        board.add_schedule(name, cron="*/5 * * * *", task={"title": name}, zone="UTC", catch_up=4)
    board.close()
    clock.advance(minutes=100)
    barrier = SPAWN.Barrier(8)
    callers: list[tuple[Any, ...]] = [("tick", str(tmp_path), barrier, clock.now)] * 3
    callers += [("claim", str(tmp_path), barrier, clock.now, f"agent {number}") for number in range(5)]

    results = run_together(_both, callers)

    with open_board(tmp_path, clock) as board:
        left = tick_until_done(board)
        made = [(task.schedule_id, task.occurrence_at) for task in board.list_tasks(limit=1_000).tasks]
    assert len(made) == len(set(made)) == 60
    assert sum(results[:3]) + left == 60
    held = Counter(task for found in results[3:] for task in found)
    assert set(held.values()) <= {1}


# Refusals


@pytest.mark.parametrize(
    "task",
    [
        None,
        [],
        "text",
        {},
        {"title": ""},
        {"title": "x", "titel": "y"},
        {"title": "x", "status": "done"},
        {"title": "x", "due_at": "2026-12-01"},
        {"title": "x", "blocked_by": []},
        {"title": "x", "due_in": "soon"},
        {"title": "x", "due_in": "9999d"},
        {"title": "x", "due_at": "25:00"},
        {"title": "x", "due_at": "17:60"},
        {"title": "x", "due_at": "+soon"},
        {"title": "x", "due_at": 17},
        {"title": "x", "not_before": "tomorrow"},
        {"title": "x", "due_at": "17:00", "due_in": "4h"},
        {"title": "x", "params": []},
        {"title": "x", "priority": "high"},
        {"title": "{datetime}" * 25},  # too long once the placeholders are filled in
        {"title": "x", "params": {"a": float("nan")}},
    ],
)
def test_template_that_could_not_become_a_task_is_refused(board: Board, task: Any) -> None:
    with refused("invalid_input") as caught:
        board.add_schedule("links", cron=QUARTERLY, task=task)
    assert caught.value.details["field"] == "task"
    assert board.schedules() == []


def test_malformed_schedule_is_refused_by_field(board: Board) -> None:
    wrong: dict[str, dict[str, Any]] = {
        "cron": {"cron": "* * * *"},
        "zone": {"cron": QUARTERLY, "zone": "Mars/Olympus"},
        "catch_up": {"cron": QUARTERLY, "catch_up": 0},
    }
    for field, options in wrong.items():
        with refused("invalid_input") as caught:
            board.add_schedule("links", task=TITLE, **options)
        assert caught.value.details["field"] in (field, "timezone")
    for zone in ("localtime", "Factory", "posix/UTC", "right/UTC"):  # each machine has its own, or none
        with refused("invalid_input"):
            board.add_schedule("links", cron=QUARTERLY, task=TITLE, zone=zone)
    with refused("invalid_input"):
        board.add_schedule("a\nb", cron=QUARTERLY, task=TITLE)
    board.add_schedule("Links", cron=QUARTERLY, task=TITLE)
    with refused("conflict", "dedupe"):
        board.add_schedule("lINKS", cron=QUARTERLY, task=TITLE)
    for count in (0, 1_001):
        with refused("invalid_input"):
            board.preview_schedule("links", count=count)


# On the command line


def test_schedule_from_add_to_remove_on_the_command_line(terminal: Terminal) -> None:
    add = terminal.atb(
        "schedule", "add", "nightly", "--cron", "0 2 * * *", "--zone", "UTC", "--task", json.dumps(TITLE)
    )
    assert "created a board" in add.warnings[0]
    assert add.data["schedule"]["cron"] == "0 2 * * *"
    assert terminal.data("schedule", "list")["schedules"] == [add.data["schedule"]]
    assert terminal.data("schedule", "show", "NIGHTLY")["schedule"] == add.data["schedule"]
    coming = terminal.data("schedule", "preview", "nightly", "--count", "3")["occurrences"]
    assert [one["at"][11:] for one in coming] == ["02:00:00.000+00:00"] * 3
    assert coming[0]["at"] == add.data["schedule"]["next_at"]
    later = terminal.data("schedule", "preview", "nightly", "--after", "2030-01-01T00:00:00Z")["occurrences"]
    assert later[0]["at"] == "2030-01-01T02:00:00.000+00:00"
    assert terminal.data("schedule", "pause", "nightly")["schedule"]["paused"] is True
    assert terminal.data("schedule", "resume", "nightly")["schedule"]["paused"] is False
    for words in (["list"], ["preview", "nightly"]):
        assert "nightly" in terminal.atb("schedule", *words, "--format", "table").text
    assert terminal.data("schedule", "remove", "nightly")["schedule"]["name"] == "nightly"
    assert terminal.data("schedule", "list") == {"schedules": []}


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["list", "nightly"], "name"),
        (["show"], "name"),
        (["add", "x", "--task", "{}"], "cron"),
        (["add", "x", "--cron", "* * * * *"], "task"),
        (["add", "x", "--cron", "* * * * *", "--task", "{"], "task"),
        (["pause", "x", "--cron", "* * * * *"], "cron"),
        (["add", "x", "--count", "3"], "count"),
    ],
)
def test_words_that_do_not_go_together_are_refused(terminal: Terminal, words: list[str], field: str) -> None:
    assert terminal.refused("invalid_input", "schedule", *words)["details"]["field"] == field
    assert terminal.files() == set()


def test_only_add_makes_a_board(terminal: Terminal) -> None:
    terminal.refused("not_found", "schedule", "list")
    for action in ("show", "pause", "resume", "remove", "preview"):
        terminal.refused("not_found", "schedule", action, "nightly")
    assert terminal.files() == set()


def test_events_of_a_made_task_go_on_like_any_other(board: Board, clock: Clock) -> None:
    board.add_schedule("links", cron=QUARTERLY, task=TITLE, zone="UTC")
    clock.advance(minutes=15)
    board.tick()
    grant = board.claim("ada")
    assert grant is not None
    board.complete(grant.task.id, grant.lease.token)
    assert kinds(board, grant.task.id) == ["created", "claimed", "completed"]
