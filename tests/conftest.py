"""Fixtures that every test may ask for."""

from __future__ import annotations

import compileall
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import agent_task_board
from tests.support import Clock, open_board

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_task_board import Board


LONGEST = """
test_readme test_proof test_browser test_browser_views test_browser_trouble test_processes test_crash test_mcp_wire
test_mcp test_setup
""".split()
"""Files that take long; begun first, they do not keep one worker busy at the end while the other has nothing to do."""


def pytest_configure() -> None:
    """Let Ctrl-C reach the processes that tests start, also where this one was told to ignore it; compile the sources.

    A fresh clone has no bytecode, and where none is to be written each of thousands of processes would make its own.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        compileall.compile_dir(Path(__file__).parent, quiet=2)
        compileall.compile_dir(Path(agent_task_board.__file__).parent, quiet=2)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """Return one worker more than there are processors: many tests wait for processes, browsers and disks."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first."""
    order = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(Path(item.path).stem, len(LONGEST)))


@pytest.fixture(autouse=True)
def quiet_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what the developer's shell says about boards and agents out of the tests."""
    for name in list(os.environ):
        if name.startswith("ATB_") or name == "NO_COLOR":
            monkeypatch.delenv(name)


@pytest.fixture
def clock() -> Clock:
    """Return a clock that stands still until the test moves it."""
    return Clock()


@pytest.fixture
def board(tmp_path: Path, clock: Clock) -> Iterator[Board]:
    """Return an empty board in a directory of its own, on the test's clock."""
    board = open_board(tmp_path / "data", clock)
    yield board
    board.close()
