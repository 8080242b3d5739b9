"""How work and memory grow: no query scans a table once per row of another one, and no answer outgrows its limit.

Every statement that these run is explained when it first runs, and the instructions of SQLite's virtual machine are
counted: with twice the tasks there may be about twice as many.
"""

from __future__ import annotations

import io
import json
import re
import sqlite3
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Board
from agent_task_board.board import queries, snapshot
from agent_task_board.storage import db
from tests.old_boards import turn_into_schema_1
from tests.support import MARIA, refused

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FEW, MANY = 600, 1_200
"""Tasks of the two runs that are compared. Larger numbers do not change a plan: SQLite has no statistics of a board."""
INSTRUCTIONS = 25
"""Instructions of the virtual machine between two counts."""
GROWTH = 2.6
"""How much more work twice the tasks may be; a loop in a loop is four times as much."""
SMALL = {"board", "sqlite_schema", "sqlite_master"}
"""Tables that have few rows on any board."""
CHECKS_OF_REFERENCES = {"agent": "SCAN attempt", "task": "SCAN request"}
"""Scans that are in the plan of an INSERT of several rows, but run only while a foreign key is violated."""
AT = "2026-11-30T00:00:00.000+00:00"
LATER = "2026-11-30T00:10:00.000+00:00"


class Statements:
    """The statements that ran: how often, their plans, and how much work they were."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()
        self.plans: dict[str, list[tuple[int, int, str]]] = {}
        self.work = 0

    def count_work(self) -> int:
        self.work += 1
        return 0

    def record(self, connection: sqlite3.Connection, sql: str, parameters: Any) -> None:
        self.runs[sql] += 1
        if sql not in self.plans and sql.split(maxsplit=1)[0] in ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH"):
            found = sqlite3.Connection.execute(connection, f"EXPLAIN QUERY PLAN {sql}", parameters)
            self.plans[sql] = [(row[0], row[1], row[3]) for row in found.fetchall()]


class Recorder:
    """Where every connection records what it runs."""

    def __init__(self) -> None:
        self.statements = Statements()

    def count_work(self) -> int:
        return self.statements.count_work()


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """Record what every connection that is opened from now on runs."""
    recorder = Recorder()

    class Recorded(sqlite3.Connection):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            super().set_progress_handler(recorder.count_work, INSTRUCTIONS)

        def set_progress_handler(self, *_: Any) -> None:
            """Go on counting where the board would set its own limit of work."""

        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            recorder.statements.record(self, sql, parameters)
            return super().execute(sql, parameters)

        def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
            rows = list(parameters)
            if rows:
                recorder.statements.record(self, sql, rows[0])
            return super().executemany(sql, rows)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **options: connect(*given, **options, factory=Recorded))
    return recorder


def document(count: int, *, cycle: bool = False) -> io.BytesIO:
    """Return a file with so many tasks, of every kind, and what belongs to them."""
    ids = [f"01ARZ3NDEKTSV4RRFFQ6{number:06}" for number in range(count)]
    tasks: list[dict[str, Any]] = []
    for number, id_ in enumerate(ids):
        at = f"2026-11-30T00:{number // 60 % 60:02}:{number % 60:02}Z"
        task = {"id": id_, "title": f"t{number}", "dedupe_key": f"k{number}", "assignee": f"agent {number}",
                "schedule_id": "s", "occurrence_at": at}  # fmt: skip
        before = ids[number - 1] if number or cycle else None
        tasks.append({**task, "blocked_by": [] if before is None else [before]})
        if number % 3 == 0 and not cycle:
            tasks[-1] |= {"status": "done", "finished_at": AT, "claimed_by": f"agent {number}", "claimed_at": AT}
        if number % 7 == 0:
            tasks.append({"title": "without an id"})
            tasks.append({**task, "id": f"01ARZ3NDEKTSV4RRFFQ7{number:06}", "title": "the same key"})
            tasks.append({"title": "waits for it", "blocked_by": [f"01ARZ3NDEKTSV4RRFFQ7{number:06}"]})
    done = [task["id"] for task in tasks if task.get("status") == "done"]
    attempts = [
        {"task_id": id_, "number": 1, "agent": f"agent {number}", "fence": 1, "claimed_at": AT, "ended_at": LATER,
         "outcome": "completed"}
        for number, id_ in enumerate(done)
    ]  # fmt: skip
    events = [
        {"task_id": id_, "kind": "updated", "actor": "maria", "actor_kind": "human", "at": AT,
         "data": {"changes": {"priority": {"from": 0, "to": turn}}}}
        for id_ in ids
        for turn in (1, 2)
    ]  # fmt: skip
    schedules = [
        {"id": f"01ARZ3NDEKTSV4RRFFQ8{number:06}", "name": f"s{number}", "cron": "0 9 * * *", "zone": "UTC",
         "task": {"title": "x"}}
        for number in range(count // 20)
    ]  # fmt: skip
    archived = [{"task_id": id_, "archived_at": LATER} for id_ in done[::2]]
    whole = {"tasks": tasks, "attempts": attempts, "events": events, "schedules": schedules, "archived": archived}
    return io.BytesIO(json.dumps(whole).encode())


def filled(place: Path, count: int) -> Board:
    board = Board(str(place), actor=MARIA)
    board.import_tasks(document(count))
    return board


def run_import(place: Path, count: int) -> Callable[[], object]:
    board = Board(str(place), actor=MARIA)
    board.add("there", assignee="AGENT 1")
    return lambda: board.import_tasks(document(count))


def run_import_into_nothing(place: Path, count: int) -> Callable[[], object]:
    return lambda: Board(str(place), actor=MARIA).import_tasks(document(count))


def run_import_again(place: Path, count: int) -> Callable[[], object]:
    board = filled(place, count)

    def run() -> None:
        outcome = board.import_tasks(document(count))
        assert outcome.skipped > count

    return run


def run_import_by_key(place: Path, count: int) -> Callable[[], object]:
    """Import tasks whose dedupe keys other tasks of the board have, each with a task that waits for it."""
    board = Board(str(place), actor=MARIA)
    board.import_tasks([{"title": "t", "dedupe_key": f"k{number}"} for number in range(count)])
    ids = [f"01ARZ3NDEKTSV4RRFFQ6{number:06}" for number in range(count)]
    tasks: list[dict[str, Any]] = [{"id": id_, "title": "t", "dedupe_key": f"k{n}"} for n, id_ in enumerate(ids)]
    tasks += [{"title": "waits", "blocked_by": [id_]} for id_ in ids]

    def run() -> None:
        outcome = board.import_tasks(tasks)
        assert (outcome.imported, outcome.skipped) == (count, count)

    return run


def run_import_of_a_cycle(place: Path, count: int) -> Callable[[], object]:
    board = Board(str(place), actor=MARIA)
    board.add("there")

    def run() -> None:
        with refused("invalid_input") as caught:
            board.import_tasks(document(count, cycle=True))
        assert caught.value.details["field"] == "blocked_by"
        assert len(caught.value.message) < 1_000

    return run


def run_update_into_a_cycle(place: Path, count: int) -> Callable[[], object]:
    board = Board(str(place), actor=MARIA)
    ids = [f"01ARZ3NDEKTSV4RRFFQ6{number:06}" for number in range(count)]
    board.import_tasks(
        [{"id": id_, "title": "t", "blocked_by": ids[n - 1 : n] if n else []} for n, id_ in enumerate(ids)]
    )

    def run() -> None:
        with refused("conflict", "cycle") as caught:
            board.update(ids[0], add_depends_on=[ids[-1]])
        assert len(json.dumps(caught.value.to_dict())) < 1_500
        assert caught.value.details["more"] == count - 12

    return run


def run_export(place: Path, count: int) -> Callable[[], object]:
    board = filled(place, count)
    return lambda: [board.export(io.BytesIO()), board.export(io.BytesIO(), file_format="csv")]


def run_archive(place: Path, count: int) -> Callable[[], object]:
    board = filled(place, count)
    board.import_tasks([{"title": "old", "status": "done", "finished_at": AT, "updated_at": AT}] * count * 2)

    def run() -> None:
        assert board.archive("1m", dry_run=True)["archived"] > count
        assert board.archive("1m")["archived"] > count

    return run


def run_doctor(place: Path, count: int) -> Callable[[], object]:
    board = filled(place, count)

    def run() -> None:
        assert [finding for finding in board.doctor()["findings"] if finding["level"] == "error"] == []
        with board.database.write() as tx:
            tx.execute("UPDATE tally SET tasks = tasks + 1")
            tx.execute("UPDATE task SET open_dependencies = open_dependencies + 1 WHERE seq % 2")
        assert not board.doctor()["healthy"]
        assert board.doctor(fix="counters")["healthy"]

    return run


def run_migration(place: Path, count: int) -> Callable[[], object]:
    filled(place, count).close()
    turn_into_schema_1(place)
    return lambda: Board(str(place), actor=MARIA).tick()


RUNS = (
    run_import,
    run_import_into_nothing,
    run_import_again,
    run_import_by_key,
    run_import_of_a_cycle,
    run_update_into_a_cycle,
    run_export,
    run_archive,
    run_doctor,
    run_migration,
)


def measure(
    recorder: Recorder, run: Callable[[Path, int], Callable[[], object]], place: Path, count: int
) -> Statements:
    """Run something for so many tasks; return what it ran."""
    act = run(place, count)
    recorder.statements = found = Statements()
    act()
    recorder.statements = Statements()
    return found


def repeated_scans(plan: list[tuple[int, int, str]], *, is_repeated: bool) -> list[str]:
    """Return the steps of a plan that read a whole table once per row of something else."""
    details = {id_: (parent, detail) for id_, parent, detail in plan}
    loops: set[int] = set()
    found = []
    streamed = {detail.removeprefix("CO-ROUTINE ") for _, _, detail in plan if detail.startswith("CO-ROUTINE")}
    for _, parent, detail in plan:
        scan = re.match(r"SCAN (?!CONSTANT ROW)(\S+)", detail)
        inside, above = is_repeated or parent in loops, parent
        while above in details:
            above, around = details[above]
            inside = inside or around.startswith("CORRELATED")
        if scan and inside and scan[1] not in SMALL | streamed and "VIRTUAL TABLE" not in detail:
            found.append(detail)
        if detail.startswith(("SCAN", "SEARCH")):
            loops.add(parent)
    return found


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.__name__.removeprefix("run_"))
def test_no_work_grows_with_the_square_of_the_tasks(
    recorder: Recorder, tmp_path: Path, run: Callable[[Path, int], Callable[[], object]]
) -> None:
    few = measure(recorder, run, tmp_path / "few", FEW)
    many = measure(recorder, run, tmp_path / "many", MANY)
    assert few.work > 100, "nothing was counted"
    assert many.plans
    # A statement that runs once per task must not read a whole table; one that runs once may.
    growing = {sql for sql, runs in many.runs.items() if runs > few.runs[sql] + 2}
    scans = {}
    for sql, plan in many.plans.items():
        into = re.match(r"\s*INSERT INTO (\w+)", sql)
        unused = CHECKS_OF_REFERENCES.get(into[1]) if into else None
        found = [scan for scan in repeated_scans(plan, is_repeated=sql in growing) if scan != unused]
        if found:
            scans[" ".join(sql.split())] = found
    assert scans == {}
    too_often = {
        " ".join(sql.split()): (few.runs[sql], runs)
        for sql, runs in many.runs.items()
        if runs > GROWTH * few.runs[sql] + 10
    }
    assert too_often == {}
    assert many.work < GROWTH * few.work, (few.work, many.work)


def test_triggers_read_no_whole_table(tmp_path: Path) -> None:
    board = filled(tmp_path / "data", 10)
    checked = 0
    with board.database.read() as tx:
        for name, sql in tx.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            body = sql[re.search(r"\bBEGIN\b", sql).end() : sql.rindex("END")]  # type: ignore[union-attr]
            parts = [*db.split_statements(body)]
            condition = re.search(r"\bWHEN\b(.*?)\bBEGIN\b", sql, re.DOTALL)
            parts += [f"SELECT {condition[1]}"] if condition else []
            for part in parts:
                if part.strip(" \n;"):
                    if "raise(" in part:
                        continue
                    statement = re.sub(r"\b(?:NEW|OLD)\.\w+", "?", part)
                    plan = tx.execute(f"EXPLAIN QUERY PLAN {statement}", [None] * statement.count("?")).fetchall()
                    rows = [(row[0], row[1], row[3]) for row in plan]
                    assert repeated_scans(rows, is_repeated=True) == [], (name, statement)
                    checked += 1
    assert checked > 10


# Answers


def test_list_of_long_tasks_is_cut_into_pages_that_together_hold_all(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        board.add(f"t{number}", body="x" * 1_000, priority=number % 3)
    monkeypatch.setattr(queries, "PAGE_SIZE", 2_500)
    for order in ("age", "priority"):
        expected = [task.id for task in board.list_tasks(order=order).tasks]
        after: str | None = None
        found: list[str] = []
        sizes: list[int] = []
        while not sizes or after:
            page = board.list_tasks(order=order, full=True, after=after)
            found += [task.id for task in page.tasks]
            sizes.append(len(page.tasks))
            after = page.next
        assert (found, sizes) == (expected, [3, 3, 3, 3])
    assert len(board.list_tasks(full=True, limit=2).tasks) == 2
    assert len(board.list_tasks().tasks) == 12


def test_pages_of_long_events_hold_all_in_both_directions(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    task = board.add("t").task.id
    for _ in range(7):
        board.comment(task, "x" * 1_000)
    everything = board.events()["events"]
    monkeypatch.setattr(queries, "PAGE_SIZE", 2_500)
    found, after = [], 0
    while (page := board.events(after=after))["events"]:
        assert len(page["events"]) <= 4
        found += page["events"]
        after = page["next"]
    assert found == everything
    back, before = [], 0
    while True:
        page = board.events(before=before)
        back += page["events"]
        before = page["next"]
        if not before:
            break
    assert back == everything[::-1]


def test_snapshot_of_long_tasks_is_truncated_and_shows_those_at_work(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        board.add(f"t{number}", tags=[f"{number}-{tag}" for tag in range(10)])
    last = board.add("the last").task.id
    board.claim("ada", task=last)
    whole = json.loads(board.snapshot().text)
    assert not whole["truncated"]
    monkeypatch.setattr(snapshot, "SIZE", 5_000)
    board.comment(last, "changes the board")
    cut = json.loads(board.snapshot().text)
    assert cut["truncated"]
    assert 2 < len(cut["tasks"]) < 10
    assert cut["tasks"][0]["id"] == last
    assert cut["counts"] == whole["counts"]


# The check itself


def test_a_scan_in_a_loop_is_found() -> None:
    """Hold the check itself against queries of both kinds."""
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE a (x INTEGER PRIMARY KEY, y)")
        connection.execute("CREATE TABLE b (x INTEGER PRIMARY KEY, y)")

        def scans(sql: str, *, is_repeated: bool = False) -> list[str]:
            plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()
            return repeated_scans([(row[0], row[1], row[3]) for row in plan], is_repeated=is_repeated)

        assert scans("SELECT * FROM a WHERE y = 1") == []
        assert scans("SELECT * FROM a WHERE y = 1", is_repeated=True)
        assert scans("SELECT * FROM a JOIN b ON a.x = b.x") == []
        assert scans("SELECT * FROM a CROSS JOIN b ON a.y < b.y")
        assert scans("SELECT (SELECT y FROM b WHERE b.y = a.y) FROM a")
        assert scans("SELECT (SELECT y FROM b WHERE b.x = a.y) FROM a") == []
        assert scans("SELECT * FROM a WHERE y IN (SELECT y FROM b)") == []
    connection.close()
