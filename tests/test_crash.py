"""Processes killed with SIGKILL at any point of any verb: the board is as before the call, or as after it."""

from __future__ import annotations

import os
import random
import select
import shutil
import signal
import sys
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Board
from agent_task_board.settings import Hooks
from tests.dying import reaper, trace_statements
from tests.processes import Stage, assert_sound, contents, exit_code, in_fork, kill_after, raw
from tests.support import MARIA, Clock, open_board

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Ids = dict[str, str]
TOKEN = "01" * 16
"""Of every lease on the board that the verbs start from."""


def still_board(directory: object, byte: bytes) -> Board:
    """Return a board without chance: its clock stands, its tokens and ids are always the same."""
    clock, number = Clock(), count()
    board = Board(str(directory), actor=MARIA, clock=clock, random=lambda length: byte * length)
    board.new_id = lambda: f"{byte.hex().upper()}{next(number):024}"  # type: ignore[method-assign]
    return board


def lay_out(directory: Path) -> Ids:
    """Make a board with something for every verb, close it, and return the tasks' ids by name."""
    board = still_board(directory, b"\x01")
    clock = board.clock
    assert isinstance(clock, Clock)
    now = clock.now
    clock.advance(minutes=-60)
    archived = board.add("long gone").task.id
    board.cancel(archived)
    board.archive(0)
    ids = {
        "archived": archived,
        "expired": board.add("its holder is gone", claim=True, agent="eve", lease="10m").task.id,
        "delayed": board.add("its time has come", not_before="2026-11-30T00:30:00+00:00", priority=-1).task.id,
        "exhausted": board.add("had its last chance", claim=True, agent="eve", lease="10m", max_attempts=1).task.id,
    }
    ids["repeated"] = board.add("claimed by a call with an id").task.id
    board.claim("ada", task=ids["repeated"], lease="2h", request_id="call-1")
    for name in ("hourly", "paused"):
        board.add_schedule(name, cron="*/20 * * * *", zone="UTC", task={"title": "{occurrence}"}, catch_up=5)
    clock.advance(minutes=30)
    board.pause_schedule("paused")
    clock.now = now
    for name in ("held", "judged", "review", "failed", "cancelled"):
        receipt = board.add(name, claim=True, agent="ada", needs_approval=name in ("judged", "review"))
        ids[name] = receipt.task.id
    board.complete(ids["review"], TOKEN, result={"tests": "green"})
    board.fail(ids["failed"], TOKEN, "no luck", no_retry=True)
    board.cancel(ids["cancelled"])
    ids["ready"] = board.add("ready", dedupe_key="ready", priority=5).task.id
    ids["blocked"] = board.add("waits for the one held", depends_on=[ids["held"]]).task.id
    board.close()
    return ids


def telling(board: Board) -> Board:
    """Switch hooks on."""
    board.settings.hooks = Hooks(command=["true"], webhook="http://127.0.0.1:1/")
    return board


VERBS: dict[str, Callable[[Board, Ids], object]] = {
    "add": lambda board, ids: board.add("new", depends_on=[ids["ready"]], tags=["a"], request_id="call-2"),
    "add and claim": lambda board, ids: board.add("new", claim=True, agent="bob", request_id="call-2"),
    "claim": lambda board, ids: board.claim("bob", request_id="call-2"),
    "claim by id": lambda board, ids: board.claim("bob", task=ids["ready"], comment="mine"),
    "claim again": lambda board, ids: board.claim("ada", task=ids["repeated"], lease="2h", request_id="call-1"),
    "resume": lambda board, ids: board.resume(ids["held"], "ada", lease="1h"),
    "heartbeat": lambda board, ids: board.heartbeat(ids["held"], TOKEN, progress=40, note="half way"),
    "complete": lambda board, ids: board.complete(ids["held"], TOKEN, result={"x": 1}, artifacts=["a.txt"]),
    "complete and tell": lambda board, ids: telling(board).complete(ids["held"], TOKEN),
    "complete for review": lambda board, ids: board.complete(ids["judged"], TOKEN),
    "keep_output": lambda board, ids: board.keep_output(ids["held"], TOKEN, "what the command wrote"),
    "fail": lambda board, ids: board.fail(ids["held"], TOKEN, "no luck"),
    "fail for good": lambda board, ids: board.fail(ids["held"], TOKEN, "no hope", no_retry=True),
    "release": lambda board, ids: board.release(ids["held"], TOKEN, after="5m", note="later"),
    "handoff": lambda board, ids: board.handoff(ids["held"], TOKEN, "zoe", note="yours"),
    "add_lines": lambda board, ids: board.add_lines("one\ntwo\n", depends_on=[ids["ready"]], assignee="zoe"),
    "done": lambda board, ids: board.done(ids["ready"], agent="bob", result={"x": 1}, note="was easy"),
    "approve": lambda board, ids: board.approve(ids["review"], note="good"),
    "reject": lambda board, ids: board.reject(ids["review"], note="not yet"),
    "reassign": lambda board, ids: board.reassign(ids["held"], "zoe"),
    "retry": lambda board, ids: board.retry(ids["failed"]),
    "cancel": lambda board, ids: board.cancel(ids["held"], note="not needed"),
    "update": lambda board, ids: board.update(
        ids["blocked"], title="b", add_depends_on=[ids["ready"]], drop_depends_on=[ids["held"]], comment="changed"
    ),
    "comment": lambda board, ids: board.comment(ids["review"], "what is this?"),
    "add_schedule": lambda board, ids: board.add_schedule("new", cron="0 0 * * *", task={"title": "x"}),
    "pause_schedule": lambda board, ids: board.pause_schedule("hourly"),
    "resume_schedule": lambda board, ids: board.resume_schedule("paused"),
    "remove_schedule": lambda board, ids: board.remove_schedule("hourly"),
    "archive": lambda board, ids: board.archive(0),
    "archive_task": lambda board, ids: board.archive_task(ids["failed"]),
    "unarchive": lambda board, ids: board.unarchive(ids["archived"]),
    "tick": lambda board, ids: board.tick(),
    "import_tasks": lambda board, ids: board.import_tasks(
        [
            {"title": "one", "id": "09" + "0" * 23 + "1"},
            {"title": "two", "blocked_by": ["09" + "0" * 23 + "1"], "assignee": "zoe"},
            {"title": "skipped", "dedupe_key": "ready"},
        ]
    ),
}


STEPWISE = {"tick", "resume_schedule", "import_tasks"}
"""Verbs of several transactions."""


def test_every_verb_that_writes_is_killed_below() -> None:
    reads = {"list_tasks", "show", "events", "agents", "stats", "nothing_ready", "revision", "snapshot"}
    reads |= {"attention", "briefing", "schedules", "schedule", "preview_schedule"}
    reads |= {"named", "count_events", "exists", "is_missing", "created", "path", "close", "leave_thread"}
    reads |= {"wait", "wait_for_person", "why", "why_nothing", "board_id", "migration_notes"}
    reads |= {"backup", "doctor", "export"}  # killed in tests of their own
    reads |= {"read", "write", "caller", "new_id", "new_token", "settings", "back_up_before_migration"}  # of the core
    reads.add("create")  # below, as the creation of a board
    public = {name for name in dir(Board) if not name.startswith("_")}
    assert {name.split()[0] for name in VERBS} == public - reads


# One process for each step of a verb


def run_and_die(step: int, verb: str, directory: str, ids: Ids, told: int) -> None:
    """Run a verb and kill this process just before its step of that number; tell each step begun.

    A step is a statement, also one inside a trigger, or the opening of a file.
    """
    begin = reaper(step, told)

    def opening(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "os.mkdir") and str(arguments[0]).startswith(directory):
            begin(f"{event} {os.path.basename(arguments[0])}")

    trace_statements(begin)
    board = still_board(directory, b"\x02")
    sys.addaudithook(opening)
    VERBS[verb](board, ids)
    begin("return")


def kill_at_every_step(verb: str, base: str | None, places: str, ids: Ids) -> list[list[str]]:
    """Run a verb on copies of a board, killed one step later each time, until it lives to the end.

    Copy ``n`` is in the directory ``n`` of ``places``. Returns the steps that each run did to the end.
    """
    runs: list[list[str]] = []
    for step in count():
        place = os.path.join(places, str(step))
        if base is not None:
            shutil.copytree(base, place)
        ours, theirs = os.pipe()
        code = exit_code(in_fork(lambda: run_and_die(step, verb, place, ids, theirs)))  # noqa: B023
        os.close(theirs)
        with os.fdopen(ours) as pipe:
            begun = pipe.read().splitlines()
        if code == 0:
            runs.append(begun)
            return runs
        assert code == -signal.SIGKILL, (code, begun)
        runs.append(begun[:-1])
    raise AssertionError


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ids]:
    directory = tmp_path_factory.mktemp("crash") / "base"
    return directory, lay_out(directory)


def on_disk(place: Path) -> dict[str, bytes]:
    """Return what a killed process left behind; the shared memory beside the log is made anew by whoever comes next."""
    return {path.name: path.read_bytes() for path in place.iterdir() if not path.name.endswith("-shm")}


def assert_usable(place: Path) -> None:
    """Check that the file is whole and that the next writer is not stopped."""
    board = open_board(place)
    assert board.add("from the next writer").created
    board.close()
    assert_sound(place)


def assert_mended_by_repeating(place: Path, verb: str, ids: Ids, after: dict[str, list[tuple[Any, ...]]]) -> None:
    """Check that a verb of several transactions, killed between two of them, ends as it would have when repeated."""
    board = still_board(place, b"\x03")
    VERBS[verb](board, ids)
    board.close()
    found = contents(place)
    assert {table: len(rows) for table, rows in found.items()} == {table: len(rows) for table, rows in after.items()}


def writes(steps: list[str]) -> int:
    """Count the transactions that were committed after they had changed the board."""
    found, is_open, has_changed = 0, False, False
    for step in steps:
        if step == "BEGIN IMMEDIATE":
            is_open, has_changed = True, False
        elif step == "COMMIT":
            found += is_open and has_changed
            is_open = False
        elif step == "" or step.startswith(("INSERT", "UPDATE", "DELETE")):  # a long statement begins with a new line
            has_changed = True
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_killed_at_any_step_has_happened_wholly_or_not_at_all(
    verb: str, laid_out: tuple[Path, Ids], stage: Stage, tmp_path: Path
) -> None:
    base, ids = laid_out
    runs = stage.call(kill_at_every_step, verb, str(base), str(tmp_path), ids)

    commits = writes(runs[-1])
    assert commits == 1 or (verb in STEPWISE and commits > 1)
    assert len(runs) > 10
    states = [contents(base)] + [{}] * (commits - 1) + [contents(tmp_path / str(len(runs) - 1))]
    assert states[0] != states[-1]
    seen = Counter[int]()
    left: list[tuple[int, dict[str, bytes]]] = []
    for number, done in enumerate(runs):
        place = tmp_path / str(number)
        happened = writes(done)
        seen[happened] += 1
        if (happened, on_disk(place)) in left:
            continue  # byte for byte what an earlier step left, which was looked at
        left.append((happened, on_disk(place)))
        found = contents(place)
        states[happened] = states[happened] or found
        assert found == states[happened], done
        if 0 < happened < commits and verb != "import_tasks":  # a second import adds again what has no id
            assert_mended_by_repeating(place, verb, ids, states[-1])
        assert_usable(place)
    assert seen[0] > 8
    assert len(left) > commits
    assert seen[commits] >= 2  # killed behind the COMMIT, and not killed at all


def nameless(found: dict[str, list[tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    """Leave out the board's id, which is another one each time."""
    return {
        table: [(*row[:2], *row[3:]) for row in rows] if table == "board" else rows for table, rows in found.items()
    }


def test_making_a_board_killed_at_any_step_leaves_a_place_for_it(
    laid_out: tuple[Path, Ids], stage: Stage, tmp_path: Path
) -> None:
    _, ids = laid_out
    runs = stage.call(kill_at_every_step, "add and claim", None, str(tmp_path), ids)

    steps = runs[-1]
    assert steps.count("COMMIT") == 3  # the trial in memory, the schema, then the task
    assert {"os.mkdir", "open tasks.db", "PRAGMA journal_mode = WAL"} <= {
        step if step.startswith(("open", "PRAGMA")) else step.split()[0] for step in steps
    }
    after = nameless(contents(tmp_path / str(len(runs) - 1)))
    for number, done in enumerate(runs):
        place = tmp_path / str(number)
        found = nameless(contents(place))
        match done.count("COMMIT"):
            case 0 | 1:
                assert found == {}, done
            case 2:
                assert set(found) == set(after)
                assert found["task"] == []
                assert found["event"] == []
            case _:
                assert found == after, done
        assert_usable(place)
        with raw(place) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert len(contents(place)["task"]) == 1 + (done.count("COMMIT") == 3)


def import_many(directory: str) -> None:
    open_board(directory).import_tasks([{"title": f"task {number}", "body": "x" * 500} for number in range(5_000)])


def import_and_die(directory: str, told: int) -> None:
    """Import, and tell when the first task is in."""

    def begin(statement: str) -> None:
        if "INSERT INTO task" in statement:
            os.write(told, b".")

    trace_statements(begin)
    import_many(directory)


def kill_during_import(directory: str, after: int) -> int:
    """Kill an import from outside once so many tasks are in; return how its process ended."""
    ours, theirs = os.pipe()
    child = in_fork(lambda: import_and_die(directory, theirs))
    os.close(theirs)
    seen = 0
    while seen < after and (chunk := os.read(ours, after - seen)):
        seen += len(chunk)
    os.kill(child, signal.SIGKILL)
    os.close(ours)
    return exit_code(child)


def test_an_import_that_is_killed_leaves_nothing_of_itself(stage: Stage, tmp_path: Path) -> None:
    board = open_board(tmp_path)
    board.add("first")
    board.close()
    before = contents(tmp_path)
    for after in (1, 500, 2_500, 4_500):  # later ones have begun to spill into the log
        assert stage.call(kill_during_import, str(tmp_path), after) == -signal.SIGKILL
        assert contents(tmp_path) == before
    import_many(str(tmp_path))
    assert len(contents(tmp_path)["task"]) == 5_001
    assert_sound(tmp_path)


def add_and_leave_all_open(directory: str) -> None:
    board = open_board(directory)
    for number in range(20):
        board.add(f"task {number}")


def test_what_was_answered_before_a_kill_is_there_though_nothing_was_closed(tmp_path: Path) -> None:
    kill_after(add_and_leave_all_open, str(tmp_path))
    assert (tmp_path / "tasks.db-wal").stat().st_size > 0
    assert_usable(tmp_path)
    assert len(contents(tmp_path)["task"]) == 21


# Workers killed at random


def work(directory: str, agent: str, told: int) -> None:
    """Claim and complete for ever; tell the id of each task once its completion was answered."""
    board = open_board(directory)
    while True:
        claim = board.claim(agent)
        assert claim is not None
        assert claim.lease is not None
        board.heartbeat(claim.task.id, claim.lease.token)
        board.complete(claim.task.id, claim.lease.token)
        os.write(told, f"{claim.task.id}\n".encode())


def kill_workers_at_random(directory: str, kills: int, seed: int) -> list[str]:
    """Let workers loop and kill one after another, each replaced at once; return every id that was told."""
    chance = random.Random(seed)
    ours, theirs = os.pipe()
    pids: list[int] = []
    told: list[bytes] = []

    def read_on(count: int) -> None:
        for _ in range(count):
            ready, _, _ = select.select([ours], [], [], 60)
            assert ready, "the workers are stopped"
            told.append(os.read(ours, 27))  # a ULID and a line end: a write this short is one piece

    def start() -> None:
        agent = f"worker-{len(told)}-{chance.random()}"
        pids.append(in_fork(lambda: work(directory, agent, theirs)))

    for _ in range(4):
        start()
    for _ in range(kills):
        read_on(chance.randrange(12))
        for _ in range(chance.randrange(3_000)):  # a moment that has nothing to do with what was just told
            pass
        victim = pids.pop(chance.randrange(len(pids)))
        os.kill(victim, signal.SIGKILL)
        assert exit_code(victim) == -signal.SIGKILL
        start()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        exit_code(pid)
    os.close(theirs)
    while chunk := os.read(ours, 27):
        told.append(chunk)
    os.close(ours)
    return [line.decode().strip() for line in told]


def test_no_completion_that_was_answered_is_lost_when_workers_are_killed(stage: Stage, tmp_path: Path) -> None:
    board = open_board(tmp_path)
    board.import_tasks([{"title": f"task {number}"} for number in range(2_000)])
    board.close()

    told = stage.call(kill_workers_at_random, str(tmp_path), 80, 2)

    assert len(told) > 100
    assert len(set(told)) == len(told), "a task was completed twice"
    assert_usable(tmp_path)
    with raw(tmp_path) as connection:
        done = {id_ for (id_,) in connection.execute("SELECT id FROM task WHERE status = 'done'")}
        assert set(told) <= done
        assert len(done - set(told)) <= 84, "more completions than a killed worker can have left untold"
        torn = """
            SELECT count(*) FROM task
             WHERE (status = 'done') <> (SELECT count(*) FROM attempt WHERE task_seq = seq AND outcome = 'completed')
                OR (status = 'done') <> (SELECT count(*) FROM event WHERE task_seq = task.seq AND kind = 'completed')
                OR (status IN ('claimed', 'running'))
                   <> (SELECT count(*) FROM attempt WHERE task_seq = seq AND outcome IS NULL)
                OR attempts <> (SELECT count(*) FROM attempt WHERE task_seq = seq)
                OR fence <> attempts"""
        assert connection.execute(torn).fetchone() == (0,)
        left = connection.execute("SELECT count(*) FROM task WHERE status IN ('claimed', 'running')").fetchone()[0]
        assert left <= 84
