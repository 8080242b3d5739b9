"""What hooks are owed: rows written with the change that they are told of, until each is delivered or given up."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .service import Board


def deliver_due(board: Board) -> int:
    """Deliver what is due, some of it; return how many deliveries were made."""
    return 0
