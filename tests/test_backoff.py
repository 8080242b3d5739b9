"""How long a failed task waits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_task_board.backoff import delay

DAY = 86_400


@pytest.mark.parametrize(
    ("attempts", "wait"),
    [(1, 30), (2, 60), (3, 120), (4, 240), (11, 30_720), (12, 61_440), (13, DAY), (14, DAY), (1_000, DAY)],
)
def test_wait_doubles_from_thirty_seconds_up_to_a_day(attempts: int, wait: int) -> None:
    assert delay(attempts, base=30, cap=DAY) == wait


def test_cap_below_the_base_is_the_wait_from_the_first() -> None:
    assert delay(1, base=30, cap=10) == 10


def test_base_of_nothing_never_waits() -> None:
    assert [delay(attempts, base=0, cap=DAY) for attempts in (1, 2, 99)] == [0, 0, 0]


@given(attempts=st.integers(1, 10_000), base=st.integers(0, 10**9), cap=st.integers(0, 10**12))
def test_wait_never_shrinks_and_never_exceeds_its_cap(attempts: int, base: int, cap: int) -> None:
    wait = delay(attempts, base=base, cap=cap)
    assert min(base, cap) <= wait <= delay(attempts + 1, base=base, cap=cap) <= cap
