"""A user who may read a board and not write to it: what is read is true, or the answer is ``busy``."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Board, BoardError, Settings
from agent_task_board.errors import Unusable
from agent_task_board.storage import db
from agent_task_board.upkeep import contents
from agent_task_board.upkeep.finding import ERROR
from tests.command_line import program
from tests.processes import Stage, assert_sound, raw
from tests.support import MARIA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOBODY = 65_534
"""A user who owns nothing."""

pytestmark = pytest.mark.skipif(
    not hasattr(os, "getresuid") or os.getuid() != 0, reason="only root can become another user"
)


@pytest.fixture
def place() -> Iterator[Path]:
    """Return a directory that every user can read; those of pytest are for one user alone."""
    path = Path(tempfile.mkdtemp(dir="/tmp"))
    path.chmod(0o755)
    (path / "data").mkdir(mode=0o755)
    (path / "out").mkdir()
    os.chown(path / "out", NOBODY, NOBODY)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def reader() -> Iterator[Stage]:
    """Return a process that belongs to another user, once it has loaded everything it needs."""
    with Stage() as stage:
        yield stage


def write_pairs(directory: str, pairs: int) -> None:
    """Add tasks in pairs, as short commands do: each opens the board and closes it."""
    os.umask(0o022)
    for number in range(pairs):
        with Board(directory, actor=MARIA) as board:
            board.import_tasks([{"title": f"{number} {half}", "body": "x" * 6_000} for half in ("a", "b")])
        Path(directory, "tasks.db").chmod(0o644)


def run_commands_until(directory: str, stop: str) -> int:
    """Import two tasks in one command after the other; return how many commands that were."""
    os.umask(0o022)
    pair = json.dumps([{"title": "task", "body": "x" * 6_000} for _ in range(2)]).encode()
    words = [*program(None), "import", "-", "--data-dir", directory]
    for number in count():
        if os.path.exists(stop):
            return number
        subprocess.run(words, input=pair, capture_output=True, check=True)
    raise AssertionError


def become_nobody(place: str) -> None:
    """Load what reading needs, on a board of its own, then give up every right but that of becoming root again."""
    with Board(os.path.join(place, "warm"), actor=MARIA) as board:
        board.add("task")
        assert read_all(board, os.path.join(place, "out"))["doctor"] == []
    shutil.rmtree(os.path.join(place, "warm"))
    for path in Path(place, "out").iterdir():
        path.unlink()
    os.setresuid(NOBODY, NOBODY, 0)


@contextlib.contextmanager
def as_root() -> Iterator[None]:
    os.setresuid(0, 0, 0)
    try:
        yield
    finally:
        os.setresuid(NOBODY, NOBODY, 0)


def read_all(board: Board, out: str) -> dict[str, Any]:
    """Return what each way to read a whole board finds, or the refusal."""
    ways: dict[str, Callable[[], object]] = {
        "list": lambda: len(board.list_tasks(limit=1_000, full=True).tasks),
        "export": lambda: board.export(os.path.join(out, "export.json"))["tasks"],
        "backup": lambda: board.backup(output=out, keep=1)["tasks"],
        "doctor": lambda: [one["message"] for one in board.doctor()["findings"] if one["level"] == ERROR],
    }
    found = {}
    for name, read in ways.items():
        try:
            found[name] = read()
        except BoardError as refusal:
            found[name] = f"{refusal.code}: {refusal.message} {refusal.details}"
    board.close()
    return found


def read_many(directory: str, out: str, times: int) -> list[dict[str, Any]]:
    return [
        read_all(Board(directory, read_only=number % 2 == 0, actor=MARIA, settings=Settings(busy_timeout=500)), out)
        for number in range(times)
    ]


def test_reads_beside_a_writer_are_true_or_busy(place: Path, reader: Stage) -> None:
    data, out = str(place / "data"), str(place / "out")
    with Board(data, actor=MARIA) as board:
        board.import_tasks([{"title": f"task {number}", "body": "x" * 3_000} for number in range(2_000)])
    write_pairs(data, 1)
    reader.call(become_nobody, str(place))
    with Stage() as writer:
        writer.begin(run_commands_until, data, str(place / "stop"))
        try:
            found = reader.call(read_many, data, out, 8)
        finally:
            (place / "stop").touch()
        assert writer.result() > 1

    wrong = [
        (name, value)
        for answers in found
        for name, value in answers.items()
        if not (str(value).startswith("busy") or value == [] or (isinstance(value, int) and value % 2 == 0))
    ]
    assert wrong == []
    assert any(isinstance(answers["list"], int) for answers in found), "every read was refused: nothing was shown"

    (at_rest,) = reader.call(read_many, data, out, 1)
    with Board(data) as board:
        tasks = len(board.list_tasks(limit=10_000).tasks)
    assert at_rest == {"list": min(tasks, 1_000), "export": tasks, "backup": tasks, "doctor": []}
    assert_sound(data)


def read_while_it_changes(directory: str, failure: Exception | None) -> str:
    """Read in one transaction, in the middle of which the owner changes the board; return the refusal."""
    board = Board(directory, actor=MARIA, settings=Settings(busy_timeout=2_000))
    try:
        with board.read() as tx:
            tx.execute("SELECT count(*) FROM task").fetchone()
            with as_root():
                write_pairs(directory, 1)
            if failure is not None:
                raise failure
    except BoardError as refusal:
        return f"{refusal.code}: {refusal.hint}"
    finally:
        board.close()
    return "worked"


@pytest.mark.parametrize(
    "failure",
    [None, Unusable("the file is damaged"), sqlite3.DatabaseError("malformed"), KeyError("task")],
    ids=["no failure", "refusal", "of SQLite", "other"],
)
def test_read_during_which_the_board_changes_is_busy_whatever_it_found(
    place: Path, reader: Stage, failure: Exception | None
) -> None:
    data = str(place / "data")
    write_pairs(data, 2)
    reader.call(become_nobody, str(place))
    assert reader.call(read_while_it_changes, data, failure).startswith("busy: ")


def diagnose(directory: str, changes: int) -> tuple[int, Any]:
    """Run doctor while the owner changes the board in the first ``changes`` runs; return the runs and the answer."""
    runs = 0
    board = Board(directory, actor=MARIA, settings=Settings(busy_timeout=300))
    within = contents._check

    def disturbed(checkup: Any, timeout: float) -> Iterator[Any]:
        nonlocal runs
        runs += 1
        for number, finding in enumerate(within(checkup, timeout)):
            if number == 2 and runs <= changes:
                with as_root():
                    write_pairs(directory, 1)
                yield {**finding, "level": ERROR, "message": "the file is damaged"}
            yield finding

    with pytest.MonkeyPatch.context() as patch, board:
        patch.setattr(contents, "_check", disturbed)
        return runs_of(board, lambda: runs)


def runs_of(board: Board, runs: Callable[[], int]) -> tuple[int, Any]:
    try:
        healthy = board.doctor()["healthy"]
    except BoardError as refusal:
        return runs(), refusal.code
    return runs(), healthy


def test_doctor_looks_again_when_the_board_changed(place: Path, reader: Stage) -> None:
    data = str(place / "data")
    write_pairs(data, 2)
    reader.call(become_nobody, str(place))
    assert reader.call(diagnose, data, 0) == (1, True)
    assert reader.call(diagnose, data, 1) == (2, True)
    runs, answer = reader.call(diagnose, data, 1_000)
    assert answer == "busy"
    assert runs > 1


def read_with_a_coarse_clock(directory: str, tick: float) -> str:
    before, db.CLOCK_TICK = db.CLOCK_TICK, tick
    board = Board(directory, actor=MARIA, settings=Settings(busy_timeout=200))
    try:
        return str(len(board.list_tasks().tasks))
    except BoardError as refusal:
        return refusal.code
    finally:
        db.CLOCK_TICK = before
        board.close()


def test_file_changed_so_recently_that_its_times_tell_nothing_is_not_read_without_locks(
    place: Path, reader: Stage
) -> None:
    data = str(place / "data")
    write_pairs(data, 1)
    reader.call(become_nobody, str(place))
    assert reader.call(read_with_a_coarse_clock, data, 86_400.0) == "busy"
    assert reader.call(read_with_a_coarse_clock, data, 0.0) == "2"


@pytest.mark.parametrize("ending", ["-wal", "-journal"])
def test_changes_that_are_not_in_the_file_yet_are_never_overlooked(place: Path, reader: Stage, ending: str) -> None:
    data = str(place / "data")
    write_pairs(data, 1)
    if ending == "-journal":
        with raw(data) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
    (place / "data" / f"tasks.db{ending}").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(4_088))
    reader.call(become_nobody, str(place))
    for _ in range(2):
        found = reader.call(read_many, data, str(place / "out"), 1)[0]
        assert found["list"].startswith("unusable"), found
        assert "not closed cleanly" in found["list"]
