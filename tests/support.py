"""What several tests share: a clock that they move, and a board that stands on it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from agent_task_board import Actor, Board, BoardError

if TYPE_CHECKING:
    from collections.abc import Iterator

MARIA = Actor("maria", "human")
"""A person who never claims anything."""


class Clock:
    """Milliseconds since 1970, moved by the test alone."""

    def __init__(self) -> None:
        self.now = 1_796_000_000_000  # 2026-11-30T00:53:20Z

    def __call__(self) -> int:
        return self.now

    def advance(self, *, days: int = 0, minutes: int = 0, seconds: float = 0) -> None:
        """Move the clock; a negative length sets it back."""
        self.now += int(((days * 24 * 60 + minutes) * 60 + seconds) * 1_000)


def open_board(directory: object, clock: Clock | None = None) -> Board:
    """Return a board in a directory, on a clock of the test or on the real one."""
    return Board(str(directory), actor=MARIA, **({} if clock is None else {"clock": clock}))  # type: ignore[arg-type]


@contextlib.contextmanager
def refused(code: str, reason: str | None = None) -> Iterator[pytest.ExceptionInfo[BoardError]]:
    """Expect a refusal with this code and, for a conflict, this reason."""
    with pytest.raises(BoardError) as caught:
        yield caught
    assert caught.value.code == code, caught.value
    if reason is not None:
        assert caught.value.details["reason"] == reason, caught.value
