"""What several tests share: a clock that they move, and a board that stands on it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from agent_task_board import Actor, Board, BoardError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_task_board import Lease, Receipt, Task

STATUSES = ("queued", "claimed", "running", "review", "done", "failed", "cancelled")
WRONG_TOKEN = "0" * 32

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


def left(receipt: Receipt | None) -> list[tuple[str, str, str]]:
    """Return kind, author and text of the notes that a claim hands on; the board's own warnings hold none of them."""
    assert receipt is not None
    assert not any(note["text"] in warning for note in receipt.notes for warning in receipt.warnings)
    return [(note["kind"], note["actor"], note["text"]) for note in receipt.notes]


@contextlib.contextmanager
def refused(code: str, reason: str | None = None) -> Iterator[pytest.ExceptionInfo[BoardError]]:
    """Expect a refusal with this code and, for a conflict, this reason."""
    with pytest.raises(BoardError) as caught:
        yield caught
    assert caught.value.code == code, caught.value
    if reason is not None:
        assert caught.value.details["reason"] == reason, caught.value


class Held(NamedTuple):
    """A task that a test works on, with the token of its holder; a wrong one where nobody holds it."""

    id: str
    token: str
    task: Task


def lease_of(receipt: object) -> Lease:
    """Return the lease that a receipt must have."""
    lease: Lease | None = getattr(receipt, "lease", None)
    assert lease is not None
    return lease


def hold(board: Board, agent: str = "ada", **options: Any) -> Held:
    """Claim a task that must be there."""
    receipt = board.claim(agent, **options)
    assert receipt is not None
    return Held(receipt.task.id, lease_of(receipt).token, receipt.task)


def bring_to(board: Board, status: str, *, agent: str = "ada", **fields: Any) -> Held:
    """Add a task and lead it to a status by the verbs of its lifecycle."""
    task = board.add("a task", needs_approval=status == "review", **fields).task
    if status == "queued":
        return Held(task.id, WRONG_TOKEN, task)
    if status == "cancelled":
        return Held(task.id, WRONG_TOKEN, board.cancel(task.id).task)
    held = hold(board, agent, task=task.id)
    if status == "running":
        task = board.heartbeat(held.id, held.token).task
    elif status in ("review", "done"):
        task = board.complete(held.id, held.token, result={"ok": True}).task
    elif status == "failed":
        task = board.fail(held.id, held.token, "no way", no_retry=True).task
    else:
        task = held.task
    assert task.status == status
    return Held(held.id, held.token, task)


def everything(board: Board) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row of every table, to prove that a refusal changed nothing."""
    with board.database.read() as tx:
        names = [row[0] for row in tx.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
        return {name: [tuple(row) for row in tx.execute(f"SELECT * FROM {name}")] for name in names}


def revision(board: Board) -> int:
    """Return the board's revision."""
    number: int = everything(board)["board"][0][1]
    return number


def kinds(board: Board, task: str) -> list[str]:
    """Return the kinds of a task's events, oldest first."""
    return [event["kind"] for event in board.events(task=task)["events"]]


def last_event(board: Board, task: str) -> dict[str, Any]:
    """Return the latest event of a task."""
    return dict(board.events(task=task)["events"][-1])


def moved(data: dict[str, Any]) -> tuple[int, int]:
    """Return how many tasks an import brought and skipped; it updated and ignored none."""
    assert (data["updated"], data["ignored"]) == (0, 0)
    return data["imported"], data["skipped"]
