"""Processes that are killed one step later each time, until one lives to the end."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
from itertools import count
from typing import TYPE_CHECKING, Any

from tests.processes import exit_code, in_fork

if TYPE_CHECKING:
    from collections.abc import Callable

_CHANGES = {"open", "os.mkdir", "os.link", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree", "sqlite3.connect"}


def kill_at_every_step(
    base: str | None, places: str, act: Callable[..., object], *arguments: object
) -> list[list[str]]:
    """Run ``act(place, …)`` on copies of a directory; copy ``n`` is in the directory ``n`` of ``places``.

    A step is a statement of SQL, or what changes names below ``places``. Returns the steps that each run ended.
    """
    runs: list[list[str]] = []
    for step in count():
        place = os.path.join(places, str(step))
        shutil.copytree(base, place) if base is not None else os.mkdir(place)
        ours, theirs = os.pipe()
        child = in_fork(lambda: _run_and_die(step, place, theirs, act, arguments))  # noqa: B023
        os.close(theirs)
        with os.fdopen(ours) as pipe:
            begun = pipe.read().splitlines()
        code = exit_code(child)
        if code == 0:
            runs.append(begun)
            return runs
        assert code == -signal.SIGKILL, (code, begun)
        runs.append(begun[:-1])
    raise AssertionError


def reaper(step: int, told: int) -> Callable[[str], None]:
    """Return a function that tells each step begun, and kills this process just before the one of that number."""
    steps = count()

    def begin(what: str) -> None:
        os.write(told, what.strip().split("\n")[0][:100].encode(errors="replace") + b"\n")
        if next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    return begin


def trace_statements(begin: Callable[[str], None]) -> None:
    """Let every connection that this process opens from now on tell each statement before it runs."""
    connect = sqlite3.connect

    def connect_traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.set_trace_callback(begin)
        return connection

    sqlite3.connect = connect_traced  # type: ignore[assignment]


def concerns(place: str, path: object) -> bool:
    """Say whether a change is below a place; a bare name is relative to a directory that is open."""
    return isinstance(path, (str, bytes)) and (place in str(path) or not os.path.isabs(path))


def _run_and_die(step: int, place: str, told: int, act: Callable[..., object], arguments: tuple[object, ...]) -> None:
    begin = reaper(step, told)

    def watch(event: str, given: tuple[Any, ...]) -> None:
        if event in _CHANGES and concerns(place, given[0]):
            begin(f"{event} {os.path.basename(str(given[1 if event == 'os.link' else 0]))}")

    trace_statements(begin)
    sys.addaudithook(watch)
    act(place, *arguments)
    begin("return")
