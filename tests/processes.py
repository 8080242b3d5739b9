"""Real processes for tests, and a look at what they leave on disk.

Everything starts with ``spawn``, from a clean interpreter. What a process returns or raises comes back to the test;
one that hangs is ended after ``LIMIT`` seconds, which only a fault comes near.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sqlite3
import traceback
from multiprocessing.connection import wait
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from agent_task_board.storage.db import FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess
    from multiprocessing.synchronize import Barrier

    Result = TypeVar("Result")

SPAWN = multiprocessing.get_context("spawn")
LIMIT = 120.0


def run_together(function: Callable[..., Result], arguments: Sequence[tuple[Any, ...]]) -> list[Result]:
    """Run a function once for each tuple of arguments, each in a process of its own, and return what they return.

    Raises:
        AssertionError: one of them raised, died or hung; all others are ended.
    """
    children: dict[Connection, tuple[int, SpawnProcess]] = {}
    results: dict[int, Result] = {}
    try:
        for number, given in enumerate(arguments):
            ours, theirs = SPAWN.Pipe(duplex=False)
            process = SPAWN.Process(target=_report, args=(theirs, function, given))
            process.start()
            theirs.close()
            children[ours] = (number, process)
        deadline = monotonic() + LIMIT
        pending = list(children)
        while pending:
            ready = wait(pending, timeout=max(0.0, deadline - monotonic()))
            assert ready, f"{len(pending)} of {len(children)} processes hang"
            for ours in [one for one in pending if one in ready]:
                number, process = children[ours]
                results[number] = _receive(ours, process)
                pending.remove(ours)
    finally:
        for ours, (_, process) in children.items():
            _end(process, kill=len(results) < len(children))
            ours.close()
    return [results[number] for number in range(len(children))]


class Stage:
    """One process that runs functions for the test, one after another.

    It has a single thread and no open board, so that functions may fork there as they like.
    """

    def __init__(self) -> None:
        self._ours, theirs = SPAWN.Pipe()
        self._process = SPAWN.Process(target=_serve, args=(theirs,))
        self._process.start()
        theirs.close()

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        _end(self._process, kill=True)
        self._ours.close()

    @property
    def pid(self) -> int:
        """The process's id."""
        assert self._process.pid is not None
        return self._process.pid

    def begin(self, function: Callable[..., object], *arguments: object) -> None:
        """Start a function; ``result`` waits for its end."""
        self._ours.send((function, arguments))

    def result(self) -> Any:
        """Return what the function returned."""
        assert self._ours.poll(LIMIT), "the process hangs"
        return _receive(self._ours, self._process)

    def call(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Run a function and return what it returns."""
        self.begin(function, *arguments)
        result: Result = self.result()
        return result


def kill_after(function: Callable[..., object], *arguments: object) -> None:
    """Run a function in a process that is killed, with everything still open, as soon as it has returned."""
    process = SPAWN.Process(target=_run_and_die, args=(function, arguments))
    process.start()
    process.join(LIMIT)
    _end(process, kill=True)
    assert process.exitcode == -signal.SIGKILL, process.exitcode


def in_fork(function: Callable[[], object]) -> int:
    """Start a function in a forked child and return the child's id; ``exit_code`` waits for it."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            function()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return pid


def exit_code(pid: int) -> int:
    """Wait for a forked child; return its exit code, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def meet(barrier: Barrier) -> None:
    """Wait until all processes of the barrier are here."""
    barrier.wait(LIMIT)


def contents(directory: object) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of a board by table; nothing for a board without a schema or none at all."""
    path = f"{directory}/{FILE}"
    if not os.path.exists(path) or os.stat(path).st_size == 0:
        return {}
    with raw(directory) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {table: sorted(connection.execute(f"SELECT * FROM {table}"), key=repr) for table in tables}


def assert_sound(directory: object) -> None:
    """Check that the file is whole, every reference leads somewhere, and the events have no gap."""
    with raw(directory) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        seqs = [seq for (seq,) in connection.execute("SELECT seq FROM event ORDER BY seq")]
        assert seqs == list(range(1, len(seqs) + 1))


@contextlib.contextmanager
def raw(directory: object) -> Iterator[sqlite3.Connection]:
    """Open a board's file past the board, every statement a transaction of its own."""
    with contextlib.closing(sqlite3.connect(f"{directory}/{FILE}", isolation_level=None)) as connection:
        yield connection


def _report(theirs: Connection, function: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    try:
        answer = ("returned", function(*arguments))
    except BaseException:
        answer = ("raised", traceback.format_exc())
    theirs.send(answer)


def _serve(theirs: Connection) -> None:
    while True:
        try:
            function, arguments = theirs.recv()
        except EOFError:
            return
        _report(theirs, function, arguments)


def _run_and_die(function: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    function(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)


def _receive(ours: Connection, process: SpawnProcess) -> Any:
    try:
        how, value = ours.recv()
    except EOFError:
        process.join(LIMIT)
        raise AssertionError(f"a process died with {process.exitcode}") from None
    assert how == "returned", value
    return value


def _end(process: SpawnProcess, *, kill: bool) -> None:
    if kill:
        process.kill()
    process.join(LIMIT)
