"""The board's file: what it is made of, when it is refused, and what a full or read-only disk does to it."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import agent_task_board
from agent_task_board import Board, BoardError, Settings
from agent_task_board.errors import Busy, NotFound
from agent_task_board.storage import db, turnstile
from agent_task_board.storage.db import APPLICATION_ID, SCHEMA_VERSION, Database
from agent_task_board.storage.refusals import refuse
from agent_task_board.storage.turnstile import Turnstile
from tests.command_line import Terminal
from tests.processes import LIMIT, Stage, assert_sound, contents, kill_after, raw
from tests.support import MARIA, open_board, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support import Clock

SCHEMA = Path(agent_task_board.__file__).parent / "storage" / "migrations" / "0001_initial.sql"


def make_board(directory: Path) -> str:
    """Make a board with one task, close it, and return the task's id."""
    board = open_board(directory)
    id_ = board.add("first").task.id
    board.close()
    return id_


def files(directory: Path) -> dict[str, bytes | None]:
    """Return every file of a directory that nobody has open.

    Without the line of writers, and without an empty log and its index: they are SQLite's own, and hold nothing.
    """
    found = {path.name: path.read_bytes() if path.is_file() else None for path in directory.iterdir()}
    if not found.get("tasks.db-wal"):
        found.pop("tasks.db-wal", None)
        found.pop("tasks.db-shm", None)
    return {name: content for name, content in found.items() if not name.startswith("turnstile.")}


OPEN: dict[str, Callable[[Path], Board]] = {
    "ordinary": lambda directory: Board(directory, actor=MARIA),
    "without create": lambda directory: Board(directory, create=False, actor=MARIA),
    "read only": lambda directory: Board(directory, read_only=True, actor=MARIA),
}
READS: dict[str, Callable[[Board], object]] = {
    "list": lambda board: board.list_tasks(search="x", order="due", full=True),
    "events": lambda board: board.events(),
    "agents": lambda board: board.agents(),
    "stats": lambda board: board.stats(),
    "nothing_ready": lambda board: board.nothing_ready("ada"),
}
WRITES: dict[str, Callable[[Board], object]] = {
    "add": lambda board: board.add("another"),
    "claim": lambda board: board.claim("ada"),
    "tick": lambda board: board.tick(),
    "import": lambda board: board.import_tasks([{"title": "another"}]),
}


NO_TASK = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
VERBS: list[Callable[[Board], object]] = [
    lambda board: board.claim("ada", task=NO_TASK),
    lambda board: board.resume(NO_TASK, "ada"),
    lambda board: board.heartbeat(NO_TASK, "token"),
    lambda board: board.complete(NO_TASK, "token"),
    lambda board: board.fail(NO_TASK, "token", "why"),
    lambda board: board.release(NO_TASK, "token"),
    lambda board: board.handoff(NO_TASK, "token", "bob"),
    lambda board: board.approve(NO_TASK),
    lambda board: board.reject(NO_TASK, note="no"),
    lambda board: board.reassign(NO_TASK, "bob"),
    lambda board: board.retry(NO_TASK),
    lambda board: board.cancel(NO_TASK),
    lambda board: board.update(NO_TASK, title="x"),
    lambda board: board.comment(NO_TASK, "x"),
    WRITES["add"],
    WRITES["import"],
]


# Files that are not a board


def text_file(path: Path) -> None:
    path.write_text("This is a shopping list, and it is long enough to have a header.\n" * 40)


def short_text_file(path: Path) -> None:
    path.write_text("milk\n")


def foreign_database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE recipe (name TEXT)")
    connection.close()


def foreign_wal_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE recipe (name TEXT)")
    connection.close()


def database_of_another_program_without_tables(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA application_id = 252006674")
    connection.execute("CREATE TABLE recipe (name TEXT)")
    connection.execute("DROP TABLE recipe")
    connection.close()


def board_that_says_no_schema(path: Path) -> None:
    make_board(path.parent)
    with raw(path.parent) as connection:
        connection.execute("PRAGMA user_version = 0")


def board_of_a_schema_below_nothing(path: Path) -> None:
    make_board(path.parent)
    with raw(path.parent) as connection:
        connection.execute("PRAGMA user_version = -1")


def newer_schema(path: Path) -> None:
    make_board(path.parent)
    with raw(path.parent) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")


def newer_schema_in_delete_mode(path: Path) -> None:
    newer_schema(path)
    with raw(path.parent) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")


def directory_instead(path: Path) -> None:
    path.mkdir()


def truncated_board(path: Path) -> None:
    make_board(path.parent)
    os.truncate(path, path.stat().st_size // 2)


def board_cut_off_in_its_header(path: Path) -> None:
    make_board(path.parent)
    os.truncate(path, 60)


def board_of_rubbish_behind_its_first_page(path: Path) -> None:
    make_board(path.parent)
    with path.open("r+b") as file:
        file.seek(4_096)
        file.write(b"\xa5" * (path.stat().st_size - 4_096))


NOT_A_BOARD: list[Callable[[Path], None]] = [
    text_file,
    short_text_file,
    foreign_database,
    foreign_wal_database,
    database_of_another_program_without_tables,
    board_that_says_no_schema,
    board_of_a_schema_below_nothing,
    newer_schema,
    newer_schema_in_delete_mode,
    directory_instead,
    truncated_board,
    board_cut_off_in_its_header,
    board_of_rubbish_behind_its_first_page,
]


@pytest.mark.parametrize("spoil", NOT_A_BOARD, ids=lambda spoil: spoil.__name__)
def test_what_is_not_a_board_is_refused_and_left_as_it_is(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    spoil(tmp_path / "tasks.db")
    before = files(tmp_path)
    for opened in OPEN.values():
        board = opened(tmp_path)
        for act in (READS["list"], READS["events"], WRITES["add"], WRITES["claim"], WRITES["import"]):
            with refused("unusable") as caught:
                act(board)
            assert caught.value.hint
        board.close()
    assert files(tmp_path) == before


def test_damage_met_on_the_way_is_unusable(tmp_path: Path) -> None:
    board = open_board(tmp_path)
    board.import_tasks([{"title": f"task {number}", "body": "x" * 2_000} for number in range(200)])
    board.close()
    pages = (tmp_path / "tasks.db").stat().st_size // 4_096
    with (tmp_path / "tasks.db").open("r+b") as file:
        file.seek(pages // 2 * 4_096)
        file.write(bytes(65_536))
    with refused("unusable"):
        board.list_tasks(limit=1_000, full=True)
    board.close()


def test_text_that_cannot_be_decoded_is_damage(board: Board) -> None:
    board.add("first")
    with raw(os.path.dirname(board.path)) as connection:
        connection.execute("UPDATE task SET title = CAST(x'fffe' AS TEXT)")
    with refused("unusable"):
        board.list_tasks()


def test_a_read_that_failed_once_does_not_spoil_the_next(tmp_path: Path) -> None:
    make_board(tmp_path)
    board = Board(tmp_path, actor=MARIA, settings=Settings(busy_timeout=50))
    with raw(tmp_path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("BEGIN EXCLUSIVE")
        for _ in range(2):
            with refused("busy"):
                board.list_tasks()
        connection.execute("ROLLBACK")
    assert len(board.list_tasks().tasks) == 1
    board.add("second")
    board.close()


# No board yet


def test_reads_of_a_missing_board_answer_empty_and_create_nothing(tmp_path: Path) -> None:
    for opened in OPEN.values():
        board = opened(tmp_path / "none")
        assert board.list_tasks().tasks == []
        assert board.events() == {"events": [], "next": 0}
        assert board.agents() == []
        assert board.stats()["tasks"] == 0
        assert board.nothing_ready("ada") == []
        with refused("not_found"):
            board.show(NO_TASK)
        assert not board.exists()
        board.close()
        assert list(tmp_path.iterdir()) == []


def test_verbs_on_a_missing_board_find_nothing_and_create_nothing(tmp_path: Path) -> None:
    for how in ("without create", "read only"):
        board = OPEN[how](tmp_path / "none")
        assert board.claim("ada") is None
        assert board.tick()["expired"] == 0
        for verb in VERBS:
            with refused("not_found"):
                verb(board)
        assert board.list_tasks().tasks == []
        board.close()
        assert list(tmp_path.iterdir()) == []


def test_an_empty_file_is_no_board_yet(tmp_path: Path) -> None:
    (tmp_path / "tasks.db").touch()
    board = Board(tmp_path, create=False, actor=MARIA)
    assert board.list_tasks().tasks == []
    with refused("not_found"):
        board.cancel(NO_TASK)
    board.close()
    assert files(tmp_path) == {"tasks.db": b""}

    make_board(tmp_path)
    assert_sound(tmp_path)


def test_a_board_that_was_missing_is_found_once_it_is_there(tmp_path: Path) -> None:
    early = Board(tmp_path, create=False, actor=MARIA)
    assert early.list_tasks().tasks == []
    id_ = make_board(tmp_path)
    assert [task.id for task in early.list_tasks().tasks] == [id_]
    early.add("second")
    early.close()


# Reads


def test_reads_change_no_byte_and_create_no_file(tmp_path: Path) -> None:
    id_ = make_board(tmp_path)
    before = files(tmp_path)
    names = set(os.listdir(tmp_path))
    board = Board(tmp_path, actor=MARIA)
    for read in READS.values():
        read(board)
        assert set(os.listdir(tmp_path)) <= names | {"tasks.db-wal", "tasks.db-shm"}
    board.show(id_)
    board.close()
    assert files(tmp_path) == before


def test_reading_for_reading_only_leaves_a_log_of_a_killed_writer_where_it_is(tmp_path: Path) -> None:
    kill_after(_write_a_little, str(tmp_path))
    before = files(tmp_path)
    assert before["tasks.db-wal"]
    board = Board(tmp_path, read_only=True, actor=MARIA)
    assert [task.title for task in board.list_tasks().tasks] == ["from a process that was killed"]
    board.close()
    after = files(tmp_path)
    assert after["tasks.db"] == before["tasks.db"]
    assert after["tasks.db-wal"] == before["tasks.db-wal"]


def _write_a_little(directory: str) -> None:
    open_board(directory).add("from a process that was killed")


def test_a_board_opened_for_reading_only_refuses_to_write(tmp_path: Path) -> None:
    make_board(tmp_path)
    before = contents(tmp_path)
    board = Board(tmp_path, read_only=True, actor=MARIA)
    for write in (WRITES["add"], WRITES["claim"], WRITES["import"]):
        with pytest.raises(BoardError) as caught:
            write(board)
        assert caught.value.code in ("unusable", "not_permitted")
    board.close()
    assert contents(tmp_path) == before


def test_a_board_in_delete_mode_is_read_as_it_lies_and_switched_by_the_first_write(tmp_path: Path) -> None:
    id_ = make_board(tmp_path)
    with raw(tmp_path) as connection:
        assert connection.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    before = files(tmp_path)

    board = open_board(tmp_path)
    assert board.show(id_)["task"]["title"] == "first"
    board.close()
    assert files(tmp_path) == before

    board.add("second")
    board.close()
    with raw(tmp_path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert_sound(tmp_path)


# What writing makes


def test_files_are_for_this_user_alone(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        directory = tmp_path / "project" / "data"
        board = open_board(directory)
        board.add("first")
        modes = {path.name: path.stat().st_mode & 0o777 for path in directory.iterdir()}
        board.close()
    finally:
        os.umask(mask)
    assert directory.stat().st_mode & 0o777 == 0o700
    assert {"tasks.db", "tasks.db-wal", "tasks.db-shm", ".gitignore"} <= set(modes)
    assert set(modes.values()) == {0o600}, modes
    assert (directory / ".gitignore").read_text() == "*\n"


def test_a_directory_that_was_there_before_is_left_as_it_was(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    make_board(tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o750
    assert not (tmp_path / ".gitignore").exists()


def test_a_commit_is_on_disk_before_the_call_returns(tmp_path: Path) -> None:
    board = open_board(tmp_path)
    board.add("first")
    connection = board.database.session(to_write=True).connection
    assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2  # FULL
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert connection.execute("PRAGMA foreign_keys").fetchone()[0] == 1
    assert connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    board.close()


@pytest.mark.parametrize(
    "name", ["with space", "100%", "a%20b", "what?", "no#1", "任务板", "quote'\"s", "a&mode=ro", "x;y"]
)
def test_any_directory_name_will_do(tmp_path: Path, name: str) -> None:
    directory = tmp_path / name
    id_ = make_board(directory)
    assert (directory / "tasks.db").stat().st_size > 0
    for board in (Board(directory, actor=MARIA), Board(directory, read_only=True, actor=MARIA)):
        assert board.show(id_)["task"]["title"] == "first"
        board.close()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_path_that_begins_with_two_slashes_is_a_path(tmp_path: Path) -> None:
    board = Board(f"/{tmp_path}", actor=MARIA)
    board.add("first")
    board.close()
    assert (tmp_path / "tasks.db").stat().st_size > 0


def test_a_board_stays_where_it_is_when_the_working_directory_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    board = Board("data", actor=MARIA)
    board.add("first")
    monkeypatch.chdir(tmp_path / "elsewhere")
    other = threading.Thread(target=board.add, args=("from a thread with a connection of its own",))
    other.start()
    other.join(LIMIT)
    assert len(board.list_tasks().tasks) == 2
    board.close()
    assert os.listdir(tmp_path / "elsewhere") == []


# Each write looks whose file it is


def test_a_board_that_becomes_newer_between_two_writes_is_refused(board: Board) -> None:
    board.add("first")
    directory = os.path.dirname(board.path)
    with raw(directory) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
        before = contents(directory)
        for act in (*WRITES.values(), *READS.values()):
            with refused("unusable"):
                act(board)
        assert contents(directory) == before
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    board.add("second")


def test_a_board_that_becomes_somebody_elses_between_two_writes_is_refused(board: Board) -> None:
    board.add("first")
    directory = os.path.dirname(board.path)
    with raw(directory) as connection:
        connection.execute("PRAGMA application_id = 252006674")
        before = contents(directory)
        for act in (*WRITES.values(), *READS.values()):
            with refused("unusable"):
                act(board)
        assert contents(directory) == before


def test_another_writer_who_keeps_the_lock_makes_the_board_busy(tmp_path: Path) -> None:
    id_ = make_board(tmp_path)
    board = Board(tmp_path, actor=MARIA, settings=Settings(busy_timeout=100))
    with raw(tmp_path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        before = contents(tmp_path)
        for write in WRITES.values():
            with refused("busy"):
                write(board)
        assert board.show(id_)["task"]["status"] == "queued", "readers must not wait for a writer"
        connection.execute("ROLLBACK")
        assert contents(tmp_path) == before
    board.add("second")
    board.close()
    assert_sound(tmp_path)


def test_a_new_board_whose_file_somebody_keeps_locked_is_busy_and_made_afterwards(tmp_path: Path) -> None:
    (tmp_path / "tasks.db").touch()
    board = Board(tmp_path, actor=MARIA, settings=Settings(busy_timeout=100))
    with raw(tmp_path) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with refused("busy"):
            board.add("first")
        connection.execute("ROLLBACK")
    board.add("first")
    assert [task.title for task in board.list_tasks().tasks] == ["first"]
    board.close()


def test_a_refusal_inside_a_transaction_leaves_no_trace(board: Board) -> None:
    first = board.add("first", dedupe_key="one").task.id
    directory = os.path.dirname(board.path)
    before = contents(directory)
    with refused("conflict", "assigned"):
        board.add("second", assignee="bob", claim=True, agent="ada")
    with refused("not_found"):
        board.add("third", depends_on=[first, NO_TASK])
    with refused("invalid_input"):
        board.import_tasks([{"title": "fourth"}, {"title": "fifth", "blocked_by": [NO_TASK]}])
    assert contents(directory) == before


# A full disk, a disk for reading only


class Disk:
    """A small disk of its own, mounted as root or through ``sudo``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"
        self._mounted: list[Path] = []
        self._prefix: list[str] = []
        options = f"size=1m,mode=0700,uid={os.getuid()},gid={os.getgid()}"
        for self._prefix in ([], ["sudo", "-n"]):
            command = [*self._prefix, "mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
            if shutil.which(command[0]) and subprocess.run(command, capture_output=True).returncode == 0:
                self._mounted.append(path)
                return
        pytest.skip("this user cannot mount a file system")

    def _run(self, *command: str) -> None:
        subprocess.run([*self._prefix, *command], check=True)

    def fill(self) -> None:
        """Leave not one free byte."""
        with self._filler.open("wb", buffering=0) as file:
            for size in (65_536, 4_096, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(b"x" * size)

    def free(self) -> None:
        self._filler.unlink()

    def make_read_only(self) -> None:
        self._run("mount", "-o", "remount,ro", str(self.path))

    def show_read_only_at(self, view: Path) -> None:
        """Let the same files appear in another place, where they cannot be written."""
        self._run("mount", "--bind", str(self.path), str(view))
        self._mounted.append(view)
        self._run("mount", "-o", "remount,bind,ro", str(view))

    def unmount(self) -> None:
        while self._mounted:
            self._run("umount", "--lazy", str(self._mounted.pop()))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """Return a disk of one megabyte."""
    path = tmp_path / "disk"
    path.mkdir()
    disk = Disk(path)
    yield disk
    disk.unmount()


def test_a_full_disk_is_unusable_changes_nothing_and_is_forgotten_once_there_is_space(disk: Disk) -> None:
    board = open_board(disk.path)
    id_ = board.add("first").task.id
    claim = board.claim("ada")
    assert claim is not None
    assert claim.lease is not None
    disk.fill()
    before = contents(disk.path)

    with refused("unusable") as caught:
        board.add("second", body="x" * 200_000)
    assert "space" in caught.value.hint
    with refused("unusable"):
        board.complete(id_, claim.lease.token, result="x" * 500_000)
    with refused("unusable"):
        board.import_tasks([{"title": f"task {number}", "body": "x" * 5_000} for number in range(50)])
    assert contents(disk.path) == before
    assert board.show(id_)["task"]["status"] == "claimed"

    disk.free()
    board.complete(id_, claim.lease.token, result="x" * 1_000)
    board.add("second")
    board.close()
    assert_sound(disk.path)


def test_a_new_board_on_a_full_disk_is_unusable_and_made_once_there_is_space(disk: Disk) -> None:
    disk.fill()
    board = open_board(disk.path / "data")
    with refused("unusable"):
        board.add("first")
    assert board.list_tasks().tasks == []
    disk.free()
    board.add("first")
    assert [task.title for task in board.list_tasks().tasks] == ["first"]
    board.close()
    assert_sound(disk.path / "data")


def test_closing_a_board_on_a_full_disk_loses_nothing(disk: Disk) -> None:
    board = open_board(disk.path)
    for _ in range(5):
        board.add("task", body="x" * 10_000)
    disk.fill()
    board.close()
    disk.free()
    assert len(board.list_tasks().tasks) == 5
    board.close()
    assert_sound(disk.path)


@pytest.mark.parametrize("how", OPEN)
def test_a_board_closed_cleanly_can_be_read_where_nothing_can_be_written(disk: Disk, how: str) -> None:
    id_ = make_board(disk.path)
    disk.make_read_only()
    board = OPEN[how](disk.path)
    assert board.show(id_)["task"]["title"] == "first"
    for read in READS.values():
        read(board)
    for write in (WRITES["add"], WRITES["claim"], WRITES["import"]):
        with refused("unusable") as caught:
            write(board)
        assert caught.value.hint
    assert board.show(id_)["task"]["title"] == "first", "a refused write must not spoil the reads after it"
    board.close()


@pytest.mark.parametrize("how", OPEN)
def test_a_board_not_closed_cleanly_cannot_be_read_where_nothing_can_be_written(disk: Disk, how: str) -> None:
    kill_after(_write_a_little, str(disk.path))
    (disk.path / "tasks.db-shm").unlink()  # SQLite would have to make it anew
    disk.make_read_only()
    board = OPEN[how](disk.path)
    for act in (READS["list"], READS["list"], WRITES["add"]):
        with refused("unusable") as caught:
            act(board)
        assert caught.value.hint
    board.close()


def test_a_log_left_behind_is_never_overlooked_where_nothing_can_be_written(disk: Disk) -> None:
    kill_after(_write_a_little, str(disk.path))
    disk.make_read_only()
    board = Board(disk.path, read_only=True, actor=MARIA)
    assert [task.title for task in board.list_tasks().tasks] == ["from a process that was killed"]
    board.close()


def test_who_may_only_read_sees_what_others_write_later(disk: Disk, tmp_path: Path) -> None:
    make_board(disk.path)
    view = tmp_path / "view"
    view.mkdir()
    disk.show_read_only_at(view)
    reader = Board(view, read_only=True, actor=MARIA)
    assert len(reader.list_tasks().tasks) == 1
    writer = open_board(disk.path)
    for number in range(2, 5):
        writer.add("another")
        assert len(reader.list_tasks().tasks) == number
    writer.close()
    assert len(reader.list_tasks().tasks) == 4
    reader.close()


def test_no_board_can_be_made_where_nothing_can_be_written(disk: Disk) -> None:
    disk.make_read_only()
    for directory in (disk.path, disk.path / "data"):
        board = open_board(directory)
        with refused("unusable"):
            board.add("first")
        board.close()


def test_a_file_where_the_data_directory_should_be_is_unusable(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a directory")
    for directory in (tmp_path / "data", tmp_path / "data" / "below"):
        board = open_board(directory)
        with refused("unusable"):
            board.add("first")
        board.close()
    assert (tmp_path / "data").read_text() == "not a directory"


# What the schema holds


@pytest.fixture
def table(board: Board, clock: Clock) -> Iterator[sqlite3.Connection]:
    """Return a raw connection to a board with a queued (1), a claimed (2) and a done (3) task."""
    for title in ("queued", "claimed", "done"):
        board.add(title, queue=title)
    board.claim("ada", queues=["claimed"])
    done = board.claim("bob", queues=["done"])
    assert done is not None
    assert done.lease is not None
    board.complete(done.task.id, done.lease.token)
    with raw(os.path.dirname(board.path)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        yield connection


VIOLATIONS = {
    "board_is_one_row": "INSERT INTO board (id) VALUES (2)",
    "status_is_known": "UPDATE task SET status = 'asleep' WHERE seq = 1",
    "lease_while_claimed_or_running": "UPDATE task SET lease_token_hash = 'x' WHERE seq = 1",
    "holder_while_claimed_or_running": "UPDATE task SET claimed_by = NULL, claimed_at = NULL WHERE seq = 2",
    "no_holder_while_queued": "UPDATE task SET claimed_by = 'ada', claimed_at = 'now' WHERE seq = 1",
    "claimed_by_goes_with_claimed_at": "UPDATE task SET claimed_by = NULL WHERE seq = 3",
    "finished_when_final": "UPDATE task SET finished_at = 'now' WHERE seq = 1",
    "attempts_within_budget": "UPDATE task SET attempts = -1 WHERE seq = 1",
    "queued_has_an_attempt_left": "UPDATE task SET attempts = max_attempts WHERE seq = 1",
    "no_progress_while_queued": "UPDATE task SET progress = 5 WHERE seq = 1",
    "progress_is_a_percentage": "UPDATE task SET progress = 101 WHERE seq = 2",
    "delayed_has_not_before": "UPDATE task SET delayed = 1 WHERE seq = 1",
    "open_dependencies_not_negative": "UPDATE task SET open_dependencies = -1 WHERE seq = 1",
    "priority_in_range": "UPDATE task SET priority = 1000001 WHERE seq = 1",
    "needs_approval_is_boolean": "UPDATE task SET needs_approval = 2 WHERE seq = 1",
    "id_is_a_ulid": "UPDATE task SET id = 'short' WHERE seq = 1",
    "title_length": "UPDATE task SET title = '' WHERE seq = 1",
    "nobody_is_called_none": "UPDATE task SET assignee = 'None' WHERE seq = 1",
    "occurrence_goes_with_schedule": "UPDATE task SET schedule_id = 'nightly' WHERE seq = 1",
    "nothing_waits_for_itself": "INSERT INTO dependency (task_seq, depends_on_seq, position) VALUES (1, 1, 1)",
    "tally_not_negative": "UPDATE tally SET tasks = -1",
    "outcome_is_known": "UPDATE attempt SET outcome = 'lost', ended_at = 'now' WHERE task_seq = 2",
    "outcome_goes_with_end": "UPDATE attempt SET ended_at = 'now' WHERE task_seq = 2",
    "actor_kind_is_known": """
        INSERT INTO event (task_seq, kind, actor, actor_kind, at, data) VALUES (1, 'created', 'x', 'robot', 'now', '{}')
    """,
}


def test_every_named_check_has_its_violation_here() -> None:
    assert set(re.findall(r"CONSTRAINT (\w+) CHECK", SCHEMA.read_text())) == set(VIOLATIONS)


@pytest.mark.parametrize("name", VIOLATIONS)
def test_the_schema_refuses_by_name(table: sqlite3.Connection, name: str) -> None:
    with pytest.raises(sqlite3.IntegrityError, match=f"^CHECK constraint failed: {name}$"):
        table.execute(VIOLATIONS[name])


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE event SET actor = 'nobody' WHERE seq = 1", "events are append-only"),
        ("DELETE FROM event WHERE seq = 1", "events are append-only"),
        ("DELETE FROM event", "events are append-only"),
        ("INSERT OR REPLACE INTO event SELECT * FROM event WHERE seq = 1", "events are append-only"),
        ("DELETE FROM task WHERE seq = 1", "tasks are never deleted"),
        ("DELETE FROM attempt WHERE task_seq = 3", "attempts are never deleted"),
        ("UPDATE attempt SET outcome = 'failed' WHERE task_seq = 3", "an ended attempt is never changed"),
        ("UPDATE task SET fence = 0 WHERE seq = 2", "a fence is never lowered"),
        ("UPDATE task SET status = 'failed' WHERE seq = 3", "a done task stays done"),
        (
            "INSERT INTO attempt (task_seq, number, agent, fence, claimed_at) VALUES (2, 2, 'bob', 2, 'now')",
            "the task already has an open attempt",
        ),
    ],
    ids=lambda value: value if value.startswith(("UPDATE", "DELETE", "INSERT")) else "",
)
def test_a_trigger_refuses(table: sqlite3.Connection, statement: str, message: str) -> None:
    before = table.execute("SELECT * FROM event").fetchall()
    with pytest.raises(sqlite3.IntegrityError, match=f"^{message}$"):
        table.execute(statement)
    assert table.execute("SELECT * FROM event").fetchall() == before


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO event (task_seq, kind, actor, actor_kind, at, data) VALUES (99, 'x', 'x', 'system', 'now', '{}')",
        "INSERT INTO dependency (task_seq, depends_on_seq, position) VALUES (1, 99, 1)",
        "INSERT INTO attempt (task_seq, number, agent, fence, claimed_at) VALUES (1, 1, 'nobody', 1, 'now')",
    ],
)
def test_no_row_points_nowhere(table: sqlite3.Connection, statement: str) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        table.execute(statement)


def test_tables_are_strict(table: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        table.execute("UPDATE task SET priority = 'high' WHERE seq = 1")
    loose = "SELECT name FROM pragma_table_list WHERE type = 'table' AND NOT strict AND name NOT LIKE 'sqlite_%'"
    assert table.execute(loose).fetchall() == []


# How the statements find their rows


class Recorder(sqlite3.Connection):
    """A connection that keeps every statement with its parameters."""

    statements: list[tuple[str, Any]]

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if sql.lstrip().startswith(("SELECT", "UPDATE", "DELETE", "INSERT")):
            self.statements.append((sql, parameters))
        return super().execute(sql, parameters)


@pytest.fixture
def plan(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[str]]]:
    """Return a function that tells the plans of all statements which a call runs that match some text."""
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *arguments, **options: connect(*arguments, **options, factory=Recorder)
    )
    Recorder.statements = []
    board = open_board(tmp_path / "data", clock)
    board.add("held")
    board.claim("ada", lease=60)
    board.add("delayed", not_before="2026-11-30T01:00:00+00:00")
    board.add("ready")

    def explain(act: Callable[[Board], object], *, text: str) -> list[str]:
        Recorder.statements.clear()
        act(board)
        found = [(sql, values) for sql, values in Recorder.statements if text in sql]
        assert found, f"no statement with {text!r}"
        connection = board.database.session(to_write=True).connection
        lines = []
        for sql, values in found:
            lines += [
                row["detail"] for row in sqlite3.Connection.execute(connection, f"EXPLAIN QUERY PLAN {sql}", values)
            ]
        return lines

    yield explain
    board.close()


def looks_at_all_tasks(lines: list[str]) -> bool:
    return any(re.match(r"SCAN task\b", line) for line in lines)


def without_dependencies(lines: list[str]) -> list[str]:
    """Leave out how ``blocked_by`` is put together: its few rows are sorted for each task returned."""
    kept, inside = [], False
    for line in lines:
        inside = line.startswith("CORRELATED SCALAR SUBQUERY") or (inside and not line.startswith("SCAN (subquery"))
        if not inside:
            kept.append(line)
    return kept


@pytest.mark.parametrize(
    ("queues", "index"),
    [
        ([], "task_ready (assignee=?)"),
        (["default"], "task_ready_in_queue (queue=? AND assignee=?)"),
        (["default", "a", "b"], "task_ready_in_queue (queue=? AND assignee=?)"),
    ],
)
@pytest.mark.parametrize("tags", [[], ["urgent"]])
def test_a_claim_looks_at_the_heads_of_its_index(
    plan: Callable[..., list[str]], queues: list[str], tags: list[str], index: str
) -> None:
    lines = plan(lambda board: board.claim("bob", queues=queues, tags=tags), text="SET status = 'claimed'")
    looks = [line for line in lines if re.match(r"(SEARCH|SCAN) task\b", line)]
    assert looks[0] == "SEARCH task USING INTEGER PRIMARY KEY (rowid=?)"
    # One look for each queue, for tasks of nobody and for those of this agent.
    assert looks[1:] == [f"SEARCH task USING INDEX {index}"] * 2 * (len(queues) or 1)
    # The few heads are compared with each other; within its index nothing is sorted.
    sorts = [place for place, line in enumerate(lines) if line == "USE TEMP B-TREE FOR ORDER BY"]
    heads = next(place for place, line in enumerate(lines) if line.startswith("CORRELATED SCALAR SUBQUERY"))
    if not tags:
        sorted_first = {lines[place - 1].partition("-")[0] for place in sorts if place < heads}
        assert sorted_first == {"SCAN (subquery"}, "\n".join(lines)


def test_a_claim_by_id_looks_at_its_row(plan: Callable[..., list[str]]) -> None:
    ids: list[str] = []
    plan(lambda board: ids.extend(task.id for task in board.list_tasks(ready=True).tasks), text="FROM task")
    lines = plan(lambda board: board.claim("bob", task=ids[0]), text="SET status = 'claimed'")
    assert lines[0] == "SEARCH task USING INTEGER PRIMARY KEY (rowid=?)"
    assert not looks_at_all_tasks(lines)


def test_the_sweep_asks_its_indexes_whether_anything_is_due(plan: Callable[..., list[str]]) -> None:
    lines = plan(lambda board: board.claim("bob"), text="SELECT EXISTS")
    assert "SEARCH task USING INDEX task_leased (lease_expires_at<?)" in lines
    assert "SEARCH task USING INDEX task_delayed (not_before<?)" in lines
    assert not looks_at_all_tasks(lines)


def test_the_sweep_takes_dead_leases_and_delayed_tasks_from_their_indexes(
    plan: Callable[..., list[str]], clock: Clock
) -> None:
    clock.advance(minutes=30)
    lines = plan(lambda board: board.tick(), text="LIMIT :batch")
    assert any("USING INDEX task_leased (lease_expires_at<?)" in line for line in lines)
    assert any("USING INDEX task_delayed (not_before<?)" in line for line in lines)
    assert not looks_at_all_tasks(lines)


def test_a_list_follows_the_table_without_sorting(plan: Callable[..., list[str]]) -> None:
    lines = plan(lambda board: board.list_tasks(order="age"), text="FROM task")
    assert without_dependencies(lines)[0] == "SCAN task USING INDEX task_kept"  # LIMIT ends it
    assert "USE TEMP B-TREE FOR ORDER BY" not in without_dependencies(lines)
    lines = plan(lambda board: board.list_tasks(order="age", after="age~1~1"), text="FROM task")
    assert without_dependencies(lines)[0] == "SEARCH task USING INDEX task_kept (seq>?)"
    assert "USE TEMP B-TREE FOR ORDER BY" not in without_dependencies(lines)


def test_events_are_read_from_where_the_reader_stopped(plan: Callable[..., list[str]]) -> None:
    assert plan(lambda board: board.events(after=1), text="FROM event") == [
        "SEARCH event USING INTEGER PRIMARY KEY (rowid>?)",
        "SEARCH task USING INTEGER PRIMARY KEY (rowid=?)",
    ]


def test_events_of_one_task_come_from_their_index(plan: Callable[..., list[str]]) -> None:
    ids: list[str] = []
    plan(lambda board: ids.extend(task.id for task in board.list_tasks().tasks), text="FROM task")
    lines = plan(lambda board: board.events(task=ids[0]), text="FROM event JOIN")
    assert "SEARCH event USING INDEX event_of_task (task_seq=? AND seq>?)" in lines
    assert "USE TEMP B-TREE FOR ORDER BY" not in lines


@pytest.mark.parametrize("ending", [False, True])
def test_a_task_is_found_by_its_id_or_its_ending_through_an_index(plan: Callable[..., list[str]], ending: bool) -> None:
    ids: list[str] = []
    plan(lambda board: ids.extend(task.id for task in board.list_tasks().tasks), text="FROM task")
    lines = plan(
        lambda board: board.show(ids[0][-10:] if ending else ids[0]), text="WHERE substr" if ending else "WHERE id ="
    )
    assert any(f"USING INDEX {'task_ending' if ending else 'task_id'}" in line for line in lines)
    assert not looks_at_all_tasks(lines)


# The live file is SQLite's alone


def watch_files(directory: str) -> list[tuple[str, str]]:
    """Run verbs and reads in many ways; return every file that Python opened, and when SQLite connected."""
    seen: list[tuple[str, str]] = []

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "sqlite3.connect"):
            seen.append((event, os.fsdecode(arguments[0]) if isinstance(arguments[0], (str, bytes)) else ""))

    sys.addaudithook(hook)
    board = open_board(directory)
    id_ = board.add("first", needs_approval=True).task.id
    claim = board.claim("ada")
    assert claim is not None
    assert claim.lease is not None
    board.heartbeat(id_, claim.lease.token, progress=50)
    board.complete(id_, claim.lease.token)
    board.approve(id_)
    other = open_board(directory)
    other.import_tasks([{"title": "imported"}])
    for read in READS.values():
        read(board)
        read(other)
    board.show(id_)
    thread = threading.Thread(target=lambda: board.comment(id_, "from a thread"))
    thread.start()
    thread.join()
    board.close()
    board.add("after closing")
    reader = Board(directory, read_only=True, actor=MARIA)
    reader.list_tasks()
    for each in (reader, other, board):
        each.close()
    return seen


def test_nobody_but_sqlite_opens_the_file_once_there_is_a_connection(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with Stage() as stage:
        seen = stage.call(watch_files, str(directory))

    first = next(n for n, (event, path) in enumerate(seen) if event == "sqlite3.connect" and "tasks.db" in path)
    ours = {str(directory / f"tasks.db{ending}") for ending in ("", "-wal", "-shm", "-journal")}
    opened = [place for place, (event, path) in enumerate(seen) if event == "open" and path in ours]
    assert len([path for event, path in seen if event == "sqlite3.connect" and "tasks.db" in path]) >= 4
    assert opened  # the new, empty file
    assert opened[-1] < first, [seen[place] for place in opened]


def test_writes_go_to_the_board_that_is_there_not_to_one_that_was_removed(tmp_path: Path) -> None:
    board = open_board(tmp_path)
    board.add("lost with its file")
    for file in tmp_path.glob("tasks.db*"):
        file.unlink()
    with open_board(tmp_path) as other:
        other.add("the first of the new board")
    board.add("the second")
    with open_board(tmp_path) as fresh:
        assert [task.title for task in fresh.list_tasks().tasks] == ["the first of the new board", "the second"]
    board.close()


@pytest.mark.parametrize("kind", ["file", "below a file", "directory as board"])
def test_place_that_can_hold_no_board_is_unusable_for_reads_and_claims_too(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    if kind == "directory as board":
        (place / "tasks.db").mkdir(parents=True)
    else:
        place.write_text("in the way")
    board = open_board(place / "data" if kind == "below a file" else place)
    for call in (board.list_tasks, board.tick, lambda: board.claim("ada"), lambda: board.add("task")):
        with refused("unusable"):
            call()


# One file, one name, one log


def test_board_with_a_second_name_is_not_written_to_and_doctor_says_so(tmp_path: Path) -> None:
    open_one = open_board(tmp_path / "data")
    open_one.add("first")
    assert open_one.doctor()["healthy"]
    shutil.copytree(tmp_path / "data", tmp_path / "copy", copy_function=os.link)
    for board in (open_one, open_board(tmp_path / "data"), open_board(tmp_path / "copy")):
        for write in WRITES.values():
            with refused("unusable") as caught:
                write(board)
            assert "backup" in caught.value.hint
        errors = [one for one in board.doctor()["findings"] if one["level"] == "error"]
        assert [one["check"] for one in errors] == ["file"]
        assert "hard links" in errors[0]["message"]
    assert len(open_one.list_tasks().tasks) == 1
    open_one.backup()

    shutil.rmtree(tmp_path / "copy")
    open_one.add("second")
    open_one.close()
    assert_sound(tmp_path / "data")


LOG_FILES = [("tasks.db-wal",), ("tasks.db-shm",), ("tasks.db-wal", "tasks.db-shm")]


def outcome_of_add(directory: str, title: str) -> str:
    """Add a task in a process without any connection; return ``added`` or the refusal."""
    try:
        with Board(directory, actor=MARIA) as board:
            board.add(title)
    except BoardError as refusal:
        return f"{refusal.code}: {refusal.message} ({refusal.hint})"
    return "added"


@pytest.mark.parametrize("deleted", LOG_FILES, ids=" ".join)
def test_board_whose_log_was_deleted_answers_nobody_until_it_is_closed(tmp_path: Path, deleted: tuple[str]) -> None:
    board = open_board(tmp_path)
    board.add("first")
    board.add("second")
    for name in deleted:
        (tmp_path / name).unlink()
    calls: list[Callable[[Board], object]] = [WRITES["add"], WRITES["import"], WRITES["claim"], READS["list"]]
    for one in (board, open_board(tmp_path), board):  # one more connection of this process would create a new log
        for call in calls:
            with refused("unusable") as caught:
                call(one)
            assert all(name in caught.value.message for name in deleted)
    with Stage() as stage:
        told = stage.call(outcome_of_add, str(tmp_path), "from another process")
        assert told.startswith("unusable: ")
        assert f"process {os.getpid()}" in told
        assert all(name in told for name in deleted)
        board.close()  # the last one to close it saves what the log held
        assert stage.call(outcome_of_add, str(tmp_path), "third") == "added"
    with open_board(tmp_path) as other:
        assert [task.title for task in other.list_tasks().tasks] == ["first", "second", "third"]
    assert_sound(tmp_path)


@pytest.mark.parametrize("deleted", LOG_FILES, ids=" ".join)
def test_log_that_is_deleted_during_a_write_is_noticed_before_its_answer(tmp_path: Path, deleted: tuple[str]) -> None:
    database = Database(str(tmp_path), create=True)
    with database.write() as tx:
        tx.execute("UPDATE board SET board_id = '00000000000000aa'")
    with refused("unusable"), database.write() as tx:
        tx.execute("UPDATE board SET board_id = '00000000000000bb'")
        for name in deleted:
            (tmp_path / name).unlink()
    database.close()
    with Database(str(tmp_path)).read() as tx:
        assert tx.execute("SELECT board_id FROM board").fetchone()[0] == "00000000000000aa"


def deleted_during_the_commit(directory: Path, name: str) -> Database:
    """Return a board of which a file of the log disappears once the next commit has begun."""
    database = Database(str(directory), create=True)
    with database.write() as tx:
        tx.execute("UPDATE board SET board_id = '00000000000000aa'")

    def delete(statement: str) -> None:
        if statement == "COMMIT":
            (directory / name).unlink()

    database.session().connection.set_trace_callback(delete)
    return database


def test_log_that_is_deleted_during_the_commit_is_noticed_before_its_answer(tmp_path: Path) -> None:
    database = deleted_during_the_commit(tmp_path, "tasks.db-wal")
    with refused("unusable") as caught, database.write() as tx:
        tx.execute("UPDATE board SET board_id = '00000000000000bb'")
    assert "not certain" in caught.value.hint
    database.close()


def test_commit_whose_index_is_deleted_meanwhile_is_in_the_log_for_others(tmp_path: Path) -> None:
    database = deleted_during_the_commit(tmp_path, "tasks.db-shm")
    with database.write() as tx:
        tx.execute("UPDATE board SET board_id = '00000000000000bb'")
    copy = tmp_path / "copy"
    copy.mkdir()
    # What a process finds that opens the board after this one has died; not opened here, which would drop its locks.
    subprocess.run(["cp", tmp_path / "tasks.db", tmp_path / "tasks.db-wal", copy], check=True)
    with Database(str(copy)).read() as tx:
        assert tx.execute("SELECT board_id FROM board").fetchone()[0] == "00000000000000bb"
    with refused("unusable"), database.write() as tx:
        pass
    database.close()


def test_refusal_that_was_found_beside_a_deleted_log_is_not_given(tmp_path: Path) -> None:
    board = open_board(tmp_path)
    board.add("first")
    (tmp_path / "tasks.db-shm").unlink()
    with refused("unusable"):
        board.cancel("01JDXAAAAAAAAAAAAAAAAA7Q2Z")  # where nothing is deleted, it is `not_found`
    board.close()


def write_past_the_board(directory: str) -> None:
    """Change the board without its own program, and keep the file open."""
    connection = sqlite3.connect(f"{directory}/tasks.db", isolation_level=None)
    connection.execute("UPDATE task SET title = 'by another program'")
    _kept.append(connection)


def test_close_leaves_a_log_alone_that_others_write_to(tmp_path: Path) -> None:
    board = open_board(tmp_path)
    board.add("first")
    board.close()
    board = open_board(tmp_path)
    board.list_tasks()
    for name in ("tasks.db-wal", "tasks.db-shm"):
        (tmp_path / name).unlink()
    with Stage() as stage:
        stage.call(write_past_the_board, str(tmp_path))
        os.kill(stage.pid, signal.SIGKILL)  # so the new log stays behind, and this process is the last one
    with refused("unusable"):
        board.add("second")
    board.close()
    assert (tmp_path / "tasks.db-wal").stat().st_size > 0
    with Stage() as stage:
        assert stage.call(titles_of, str(tmp_path)) == ["by another program"]


def titles_of(directory: str) -> list[str]:
    with open_board(directory) as board:
        return [task.title for task in board.list_tasks().tasks]


def test_commit_beside_a_log_that_another_one_replaced_is_not_acknowledged(tmp_path: Path) -> None:
    board = open_board(tmp_path)
    board.add("first")
    (tmp_path / "tasks.db-wal").rename(tmp_path / "aside")
    (tmp_path / "tasks.db-wal").write_bytes((tmp_path / "aside").read_bytes())
    with refused("unusable"):
        board.add("second")
    board.close()


def test_log_that_starts_again_or_lies_behind_a_link_is_the_same_log(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "data" / "tasks.db").symlink_to(tmp_path / "elsewhere" / "tasks.db")
    with open_board(tmp_path / "elsewhere") as behind:
        behind.create()
    board = open_board(tmp_path / "data")
    board.add("first")
    with raw(tmp_path / "data") as connection:
        assert connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()[0] == 0
    board.add("second")
    assert (tmp_path / "elsewhere" / "tasks.db-wal").stat().st_size > 0
    board.close()
    assert_sound(tmp_path / "elsewhere")


# How long a call waits


def hold_turn_and_lock(directory: str) -> None:
    """Take the turn of the writers and the write lock, for as long as this process lives."""
    turnstile = Turnstile(directory)
    turnstile.enter()
    connection = sqlite3.connect(f"{directory}/tasks.db", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    _kept.append((turnstile, connection))


_kept: list[object] = []


class Patience:
    """A clock that moves only while somebody waits, and notes for how long each wait was asked."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.waited = 0.0
        for module in (db, turnstile):
            patch.setattr(module, "monotonic", lambda: self.now)
        patch.setattr(turnstile._Wait, "ended_before", lambda _, deadline: self._wait(deadline))

    def _wait(self, deadline: float) -> bool:
        self.waited += deadline - self.now
        self.now = deadline
        return False


@pytest.mark.parametrize(("timeout", "at_the_turnstile"), [(0, 0.0), (500, 0.5), (10_000, 2.0)])
def test_busy_timeout_is_the_whole_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, timeout: int, at_the_turnstile: float
) -> None:
    make_board(tmp_path)
    with Stage() as holder:
        holder.call(hold_turn_and_lock, str(tmp_path))
        patience = Patience(monkeypatch)
        board = Board(tmp_path, actor=MARIA, settings=Settings(busy_timeout=timeout))
        asked: list[int] = []

        def begin(session: db.Session, deadline: float) -> None:
            session.wait_until(deadline)
            asked.append(session.connection.execute("PRAGMA busy_timeout").fetchone()[0])
            raise Busy("as after the wait")

        monkeypatch.setattr(db.Session, "begin_write", begin)
        with refused("busy"):
            board.add("task")
        assert patience.waited == at_the_turnstile
        assert asked == [timeout - at_the_turnstile * 1_000]
        monkeypatch.undo()
        with board.database.read() as tx:
            assert tx.execute("PRAGMA busy_timeout").fetchone()[0] == pytest.approx(timeout, abs=100)
        board.close()


def test_exclusive_lock_is_busy_in_every_way_to_open(tmp_path: Path) -> None:
    make_board(tmp_path)
    with raw(tmp_path) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN IMMEDIATE")
        acts: list[Callable[[Board], object]] = [*READS.values(), Board.doctor, Board.backup]
        for read_only in (False, True):
            board = Board(tmp_path, read_only=read_only, actor=MARIA, settings=Settings(busy_timeout=20))
            for act in acts:
                with refused("busy"):
                    act(board)
            board.close()


def test_lost_race_for_the_locks_is_busy(tmp_path: Path) -> None:
    error = sqlite3.OperationalError("locking protocol")
    error.sqlite_errorcode = sqlite3.SQLITE_PROTOCOL
    with refused("busy"):
        refuse(error, "tasks.db")


# Ctrl-C while a board is opened


class Interrupter:
    """Raises ``KeyboardInterrupt`` at one line of the code that opens a board, counted from the first."""

    def __init__(self, line: int) -> None:
        self._left = line
        self.has_struck = False

    def __call__(self, frame: Any, event: str, _: object) -> Any:
        if event == "call" and not is_opening(frame):
            return None
        if event == "line":
            self._left -= 1
            if self._left == 0:
                self.has_struck = True
                raise KeyboardInterrupt
        return self


def is_opening(frame: Any) -> bool:
    """Return whether a frame belongs to ``Database.session`` or to something of this package that it called."""
    if "agent_task_board" not in frame.f_code.co_filename:
        return False
    while frame is not None:
        if frame.f_code is Database.session.__code__:
            return True
        frame = frame.f_back
    return False


def interrupt_everywhere(directory: str, *, read_only: bool) -> list[tuple[int, list[str]]]:
    """Interrupt the first call on a board at each line; return the lines that left a file of the board open."""
    left = []
    for line in range(1, 10_000):
        board = Board(directory, read_only=read_only, actor=MARIA)
        interrupter = Interrupter(line)
        sys.settrace(interrupter)
        try:
            board.list_tasks() if read_only else board.comment(NO_TASK, "text")
        except (KeyboardInterrupt, NotFound):
            pass
        finally:
            sys.settrace(None)
        assert board.list_tasks().tasks, "the next call must work"
        board.close()
        if files := [path for path in open_files() if path.startswith(directory)]:
            left.append((line, files))
        if not interrupter.has_struck:
            assert line > 50
            return left
    raise AssertionError


def open_files() -> list[str]:
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    return found


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs /proc")
@pytest.mark.parametrize("read_only", [True, False], ids=["read", "write"])
def test_ctrl_c_at_any_line_leaves_nothing_open(tmp_path: Path, read_only: bool) -> None:
    make_board(tmp_path)
    with Stage() as stage:
        assert stage.call(functools.partial(interrupt_everywhere, read_only=read_only), str(tmp_path)) == []
    assert_sound(tmp_path)


# A library that is too old


@pytest.mark.parametrize("act", [READS["list"], WRITES["add"], WRITES["claim"], WRITES["import"]])
def test_old_sqlite_is_refused_before_any_statement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[Board], object]
) -> None:
    make_board(tmp_path)

    def connect(*arguments: object, **options: object) -> None:
        raise AssertionError("SQLite was used")

    monkeypatch.setattr(db, "SQLITE_VERSION", (3, 37, 2))
    monkeypatch.setattr(sqlite3, "connect", connect)
    for directory in (tmp_path, tmp_path / "none"):
        with refused("unusable") as caught:
            act(Board(directory, actor=MARIA))
        assert "3.37.2" in caught.value.message
        assert "3.38.0" in caught.value.message
        assert "newer SQLite" in caught.value.hint


OLD = """
import sqlite3, sys
sqlite3.sqlite_version_info = (3, 37, 2)
sqlite3.sqlite_version = "3.37.2"
def connect(*arguments, **options):
    raise SystemExit("SQLite was used")
sqlite3.connect = connect
from agent_task_board.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    "words", [["list"], ["claim", "--agent", "ada"], ["add", "task"], ["tick"], ["doctor"], ["backup"]], ids=" ".join
)
def test_commands_refuse_an_old_sqlite(tmp_path: Path, words: list[str]) -> None:
    make_board(tmp_path / "data")
    answer = Terminal(tmp_path).process(*words, code=OLD)
    assert (answer.code, answer.error["code"]) == (8, "unusable")
    assert "SQLite is too old: 3.37.2" in answer.text
    assert answer.err == ""
