"""Export and import: a copy equals the original board, except that leases end."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Actor, Board, BoardError
from agent_task_board.model import LEASED
from tests.support import bring_to, everything, hold, kinds, last_event, moved, open_board, refused

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Clock

Document = dict[str, Any]
A, B, C = (f"01ARZ3NDEKTSV4RRFFQ69G5FA{letter}" for letter in "ABC")
AT = "2026-11-30T00:00:00.000+00:00"
LATER = "2026-11-30T00:10:00.000+00:00"


def export(board: Board) -> Document:
    out = io.BytesIO()
    counts = board.export(out)
    document: Document = json.loads(out.getvalue())
    assert counts == {"tasks": len(document["tasks"]), "events": len(document["events"])}
    assert document.pop("format") == "agent-task-board"
    assert document.pop("version") == 1
    assert document.pop("exported_at")
    assert list(document) == ["tasks", "attempts", "events", "comments", "schedules", "archived"]
    return document


def import_document(board: Board, document: Any, **options: Any) -> Any:
    return board.import_tasks(io.BytesIO(json.dumps(document).encode()), **options)


def used_board(place: Path, clock: Clock, seed: int, steps: int = 120) -> Board:
    """Return a board on which agents and people worked."""
    chance = random.Random(seed)
    board = open_board(place, clock)
    tokens: dict[str, str] = {}
    board.add_schedule("daily", cron="0 9 * * *", zone="Europe/Berlin", task={"title": "daily {date}"})
    board.add_schedule("Paused", cron="*/5 * * * *", zone="UTC", task={"title": "x", "params": {"a": 1}}, catch_up=3)
    board.pause_schedule("paused")
    ids: list[str] = []

    def add() -> None:
        fields: dict[str, Any] = {
            "depends_on": chance.sample(ids, min(len(ids), chance.randrange(3))),
            "tags": chance.sample(["core", "ui", "ü"], chance.randrange(3)),
            "priority": chance.randrange(-2, 3),
            "assignee": chance.choice([None, None, "Ada", "BOB"]),
            "dedupe_key": chance.choice([None, f"k{len(ids)}"]),
            "max_attempts": chance.randrange(1, 4),
            "needs_approval": chance.random() < 0.3,
            "body": chance.choice(["", "text\n" * 3]),
            "params": chance.choice([None, {"n": 1.5e300, "deep": [[{}]]}]),
            "due_at": chance.choice([None, "2026-12-24"]),
            "not_before": chance.choice([None, "2026-11-30T02:00:00Z"]),
        }
        ids.append(board.add(f"task {len(ids)}", **fields).task.id)

    def claim() -> None:
        grant = board.claim(chance.choice(["ada", "bob", "Eve"]), lease=chance.choice(["5m", "1h"]))
        if grant is not None:
            tokens[grant.task.id] = grant.lease.token

    def of(id_: str) -> str:
        return tokens.get(id_, "0" * 32)

    verbs: list[Any] = [
        add, add, claim, claim,
        lambda: board.heartbeat(id_ := chance.choice(ids), of(id_), progress=chance.randrange(101), note="on it"),
        lambda: board.complete(id_ := chance.choice(ids), of(id_), result={"n": chance.random()}, artifacts=["a.txt"]),
        lambda: board.fail(id_ := chance.choice(ids), of(id_), "no luck", no_retry=chance.random() < 0.3),
        lambda: board.release(id_ := chance.choice(ids), of(id_), note="later"),
        lambda: board.handoff(id_ := chance.choice(ids), of(id_), "zoe", note="yours"),
        lambda: board.resume(chance.choice(ids), "ada"),
        lambda: board.approve(chance.choice(ids)),
        lambda: board.reject(chance.choice(ids), note="again"),
        lambda: board.reassign(chance.choice(ids), chance.choice(["bob", None])),
        lambda: board.retry(chance.choice(ids)),
        lambda: board.cancel(chance.choice(ids)),
        lambda: board.comment(chance.choice(ids), "what is this?"),
        lambda: board.update(chance.choice(ids), title="new", add_tags=["t"], body="b", priority=1, params={"x": None}),
        lambda: board.update(chance.choice(ids), add_depends_on=[chance.choice(ids)]),
        lambda: board.archive("10m"),
        lambda: board.unarchive(chance.choice(ids)),
        lambda: clock.advance(minutes=chance.randrange(12)),
        board.tick,
    ]  # fmt: skip
    add()
    for _ in range(steps):
        try:
            chance.choice(verbs)()
        except BoardError as error:
            if error.code not in ("conflict", "lease_lost", "not_permitted"):
                raise
    clock.advance(days=2)
    board.tick()
    for _ in range(3):
        claim()
    return board


def without_leases(document: Document, now: str) -> Document:
    """Return a document as it is once every lease in it has ended."""
    expected: Document = json.loads(json.dumps(document))
    for task in expected["tasks"]:
        if task["status"] in LEASED:
            nothing = dict.fromkeys(("claimed_by", "claimed_at", "lease_expires_at", "progress"))
            task |= {"status": "queued", **nothing, "lease_expired": False}
            task["attempts"] = min(task["attempts"], task["max_attempts"] - 1)
            task["ready"] = not task["delayed"]  # its dependencies were done when it was claimed
            task["blocked"] = None
    for attempt in expected["attempts"]:
        if attempt["outcome"] is None:
            attempt |= {"outcome": "revoked", "ended_at": now}
    return expected


def history_before_imports(document: Document, imports: int) -> list[Any]:
    """Return the events without those of the latest imports."""
    events: list[Any] = document["events"]
    count = len(document["tasks"]) * imports
    assert all(event["kind"] == "imported" for event in events[len(events) - count :])
    return events[: len(events) - count]


@pytest.mark.parametrize("seed", range(8))
def test_copy_of_a_board_is_equal_except_for_ended_leases(tmp_path: Path, clock: Clock, seed: int) -> None:
    board = used_board(tmp_path / "one", clock, seed)
    first = export(board)
    assert any(task["status"] in LEASED for task in first["tasks"])
    copy, second_copy = open_board(tmp_path / "two", clock), open_board(tmp_path / "three", clock)
    done = import_document(copy, first)
    assert moved(done.to_dict()) == (len(first["tasks"]), 0)
    assert done.warnings == []

    second = export(copy)
    now = everything(copy)["event"][-1][5]
    expected = without_leases(first, now)
    for task, there in zip(expected["tasks"], second["tasks"], strict=True):
        if task["blocked"] is None:
            task |= {key: there[key] for key in ("blocked", "ready")}
    assert second["tasks"] == expected["tasks"]
    assert history_before_imports(second, 1) == first["events"]
    assert {**second, "tasks": 0, "events": 0} == {**expected, "tasks": 0, "events": 0}

    import_document(second_copy, second)
    third = export(second_copy)
    assert history_before_imports(third, 1) == second["events"]
    assert {**third, "events": 0} == {**second, "events": 0}

    for there in (board, copy, second_copy):
        assert [finding for finding in there.doctor()["findings"] if finding["level"] == "error"] == []
        there.close()


def test_agents_of_a_copy_have_the_same_numbers(tmp_path: Path, clock: Clock) -> None:
    board, copy = used_board(tmp_path / "one", clock, 3), open_board(tmp_path / "two", clock)
    import_document(copy, export(board))
    here, there = (
        {agent["name"]: [agent["completed"], agent["failed"], agent["expired"]] for agent in one.agents()}
        for one in (board, copy)
    )
    assert there == {name: numbers for name, numbers in here.items() if name in there}
    assert {name for name, numbers in here.items() if any(numbers)} <= set(there)
    assert all(agent["first_seen_at"] <= (agent["last_seen_at"] or "9") for agent in copy.agents())
    assert copy.stats()["by_status"].keys() == board.stats()["by_status"].keys()
    assert copy.stats()["archived"] == board.stats()["archived"]


def test_no_lease_token_is_in_an_export(board: Board) -> None:
    held = bring_to(board, "running")
    board.complete(held.id, held.token)
    again = bring_to(board, "claimed")
    text = json.dumps(export(board))
    for token in (held.token, again.token):
        assert token not in text
    assert "token" not in text
    assert not {row[7] for row in everything(board)["attempt"]} & set(text.split('"'))


def test_a_copy_can_be_worked_on(tmp_path: Path, clock: Clock) -> None:
    board, copy = open_board(tmp_path / "one", clock), open_board(tmp_path / "two", clock)
    held = bring_to(board, "running")
    import_document(copy, export(board))
    with refused("lease_lost"):
        copy.complete(held.id, held.token)
    details = copy.show(held.id)
    assert [attempt["outcome"] for attempt in details["attempts"]] == ["revoked"]
    event = last_event(copy, held.id)
    assert event["data"]["attempt"] == 1
    assert event["data"]["changes"] == {
        "status": {"from": "running", "to": "queued"},
        "claimed_by": {"from": "ada", "to": None},
    }
    again = hold(copy, "bob")
    assert (again.task.fence, copy.show(held.id)["attempts"][-1]["number"]) == (2, 2)
    copy.complete(again.id, again.token)
    assert copy.doctor()["healthy"]


# What belongs to a task


def whole(**more: Any) -> Document:
    """Return a document with one finished task and everything that belongs to it."""
    return {
        "tasks": [
            {"id": A, "title": "t", "status": "done", "attempts": 1, "fence": 1, "claimed_by": "ada", "claimed_at": AT,
             "finished_at": LATER, "created_by": "maria"},
            {"id": B, "title": "u"},
        ],
        "attempts": [{"task_id": A, "number": 1, "agent": "ada", "fence": 1, "claimed_at": AT, "ended_at": LATER,
                      "outcome": "completed", "result": [1], "error": None, "note": None}],
        "events": [{"task_id": A, "kind": "created", "actor": "maria", "actor_kind": "human", "at": AT,
                    "data": {"changes": {"title": {"from": None, "to": "t"}}}}],
        **more,
    }  # fmt: skip


def attempt(**fields: Any) -> Document:
    return {"attempts": [{**whole()["attempts"][0], **fields}]}


def event(**fields: Any) -> Document:
    return {"events": [{**whole()["events"][0], **fields}]}


def comment(**fields: Any) -> Document:
    return {"comments": [{"task_id": A, "actor": "eve", "actor_kind": "human", "at": AT, "text": "hi", **fields}]}


def schedule(**fields: Any) -> Document:
    return {
        "id": C, "name": "daily", "cron": "0 9 * * *", "zone": "UTC", "task": {"title": "x"}, "catch_up": None,
        "paused": False, "next_at": LATER, "last_at": AT, "made": 1, "created_by": "maria", "created_at": AT,
        "updated_at": AT, **fields,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("more", "place", "field"),
    [
        ({"attempts": {}}, None, "attempts"),
        ({"attempts": [5]}, "attempts[0]", None),
        (attempt(task_id=C), "attempts[0]", "task_id"),
        (attempt(task_id="x"), "attempts[0]", "task_id"),
        (attempt(task_id=None), "attempts[0]", "task_id"),
        (attempt(number=0), "attempts[0]", "number"),
        (attempt(number=None), "attempts[0]", "number"),
        (attempt(agent="none"), "attempts[0]", "agent"),
        (attempt(fence="1"), "attempts[0]", "fence"),
        (attempt(claimed_at=None), "attempts[0]", "claimed_at"),
        (attempt(claimed_at="then"), "attempts[0]", "claimed_at"),
        (attempt(ended_at=None), "attempts[0]", "outcome"),
        (attempt(outcome="won"), "attempts[0]", "outcome"),
        (attempt(token="x"), "attempts[0]", "token"),
        (attempt(note=5), "attempts[0]", "note"),
        ({"attempts": whole()["attempts"] * 2}, "attempts[1]", "number"),
        (
            {"attempts": [{**whole()["attempts"][0], "number": n, "outcome": None, "ended_at": None} for n in (1, 2)]},
            "attempts[1]",
            "number",
        ),
        (
            {"attempts": [whole()["attempts"][0], {**whole()["attempts"][0], "number": 2}]},
            "attempts[1]",
            "fence",
        ),
        ({"events": None}, None, "events"),
        ({"events": ["x"]}, "events[0]", None),
        (event(task_id=C), "events[0]", "task_id"),
        (event(kind="exploded"), "events[0]", "kind"),
        (event(kind=None), "events[0]", "kind"),
        (event(actor=""), "events[0]", "actor"),
        (event(actor_kind="robot"), "events[0]", "actor_kind"),
        (event(at=None), "events[0]", "at"),
        (event(data=None), "events[0]", "data"),
        (event(data={"changes": []}), "events[0]", "data"),
        (event(data={"changes": {"title": 1}}), "events[0]", "data"),
        (event(data={"changes": {"title": {"to": 1}}}), "events[0]", "data"),
        (event(kind="commented", data={}), "events[0]", "text"),
        (event(secret=1), "events[0]", "secret"),
        (comment(text=""), "comments[0]", "text"),
        (comment(actor_kind=None), "comments[0]", "actor_kind"),
        ({"archived": [{"task_id": B, "archived_at": AT}]}, "archived[0]", "task_id"),
        ({"archived": [{"task_id": C, "archived_at": AT}]}, "archived[0]", "task_id"),
        ({"archived": [{"task_id": A}]}, "archived[0]", "archived_at"),
        ({"archived": [A]}, "archived[0]", None),
        ({"schedules": [schedule(cron="0 9 * *")]}, "schedules[0]", "cron"),
        ({"schedules": [schedule(zone="Mars")]}, "schedules[0]", "timezone"),
        ({"schedules": [schedule(task={"colour": 1})]}, "schedules[0]", "task"),
        ({"schedules": [schedule(name="")]}, "schedules[0]", "name"),
        ({"schedules": [schedule(id="x")]}, "schedules[0]", "id"),
        ({"schedules": [schedule(next_at=AT)]}, "schedules[0]", "next_at"),
        ({"schedules": [schedule(catch_up=0)]}, "schedules[0]", "catch_up"),
        ({"schedules": [schedule(paused="no")]}, "schedules[0]", "paused"),
        ({"schedules": [schedule(), schedule(id=B, name="DAILY")]}, "schedules[1]", "name"),
        ({"format": "something else"}, None, "format"),
        ({"version": 2}, None, "version"),
        ({"version": True}, None, "version"),
    ],
)
def test_malformed_element_is_named_and_nothing_is_imported(
    board: Board, more: Document, place: str | None, field: str | None
) -> None:
    board.add("there already")
    before = everything(board)
    for data in (io.BytesIO(json.dumps(whole(**more)).encode()), whole(**more)):
        with refused("invalid_input") as caught:
            board.import_tasks(data)
        assert caught.value.details.get("place") == place
        assert caught.value.details["field"] == field
        assert everything(board) == before


def test_events_of_a_file_are_kept_and_the_imported_event_has_the_rest(board: Board) -> None:
    import_document(board, whole())
    assert kinds(board, A) == ["created", "imported"]
    assert kinds(board, B) == ["imported"]
    changes = last_event(board, A)["data"]["changes"]
    assert "title" not in changes
    assert changes["status"] == {"from": None, "to": "done"}
    assert board.show(A)["attempts"][0]["result"] == [1]
    assert board.doctor()["healthy"]


def test_fence_of_a_task_is_raised_to_that_of_its_latest_attempt(board: Board) -> None:
    import_document(board, whole(**attempt(fence=7)))
    assert board.show(A)["task"]["fence"] == 7
    assert last_event(board, A)["data"]["changes"]["fence"] == {"from": 0, "to": 7}
    assert board.doctor()["healthy"]


def test_members_of_a_file_may_stand_in_any_order(board: Board) -> None:
    document = dict(reversed(whole(archived=[{"task_id": A, "archived_at": LATER}], schedules=[schedule()]).items()))
    assert moved(import_document(board, document).to_dict()) == (2, 0)
    assert board.show(A)["archived_at"] == LATER
    assert kinds(board, A) == ["created", "imported"]
    assert [one["name"] for one in board.schedules()] == ["daily"]
    assert board.doctor()["healthy"]


def test_comments_without_a_history_become_events(board: Board) -> None:
    document = {key: value for key, value in whole(**comment()).items() if key != "events"}
    import_document(board, document)
    assert kinds(board, A) == ["commented", "imported"]
    assert board.show(A)["comments"][0]["data"] == {"text": "hi"}


def test_comments_next_to_a_history_are_ignored(board: Board) -> None:
    import_document(board, whole(**comment()))
    assert board.show(A)["comments"] == []


def test_what_belongs_to_a_skipped_task_is_skipped_with_it(board: Board) -> None:
    board.import_tasks([{"id": A, "title": "mine"}])
    before = everything(board)
    assert moved(import_document(board, whole(**comment())).to_dict()) == (1, 1)
    after = everything(board)
    assert after["attempt"] == before["attempt"]
    assert kinds(board, A) == ["imported"]
    assert [agent["name"] for agent in board.agents()] == []


def test_an_existing_occurrence_is_skipped(board: Board) -> None:
    one = {"title": "t", "schedule_id": "s", "occurrence_at": AT}
    board.import_tasks([{**one, "id": A, "status": "done"}])
    done = board.import_tasks([{**one, "id": B}, {"title": "u", "id": C, "blocked_by": [B]}, {**one, "title": "again"}])
    assert moved(done.to_dict()) == (1, 2)
    assert board.show(C)["task"]["blocked_by"] == [A]
    assert len(done.warnings) == 2


def test_an_existing_schedule_is_skipped_with_a_warning(board: Board) -> None:
    board.add_schedule("DAILY", cron="0 9 * * *", zone="UTC", task={"title": "x"})
    before = everything(board)["schedule"]
    done = import_document(board, {"tasks": [], "schedules": [schedule(), schedule(id=B, name="weekly", paused=True)]})
    assert len(done.warnings) == 1
    assert [one["name"] for one in board.schedules()] == ["DAILY", "weekly"]
    assert before[0] in everything(board)["schedule"]
    assert board.schedule("weekly")["paused"] is True


def test_an_unknown_member_is_ignored_with_a_warning(board: Board) -> None:
    done = import_document(board, {"tasks": [{"title": "t"}], "event": []})
    assert done.imported == 1
    assert len(done.warnings) == 1
    assert "event" in done.warnings[0]


def test_names_are_those_that_the_board_knows_and_the_history_says_so(board: Board) -> None:
    bring_to(board, "claimed", agent="ADA")
    import_document(board, whole())
    assert board.show(A)["task"]["claimed_by"] == "ADA"
    assert board.show(A)["attempts"][0]["agent"] == "ADA"
    assert last_event(board, A)["data"]["changes"]["claimed_by"] == {"from": None, "to": "ADA"}
    assert board.doctor()["healthy"]


def test_damaged_history_is_corrected_by_the_imported_event(board: Board) -> None:
    import_document(board, whole(**event(data={"changes": {"status": {"from": "failed", "to": "running"}}})))
    assert last_event(board, A)["data"]["changes"]["status"] == {"from": "running", "to": "done"}
    assert board.doctor()["healthy"]


def test_new_id_never_collides_with_an_existing_one(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    board.import_tasks([{"id": A, "title": "there"}])
    fresh = iter([A, B])
    monkeypatch.setattr(board, "new_id", lambda: next(fresh))
    assert moved(board.import_tasks([{"title": "new"}]).to_dict()) == (1, 0)
    assert board.show(B)["task"]["title"] == "new"


# Dry run


def test_dry_run_answers_like_an_import_and_writes_nothing(tmp_path: Path, clock: Clock) -> None:
    board = used_board(tmp_path / "one", clock, 5)
    document = export(board)
    copy = open_board(tmp_path / "two", clock)
    there = copy.add("there").task.id
    copy.import_tasks([{"id": document["tasks"][0]["id"], "title": "taken"}])
    before = everything(copy)
    tried = import_document(copy, document, dry_run=True)
    assert everything(copy) == before
    imported = import_document(copy, document)
    assert tried.to_dict() == {**imported.to_dict(), "dry_run": True}
    assert tried.warnings == imported.warnings
    with refused("invalid_input"):
        copy.import_tasks([{"title": "x", "blocked_by": [A, there]}], dry_run=True)


@pytest.mark.parametrize("dry_run", [True, False])
def test_neither_a_dry_run_nor_a_refused_file_creates_a_board(tmp_path: Path, *, dry_run: bool) -> None:
    board = open_board(tmp_path / "data")
    for tasks in ([{"title": ""}], [{"title": "x", "blocked_by": [A]}], [{"title": "x", "id": A, "blocked_by": [A]}]):
        with refused("invalid_input"):
            board.import_tasks(tasks, dry_run=dry_run)
    if dry_run:
        assert board.import_tasks([{"title": "x"}], dry_run=True).imported == 1
        assert board.is_missing
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_in_the_connection(board: Board) -> None:
    board.import_tasks([{"title": "x"}])
    with refused("invalid_input"):
        board.import_tasks([{"title": ""}])
    with board.database.read() as tx:
        assert tx.execute("SELECT count(*) FROM sqlite_temp_schema").fetchone()[0] == 0


# Many tasks


def many(count: int) -> Document:
    """Return a document with so many tasks and five events of each."""
    ids = [f"01ARZ3NDEKTSV4RRFFQ6{number:06}" for number in range(count)]
    return {
        "tasks": [
            {"id": id_, "title": f"t{number}", "body": "b" * 200, "blocked_by": ids[max(number - 1, 0) : number]}
            for number, id_ in enumerate(ids)
        ],
        "events": [
            {"task_id": id_, "kind": "updated", "actor": "maria", "actor_kind": "human", "at": AT,
             "data": {"changes": {"title": {"from": f"v{turn - 1}" if turn else None, "to": f"v{turn}"}}}}
            for turn in range(5)
            for id_ in ids
        ],
    }  # fmt: skip


WORKER = """
import sys
from agent_task_board import Board
board = Board(sys.argv[1])
with open(sys.argv[2], "rb") as file:
    print(board.import_tasks(file).to_dict())
print(board.export(sys.argv[3]))
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def memory_of_a_round(place: Path, count: int) -> int:
    """Let a process import and export so many tasks; return the most memory that it had, in KiB."""
    file, out = place / f"{count}.json", place / f"{count}.out"
    file.write_text(json.dumps(many(count)))
    done = subprocess.run(
        [sys.executable, "-c", WORKER, str(place / f"board{count}"), str(file), str(out)],
        capture_output=True, text=True, timeout=1_200,
        env={**os.environ, "LOGNAME": "carla"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"'imported': {count}, 'updated': 0, 'skipped': 0" in done.stdout
    assert out.stat().st_size > file.stat().st_size
    return int(done.stdout.splitlines()[-1])


ON_LINUX = pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="nothing tells how much memory was used")


@ON_LINUX
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    small, large = memory_of_a_round(tmp_path, 200), memory_of_a_round(tmp_path, 4_000)
    # The file alone is 5 MB, and its objects are ten times that; 6 MB more of the board may be kept for the copying.
    assert large < small + 18 * 1024


LARGE_ROWS = """
import io, sys
from agent_task_board import Board
board = Board(sys.argv[1])
for number in range(int(sys.argv[2])):
    board.add("t", params={"x": "x" * 1_000_000})
with open("/dev/null", "wb") as out:
    board.export(out)
    board.export(out, file_format="csv")
board.export(sys.argv[3])
with open(sys.argv[3], "rb") as file:
    Board(sys.argv[1] + "-copy").import_tasks(file)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@ON_LINUX
def test_memory_does_not_grow_with_the_size_of_the_rows(tmp_path: Path) -> None:
    peaks = []
    for count in (4, 60):
        done = subprocess.run(
            [sys.executable, "-c", LARGE_ROWS, str(tmp_path / f"board{count}"), str(count), str(tmp_path / "out")],
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout))
    assert peaks[1] < peaks[0] + 16 * 1024  # sixty rows have 60 MB


@pytest.mark.soak
@ON_LINUX
def test_a_hundred_thousand_tasks_go_in_and_out_in_bounded_memory(tmp_path: Path) -> None:
    assert memory_of_a_round(tmp_path, 100_000) < 200 * 1024


def test_agents_go_on_claiming_while_a_file_is_read(tmp_path: Path) -> None:
    """The file waits for a claim in its middle: were the board locked, there would be none."""
    board = open_board(tmp_path / "data")
    first = board.add("first").task.id
    claimed = threading.Event()

    class File:
        pieces = iter([b'[{"title": "one"},', b'{"title": "two"}]', b""])
        asked = 0

        def read(self, size: int, /) -> bytes:
            self.asked += 1
            if self.asked == 2:
                thread = threading.Thread(target=claim)
                thread.start()
                assert claimed.wait(60)
                thread.join()
            return next(self.pieces)

    def claim() -> None:
        with Board(str(tmp_path / "data"), actor=Actor("ada", "agent")) as other:
            grant = other.claim("ada")
            assert grant is not None
            assert grant.task.id == first
        claimed.set()

    assert board.import_tasks(File()).imported == 2
    board.close()


def test_a_key_taken_while_the_file_was_read_is_respected(tmp_path: Path) -> None:
    board, other = open_board(tmp_path / "data"), open_board(tmp_path / "data")
    board.add("first")

    class File:
        pieces = iter([b'[{"title": "one", "dedupe_key": "k"},', b'{"title": "two"}]', b""])

        def read(self, size: int, /) -> bytes:
            piece = next(self.pieces)
            if b"two" in piece:
                other.add("quicker", dedupe_key="k")
            return piece

    assert moved(board.import_tasks(File()).to_dict()) == (1, 1)
