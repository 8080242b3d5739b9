"""Claims, leases and what ends them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support import refused

if TYPE_CHECKING:
    from agent_task_board import Board
    from tests.support import Clock


def test_stale_holder_cannot_complete_after_takeover(board: Board, clock: Clock) -> None:
    board.add("write the parser")
    first = board.claim("ada")
    assert first is not None
    assert first.lease is not None
    clock.advance(minutes=16)
    second = board.claim("bob")
    assert second is not None
    with refused("lease_lost") as caught:
        board.complete(first.task.id, first.lease.token)
    assert caught.value.details["actual"]["claimed_by"] == "bob"
