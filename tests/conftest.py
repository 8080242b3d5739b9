"""Fixtures that every test may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import Clock, open_board

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_task_board import Board


@pytest.fixture(autouse=True)
def quiet_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what the developer's shell says about boards and agents out of the tests."""
    for name in (
        "ATB_ACTOR",
        "ATB_AGENT",
        "ATB_CONFIG",
        "ATB_DATA_DIR",
        "ATB_FORMAT",
        "ATB_TOKEN",
        "NO_COLOR",
    ):
        monkeypatch.delenv(name, raising=False)


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
