"""The fair queue before the write lock: a courtesy that may delay a writer, and never stops one."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_task_board.storage import turnstile
from agent_task_board.storage.turnstile import Turnstile
from tests.processes import LIMIT, Stage, assert_sound, exit_code, in_fork
from tests.support import open_board
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = ("turnstile.queue", "turnstile.turn")


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


@pytest.fixture
def holder(stage: Stage) -> Iterator[Stage]:
    """Return a process that may be stopped; it goes on at the end of the test and forgets every lock."""
    yield stage
    os.kill(stage.pid, signal.SIGCONT)
    stage.call(let_go)


_held: list[int] = []


def hold(path: str) -> None:
    """Take a lock file and keep it."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX)
    _held.append(file)


def let_go() -> None:
    while _held:
        os.close(_held.pop())


def hold_and_stop(holder: Stage, *paths: Path) -> None:
    """Let a process take locks, and stop it for good."""
    for path in paths:
        holder.call(hold, str(path))
    os.kill(holder.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, holder.pid, os.WSTOPPED)


def is_free(path: Path) -> bool:
    """Say whether nobody holds a lock file."""
    file = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(file)
    return True


def resources() -> tuple[int, int]:
    """Return how many descriptors and how many threads this process has."""
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def no_more_than(before: tuple[int, int]) -> bool:
    return all(now <= then for now, then in zip(resources(), before, strict=True))


@pytest.mark.parametrize("held", [FILES[:1], FILES[1:], FILES], ids="-".join)
def test_a_stopped_holder_delays_another_writer_but_does_not_stop_it(
    tmp_path: Path, holder: Stage, held: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turnstile, "PATIENCE", 0.1)
    board = open_board(tmp_path)
    board.add("before")
    hold_and_stop(holder, *(tmp_path / name for name in held))

    writer = threading.Thread(target=board.add, args=("meanwhile",))
    writer.start()
    eventually(lambda: not writer.is_alive(), "the write")

    assert [task.title for task in board.list_tasks().tasks] == ["before", "meanwhile"]
    board.close()


def test_after_the_stopped_holder_has_gone_the_line_is_as_it_was(
    tmp_path: Path, holder: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turnstile, "PATIENCE", 0.05)
    board = open_board(tmp_path)
    board.add("before")
    hold_and_stop(holder, tmp_path / FILES[0])
    board.add("meanwhile")
    os.kill(holder.pid, signal.SIGCONT)
    holder.call(let_go)

    # Whoever gave up waiting must not come to hold the lock later on and keep it.
    eventually(lambda: is_free(tmp_path / FILES[0]))
    monkeypatch.setattr(turnstile, "PATIENCE", LIMIT)
    board.add("afterwards")
    assert all(is_free(tmp_path / name) for name in FILES)
    board.close()


def test_waits_given_up_do_not_pile_up(tmp_path: Path, holder: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turnstile, "PATIENCE", 0.01)
    board = open_board(tmp_path)
    board.add("before")
    descriptors, threads = resources()
    hold_and_stop(holder, *(tmp_path / name for name in FILES))

    for number in range(20):
        board.add(f"meanwhile {number}")
        now = resources()
        assert now[0] <= descriptors + 2, "each wait keeps a descriptor"
        assert now[1] <= threads + 2, "each wait keeps a thread"

    os.kill(holder.pid, signal.SIGCONT)
    holder.call(let_go)
    board.add("afterwards")
    eventually(lambda: no_more_than((descriptors, threads)))
    board.close()
    eventually(lambda: all(is_free(tmp_path / name) for name in FILES))


def test_a_board_closed_during_a_wait_given_up_leaves_nothing_behind(
    tmp_path: Path, holder: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turnstile, "PATIENCE", 0.01)
    (tmp_path / FILES[0]).touch()
    before = resources()
    board = open_board(tmp_path)
    hold_and_stop(holder, tmp_path / FILES[0])
    board.add("meanwhile")
    board.close()
    os.kill(holder.pid, signal.SIGCONT)
    holder.call(let_go)

    eventually(lambda: no_more_than(before))
    assert is_free(tmp_path / FILES[0])


def test_a_killed_holder_gives_way_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turnstile, "PATIENCE", LIMIT)
    board = open_board(tmp_path)
    with Stage() as holder:
        hold_and_stop(holder, *(tmp_path / name for name in FILES))
        os.kill(holder.pid, signal.SIGKILL)
        board.add("afterwards")
    assert [task.title for task in board.list_tasks().tasks] == ["afterwards"]
    board.close()


def test_without_flock_writers_go_on_without_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turnstile, "HAS_FLOCK", False)
    board = open_board(tmp_path)
    board.add("one")
    board.add("two")
    board.close()
    assert not any((tmp_path / name).exists() for name in FILES)
    assert_sound(tmp_path)


def test_a_file_system_without_flock_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: int, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    board = open_board(tmp_path)
    board.add("warm up")
    before = resources()
    for number in range(5):
        board.add(f"task {number}")
    assert no_more_than(before)
    board.close()


def test_lock_files_that_cannot_be_opened_are_no_obstacle(tmp_path: Path) -> None:
    for name in FILES:
        (tmp_path / name).mkdir()
    board = open_board(tmp_path)
    board.add("one")
    board.close()
    assert_sound(tmp_path)


def test_two_threads_of_one_process_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turnstile, "PATIENCE", LIMIT)
    mine, theirs = Turnstile(str(tmp_path)), Turnstile(str(tmp_path))
    entered = threading.Event()

    def stand_in_line() -> None:
        theirs.enter()
        entered.set()

    mine.enter()
    other = threading.Thread(target=stand_in_line)
    other.start()
    eventually(lambda: not is_free(tmp_path / FILES[0]), "standing in line")
    assert not entered.is_set()
    mine.leave()
    assert entered.wait(LIMIT)
    other.join(LIMIT)
    assert not is_free(tmp_path / FILES[1])
    theirs.leave()
    assert is_free(tmp_path / FILES[1])
    mine.close()
    theirs.close()


def test_a_writer_who_comes_straight_back_stands_behind_those_who_waited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turnstile, "PATIENCE", LIMIT)
    lines = [Turnstile(str(tmp_path)) for _ in range(2)]
    order: list[str] = []

    def second() -> None:
        lines[1].enter()
        order.append("waited")
        lines[1].leave()

    lines[0].enter()
    other = threading.Thread(target=second)
    other.start()
    eventually(lambda: not is_free(tmp_path / FILES[0]), "standing in line")
    lines[0].leave()
    lines[0].enter()
    order.append("came back")
    lines[0].leave()
    other.join(LIMIT)
    assert order == ["waited", "came back"]
    for line in lines:
        line.close()


def test_threads_that_share_a_board_lose_no_write(tmp_path: Path) -> None:
    board = open_board(tmp_path)

    def add_fifty() -> None:
        for number in range(50):
            board.add(f"task {number}")

    threads = [threading.Thread(target=add_fifty) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert len(board.list_tasks(limit=1_000).tasks) == 200
    board.close()
    assert_sound(tmp_path)


def fork_while_it_is_our_turn(directory: str) -> int:
    """Fork a process in the middle of a write; the child must neither take its parent's turn for its own nor end it."""
    board = open_board(directory)
    board.add("parent")
    with board.database.write():
        turnstile.PATIENCE = 0.05
        code = exit_code(in_fork(lambda: Turnstile(directory).enter()))
        assert not is_free(Path(directory, FILES[1]))
    assert is_free(Path(directory, FILES[1]))
    board.close()
    return code


def test_a_forked_child_leaves_its_parents_turn_alone(tmp_path: Path) -> None:
    with Stage() as stage:
        assert stage.call(fork_while_it_is_our_turn, str(tmp_path)) == 0
    assert_sound(tmp_path)


def test_writer_that_can_start_no_thread_goes_on_without_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(turnstile, "start_new_thread", none_left)
    board, other = open_board(tmp_path), Turnstile(str(tmp_path))
    other.enter()
    try:
        assert board.add("task").created
    finally:
        other.leave()
        other.close()
        board.close()
