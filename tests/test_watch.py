"""The live board at a terminal and in a pipe: `atb watch`."""

from __future__ import annotations

import json
import os
import select
import signal
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import instants
from agent_task_board.board.overview import LISTED, overview
from agent_task_board.cli.drawing import frame
from agent_task_board.cli.tables import cut, width
from tests.command_line import Terminal, program
from tests.shells import ESCAPE, console
from tests.support import MARIA, Clock, bring_to, hold, open_board
from tests.waiting import LIMIT, eventually

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from agent_task_board import Board
    from agent_task_board.board.core import Core
    from agent_task_board.board.overview import Overview
    from tests.shells import Console

TAKEN = "\x1b[?1049h"
GIVEN_BACK = "\x1b[?1049l"
NOTHING: Mapping[str, str] = {}


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def watching(
    terminal: Terminal, *options: str, size: tuple[int, int] = (80, 24), environ: Mapping[str, str] = NOTHING
) -> AbstractContextManager[Console]:
    return console(
        *program(None),
        "watch",
        *options,
        cwd=terminal.directory,
        environ={**terminal.environ, **environ},
        size=size,
    )


def is_left_as_it_was(screen: Console) -> bool:
    """Say whether the terminal shows what it showed before, with its cursor, and takes lines again."""
    last = screen.written.rpartition(TAKEN)[2]
    ends = all(last.count(sequence) == 1 for sequence in ("\x1b[?25h", "\x1b[?7h", GIVEN_BACK))
    return ends and screen.state() == screen.before


# At a terminal


def test_board_is_drawn_and_drawn_again_when_somebody_writes(terminal: Terminal) -> None:
    terminal.add("Write the parser", "--priority", "3")
    with watching(terminal) as screen:
        screen.until("q quits")
        assert screen.written.count(TAKEN) == 1
        assert "READY 1" in screen.text
        assert "p3" in screen.text
        screen.forget()
        id_, token = terminal.claim()
        screen.until("IN PROGRESS 1")
        assert "Write the parser" in screen.text
        screen.forget()
        terminal.task("heartbeat", id_, "--token", token, "--progress", "40")
        screen.until("40 %")
        assert "READY" not in screen.text, "only lines that changed are written"
        screen.forget()
        terminal.task("complete", id_, "--token", token)
        screen.until("1 done")
        screen.type("q")
        assert screen.ended() == 0
        assert is_left_as_it_was(screen)


def test_lease_that_ends_is_seen_although_nobody_writes(terminal: Terminal) -> None:
    terminal.add("Write the parser")
    terminal.claim("--lease", "2s")
    with watching(terminal) as screen:
        screen.until("lease expired")
        screen.until("NEEDS YOU 1")


def test_delay_that_ends_is_seen_although_nobody_writes(terminal: Terminal) -> None:
    terminal.add("Later", "--not-before", instants.to_text(instants.now() + 2_500))
    with watching(terminal) as screen:
        screen.until("READY 0")
        screen.until("READY 1")
        screen.until("Later")


@pytest.mark.parametrize("keys", ["q", "Q", "\x03"])
def test_key_quits_and_leaves_the_terminal_as_it_was(terminal: Terminal, keys: str) -> None:
    terminal.add()
    with watching(terminal) as screen:
        screen.until("q quits")
        assert screen.state() != screen.before, "keys must arrive without a line break"
        screen.type(keys)
        assert screen.ended() == (130 if keys == "\x03" else 0)
        assert is_left_as_it_was(screen)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_signal_that_ends_it_leaves_the_terminal_as_it_was(terminal: Terminal, number: signal.Signals) -> None:
    terminal.add()
    with watching(terminal) as screen:
        screen.until("q quits")
        os.kill(screen.pid, number)
        assert screen.ended() == 128 + number
        assert is_left_as_it_was(screen)


def test_failure_leaves_the_terminal_as_it_was_and_is_said_there(terminal: Terminal) -> None:
    terminal.add()
    with watching(terminal) as screen:
        screen.until("q quits")
        for file in (terminal.directory / "data").iterdir():
            file.unlink()
        assert screen.ended() == 3
        assert is_left_as_it_was(screen)
        assert "not_found" in screen.written.partition(GIVEN_BACK)[2]


def test_bug_leaves_the_terminal_as_it_was(terminal: Terminal) -> None:
    terminal.add()
    broken = (
        "import sys; from agent_task_board import cli; from agent_task_board.cli import drawing;"
        "drawing.frame = lambda *a, **k: 1 / 0; raise SystemExit(cli.main(['watch']))"
    )
    with console(*program(broken), cwd=terminal.directory, environ=terminal.environ) as screen:
        assert screen.ended() == 1
        assert is_left_as_it_was(screen)
        assert "ZeroDivisionError" in screen.written.partition(GIVEN_BACK)[2]


def test_ctrl_s_does_not_hold_up_the_drawing_or_the_end(terminal: Terminal) -> None:
    terminal.add()
    with watching(terminal) as screen:
        screen.until("q quits")
        screen.type("\x13")
        terminal.add("another one")
        screen.until("READY 2")
        os.kill(screen.pid, signal.SIGTERM)
        assert screen.ended() == 128 + signal.SIGTERM
        assert is_left_as_it_was(screen)


def test_stopped_by_ctrl_z_it_gives_the_terminal_back_and_takes_it_again(terminal: Terminal) -> None:
    terminal.add()
    shell_line = f"{' '.join(program(None))} watch; echo stopped=$?; stty -a >stopped; fg; echo ended=$?; exit"
    with console("/bin/bash", "--norc", "-i", cwd=terminal.directory, environ=terminal.environ) as screen:
        screen.type(f"stty -a >before\n{shell_line}\n")
        screen.until("q quits")
        screen.type("\x1a")
        screen.until("stopped=148")
        eventually(lambda: screen.read(0.05) or screen.written.count(TAKEN) == 2, "the terminal is taken again")
        assert screen.written.count(GIVEN_BACK) == 1
        before, stopped = ((terminal.directory / name).read_text() for name in ("before", "stopped"))
        assert "-echo " not in stopped
        assert before == stopped
        screen.until("READY 1")
        screen.type("q")
        screen.until("ended=0")
        assert screen.written.count(GIVEN_BACK) == 2


def test_resized_terminal_is_filled_anew_and_no_line_is_too_long(terminal: Terminal) -> None:
    terminal.add("A title that is far too long for a narrow terminal, but fits into a wide one without any cut at all")
    with watching(terminal, size=(40, 12)) as screen:
        screen.until("q quits")
        assert "\u2026" in screen.text
        assert "cut at all" not in screen.text
        screen.forget()
        screen.resize(200, 50)
        screen.until("cut at all")
        assert "\x1b[2J" in screen.written
        assert "\x1b[50;1H" in screen.written


def test_ctrl_l_draws_everything_anew(terminal: Terminal) -> None:
    terminal.add()
    with watching(terminal) as screen:
        screen.until("q quits")
        screen.forget()
        screen.type("\x0c")
        screen.until("q quits")


def test_colours_are_left_out_where_they_are_not_wanted(terminal: Terminal) -> None:
    terminal.add()
    with watching(terminal, environ={"NO_COLOR": "1"}) as screen:
        screen.until("q quits")
        assert "\x1b[1m" not in screen.written
    with watching(terminal) as screen:
        screen.until("q quits")
        assert "\x1b[1m" in screen.written


@pytest.mark.parametrize(
    ("options", "environ"),
    [(["--json"], {}), (["--format", "json"], {}), ([], {"ATB_AGENT": "ada"}), ([], {"TERM": "dumb"})],
)
def test_terminal_gets_lines_of_json_where_they_are_asked_for(
    terminal: Terminal, options: list[str], environ: dict[str, str]
) -> None:
    terminal.add()
    with watching(terminal, *options, environ=environ) as screen:
        screen.until('"ready":{"count":1')
        assert "\x1b" not in screen.written
        screen.type("\x03")
        assert screen.ended() == 130


# In a pipe


def line_of(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Return the next line that is printed."""
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], LIMIT)[0], "nothing is printed"
    found: dict[str, Any] = json.loads(process.stdout.readline())
    return found


def test_pipe_gets_a_line_for_each_change(terminal: Terminal) -> None:
    terminal.add("Write the parser")
    with terminal.started("watch") as process:
        first = line_of(process)
        assert list(first) == [
            *("at", "revision", "counts", "blocked", "stuck", "delayed", "needs_you", "in_progress", "ready"),
        ]
        assert list(first["needs_you"]) == ["review", "expired", "stuck", "overdue", "failed"]
        assert [task["title"] for task in first["ready"]["tasks"]] == ["Write the parser"]
        id_, _ = terminal.claim()
        second = line_of(process)
        assert second["revision"] > first["revision"]
        assert (second["in_progress"]["count"], second["ready"]["count"]) == (1, 0)
        assert second["in_progress"]["tasks"][0]["id"] == id_
        assert second["counts"]["claimed"] == 1
        assert process.poll() is None


def test_pipe_gets_no_line_without_a_change(terminal: Terminal) -> None:
    terminal.add()
    with terminal.started("watch") as process:
        first = line_of(process)
        terminal.atb("tick")  # it finds nothing to do
        terminal.atb("list")
        terminal.add("the only change")
        second = line_of(process)
        assert second["revision"] == first["revision"] + 1
        assert second["ready"]["count"] == 2


def test_it_ends_when_the_reader_closes_the_pipe(terminal: Terminal) -> None:
    terminal.add()
    with terminal.started("watch") as process:
        line_of(process)
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(LIMIT) == 0


def test_board_that_is_replaced_is_read_anew(terminal: Terminal, tmp_path: Path) -> None:
    terminal.add("old")
    other = Terminal(tmp_path / "other")
    other.directory.mkdir()
    other.add("new")
    connection = sqlite3.connect(other.directory / "data" / "tasks.db")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    with terminal.started("watch") as process:
        assert line_of(process)["ready"]["tasks"][0]["title"] == "old"
        os.replace(other.directory / "data" / "tasks.db", terminal.directory / "data" / "tasks.db")
        assert line_of(process)["ready"]["tasks"][0]["title"] == "new"


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_missing_board_is_refused_and_not_created(terminal: Terminal, options: list[str]) -> None:
    terminal.refused("not_found", "watch", *options)
    assert terminal.files() == set()


def test_it_holds_no_transaction_while_it_waits(terminal: Terminal) -> None:
    terminal.add("one")
    connection = sqlite3.connect(terminal.directory / "data" / "tasks.db", timeout=LIMIT, isolation_level=None)
    with terminal.started("watch") as process:
        line_of(process)
        terminal.add("two")
        line_of(process)
        # A reader's transaction, or a cursor that it left open, would keep the log from being emptied.
        busy = eventually(
            lambda: (row := connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone())[0] == 0 and row,
            "the log is emptied",
        )
        assert busy[1] == 0
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("ROLLBACK")
        assert process.poll() is None
    connection.close()


def test_it_reads_nothing_but_a_mark_while_nothing_changes(
    board: Board, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent_task_board.cli import watch

    board.add("one")
    reads: list[int] = []
    original = overview

    def counted(core: Core) -> Overview:
        reads.append(1)
        return original(core)

    monkeypatch.setattr("agent_task_board.board.overview.overview", counted)
    monkeypatch.setattr(watch, "PAUSE", -1)
    monkeypatch.setattr(instants, "now", clock)
    with open_board(board.database.directory, clock) as other:
        reader = watch.Reader(other)
        assert reader.look()
        assert [reader.look() for _ in range(100)] == [False] * 100
        assert len(reads) == 1
        board.add("two")
        assert reader.look()
        assert not reader.look()
        assert len(reads) == 2
        with board.write(MARIA) as tx:
            tx.register_agent("eve")
        assert not reader.look(), "what is shown is as it was"
        assert len(reads) == 3


# What it shows


def seen(board: Board, columns: int = 80, lines: int = 24) -> list[str]:
    found = overview(board)
    return frame(found.data, "/srv/board/data", columns, lines, found.at, colours=False).lines


def test_reason_that_a_task_needs_a_person_is_named_once(board: Board, clock: Clock) -> None:
    failed, review = bring_to(board, "failed").id, bring_to(board, "review").id
    late = board.add("late", due_at=instants.to_text(clock.now + 60_000)).task.id
    expired = board.add("expired", due_at=instants.to_text(clock.now + 60_000), priority=5).task.id
    hold(board, task=expired, lease="1m")
    found = overview(board)
    assert {name: group["count"] for name, group in found.data["needs_you"].items()} == {
        "review": 1, "expired": 0, "stuck": 0, "overdue": 0, "failed": 1,
    }  # fmt: skip
    assert found.until == clock.now + 60_000
    assert found.holds_at(clock.now + 59_999)
    assert not found.holds_at(clock.now + 60_000)
    assert not found.holds_at(clock.now - 1), "the clock was set back"
    clock.advance(minutes=1, seconds=0.001)
    needs = overview(board).data["needs_you"]
    assert {name: [task["id"] for task in group["tasks"]] for name, group in needs.items()} == {
        "review": [review], "expired": [expired], "stuck": [], "overdue": [late], "failed": [failed],
    }  # fmt: skip
    assert overview(board).data["in_progress"]["count"] == 0
    assert overview(board).until is None


def test_ready_tasks_stand_in_the_order_of_a_claim(board: Board, clock: Clock) -> None:
    for title, priority in (("a", 0), ("b", 2), ("c", 2), ("d", 1)):
        board.add(title, priority=priority)
    board.add("delayed", priority=2, not_before=instants.to_text(clock.now + 60_000))
    assert overview(board).until == clock.now + 60_000
    assert overview(board).data["delayed"] == 1
    clock.advance(minutes=1)
    ready = overview(board).data["ready"]
    assert [task["title"] for task in ready["tasks"]] == ["b", "c", "delayed", "d", "a"]
    assert ready["count"] == 5
    assert [hold(board).task.title for _ in range(5)] == ["b", "c", "delayed", "d", "a"]


def test_group_lists_so_many_tasks_and_counts_all(board: Board) -> None:
    for number in range(LISTED + 3):
        board.add(f"task {number}")
    ready = overview(board).data["ready"]
    assert (ready["count"], len(ready["tasks"])) == (LISTED + 3, LISTED)


@pytest.mark.parametrize("columns", [1, 2, 10, 20, 40, 80, 120, 200])
@pytest.mark.parametrize("lines", [1, 2, 3, 8, 24, 50])
def test_frame_fits_every_terminal(board: Board, columns: int, lines: int) -> None:
    for number in range(30):
        board.add(f"任务 {number} " + "long " * 30, priority=number, queue="q" * 90, assignee="名" * 50)
    bring_to(board, "running", queue="other")
    bring_to(board, "review", queue="other")
    drawn = seen(board, columns, lines)
    assert len(drawn) <= lines
    assert max(map(width, drawn)) <= columns
    if columns >= 40 and lines >= 24:
        assert [line.split()[0] for line in drawn if line.startswith(("NEEDS", "IN", "READY"))] == [
            "NEEDS", "IN", "READY",
        ]  # fmt: skip
        assert any(line.endswith("\u2026") for line in drawn)
        assert any("shown" in line for line in drawn) is (lines < 50)


def test_text_cannot_control_the_terminal(board: Board) -> None:
    board.add("plain", queue="x")  # the board refuses control characters in titles; an older file may hold them
    found = overview(board)
    task = found.data["ready"]["tasks"][0]
    for field in ("title", "queue"):
        task[field] = "a\x1b[2J\x07\r\nb\x9b\u202ec"
    task["assignee"] = "\x1b]0;owned\x07"
    text = "\n".join(frame(found.data, "/srv/\x1b[31m", 200, 24, found.at).lines)
    assert ESCAPE.sub("", text).isprintable() or not set("\x1b\x07\r\x9b\u202e") & set(ESCAPE.sub("", text))
    assert "a\\u001b[2J\\u0007\\r\\nb\\u009b\\u202ec" in text
    assert "\x1b[2J" not in text


def test_length_of_time_is_drawn_anew_when_it_changes(board: Board, clock: Clock) -> None:
    board.add("one")
    hold(board, lease="15m")

    def shown() -> tuple[str, int]:
        found = frame(overview(board).data, "data", 80, 24, clock.now, colours=False)
        assert found.until is not None
        return next(line for line in found.lines if "left" in line), found.until

    for expected in ("15m left", "14m left", "13m left"):
        line, until = shown()
        assert expected in line
        clock.now = until - 1
        assert expected in shown()[0]
        clock.now = until
    clock.advance(minutes=11)
    line, until = shown()
    assert "s left" in line
    assert until - clock.now <= 1_000


def test_cut_text_is_as_long_as_it_may_be() -> None:
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdef", 5) == "abcd\u2026"
    assert cut("任务任务", 5) == "任务\u2026"
    assert cut("任务任务", 6) == "任务\u2026"
