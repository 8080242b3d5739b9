"""How long a failed task waits before its next attempt."""

from __future__ import annotations


def delay(attempts: int, *, base: int, cap: int) -> int:
    """Return the wait after ``attempts`` attempts of the current budget, in the unit of ``base`` and ``cap``.

    The wait is ``base`` after the first attempt, doubles after each further one, and never exceeds ``cap``.
    """
    doublings = min(max(attempts, 1) - 1, 62)  # no cap is larger; more would only make a huge number
    return min(base << doublings, cap)
