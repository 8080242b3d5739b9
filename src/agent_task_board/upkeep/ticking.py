"""What time alone brings about: leases that run out, schedules that come due, the archive, and what hooks are owed."""

from __future__ import annotations

from .. import instants
from ..board.archive import archive_by_age
from ..board.core import BATCH
from ..hooks.outbox import deliver_due
from ..schedules.registry import run_due

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..service import Board


def tick(board: Board, warnings: list[str]) -> dict[str, Any]:
    """Do what ``Board.tick`` promises: each part in small transactions, the next one whatever is left of the last."""
    expired = _expire(board)
    created, pending = run_due(board, warnings)
    archive_by_age(board)
    delivered = deliver_due(board)
    return {"expired": expired, "created": created, "delivered": delivered, "catchup_pending": pending}


def _expire(board: Board) -> int:
    """Take back dead leases and promote delayed tasks until none is left; return how many leases."""
    expired = 0
    while True:
        with board._db.write() as tx:
            dead, promoted = board._sweep(tx, instants.to_text(board._clock()))
        expired += dead
        if max(dead, promoted) < BATCH:
            return expired
