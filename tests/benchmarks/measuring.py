"""Medians of runs that take turns, so that a machine whose speed drifts is unfair to nobody."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class Measured:
    """Numbers of several runs, seconds as a rule."""

    def __init__(self, numbers: Sequence[float]) -> None:
        self._numbers = sorted(numbers)

    @property
    def median(self) -> float:
        """The middle one, in the unit of the numbers."""
        return self._numbers[len(self._numbers) // 2]

    @property
    def milliseconds(self) -> str:
        """The median of seconds, as text."""
        return f"{self.median * 1e3:.2f} ms"

    def percentile(self, percent: int) -> float:
        """Return a percentile, in the unit of the numbers."""
        return self._numbers[min(len(self._numbers) - 1, len(self._numbers) * percent // 100)]

    def over(self, other: Measured) -> str:
        """Return the ratio of the medians, as text."""
        return f"{self.median / other.median:.2f}"


def row(what: str, against: str, this: str, that: str = "", ratio: str = "") -> str:
    """Return one row of the table of results."""
    return f"| {what} | {against} | {this} | {that} | {ratio} |"


def in_turn(calls: Mapping[str, Callable[[], object]], runs: int, *, warmup: int = 3) -> dict[str, Measured]:
    """Run every call once, then every call again, and so on; return the seconds that each took."""
    took: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(-warmup, runs):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if turn >= 0:
                took[name].append(time.perf_counter() - start)
    return {name: Measured(seconds) for name, seconds in took.items()}
