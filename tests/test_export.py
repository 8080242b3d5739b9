"""Export: what the file holds, that it appears complete or not at all, and what the command answers."""

from __future__ import annotations

import io
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Board
from agent_task_board.cli import transfer
from agent_task_board.transfer import export as transfer_export
from tests.command_line import EXIT_CODES, TASK_KEYS, Terminal, program
from tests.dying import concerns, trace_statements
from tests.processes import Stage, contents, exit_code, in_fork
from tests.support import bring_to, everything, moved, open_board, refused
from tests.test_store import Disk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support import Clock


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Disk]:
    """Return a disk of one megabyte."""
    path = tmp_path / "disk"
    path.mkdir()
    disk = Disk(path)
    yield disk
    disk.unmount()


def export(board: Board, **options: Any) -> Any:
    out = io.BytesIO()
    board.export(out, **options)
    return json.loads(out.getvalue())


# What it holds


def test_export_holds_everything_that_belongs_to_the_tasks(board: Board, clock: Clock) -> None:
    first = bring_to(board, "done", body="text", params={"a": 1.5}, tags=["x"])
    second = board.add("waits", depends_on=[first.id]).task.id
    board.comment(second, "a remark")
    board.archive(0)
    board.add_schedule("daily", cron="0 9 * * *", zone="UTC", task={"title": "x"})
    document = export(board)
    assert document["exported_at"] == "2026-11-30T00:53:20.000+00:00"
    assert [list(task) for task in document["tasks"]] == [TASK_KEYS, TASK_KEYS]
    assert document["tasks"] == [board.show(first.id)["task"], board.show(second)["task"]]
    assert document["attempts"] == [{"task_id": first.id, **board.show(first.id)["attempts"][0]}]
    events = [{key: value for key, value in event.items() if key != "seq"} for event in board.events()["events"]]
    assert document["events"] == events
    assert [list(event) for event in document["events"]] == [list(event) for event in events]
    (remark,) = document["comments"]
    assert remark == {
        "task_id": second, "actor": "maria", "actor_kind": "human", "at": remark["at"], "text": "a remark",
    }  # fmt: skip
    assert document["schedules"] == board.schedules()
    assert document["archived"] == [{"task_id": first.id, "archived_at": board.show(first.id)["archived_at"]}]


def test_empty_board_and_missing_board_give_an_empty_document(tmp_path: Path, board: Board) -> None:
    board.create()
    for one in (board, open_board(tmp_path / "nowhere")):
        document = export(one)
        assert [document[name] for name in ("tasks", "events", "schedules")] == [[], [], []]
    assert not (tmp_path / "nowhere").exists()


def test_export_is_one_view_of_the_board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task added while the export is written is in no part of it."""
    board, other = open_board(tmp_path / "data"), open_board(tmp_path / "data")
    board.add("first")
    monkeypatch.setattr(transfer_export, "PROGRESS_INTERVAL", 1)
    file = io.BytesIO()
    counts = board.export(file, progress=lambda _: other.add("added meanwhile"))
    assert counts == {"tasks": 1, "events": 1}
    document = json.loads(file.getvalue())
    assert len(document["tasks"]) == len(document["events"]) == 1
    assert len(other.list_tasks().tasks) > 1


def test_export_changes_nothing(board: Board) -> None:
    bring_to(board, "running")
    before = everything(board)
    export(board)
    export_csv = io.BytesIO()
    board.export(export_csv, file_format="csv")
    assert everything(board) == before


@pytest.mark.parametrize("options", [{"file_format": "xml"}, {"bom": 1}])
def test_options_are_checked(board: Board, options: Any) -> None:
    with refused("invalid_input"):
        board.export(io.BytesIO(), **options)


# A file


def test_file_is_complete_private_and_replaces_another(board: Board, tmp_path: Path) -> None:
    board.add("task")
    path = tmp_path / "board.json"
    path.write_text("older")
    path.chmod(0o644)
    assert board.export(path) == {"path": str(path), "tasks": 1, "events": 1}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["tasks"][0]["title"] == "task"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["board.json", "data"]


def test_link_leads_to_the_file_that_is_written(board: Board, tmp_path: Path) -> None:
    board.add("task")
    (tmp_path / "there").mkdir()
    (tmp_path / "link.json").symlink_to(tmp_path / "there" / "board.json")
    assert board.export(tmp_path / "link.json")["path"] == str(tmp_path / "there" / "board.json")
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "there" / "board.json").read_text())["tasks"]


@pytest.mark.parametrize("path", ["data", "nowhere/board.json", "data/tasks.db/x", "a\0b", "x" * 300, os.devnull])
def test_path_that_leads_to_no_file_is_refused(board: Board, tmp_path: Path, path: str) -> None:
    board.add("task")
    before = sorted(tmp_path.rglob("*"))
    with refused("invalid_input") as caught:
        board.export(os.path.join(str(tmp_path), path))
    assert caught.value.details["field"] == "output"
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_board_itself_is_never_overwritten_and_never_read_as_a_file(terminal: Terminal, suffix: str) -> None:
    terminal.add()
    with Board(str(terminal.directory / "data")) as keeps_it_open:
        keeps_it_open.list_tasks()
        (terminal.directory / "link").symlink_to(f"data/tasks.db{suffix}")
        for name in (f"data/tasks.db{suffix}", "link"):
            assert terminal.refused("invalid_input", "export", "--output", name)["details"]["field"] == "output"
            assert "the board itself" in terminal.refused("invalid_input", "import", name)["message"]
    assert terminal.data("list")["tasks"]


def test_nothing_is_left_of_an_export_that_fails(board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board.add("task")
    path = tmp_path / "board.json"
    path.write_text("older")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with refused("unusable"):
        board.export(path)
    assert path.read_text() == "older"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["board.json", "data"]


def test_full_disk_leaves_nothing_behind(board: Board, small: Disk) -> None:
    for _ in range(20):
        board.add("task", body="x" * 100_000)
    with refused("unusable") as caught:
        board.export(small.path / "board.json")
    assert "space" in caught.value.hint
    assert list(small.path.iterdir()) == []


def test_export_without_room_for_temporary_files_prints_one_error(terminal: Terminal, small: Disk) -> None:
    board = open_board(terminal.directory / "data")
    for _ in range(3):
        board.add("task", body="x" * 100_000, params={"x": "x" * 900_000})
    board.close()
    for words in (["export"], ["export", "--format", "csv"]):
        answer = terminal.process(*words, SQLITE_TMPDIR=str(small.path))
        assert answer.error["code"] == "unusable"
        assert "SQLITE_TMPDIR" in answer.error["hint"]
    assert list(small.path.iterdir()) == []


def test_export_that_fails_in_the_middle_prints_one_error(terminal: Terminal) -> None:
    board = open_board(terminal.directory / "data")
    board.import_tasks([{"title": f"task {number}", "body": "x" * 5_000} for number in range(600)])
    board.close()
    with closing(sqlite3.connect(terminal.directory / "data" / "tasks.db")) as connection:
        connection.execute("UPDATE task SET params = '{' WHERE seq = 600")
        connection.commit()
    answer = terminal.process("export")
    assert json.loads(answer.out)["ok"] is False


def test_lack_of_memory_is_unusable(board: Board, tmp_path: Path) -> None:
    class File(io.BytesIO):
        def write(self, content: Any, /) -> int:
            raise MemoryError

    board.add("task")
    with refused("unusable") as caught:
        board.export(File())
    assert "memory" in caught.value.message


def test_import_without_room_for_temporary_files_changes_nothing(terminal: Terminal, small: Disk) -> None:
    terminal.add()
    file = terminal.write_json("tasks.json", [{"title": "t", "body": "x" * 100_000}] * 60)
    before = terminal.snapshot()
    answer = terminal.process("import", file, SQLITE_TMPDIR=str(small.path))
    assert answer.error["code"] == "unusable"
    assert "temporary" in answer.error["message"]
    assert terminal.snapshot() == before
    assert list(small.path.iterdir()) == []


def test_export_waits_for_no_writer_and_stops_none(tmp_path: Path) -> None:
    board, other = open_board(tmp_path / "data"), open_board(tmp_path / "data")
    board.add("first")
    with other.database.write() as tx:
        tx.execute("UPDATE board SET revision = revision + 1")
        assert export(board)["tasks"][0]["title"] == "first"


# Killed


def export_and_die(step: int, directory: str, target: str, pipe: int) -> None:
    """Export, and kill this process just before its step of that number."""
    steps = count()

    def begin(what: str) -> None:
        os.write(pipe, what.encode(errors="replace").split(b"\n")[0] + b"\n")
        if next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    trace_statements(begin)
    folder = os.path.dirname(target)
    names = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir")
    board = open_board(directory)
    sys.addaudithook(lambda name, about: begin(name) if name in names and concerns(folder, about[0]) else None)
    board.export(target)
    begin("return")


def kill_exports_at_every_step(directory: str, folder: str) -> list[list[str]]:
    """Kill exports one step later each time; the target of step ``n`` is ``n/board.json``."""
    runs: list[list[str]] = []
    for step in count():
        target = os.path.join(folder, str(step), "board.json")
        os.mkdir(os.path.dirname(target))
        with open(target, "w") as file:
            file.write("older")
        ours, theirs = os.pipe()
        code = exit_code(in_fork(lambda: export_and_die(step, directory, target, theirs)))  # noqa: B023
        os.close(theirs)
        with os.fdopen(ours) as pipe:
            begun = pipe.read().splitlines()
        runs.append(begun)
        if code == 0:
            return runs
        assert code == -signal.SIGKILL, (code, begun)
    raise AssertionError


def test_an_export_killed_at_any_step_has_replaced_the_file_wholly_or_not_at_all(tmp_path: Path) -> None:
    board = open_board(tmp_path / "data")
    for number in range(300):
        board.add(f"task {number}")
    board.close()
    before = contents(tmp_path / "data")
    (tmp_path / "out").mkdir()
    with Stage() as stage:
        runs = stage.call(kill_exports_at_every_step, str(tmp_path / "data"), str(tmp_path / "out"))
    assert {"os.mkdir", "open", "os.rename"} <= set(runs[-1])
    found = {"older": 0, "whole": 0}
    for number, begun in enumerate(runs):
        text = (tmp_path / "out" / str(number) / "board.json").read_text()
        replaced = begun[:-1].count("os.rename") == 2  # the first one names the folder for the work
        found["whole" if replaced else "older"] += 1
        if replaced:
            assert len(json.loads(text)["tasks"]) == 300
        else:
            assert text == "older"
    assert min(found.values()) >= 2
    assert contents(tmp_path / "data") == before


# The command


def test_command_prints_the_document_inside_the_envelope_and_import_takes_it_back(terminal: Terminal) -> None:
    id_ = terminal.add("ü", "--body", "text")
    terminal.claim()
    printed = terminal.process("export", ATB_FORMAT="table")
    assert list(printed.data)[:3] == ["format", "version", "exported_at"]
    assert printed.data["tasks"][0]["id"] == id_
    for words in (["export", "--json"], ["export", "--format", "json"], ["--format=json", "export"]):
        assert terminal.atb(*words).data["tasks"] == printed.data["tasks"]
    copied = terminal.process("import", "-", "--data-dir", "copy", stdin=printed.out)
    assert moved(copied.data) == (1, 0)
    assert terminal.data("show", id_, "--data-dir", "copy")["task"]["status"] == "queued"


def test_command_writes_a_file_and_returns_its_path_and_counts(terminal: Terminal) -> None:
    terminal.add("=1+1")
    data = terminal.data("export", "--output", "board.json")
    assert data == {"path": str(terminal.directory / "board.json"), "tasks": 1, "events": 1}
    table = terminal.data("export", "--output", "TASKS.CSV")
    assert table == {"path": str(terminal.directory / "TASKS.CSV"), "tasks": 1, "events": 0}
    content = (terminal.directory / "TASKS.CSV").read_bytes()
    assert content.startswith(b"\xef\xbb\xbfid,title")
    assert b",'=1+1," in content
    for file in ("board.json", "TASKS.CSV"):
        assert moved(terminal.data("import", file, "--data-dir", file[:3])) == (1, 0)
        assert terminal.data("list", "--data-dir", file[:3])["tasks"][0]["title"] == "=1+1"


def test_format_option_wins_over_the_file_name(terminal: Terminal) -> None:
    terminal.add()
    terminal.data("export", "--output", "tasks.csv", "--format", "json")
    assert json.loads((terminal.directory / "tasks.csv").read_bytes())["tasks"]
    assert terminal.data("import", "tasks.csv", "--format", "json")["skipped"] == 1
    terminal.data("export", "--output", "tasks.txt", "--format", "csv", "--utf8", "--json")
    assert (terminal.directory / "tasks.txt").read_bytes().startswith(b"id,title")
    assert terminal.data("import", "tasks.txt", "--format", "csv")["skipped"] == 1


def test_csv_on_standard_output_has_no_envelope(terminal: Terminal) -> None:
    terminal.add("ü")
    for words in (["export", "--format", "csv", "--utf8"], ["export", "--format=csv", "--utf8", "--quiet"]):
        answer = terminal.atb(*words)
        assert (answer.code, answer.err) == (0, "")
        assert answer.out.startswith(b"id,title,body")
        assert answer.out.count(b"\r\n") == 2
    error = terminal.refused("invalid_input", "export", "--format", "csv", "--json")
    assert error["details"]["field"] == "json"
    for words in (["export", "--utf8"], ["export", "--format", "table"], ["export", "--output", ""], ["export", "x"]):
        terminal.refused("invalid_input", *words)


def test_missing_board_is_not_found_by_an_export_and_not_made_by_a_trial_of_an_import(terminal: Terminal) -> None:
    terminal.refused("not_found", "export")
    terminal.refused("not_found", "export", "--output", "out.json")
    trial = terminal.atb("import", terminal.write_json("t.json", [{"title": "t"}]), "--dry-run")
    assert moved(trial.data) == (1, 0)
    assert trial.data["dry_run"] is True
    assert terminal.files() == {"t.json"}


def test_file_that_is_not_a_board_is_refused_with_one_envelope(terminal: Terminal) -> None:
    (terminal.directory / "data").mkdir()
    terminal.write("data/tasks.db", "This is a shopping list, long enough to have a header. " * 40)
    for words in (["export"], ["export", "--format", "csv"], ["export", "--output", "x"]):
        terminal.refused("unusable", *words)
    terminal.refused("unusable", "import", terminal.write_json("t.json", [{"title": "t"}]))
    assert not (terminal.directory / "x").exists()


def test_export_ends_quietly_when_its_reader_closes_the_pipe(terminal: Terminal) -> None:
    board = open_board(terminal.directory / "data")
    board.import_tasks([{"title": f"task {number}", "body": "x" * 1_000} for number in range(500)])
    board.close()
    for words in (["export"], ["export", "--format", "csv"]):
        with subprocess.Popen(
            [*program(None), *words], cwd=terminal.directory, env=terminal.environ,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.read(10)
            process.stdout.close()
            assert process.wait(60) == 0
            assert process.stderr.read() == b""


def test_reader_that_stops_keeps_no_read_transaction_open(terminal: Terminal) -> None:
    """Else the write-ahead log could not be reset, and would grow for as long as the reader sleeps."""
    board = open_board(terminal.directory / "data")
    board.import_tasks([{"title": f"task {number}", "body": "x" * 10_000} for number in range(600)])
    for words in (["export"], ["export", "--format", "csv"]):
        with subprocess.Popen(
            [*program(None), *words], cwd=terminal.directory, env=terminal.environ, stdout=subprocess.PIPE
        ) as process:  # fmt: skip
            assert process.stdout is not None
            process.stdout.read(10)  # it writes, and soon waits: a pipe takes no more than 1 MiB
            board.add("while the reader sleeps")
            with closing(sqlite3.connect(board.path)) as connection:
                blocked, *_ = connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
            process.stdout.close()
        assert blocked == 0
    board.close()


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_and_nowhere_else(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    file = terminal.write_json("t.json", [{"title": "t"}] * 2_000)
    monkeypatch.setattr(transfer, "PROGRESS_INTERVAL", -1)
    screens = []
    for words, screen in (
        (["import", file], Screen()),
        (["export", "--output", "x.json"], Screen()),
        (["import", file, "--quiet"], Screen()),
        (["import", file], io.StringIO()),
    ):
        with monkeypatch.context() as patch:
            patch.setattr("contextlib.redirect_stderr", lambda _, screen=screen: _Redirected(screen))
            terminal.atb(*words)
        screens.append(screen.getvalue())
    assert "1,000 elements" in screens[0]
    assert "2,000 rows" in screens[1]
    assert screens[2:] == ["", ""]


class _Redirected:
    def __init__(self, screen: io.StringIO) -> None:
        self._screen = screen

    def __enter__(self) -> None:
        self._before, sys.stderr = sys.stderr, self._screen

    def __exit__(self, *_: object) -> None:
        sys.stderr = self._before


@pytest.mark.parametrize("words", [["missing.json"], ["."], ["a\0b"]])
def test_file_that_cannot_be_read_is_refused(terminal: Terminal, words: list[str]) -> None:
    error = terminal.refused("invalid_input", "import", *words)
    assert error["details"]["field"] == "file"
    assert EXIT_CODES["invalid_input"] == 2
