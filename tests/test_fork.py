"""Processes that are forked while a board is open, and those that are started in other ways."""

from __future__ import annotations

import ast
import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import agent_task_board
from agent_task_board import Board, BoardError, Settings
from agent_task_board.settings import Hooks
from agent_task_board.storage.db import Database
from tests.command_line import Terminal, program
from tests.processes import LIMIT, Stage, assert_sound, exit_code, in_fork
from tests.support import MARIA, open_board
from tests.test_turnstile import FILES, is_free
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOURCES = Path(agent_task_board.__file__).parent

CALLS: dict[str, Callable[[Board], object]] = {
    "add": lambda board: board.add("from the child"),
    "claim": lambda board: board.claim("child"),
    "tick": lambda board: board.tick(),
    "list": lambda board: board.list_tasks(),
    "stats": lambda board: board.stats(),
    "create": lambda board: board.create(),
    "backup": lambda board: board.backup(),
    "import": lambda board: board.import_tasks([{"title": "from the child"}]),
    "export": lambda board: board.export(os.path.join(os.path.dirname(board.path), "export.json")),
}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


def answers(function: Callable[[], Any]) -> Any:
    """Run a function in a forked child and return what it returns."""
    ours, theirs = os.pipe()

    def report() -> None:
        os.write(theirs, json.dumps(function()).encode())

    child = in_fork(report)
    os.close(theirs)
    with os.fdopen(ours) as pipe:
        text = pipe.read()
    assert exit_code(child) == 0
    return json.loads(text)


def outcome(call: Callable[[], object]) -> str:
    """Return the code of a refusal, with its hint; ``worked`` if there was none."""
    try:
        call()
    except BoardError as refusal:
        return f"{refusal.code}: {refusal.message} ({refusal.hint})"
    return "worked"


def outcomes(board: Board) -> dict[str, str]:
    """Return what each call on a board answers."""
    return {name: outcome(lambda: call(board)) for name, call in CALLS.items()}  # noqa: B023


def are_refused(found: dict[str, str]) -> bool:
    return all(text.startswith("unusable: ") and "forked" in text and "exec" in text for text in found.values())


def titles(directory: Path) -> list[str]:
    with open_board(directory) as board:
        return [task.title for task in board.list_tasks(limit=1_000).tasks]


# What the child is answered


def fork_with_an_open_board(directory: str, link: str) -> dict[str, dict[str, str]]:
    """Return what a child is answered by the board that it inherits and by others on the same file."""
    board = open_board(directory)
    board.add("from the parent")
    boards: dict[str, Callable[[], Board]] = {
        "inherited": lambda: board,
        "of its own": lambda: open_board(directory),
        "through a link": lambda: open_board(link),
        "read only": lambda: Board(directory, read_only=True),
    }
    found: dict[str, dict[str, str]] = answers(lambda: {name: outcomes(make()) for name, make in boards.items()})
    board.add("after the child has ended")
    board.close()
    return found


def test_child_of_a_process_with_an_open_board_is_refused_every_call(tmp_path: Path, stage: Stage) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "data")
    found = stage.call(fork_with_an_open_board, str(tmp_path / "data"), str(tmp_path / "link"))
    for how, answered in found.items():
        assert set(answered) == set(CALLS)
        assert are_refused(answered), (how, answered)
    assert titles(tmp_path / "data") == ["from the parent", "after the child has ended"]
    assert_sound(tmp_path / "data")


def close_in_the_parent(directory: str) -> dict[str, str]:
    """Fork, and close the board in the parent before the child goes on."""
    board = open_board(directory)
    board.add("from the parent")
    go, ready = os.pipe()

    def go_on() -> dict[str, str]:
        os.close(ready)
        os.read(go, 1)
        return outcomes(board)

    ours, theirs = os.pipe()
    child = in_fork(lambda: os.write(theirs, json.dumps(go_on()).encode()))
    os.close(theirs)
    board.close()
    os.close(ready)
    with os.fdopen(ours) as pipe:
        found: dict[str, str] = json.loads(pipe.read())
    assert exit_code(child) == 0
    os.close(go)
    return found


def test_child_is_refused_after_its_parent_has_closed_the_board(tmp_path: Path, stage: Stage) -> None:
    assert are_refused(stage.call(close_in_the_parent, str(tmp_path)))
    assert titles(tmp_path) == ["from the parent"]
    assert_sound(tmp_path)


def fork_during_a_write(directory: str) -> str:
    """Fork in the body of a write transaction; return how the transaction ends in the child."""
    board = open_board(directory)
    board.add("from the parent")
    database = Database(directory)
    ours, theirs = os.pipe()
    with contextlib.ExitStack() as stack:
        tx = stack.enter_context(database.write())
        tx.execute("UPDATE task SET title = 'changed by the parent'")
        child = in_fork(lambda: os.write(theirs, outcome(stack.close).encode()))
        os.close(theirs)
        code = exit_code(child)
    with os.fdopen(ours) as pipe:
        found = pipe.read()
    assert code == 0
    database.close()
    board.close()
    return found


def test_transaction_that_forks_is_committed_by_the_parent_alone(tmp_path: Path, stage: Stage) -> None:
    assert stage.call(fork_during_a_write, str(tmp_path)).startswith("unusable: ")
    assert titles(tmp_path) == ["changed by the parent"]
    assert_sound(tmp_path)


@pytest.mark.parametrize("how", ["never opened", "closed"])
def test_child_works_on_a_board_that_is_not_open_in_its_parent(tmp_path: Path, stage: Stage, how: str) -> None:
    assert stage.call(child_of_a_parent_without_the_board, str(tmp_path), how) == ["worked", "worked"]
    before = ["from the parent"] if how == "closed" else []
    assert titles(tmp_path) == [*before, "from the child", "and another", "from the parent afterwards"]
    assert_sound(tmp_path)


def child_of_a_parent_without_the_board(directory: str, how: str) -> list[str]:
    """Return what a child is answered whose parent has another board open, and not this one."""
    board = open_board(directory)
    other = open_board(os.path.join(directory, "other"))
    other.add("in another board")
    if how == "closed":
        board.add("from the parent")
        board.close()

    def work() -> list[str]:
        second = open_board(directory)
        found = [outcome(lambda: board.add("from the child")), outcome(lambda: second.add("and another"))]
        board.close()
        second.close()
        return found

    found: list[str] = answers(work)
    board.add("from the parent afterwards")
    board.close()
    other.close()
    return found


def fork_past_the_hooks(directory: str) -> list[dict[str, str]]:
    """Fork as a C library would, without the hooks of Python."""
    import ctypes

    board = open_board(directory)
    board.add("from the parent")
    ours, theirs = os.pipe()
    pid = ctypes.PyDLL(None).fork()
    if pid == 0:
        try:
            os.write(theirs, json.dumps([outcomes(board), outcomes(open_board(directory))]).encode())
            board.close()
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as pipe:
        found: list[dict[str, str]] = json.loads(pipe.read())
    assert exit_code(pid) == 0
    board.add("after the child has ended")
    board.close()
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="calls the C library's fork")
def test_fork_by_a_c_library_is_noticed_too(tmp_path: Path, stage: Stage) -> None:
    assert all(are_refused(found) for found in stage.call(fork_past_the_hooks, str(tmp_path)))
    assert titles(tmp_path) == ["from the parent", "after the child has ended"]
    assert_sound(tmp_path)


# What the child does not do to its parent

ENDS_WITH_ITS_PARENTS_BOARD = """
import gc, os, sqlite3, sys

class Watched(sqlite3.Connection):
    def __del__(self):
        os.write(2, f"{os.getpid()} finalized\\n".encode())

connect = sqlite3.connect
sqlite3.connect = lambda *arguments, **options: connect(*arguments, **options, factory=Watched)

from agent_task_board import Board

board = Board(sys.argv[1])
board.add("from the parent")
generator = iter(lambda: board.list_tasks().tasks, None)
child = os.fork()
if child == 0:
    if "close" in sys.argv:
        board.close()
    del board, generator
    gc.collect()
    os.write(1, f"{os.getpid()}\\n".encode())
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert os.path.getsize(os.path.join(sys.argv[1], "tasks.db-wal")) > 0
board.add("after the child has ended")
board.close()
del board, generator
gc.collect()
"""


@pytest.mark.parametrize("how", ["leave", "close"])
def test_child_that_ends_by_sys_exit_finalizes_no_inherited_connection(tmp_path: Path, how: str) -> None:
    answer = Terminal(tmp_path).process(str(tmp_path / "data"), how, code=ENDS_WITH_ITS_PARENTS_BOARD)
    assert answer.code == 0, answer
    child = answer.text.strip()
    ended = [line.split()[0] for line in answer.err.splitlines() if line.endswith("finalized")]
    assert ended, "the parent closed its board, and no connection was finalized: nothing was shown"
    assert child not in ended
    assert titles(tmp_path / "data") == ["from the parent", "after the child has ended"]
    assert_sound(tmp_path / "data")


def close_in_child(directory: str) -> int:
    """Close the board in a forked child; its parent goes on writing on the connection that it had."""
    board = open_board(directory)
    board.add("before")

    def close_all() -> None:
        board.close()
        board.leave_thread()
        os.closerange(3, 256)  # as a daemon does

    code = exit_code(in_fork(close_all))
    board.add("after")
    with open_board(directory) as other:
        other.add("by another")
    board.close()
    return code


def test_closing_a_board_in_a_forked_child_leaves_its_parent_alone(tmp_path: Path, stage: Stage) -> None:
    assert stage.call(close_in_child, str(tmp_path)) == 0
    assert titles(tmp_path) == ["before", "after", "by another"]
    assert os.listdir(tmp_path).count("tasks.db-wal") == 0
    assert_sound(tmp_path)


def fork_while_a_thread_writes(directory: str) -> tuple[str, int]:
    """Fork while another thread is in the middle of a write; return what the child is answered, and its id.

    The child lives on until it is killed.
    """
    board = Board(directory, actor=MARIA, settings=Settings(busy_timeout=60_000))
    board.add("from the parent")
    holds, may_end = threading.Event(), threading.Event()

    def write() -> None:
        with board.database.write() as tx:
            tx.execute("UPDATE task SET title = 'by the thread'")
            holds.set()
            may_end.wait(LIMIT)

    thread = threading.Thread(target=write)
    thread.start()
    assert holds.wait(LIMIT)
    ours, theirs = os.pipe()

    def answer_and_stay() -> None:
        os.write(theirs, outcome(lambda: board.add("x")).encode())
        signal.pause()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of any fork beside a thread
        child = in_fork(answer_and_stay)
    os.close(theirs)
    found = os.read(ours, 10_000).decode()
    os.close(ours)
    _may_end.append(may_end)
    return found, child


_may_end: list[threading.Event] = []


def end_write() -> None:
    _may_end.pop().set()


def test_child_of_a_process_in_the_middle_of_a_write_is_refused_at_once(tmp_path: Path) -> None:
    with Stage() as parent:
        found, child = parent.call(fork_while_a_thread_writes, str(tmp_path))
        try:
            assert found.startswith("unusable: ")
            parent.call(end_write)
            assert eventually(lambda: titles(tmp_path) == ["by the thread"])
            assert eventually(lambda: all(is_free(tmp_path / name) for name in FILES))
        finally:
            os.kill(child, signal.SIGKILL)
    assert_sound(tmp_path)


def test_child_does_not_keep_the_turn_of_a_parent_that_died(tmp_path: Path) -> None:
    with Stage() as parent:
        _, child = parent.call(fork_while_a_thread_writes, str(tmp_path))
        try:
            assert not is_free(tmp_path / "turnstile.turn")
            os.kill(parent.pid, signal.SIGKILL)
            assert eventually(lambda: all(is_free(tmp_path / name) for name in FILES)), "the child keeps the lock"
            assert titles(tmp_path) == ["from the parent"]
        finally:
            os.kill(child, signal.SIGKILL)
    assert_sound(tmp_path)


def leave_a_daemon(directory: str, told: str) -> None:
    """Fork twice and end the middle process; the daemon writes what it is answered once its ancestor has gone."""
    board = open_board(directory)
    board.add("from the parent")
    ancestor = os.getpid()

    def daemon() -> None:
        os.setsid()
        assert eventually(lambda: os.getppid() == 1 or not alive(ancestor))
        Path(told).with_suffix(".part").write_text(json.dumps(outcomes(open_board(directory))))
        Path(told).with_suffix(".part").replace(told)

    assert exit_code(in_fork(lambda: in_fork(daemon))) == 0
    board.close()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_daemon_that_outlives_its_parent_is_refused(tmp_path: Path) -> None:
    told = tmp_path / "told"
    with Stage() as parent:
        parent.call(leave_a_daemon, str(tmp_path / "data"), str(told))
    assert eventually(told.exists)
    assert are_refused(json.loads(told.read_text()))
    assert titles(tmp_path / "data") == ["from the parent"]
    assert_sound(tmp_path / "data")


def fork_often(directory: str) -> list[str]:
    """Fork many times while other threads use a board; return what the children are answered, by any board."""
    board = open_board(directory)
    board.add("from the parent")
    stop = threading.Event()

    def work(number: int) -> None:
        while not stop.is_set():
            board.add("by a thread") if number % 2 else board.list_tasks()
            with open_board(directory) as other:
                other.list_tasks()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    found: set[str] = set()
    try:
        for number in range(25):
            places = (directory, f"{directory}/none", f"{directory}/{number}")

            def calls(places: tuple[str, ...] = places) -> list[str]:
                signal.alarm(60)  # a child that hangs dies of it
                first = [outcome(board.list_tasks), outcome(board.close)]
                return [first[0], *(outcome(lambda: open_board(place).create()) for place in places)]  # noqa: B023

            found.update(answers(calls))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    board.close()
    return sorted(found)


def test_child_forked_while_threads_use_a_board_is_refused_and_never_hangs(tmp_path: Path, stage: Stage) -> None:
    found = stage.call(fork_often, str(tmp_path))
    assert found
    assert all(text.startswith("unusable: ") and "forked" in text for text in found), found
    assert_sound(tmp_path)


# Other ways to start a process


def report(directory: str, pipe: Any) -> None:
    pipe.send(outcome(lambda: open_board(directory).add("from the child")))


def use_multiprocessing(directory: str, method: str) -> str:
    """Use a board in a process of multiprocessing whose parent has it open."""
    board = open_board(directory)
    board.add("from the parent")
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=report, args=(directory, theirs))  # type: ignore[attr-defined]
    process.start()
    theirs.close()
    assert ours.poll(LIMIT)
    found: str = ours.recv()
    process.join(LIMIT)
    assert process.exitcode == 0
    board.add("after the child has ended")
    board.close()
    return found


@pytest.mark.parametrize(("method", "expected"), [("fork", "unusable"), ("forkserver", "worked"), ("spawn", "worked")])
def test_process_of_multiprocessing(tmp_path: Path, method: str, expected: str) -> None:
    with Stage() as stage:
        assert stage.call(use_multiprocessing, str(tmp_path), method).startswith(expected)
    between = ["from the child"] if expected == "worked" else []
    assert titles(tmp_path) == ["from the parent", *between, "after the child has ended"]
    assert_sound(tmp_path)


LIST_FILES = """
import os, sys
for name in os.listdir("/proc/self/fd"):
    try:
        print(os.readlink(f"/proc/self/fd/{name}"))
    except OSError:
        pass
"""


def start_programs(directory: str, how: str) -> tuple[int, str]:
    """Start two programs in the middle of a write: return the first one's exit code and the second one's files."""
    board = open_board(directory)
    board.add("from the parent")
    options: dict[str, Any] = {"preexec_fn": lambda: None} if how == "preexec_fn" else {}
    environ = {**os.environ, "ATB_DATA_DIR": directory}
    with board.database.write() as tx:
        tx.execute("UPDATE task SET title = 'by the parent'")
        listed = subprocess.run(
            [sys.executable, "-c", LIST_FILES],
            capture_output=True,
            text=True,
            timeout=LIMIT,
            close_fds=False,
            **options,
        )
    ran = subprocess.run([*program(None), "add", "by the program"], env=environ, timeout=LIMIT, **options)
    board.add("after the program has ended")
    board.close()
    return ran.returncode, listed.stdout


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs /proc")
@pytest.mark.parametrize("how", ["at once", "preexec_fn"])
def test_program_started_by_exec_works_and_inherits_no_file_of_the_board(
    tmp_path: Path, stage: Stage, how: str
) -> None:
    code, listed = stage.call(start_programs, str(tmp_path), how)
    assert code == 0
    assert "/fd" in listed or "pipe" in listed
    assert str(tmp_path) not in listed
    assert titles(tmp_path) == ["by the parent", "by the program", "after the program has ended"]
    assert_sound(tmp_path)


# What this program itself starts

NEVER = {"fork", "forkpty", "preexec_fn", "multiprocessing", "ProcessPoolExecutor", "pty"}


def names_of(tree: ast.AST) -> set[str]:
    """Return every name that a module mentions, but for keyword arguments that only look like one."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.keyword) and node.arg == "preexec_fn":
            found.add(node.arg)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {part for alias in node.names for part in alias.name.split(".")}
            found |= set((getattr(node, "module", None) or "").split("."))
    return found


@pytest.mark.parametrize("path", sorted(SOURCES.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCES)))
def test_no_source_forks(path: Path) -> None:
    assert not names_of(ast.parse(path.read_text(encoding="utf-8"))) & NEVER


@pytest.mark.parametrize(
    "text",
    [
        "os.fork()",
        "run(x, preexec_fn=f)",
        "import multiprocessing.pool",
        "from os import fork",
        "from pty import spawn",
    ],
)
def test_source_that_forks_is_found(text: str) -> None:
    assert names_of(ast.parse(text)) & NEVER


WATCHED = """
import os, subprocess, sys
os.register_at_fork(before=lambda: os.write(2, b"FORKED\\n"))
started = []
sys.addaudithook(lambda event, arguments: started.append(event) if event in EVENTS else None)
EVENTS = ("os.fork", "os.forkpty", "subprocess.Popen", "os.posix_spawn")
from agent_task_board import cli
code = cli.main()
os.write(2, f"STARTED {' '.join(started)}\\n".encode())
raise SystemExit(code)
"""
HOOKS = """
[hooks]
enabled = true
command = ["sh", "-c", "exit 0"]
events = ["done"]
"""


@pytest.mark.parametrize(
    ("words", "event"),
    [
        (["complete"], "os.posix_spawn"),
        (["hooks", "deliver"], "subprocess.Popen"),
        (["tick"], "subprocess.Popen"),
        (["demo"], "subprocess.Popen"),
    ],
    ids=["complete", "deliver", "tick", "demo"],
)
def test_commands_start_other_programs_without_a_fork_of_python(tmp_path: Path, words: list[str], event: str) -> None:
    terminal = Terminal(tmp_path)
    terminal.write("atb.toml", HOOKS)
    terminal.add()
    id_, token = terminal.claim()
    if words == ["complete"]:  # a process of its own delivers
        words = ["complete", id_, "--token", token]
    elif words != ["demo"]:
        with Board(tmp_path / "data", actor=MARIA) as board:
            board.settings.hooks = Hooks(command=["true"])
            board.complete(id_, token)
    answer = terminal.process(*words, code=WATCHED, ATB_CONFIG="atb.toml")
    assert answer.code == 0, answer
    assert f"STARTED {event}" in answer.err, answer.err
    assert "FORKED" not in answer.err


def test_fork_of_python_is_seen_by_the_hook(tmp_path: Path) -> None:
    forking = WATCHED.replace("code = cli.main()", "code = 0; subprocess.run(['true'], preexec_fn=lambda: None)")
    assert "FORKED" in Terminal(tmp_path).process(code=forking).err
