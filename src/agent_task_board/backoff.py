"""How long a failed task waits before its next attempt."""

from __future__ import annotations


def delay(attempts: int, *, base: int, cap: int) -> int:
    """Return the wait after ``attempts`` claims of the present budget, in the unit of ``base`` and ``cap``.

    The wait doubles with each attempt (``base``, twice, four times …) and never exceeds ``cap``.
    """
    doublings = min(max(attempts, 1) - 1, 62)  # beyond that every cap is reached, and the shift would only grow
    return min(base << doublings, cap)
