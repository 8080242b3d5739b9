"""Fixtures that every test may ask for."""

from __future__ import annotations

import compileall
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

import agent_task_board
from tests.support import Clock, open_board

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_task_board import Board


settings.register_profile("ours", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ours")  # a busy machine is no fault of the code

FIRST = """
test_readme test_proof test_crash test_http_wire test_browser test_cli test_browser_views test_http_api test_mcp_wire
test_browser_trouble test_documents test_processes test_backup test_demo test_cli_errors test_openapi test_turnstile
"""
"""Files that take long, those with many short tests among them: begun first, they do not keep one worker busy at the
end while the others have nothing to do, and dots appear from the beginning."""


class Progress:
    """Says at once what is coming: with several workers, pytest itself is silent until each has read every file."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._is_told = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Say how long it takes, where everything is asked for."""
        if self._config.args_source == pytest.Config.ArgsSource.TESTPATHS and not self._config.option.keyword:
            self._say("about four minutes on two idle processors; one dot is one test that passed")

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Say how many tests there are, as soon as one worker knows."""
        if not self._is_told:
            self._is_told = True
            self._say(f"{len(ids):,} tests")

    def _say(self, text: str) -> None:
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(text)
            reporter.flush()


def pytest_configure(config: pytest.Config) -> None:
    """Let Ctrl-C reach the processes that tests start, also where this one was told to ignore it; compile the sources.

    A fresh clone has no bytecode, and where none is to be written each of thousands of processes would make its own.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(Progress(config), "progress")
        compileall.compile_dir(Path(__file__).parent, quiet=2)
        compileall.compile_dir(Path(agent_task_board.__file__).parent, quiet=2)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """Return one worker more than there are processors: many tests wait for processes, browsers and disks."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files first that are to come first."""
    order = {name: place for place, name in enumerate(FIRST.split())}
    items.sort(key=lambda item: order.get(Path(item.path).stem, len(order)))


@pytest.fixture(autouse=True)
def quiet_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep what the developer's shell says about boards and agents out of the tests, and these out of its state."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))
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
