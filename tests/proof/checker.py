"""Decide, task by task, whether what callers were told can have happened in one order.

The search is Wing and Gong's with Lowe's memory of what was tried: of the calls not placed yet, any one may come next
before whose begin no other unplaced call ended; the model says whether its answer fits the state; a pair of (calls
placed, state) is never tried twice. A call without an answer may be placed at any time after its begin, or never.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.proof.lifecycle import FOREVER, Call, State, by_itself, first, fitting, outcomes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

EFFORT = 400_000
"""Pairs of placed calls and state that a search may visit; more is reported as undecided, which nobody calls proved."""


class Verdict(NamedTuple):
    """What became of one search."""

    holds: bool
    why: str = ""
    visited: int = 0


def linearizable(calls: Iterable[Call], *, archives: bool = False) -> Verdict:
    """Say whether some order of the calls on one task, within their times, gives every answer that was told.

    Args:
        calls: all calls that named the task, or were told of it.
        archives: whether somebody archives finished tasks meanwhile.
    """
    order = sorted(calls, key=lambda call: (call.begun, call.ended))
    wanted = sum(1 << place for place, call in enumerate(order) if not call.optional)
    every = (1 << len(order)) - 1
    stack: list[tuple[int, State | None, tuple[int, ...]]] = [(every, None, ())]
    tried: set[tuple[int, State | None]] = set()
    farthest: tuple[int, ...] = ()
    after: State | None = None
    while stack:
        left, state, path = stack.pop()
        if not left & wanted:
            return Verdict(holds=True, visited=len(tried))
        if (left, state) in tried:
            continue
        tried.add((left, state))
        if len(tried) > EFFORT:
            return Verdict(holds=False, why="undecided: too many orders are possible", visited=len(tried))
        if len(path) > len(farthest) or after is None:
            farthest, after = path, state
        following: list[tuple[int, State | None, tuple[int, ...]]] = []
        for place in _next(order, left, wanted):
            call = order[place]
            for outcome in first(call) if state is None else outcomes(state, call):
                fits = fitting(outcome, call)
                if fits is not None:
                    following.append((left & ~(1 << place), fits, (*path, place)))
        if state is not None:  # tried last: most calls need nothing to have happened by itself
            following += [(left, moved, path) for moved in by_itself(state, archives=archives)]
        stack += reversed(following)
    return Verdict(holds=False, why=_explain(order, wanted, farthest, after), visited=len(tried))


def _next(order: Sequence[Call], left: int, wanted: int) -> Iterator[int]:
    """Yield the places of the calls that may come next."""
    bound = FOREVER
    places: list[int] = []
    remaining = left
    while remaining:
        place = (remaining & -remaining).bit_length() - 1
        remaining &= remaining - 1
        call = order[place]
        if call.begun > bound:
            break
        places.append(place)
        if wanted >> place & 1:
            bound = min(bound, call.ended)
    for place in places:
        if order[place].begun <= bound:
            yield place


def _explain(order: Sequence[Call], wanted: int, path: Sequence[int], after: State | None) -> str:
    placed = [order[place] for place in path]
    left = sum(1 << place for place in range(len(order)) if place not in path)
    stuck = [order[place] for place in _next(order, left, wanted) if wanted >> place & 1]
    lines = ["no order of the calls gives these answers; the longest one that begins well:"]
    lines += [f"  {_line(call)}" for call in placed[-12:]]
    lines += [f"  then the task is {after}", "  and none of these fits:"]
    return "\n".join(lines + [f"  {_line(call)}" for call in stuck])


def _line(call: Call) -> str:
    ended = "open" if call.ended >= FOREVER else str(call.ended)
    return f"{call.id} [{call.begun}, {ended}] {call.verb} by {call.agent or call.person} {call.args}: {call.answer}"
